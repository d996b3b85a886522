//! How a server is reached, as configured, and the expansion of `${VAR}` in it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use thiserror::Error;

use crate::{secret::Secret, version::EraPolicy};

/// One configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The name we chose for it; the first half of every qualified name.
    pub name: String,
    /// How to reach it.
    pub target: Target,
    /// False: kept in the configuration, never started.
    pub enabled: bool,
    /// Which era to speak.
    pub era: EraPolicy,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Which of its tools enter the catalog.
    pub tools: ToolFilter,
    /// Longest message accepted, in bytes, when it differs from the general limit.
    pub max_message_bytes: Option<usize>,
}

impl ServerConfig {
    /// A server with default settings.
    pub fn new(name: impl Into<String>, target: Target) -> Self {
        Self {
            name: name.into(),
            target,
            enabled: true,
            era: EraPolicy::Auto,
            timeouts: Timeouts::default(),
            tools: ToolFilter::default(),
            max_message_bytes: None,
        }
    }

    /// A server that is a child process, with default settings. No shell is involved.
    pub fn command(
        name: impl Into<String>,
        program: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        let command = Command { program: program.into(), args, ..Command::default() };
        Self::new(name, Target::Command(command))
    }

    /// A server at a URL, with default settings.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, Target::Http(Endpoint::new(url)))
    }
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A child process that speaks on its standard streams.
    Command(Command),
    /// An HTTP endpoint.
    Http(Endpoint),
}

/// A child process. Never run through a shell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Program name or path.
    pub program: String,
    /// Arguments, one entry each.
    pub args: Vec<String>,
    /// Environment on top of the small set every child gets.
    pub env: BTreeMap<String, Secret>,
    /// Working directory; ours when absent.
    pub cwd: Option<PathBuf>,
}

/// An HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where requests are posted.
    pub url: String,
    /// Headers sent with every request to this origin.
    pub headers: BTreeMap<String, Secret>,
    /// Which HTTP transport to speak.
    pub flavor: HttpFlavor,
    /// File of additional root certificates (PEM).
    pub ca_file: Option<PathBuf>,
    /// File with a client certificate and its key (PEM).
    pub client_cert_file: Option<PathBuf>,
}

impl Endpoint {
    /// An endpoint with default settings.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: BTreeMap::new(),
            flavor: HttpFlavor::Auto,
            ca_file: None,
            client_cert_file: None,
        }
    }
}

/// Which HTTP transport an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpFlavor {
    /// Streamable HTTP, and the old HTTP+SSE when the endpoint shows it is that.
    #[default]
    Auto,
    /// Streamable HTTP only.
    Streamable,
    /// The HTTP+SSE transport of 2024-11-05 only.
    OldSse,
}

/// How long to wait, each for its own thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From starting a server to a finished handshake.
    pub start: Duration,
    /// For an answer to `server/discover` before `initialize` is sent as well.
    pub probe: Duration,
    /// For an answer to a list request.
    pub list: Duration,
    /// For an answer to a call; progress extends it up to `call_max`.
    pub call: Duration,
    /// For an answer to a call, whatever progress says.
    pub call_max: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            list: Duration::from_secs(30),
            call: Duration::from_secs(60),
            call_max: Duration::from_secs(600),
        }
    }
}

