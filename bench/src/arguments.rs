//! One check of a call's arguments against a schema of five properties, the validator compiled
//! before: what every call pays.

use std::{hint::black_box, time::Instant};

use toolcrib_core::{
    check::look_over,
    limits::Limits,
    raw::Raw,
    surface::{Item as _, Tool},
};

use crate::measure::{Result, middle, say, verdict};

const TOOL: &str = r#"{"name":"search","inputSchema":{"type":"object","required":["query","limit"],
    "properties":{
        "query":{"type":"string","minLength":1,"maxLength":500},
        "limit":{"type":"integer","minimum":1,"maximum":100},
        "kind":{"type":"string","enum":["page","issue","file"]},
        "tags":{"type":"array","items":{"type":"string"},"maxItems":10},
        "exact":{"type":"boolean"}}}}"#;

const ARGUMENTS: &str = r#"{"query":"how are names made portable","limit":20,"kind":"page",
    "tags":["names","catalog"],"exact":false}"#;

/// Checks in one sample.
const CHECKS: u32 = 20_000;

/// The time of one check: the median of `rounds` samples.
///
/// # Errors
/// The arguments do not fit, so that something else would be measured.
pub(crate) fn report(rounds: usize) -> Result<()> {
    say("arguments: one cached check, five properties")?;
    let tool = Tool::read(Raw::parse(TOOL)?, &mut Vec::new()).ok_or("no tool")?;
    let checks = look_over([&tool].into_iter(), &Limits::default(), |_| None);
    let [(_, check)] = &checks[..] else { return Err("no check".into()) };
    let arguments = Raw::parse(ARGUMENTS)?;
    let fits = || check.arguments(black_box(Some(&arguments))).is_ok();
    if !fits() || check.arguments(Some(&Raw::empty_object())).is_ok() {
        return Err("the check does not judge".into());
    }
    let samples = (0..rounds).map(|_| {
        let begin = Instant::now();
        for _ in 0..CHECKS {
            black_box(fits());
        }
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(CHECKS)
    });
    verdict("one check", middle(samples.collect()), 2.0, " µs")
}
