//! The `--json` shapes: one object per run on one line, its first member naming the shape and its
//! version. What servers sent is written again as it came, member for member.

use std::io;

use serde::Serialize;

use super::out::Out;
use crate::failure::Failure;

/// Names a shape, with the version that grows when a member changes its meaning or goes away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format(pub(crate) &'static str);

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("toolcrib/{}/1", self.0))
    }
}

/// Writes one object.
pub(crate) fn print(out: &mut Out, value: &impl Serialize) -> io::Result<()> {
    out.line(serde_json::to_string(value)?)
}

/// Writes a failure.
pub(crate) fn print_failure(out: &mut Out, failure: &Failure) -> io::Result<()> {
    #[derive(Serialize)]
    struct Failed<'a> {
        format: Format,
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        code: toolcrib_core::code::Code,
        message: &'a str,
        hints: &'a [String],
    }
    let error = Error { code: failure.code, message: &failure.message, hints: &failure.hints };
    print(out, &Failed { format: Format("error"), error })
}
