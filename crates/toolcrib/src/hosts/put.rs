//! One entry put into the text of a file, with everything else kept byte for byte.
//!
//! Whatever an editor does is read again and compared: a text in which anything but the entry has
//! changed is never handed on.

use serde_json::Value as Json;

use super::{put_json, put_toml, put_yaml, read, table::Format, tree};
use crate::config::{problem::Problem, text::Source};

/// The text with the entry at the end of the path, in place of one that is there.
///
/// # Errors
/// The text cannot be read, or the entry cannot be put there without touching anything else.
pub(crate) fn put(
    format: Format,
    source: &Source,
    path: &[&str],
    value: &Json,
) -> Result<String, Problem> {
    let before = read::parse(format, source)?;
    let text = match format {
        Format::Json => put_json::put(&source.text, path, value),
        Format::Toml => put_toml::put(&source.text, path, value),
        Format::Yaml => put_yaml::put(source, before.as_ref(), path, value),
    };
    let text = text.map_err(|what| Problem::file(&source.file, what))?;
    let again = Source::decode(&source.file, text.as_bytes())
        .ok()
        .and_then(|source| read::parse(format, &source).ok().flatten());
    match again {
        Some(after) if tree::differs_only(before.as_ref(), &after, path, &tree::of(value)) => {
            Ok(text)
        }
        _ => {
            let what = "the entry cannot be put in without touching something else; add it by hand";
            Err(Problem::file(&source.file, what))
        }
    }
}