/// Which tools of a server enter the catalog, by exact name or with `*` as a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// When not empty, only these.
    pub include: Vec<String>,
    /// Never these.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// True when a tool of this name is let in.
    pub fn allows(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A variable that the configuration names and nothing sets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpandError {
    /// `${NAME}` without a default, and NAME is not set.
    #[error("variable {name} is not set (in {place}); set it, or write ${{{name}:-default}}")]
    Unset {
        /// The variable.
        name: String,
        /// Where it stands.
        place: String,
    },
    /// `${` without `}`.
    #[error("`${{` without `}}` in {place}")]
    Unclosed {
        /// Where it stands.
        place: String,
    },
}

impl Target {
    /// Replaces `${VAR}` and `${VAR:-default}` in command, args, env, cwd, url and headers, with
    /// `lookup` giving the values. Values are not expanded again.
    ///
    /// # Errors
    /// A variable is neither set nor has a default, or a `${` is never closed.
    pub fn expand(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ExpandError> {
        let text = |text: &str, place: &str| expand(text, place, lookup);
        let secrets = |map: &BTreeMap<String, Secret>, place: &str| {
            map.iter()
                .map(|(key, value)| {
                    let value = expand(value.expose(), &format!("{place} {key}"), lookup)?;
                    Ok((key.clone(), Secret::new(value)))
                })
                .collect::<Result<BTreeMap<_, _>, ExpandError>>()
        };
        let path = |path: &Option<PathBuf>, place: &str| {
            path.as_ref()
                .map(|path| text(&path.to_string_lossy(), place).map(PathBuf::from))
                .transpose()
        };
        Ok(match self {
            Self::Command(command) => Self::Command(Command {
                program: text(&command.program, "command")?,
                args: command.args.iter().map(|arg| text(arg, "args")).collect::<Result<_, _>>()?,
                env: secrets(&command.env, "env")?,
                cwd: path(&command.cwd, "cwd")?,
            }),
            Self::Http(endpoint) => Self::Http(Endpoint {
                url: text(&endpoint.url, "url")?,
                headers: secrets(&endpoint.headers, "header")?,
                flavor: endpoint.flavor,
                ca_file: path(&endpoint.ca_file, "ca_file")?,
                client_cert_file: path(&endpoint.client_cert_file, "client_cert_file")?,
            }),
        })
    }

    /// One line for a person: the command line or the URL, without secrets (user info and query
    /// of a URL are left out).
    pub fn summary(&self) -> String {
        match self {
            Self::Command(command) => {
                let mut words = vec![command.program.as_str()];
                words.extend(command.args.iter().map(String::as_str));
                crate::sanitise::line(&words.join(" "), 200)
            }
            Self::Http(endpoint) => crate::sanitise::line(&redact_url(&endpoint.url), 200),
        }
    }
}

/// A URL without user info, query and fragment.
pub fn redact_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => bare.to_owned(),
    }
}

fn expand(
    text: &str,
    place: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let body = &rest[at + 2..];
        let end =
            body.find('}').ok_or_else(|| ExpandError::Unclosed { place: place.to_owned() })?;
        let (name, default) = match body[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&body[..end], None),
        };
        match (lookup(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(ExpandError::Unset { name: name.to_owned(), place: place.to_owned() });
            }
        }
        rest = &body[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/me".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${HOME}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_expand_once_and_defaults_stand_in() {
        let check = |text: &str, expect: &str| {
            assert_eq!(expand(text, "args", &lookup).as_deref(), Ok(expect), "{text}");
        };
        check("plain $HOME", "plain $HOME");
        check("${HOME}/x", "/home/me/x");
        check("${NONE:-d}", "d");
        check("${EMPTY:-d}", "d");
        check("${EMPTY}", "");
        check("${TRICK}", "${HOME}");
        check("${NONE:-}", "");
    }

    #[test]
    fn an_unset_variable_is_named_with_its_place() {
        let error = expand("x ${NONE}", "env TOKEN", &lookup).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable NONE is not set (in env TOKEN); set it, or write ${NONE:-default}"
        );
        assert!(expand("${HOME", "url", &lookup).is_err());
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let check = |url: &str, expect: &str| assert_eq!(redact_url(url), expect);
        check("https://u:p@h.example/mcp?key=s#f", "https://h.example/mcp");
        check("http://127.0.0.1:9", "http://127.0.0.1:9");
        check("https://h.example/a@b", "https://h.example/a@b");
    }

    #[test]
    fn filters_match_by_name_or_wildcard() {
        let filter = ToolFilter {
            include: vec!["read_*".into(), "x".into()],
            exclude: vec!["*_all".into()],
        };
        let check = |name: &str, expect: bool| assert_eq!(filter.allows(name), expect, "{name}");
        check("read_file", true);
        check("read_all", false);
        check("x", true);
        check("xy", false);
        assert!(matches("a*b*c", "a-b-c") && !matches("a*b*c", "a-c"));
    }
}
