//! What happens while something is watched: a line of text with the time of day, or one JSON object
//! a line.

use std::io;

use jiff::{Timestamp, ZonedDateTime};
use serde::Serialize;
use toolcrib_core::{raw::Raw, sanitise, surface::ListKind};
use toolcrib_engine::Status;

use super::{
    json::{self, Format},
    out::Out,
};

/// Most names one line of text shows of each group.
const NAMES: usize = 20;

/// Something to be shown.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Shown<'a> {
    /// A server is being watched from now on. Only for scripts.
    Watching {
        server: &'a str,
        #[serde(flatten)]
        status: &'a Status,
        /// The lists whose changes it announces.
        announced: Vec<ListKind>,
        /// How often its other lists are read again at most, in seconds; absent when it has none.
        reread_s: Option<u64>,
    },
    /// A server stands otherwise than before.
    Status {
        server: &'a str,
        #[serde(flatten)]
        status: &'a Status,
    },
    /// A list holds other items than before.
    Items {
        server: &'a str,
        kind: ListKind,
        added: &'a [String],
        removed: &'a [String],
        changed: &'a [String],
    },
    /// A resource is being followed from now on.
    Following {
        server: &'a str,
        uri: &'a str,
        /// True when the server announces updates; else it is read again from time to time.
        announced: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Raw>,
    },
    /// A resource was updated.
    Updated {
        server: &'a str,
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Raw>,
    },
    /// Updates are announced again; some may have been missed.
    Resumed { server: &'a str, uri: &'a str },
    /// Updates are not announced for the time being.
    Interrupted { server: &'a str, uri: &'a str, why: &'a str },
    /// A resource could not be read.
    Unread { server: &'a str, uri: &'a str, why: &'a str },
    /// So much was said that some of it was lost.
    Missed { events: u64 },
}

/// Writes one event.
pub(crate) fn print(out: &mut Out, as_json: bool, shown: &Shown<'_>) -> io::Result<()> {
    if as_json {
        #[derive(Serialize)]
        struct Line<'a> {
            format: Format,
            time: String,
            #[serde(flatten)]
            shown: &'a Shown<'a>,
        }
        let time = format!("{:.3}", Timestamp::now());
        return json::print(out, &Line { format: Format("watch"), time, shown });
    }
    match text(shown) {
        Some(text) => out.line(format!("{}  {text}", ZonedDateTime::now().strftime("%H:%M:%S"))),
        None => Ok(()),
    }
}

/// The words of one event, sanitised; `None` for what is only for scripts.
fn text(shown: &Shown<'_>) -> Option<String> {
    let uri = |uri: &str| sanitise::line(uri, 300);
    let why = |why: &str| sanitise::line(why.lines().next().unwrap_or_default(), 300);
    Some(match shown {
        Shown::Watching { .. } => return None,
        Shown::Following { server, uri: of, .. } => format!("{server}  following {}", uri(of)),
        Shown::Status { server, status } => match status.why() {
            Some(reason) => format!("{server}  {}: {}", status.word(), why(reason)),
            None => format!("{server}  {}", status.word()),
        },
        Shown::Items { server, kind, added, removed, changed } => {
            let groups = [("added", added), ("removed", removed), ("changed", changed)];
            let groups = groups.into_iter().filter(|(_, names)| !names.is_empty());
            let groups: Vec<_> =
                groups.map(|(what, names)| format!("{what} {}", some(names))).collect();
            format!("{server}  {}: {}", plural(*kind), groups.join("; "))
        }
        Shown::Updated { server, uri: of, .. } => format!("{server}  updated {}", uri(of)),
        Shown::Resumed { server, uri: of } => {
            format!("{server}  following {} again; updates may have been missed", uri(of))
        }
        Shown::Interrupted { server, uri: of, why: reason } => {
            format!("{server}  not following {}: {}", uri(of), why(reason))
        }
        Shown::Unread { server, uri: of, why: reason } => {
            format!("{server}  cannot read {}: {}", uri(of), why(reason))
        }
        Shown::Missed { events } => format!("{events} updates came too fast and were lost"),
    })
}

/// A list in the words of the command line.
pub(crate) const fn plural(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "templates",
        ListKind::Prompts => "prompts",
    }
}

fn some(names: &[String]) -> String {
    let mut shown: Vec<_> =
        names.iter().take(NAMES).map(|name| sanitise::line(name, 120)).collect();
    if let Some(more) = names.len().checked_sub(NAMES + 1) {
        shown.push(format!("and {} more", more + 1));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_changed_and_nothing_that_steers_a_terminal() {
        let names: Vec<String> = (0..22).map(|n| format!("t{n}")).collect();
        let check = |shown: Shown<'_>, expect: &str| assert_eq!(text(&shown).unwrap(), expect);
        let (added, removed) = (["a\u{1b}[2J".to_owned()], ["b".to_owned()]);
        let kind = ListKind::ResourceTemplates;
        check(
            Shown::Items { server: "s", kind, added: &added, removed: &removed, changed: &[] },
            "s  templates: added a\\u{1b}[2J; removed b",
        );
        let kind = ListKind::Tools;
        let line =
            text(&Shown::Items { server: "s", kind, added: &names, removed: &[], changed: &[] });
        assert!(line.unwrap().ends_with("t18, t19, and 2 more"));
        check(Shown::Status { server: "s", status: &Status::Ready }, "s  ready");
        check(
            Shown::Interrupted { server: "s", uri: "a://b", why: "x\ny" },
            "s  not following a://b: x",
        );
    }
}
