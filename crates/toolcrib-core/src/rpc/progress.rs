//! `notifications/progress`, read (specification, basic/patterns/progress). Whether a token is ours
//! and progress grows is judged elsewhere.

use serde::Deserialize;

use crate::raw::Raw;

/// How far a request has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done, in a unit that the server chose; it only grows.
    pub progress: f64,
    /// How much there is to do in the same unit, when that is known.
    pub total: Option<f64>,
    /// What is going on; untrusted, to be sanitised before it goes to a terminal.
    pub message: Option<String>,
    /// All parameters as sent.
    pub raw: Raw,
}

impl Progress {
    /// Reads the parameters; gives the token beside them. A total or a message of a wrong type
    /// reads as absent; without a token and a number there is no progress.
    pub fn read(params: &Raw) -> Option<(Raw, Self)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            progress_token: Raw,
            progress: f64,
            #[serde(default)]
            total: Option<Raw>,
            #[serde(default)]
            message: Option<Raw>,
        }
        let Members { progress_token, progress, total, message } = params.read().ok()?;
        let total = total.and_then(|total| total.read().ok());
        let message = message.and_then(|message| message.read().ok());
        Some((progress_token, Self { progress, total, message, raw: params.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_members_cost_no_progress() {
        let check = |text: &str, expect: Option<(f64, Option<f64>, Option<&str>)>| {
            let read = Progress::read(&Raw::parse(text).unwrap()).map(|(_, progress)| progress);
            let read = read.as_ref().map(|it| (it.progress, it.total, it.message.as_deref()));
            assert_eq!(read, expect, "{text}");
        };
        check(r#"{"progressToken":1,"progress":2,"total":4}"#, Some((2.0, Some(4.0), None)));
        check(
            r#"{"progressToken":"a","progress":0.5,"total":"x","message":"on it"}"#,
            Some((0.5, None, Some("on it"))),
        );
        check(r#"{"progressToken":1,"progress":"2"}"#, None);
        check(r#"{"progress":2}"#, None);
        check("[1]", None);
    }
}
