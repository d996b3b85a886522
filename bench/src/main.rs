//! `toolcrib-bench list | fleet | arguments | all [ROUNDS]`: speed and memory against peers.
//!
//! Measurements, not tests: nothing fails when a target is missed, the line says so. See README.md.

use std::{env, num::NonZeroUsize, thread};

mod measure;
mod peer;
mod ours;
mod list;
mod fleet;
mod arguments;

use measure::{Result, say};

const USAGE: &str = "usage: toolcrib-bench list | fleet | arguments | all [ROUNDS]";

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["one", measurement, side] = args[..] {
        return one(measurement, side);
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
        "all" => {
            list::report(rounds)?;
            fleet::report(rounds)?;
            arguments::report(rounds)
        }
        _ => Err(USAGE.into()),
    }
}

/// One side in this process; its sample goes to standard output.
fn one(measurement: &str, side: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sample = runtime.block_on(async {
        match measurement {
            "list" => list::one(side).await,
            "fleet" => fleet::one(side).await,
            _ => Err(USAGE.into()),
        }
    })?;
    say(serde_json::to_string(&sample)?)
}
