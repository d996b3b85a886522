//! `toolcrib-bench list | fleet | arguments | serve | all [ROUNDS]`: speed and memory against peers.
//!
//! Measurements, not tests: nothing fails when a target is missed, the line says so. See README.md.

use std::{env, num::NonZeroUsize, thread};

mod measure;
mod peer;
mod ours;
mod list;
mod fleet;
mod arguments;
mod serve;

use measure::{Result, say};

const USAGE: &str = "usage: toolcrib-bench list | fleet | arguments | serve | all [ROUNDS]";

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["one", measurement, side] = args[..] {
        return one(measurement, side);
    }
    if let ["host", side, tools] = args[..] {
        return runtime()?.block_on(serve::host(side, tools.parse()?));
    }
    let (what, rounds) = match args[..] {
        [what] => (what, 15),
        [what, rounds] => (what, rounds.parse::<NonZeroUsize>()?.get()),
        _ => return Err(USAGE.into()),
    };
    if cfg!(debug_assertions) {
        say("a debug build measures nothing: use cargo run --release")?;
    }
    say(format_args!("{} cores, {rounds} rounds", thread::available_parallelism()?))?;
    match what {
        "list" => list::report(rounds),
        "fleet" => fleet::report(rounds),
        "arguments" => arguments::report(rounds),
        "serve" => serve::report(rounds),
        "all" => {
            list::report(rounds)?;
            fleet::report(rounds)?;
            arguments::report(rounds)?;
            serve::report(rounds)
        }
        _ => Err(USAGE.into()),
    }
}

/// One side in this process; its sample goes to standard output.
fn one(measurement: &str, side: &str) -> Result<()> {
    let sample = runtime()?.block_on(async {
        match measurement {
            "list" => list::one(side).await,
            "fleet" => fleet::one(side).await,
            _ => Err(USAGE.into()),
        }
    })?;
    say(serde_json::to_string(&sample)?)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
