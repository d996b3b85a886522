//! The frame of every measurement: each side runs in a process of its own, sides take turns, and
//! medians are compared within one run.
//!
//! A process of its own gives each side a fresh allocator and a peak memory that is its alone.
//! Nothing is compared with numbers of an earlier run or another machine.

use std::{
    env,
    error::Error,
    fmt::Display,
    io::{self, Write as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use toolcrib_testkit::process;

/// Any failure ends a measurement.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What one side measured in one process.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The part under measurement, in milliseconds.
    pub(crate) ms: f64,
    /// From before the first process was started, in milliseconds.
    pub(crate) total_ms: f64,
    /// Peak resident memory of the measuring process, in bytes.
    pub(crate) rss_bytes: u64,
    /// How many tools came out; the sides must agree.
    pub(crate) tools: usize,
}

impl Sample {
    /// A sample taken now: `begin` before anything was started, `from` where the part under
    /// measurement began.
    pub(crate) fn now(begin: Instant, from: Instant, tools: usize) -> Self {
        Self {
            ms: millis(from.elapsed()),
            total_ms: millis(begin.elapsed()),
            rss_bytes: process::peak_rss_bytes().unwrap_or_default(),
            tools,
        }
    }
}

/// Medians of one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Its name.
    pub(crate) name: &'static str,
    /// Medians of its samples.
    pub(crate) median: Sample,
}

/// Runs `measurement` once for each side in turn, `rounds` times over; the order is reversed every
/// other round, so that neither side always comes first.
///
/// # Errors
/// A side failed, or the sides saw different numbers of tools.
pub(crate) fn compare<const N: usize>(
    measurement: &str,
    sides: [&'static str; N],
    rounds: usize,
) -> Result<[Side; N]> {
    let mut samples: [Vec<Sample>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..rounds {
        for step in 0..N {
            let side = if round % 2 == 0 { step } else { N - 1 - step };
            samples[side].push(run(measurement, sides[side])?);
        }
    }
    let tools = samples[0][0].tools;
    if let Some(odd) = samples.iter().flatten().find(|sample| sample.tools != tools) {
        return Err(format!("sides disagree: {tools} and {} tools", odd.tools).into());
    }
    Ok(std::array::from_fn(|side| Side { name: sides[side], median: median(&samples[side]) }))
}

/// One side in a process of its own, which prints its sample as JSON.
fn run(measurement: &str, side: &str) -> Result<Sample> {
    let output = Command::new(env::current_exe()?)
        .args(["one", measurement, side])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{measurement} {side} failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn median(samples: &[Sample]) -> Sample {
    let of = |value: fn(&Sample) -> f64| middle(samples.iter().map(value).collect());
    Sample {
        ms: of(|sample| sample.ms),
        total_ms: of(|sample| sample.total_ms),
        rss_bytes: of(|sample| sample.rss_bytes as f64) as u64,
        tools: samples[0].tools,
    }
}

/// The middle value; of an even number the lower of the two.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// Prints a table of all sides.
///
/// # Errors
/// Standard output is gone.
pub(crate) fn table(sides: &[Side]) -> Result<()> {
    say("side          ms   total ms   peak MB")?;
    for Side { name, median } in sides {
        let peak = megabytes(median.rss_bytes);
        say(format_args!("{name:<9} {:>7.1} {:>10.1} {peak:>9.1}", median.ms, median.total_ms))?;
    }
    Ok(())
}

/// Prints a value beside the most it should be.
///
/// # Errors
/// Standard output is gone.
pub(crate) fn verdict(what: &str, value: f64, target: f64, unit: &str) -> Result<()> {
    let word = if value <= target { "met" } else { "MISSED" };
    say(format_args!("{what}: {value:.2}{unit} (target <= {target}{unit}: {word})"))
}

/// Prints a value beside the least it should be.
///
/// # Errors
/// Standard output is gone.
pub(crate) fn least(what: &str, value: f64, target: f64, unit: &str) -> Result<()> {
    let word = if value >= target { "met" } else { "MISSED" };
    say(format_args!("{what}: {value:.2}{unit} (target >= {target}{unit}: {word})"))
}

/// Prints one line.
///
/// # Errors
/// Standard output is gone.
pub(crate) fn say(line: impl Display) -> Result<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// In units of a million bytes.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
