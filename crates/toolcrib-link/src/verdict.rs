//! What the answers to a handshake mean: which era, which version, what the server says about
//! itself, or why there is no session.
//!
//! Pure: values in, a verdict out. What is asked, and when, is the handshake's.

use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use toolcrib_core::{
    finding::{Finding, Tier},
    raw::{Raw, elements, present},
    rpc::{
        RpcError, error,
        message::{each_member, member},
        meta, method,
    },
    sanitise,
    surface::{Capabilities, Negotiated},
    version::{Era, Version},
};

use crate::{
    channel::{Closed, ExchangeError, StatusError},
    pending::{Failure, Outcome},
};

/// A request was not answered in time.
#[derive(Debug, Clone, Error)]
#[error("no answer to {method} within {}{}", seconds(*after), hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct NoAnswer {
    /// Which request.
    pub method: &'static str,
    /// How long we waited.
    pub after: Duration,
    /// What came instead.
    pub hint: Option<String>,
}

/// Why there is no session.
#[derive(Debug, Clone, Error)]
pub enum HandshakeError {
    /// Both sides speak, but no revision in common.
    #[error("no common protocol version: the server speaks {theirs}, we speak {ours}")]
    NoCommonVersion {
        /// Theirs, as listed.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// The server refused the handshake.
    #[error("the server refused {method}: {error}")]
    Refused {
        /// Which request.
        method: &'static str,
        /// Its own words.
        error: RpcError,
    },
    /// The answer is no handshake.
    #[error("the answer to {method} is not usable: {why}")]
    Unusable {
        /// Which request.
        method: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The HTTP exchange failed.
    #[error("{0}")]
    Exchange(ExchangeError),
    /// The connection ended.
    #[error("{0}")]
    Closed(Closed),
    /// The server broke the protocol.
    #[error("{0}")]
    Violation(String),
    /// No answer in time.
    #[error("{0}")]
    Timeout(NoAnswer),
}

/// A duration as a person writes it.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

/// What the answer to the probe means.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Modern, and this is the handshake.
    Modern(Box<Negotiated>),
    /// Modern, but the request has to be sent again (once).
    Again,
    /// Legacy: send `initialize` with this version. `empty` is a result that says nothing: modern
    /// after all when `initialize` is refused.
    Legacy { version: Version, why: String, empty: bool },
    /// Neither.
    Fail(HandshakeError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    #[serde(default, deserialize_with = "present")]
    supported_versions: Option<Raw>,
    #[serde(default)]
    capabilities: Option<Raw>,
    #[serde(default)]
    instructions: Option<Raw>,
    #[serde(default)]
    server_info: Option<Raw>,
    #[serde(default)]
    protocol_version: Option<Raw>,
    #[serde(default, rename = "_meta")]
    meta: Option<Raw>,
}

/// Why `initialize` gave no session.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server names an older version that we speak.
    Retry(Version),
    /// The server says that it speaks the modern revision.
    SpeaksModern,
    /// That was it.
    Final(HandshakeError),
}

pub(crate) fn judge_refusal(sent: Version, failure: Failure) -> Refusal {
    let (offered, words) = match &failure {
        Failure::Rpc(error) => (error.supported_versions(), error.message.clone()),
        Failure::Exchange(ExchangeError::Status(status)) if status.status == 400 => {
            let rpc = status.rpc.as_ref();
            let words = rpc.map_or_else(|| status.excerpt.clone(), |error| error.message.clone());
            (rpc.and_then(RpcError::supported_versions), words)
        }
        _ => (None, String::new()),
    };
    if let Some(offered) = &offered {
        if Version::best(Era::Modern, offered).is_some() {
            return Refusal::SpeaksModern;
        }
        return match Version::best(Era::Legacy, offered) {
            Some(version) if version != sent => Refusal::Retry(version),
            Some(_) => Refusal::Final(failed(failure)),
            None => Refusal::Final(no_common(offered)),
        };
    }
    match Version::named_in(&words) {
        Some(version) if version < sent => Refusal::Retry(version),
        _ => Refusal::Final(match failure {
            Failure::Rpc(error) => HandshakeError::Refused { method: method::INITIALIZE, error },
            other => failed(other),
        }),
    }
}

pub(crate) fn judge_probe(outcome: Outcome) -> Verdict {
    match outcome {
        Ok(result) => judge_discovered(&result),
        Err(Failure::Rpc(error)) => judge_probe_error(&error),
        Err(Failure::Exchange(ExchangeError::Status(status))) => judge_probe_status(*status),
        Err(Failure::Exchange(ExchangeError::NotRpc { content_type, .. })) => Verdict::Legacy {
            version: Version::LEGACY,
            why: format!("server/discover was answered with {content_type:?}"),
            empty: false,
        },
        Err(other) => Verdict::Fail(failed(other)),
    }
}

fn judge_discovered(result: &Raw) -> Verdict {
    let legacy =
        |why: &str, version, empty| Verdict::Legacy { version, why: why.to_owned(), empty };
    let Some(found) = result.is_object().then(|| result.read::<Discovered>().ok()).flatten() else {
        let why = "server/discover was answered with something that is no object";
        return legacy(why, Version::LEGACY, true);
    };
    if found.protocol_version.is_some() && found.supported_versions.is_none() {
        let why = "server/discover was answered like initialize";
        return legacy(why, Version::LEGACY, false);
    }
    let server = found
        .meta
        .as_ref()
        .and_then(|meta| member(meta, meta::SERVER_INFO))
        .or_else(|| found.server_info.clone());
    if found.supported_versions.is_none() && found.capabilities.is_none() && server.is_none() {
        return legacy("server/discover was answered with nothing", Version::LEGACY, true);
    }
    let offered: Option<Vec<String>> = found.supported_versions.as_ref().and_then(versions);
    if let Some(offered) = &offered
        && Version::best(Era::Modern, offered).is_none()
    {
        return match Version::best(Era::Legacy, offered) {
            Some(version) => legacy("server/discover lists legacy versions only", version, false),
            None => Verdict::Fail(no_common(offered)),
        };
    }
    let mut findings = odd_capabilities(found.capabilities.as_ref());
    if offered.is_none() {
        let message = format!(
            "server/discover lists no supportedVersions; taken for {}, the version asked for",
            Version::MODERN
        );
        findings.push(Finding::new("handshake/no-versions", Tier::Soft, "", message));
    }
    Verdict::Modern(Box::new(Negotiated {
        era: Era::Modern,
        version: Version::MODERN.as_str().to_owned(),
        how: Vec::new(),
        server,
        capabilities: Capabilities { raw: found.capabilities },
        instructions: found.instructions.and_then(|raw| raw.read().ok()),
        findings,
    }))
}

fn judge_probe_error(error: &RpcError) -> Verdict {
    if error.code == error::UNSUPPORTED_VERSION {
        let Some(offered) = error.supported_versions() else { return Verdict::Again };
        if Version::best(Era::Modern, &offered).is_some() {
            return Verdict::Again;
        }
        return match Version::best(Era::Legacy, &offered) {
            Some(version) => Verdict::Legacy {
                version,
                why: "the server knows 2026-07-28 but serves legacy versions only".to_owned(),
                empty: false,
            },
            None => Verdict::Fail(no_common(&offered)),
        };
    }
    if error.is_modern() {
        return Verdict::Fail(HandshakeError::Refused {
            method: method::DISCOVER,
            error: error.clone(),
        });
    }
    tracing::debug!(%error, "server/discover answered with an error: legacy");
    Verdict::Legacy {
        version: Version::LEGACY,
        why: format!("server/discover answered error {}", error.code),
        empty: false,
    }
}

fn judge_probe_status(status: StatusError) -> Verdict {
    if let Some(error) = status.rpc.as_ref().filter(|error| error.is_modern()) {
        return judge_probe_error(error);
    }
    match status.status {
        // 500 and 501 are how some servers meet a method they do not know. An answer to
        // `initialize` then speaks for itself; the other 5xx are outages.
        400 | 402 | 404..=406 | 409..=428 | 431..=499 | 500 | 501 => Verdict::Legacy {
            version: Version::LEGACY,
            why: format!("server/discover answered HTTP {}", status.status),
            empty: false,
        },
        _ => Verdict::Fail(HandshakeError::Exchange(ExchangeError::Status(Box::new(status)))),
    }
}

pub(crate) fn read_initialize(result: &Raw) -> Result<Negotiated, HandshakeError> {
    let unusable = |why: &str| HandshakeError::Unusable {
        method: method::INITIALIZE,
        why: format!("{why}: {}", sanitise::line(result.get(), 120)),
    };
    let found = if result.is_object() { result.read::<Discovered>().ok() } else { None };
    let found = found.ok_or_else(|| unusable("no object"))?;
    if found.protocol_version.is_none()
        && found.capabilities.is_none()
        && found.server_info.is_none()
    {
        return Err(unusable("it names no version and no capabilities"));
    }
    let version = found
        .protocol_version
        .map(|raw| raw.read::<String>().unwrap_or_else(|_| raw.get().to_owned()))
        .unwrap_or_default();
    let mut findings = odd_capabilities(found.capabilities.as_ref());
    if Version::parse(&version).is_none_or(|version| version.era() != Era::Legacy) {
        let ours: Vec<_> = Version::ALL.iter().map(|version| version.as_str()).collect();
        let message = format!(
            "initialize answered version {:?}, which is none of ours ({})",
            sanitise::line(&version, 40),
            ours.join(", ")
        );
        findings.push(Finding::new("handshake/unknown-version", Tier::Soft, "", message));
    }
    Ok(Negotiated {
        era: Era::Legacy,
        version: sanitise::line(&version, 40),
        how: Vec::new(),
        server: found.server_info,
        capabilities: Capabilities { raw: found.capabilities },
        instructions: found.instructions.and_then(|raw| raw.read().ok()),
        findings,
    })
}

/// Capabilities that are no objects still count as declared; worth a word when they hold something.
fn odd_capabilities(capabilities: Option<&Raw>) -> Vec<Finding> {
    let Some(capabilities) = capabilities else { return Vec::new() };
    let mut odd = Vec::new();
    let read = each_member(capabilities, |name, value| {
        let known = value.get().starts_with('{') || matches!(value.get(), "null" | "[]");
        if !known && odd.len() < NAMED {
            odd.push(sanitise::line(&name, 60));
        }
    });
    if read.is_err() {
        return Vec::new();
    }
    odd.into_iter()
        .map(|name| {
            let message = format!("capability {name} is no object; it counts as declared");
            Finding::new("handshake/odd-capability", Tier::Soft, "", message)
        })
        .collect()
}

/// How many of a server's capabilities or versions are looked at one by one.
const NAMED: usize = 100;

/// The versions a server lists; absent when it gives no list of strings.
fn versions(raw: &Raw) -> Option<Vec<String>> {
    let (listed, _) = elements(raw.get(), NAMED).ok()?;
    listed.into_iter().map(|version| serde_json::from_str(version.get()).ok()).collect()
}

/// A modern server that says nothing about itself.
pub(crate) fn bare_modern() -> Negotiated {
    Negotiated {
        era: Era::Modern,
        version: Version::MODERN.as_str().to_owned(),
        how: Vec::new(),
        server: None,
        capabilities: Capabilities::default(),
        instructions: None,
        findings: Vec::new(),
    }
}

fn no_common(offered: &[String]) -> HandshakeError {
    let ours: Vec<_> = Version::ALL.iter().map(|version| version.as_str()).collect();
    let theirs = sanitise::line(&offered.join(", "), 200);
    HandshakeError::NoCommonVersion {
        theirs: if theirs.is_empty() { "none".to_owned() } else { theirs },
        ours: ours.join(", "),
    }
}

pub(crate) fn refuses_ours() -> HandshakeError {
    HandshakeError::Unusable {
        method: method::DISCOVER,
        why: format!("the server lists {} and refuses it when asked", Version::MODERN),
    }
}

pub(crate) fn failed(failure: Failure) -> HandshakeError {
    match failure {
        Failure::Rpc(error) => HandshakeError::Refused { method: method::INITIALIZE, error },
        Failure::Exchange(error) => HandshakeError::Exchange(error),
        Failure::Closed(closed) => HandshakeError::Closed(closed),
        Failure::Violation(what) => HandshakeError::Violation(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(result: &str) -> &'static str {
        match judge_probe(Ok(Raw::parse(result).unwrap())) {
            Verdict::Modern(_) => "modern",
            Verdict::Again => "again",
            Verdict::Legacy { empty: true, .. } => "empty",
            Verdict::Legacy { .. } => "legacy",
            Verdict::Fail(_) => "fail",
        }
    }

    #[test]
    fn a_result_that_says_something_is_modern() {
        let check = |text: &str, expect: &str| assert_eq!(verdict(text), expect, "{text}");
        check(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#, "modern");
        check(r#"{"capabilities":{"tools":{}}}"#, "modern");
        check(r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}}}"#, "modern");
        check(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#, "legacy");
        check(r#"{"supportedVersions":["2031-01-01"]}"#, "fail");
        check(r#"{"supportedVersions":null,"capabilities":{}}"#, "modern");
        check(r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#, "legacy");
        check("{}", "empty");
        check("null", "empty");
        check("[]", "empty");
    }

    #[test]
    fn only_the_three_modern_codes_settle_the_modern_era() {
        let check = |code: i64, data: &str, expect: &str| {
            let mut error = RpcError::new(code, "x");
            error.data = Some(Raw::parse(data).unwrap());
            let got = match judge_probe_error(&error) {
                Verdict::Again => "again",
                Verdict::Legacy { version, .. } => version.as_str(),
                Verdict::Fail(_) => "fail",
                Verdict::Modern(_) => "modern",
            };
            assert_eq!(got, expect, "{code} {data}");
        };
        check(-32601, "null", "2025-11-25");
        check(-32602, "null", "2025-11-25");
        check(-32001, "null", "2025-11-25");
        check(-32022, r#"{"supported":["2026-07-28"],"requested":"x"}"#, "again");
        check(-32022, r#"{"supported":["2025-06-18"],"requested":"x"}"#, "2025-06-18");
        check(-32022, r#"{"supported":["1.0"],"requested":"x"}"#, "fail");
        check(-32020, "null", "fail");
        check(-32021, "null", "fail");
    }

    #[test]
    fn outages_and_challenges_are_no_verdict() {
        let check = |status: u16, legacy: bool| {
            let status = StatusError { status, ..StatusError::default() };
            let got = matches!(judge_probe_status(status.clone()), Verdict::Legacy { .. });
            assert_eq!(got, legacy, "{}", status.status);
        };
        for status in [400, 404, 405, 406, 415, 422, 500] {
            check(status, true);
        }
        for status in [301, 401, 403, 429, 502, 503, 504] {
            check(status, false);
        }
    }

    #[test]
    fn a_refused_version_is_retried_with_one_that_was_named() {
        let status = |text: &str| {
            let status =
                StatusError { status: 400, excerpt: text.to_owned(), ..StatusError::default() };
            Failure::Exchange(ExchangeError::Status(Box::new(status)))
        };
        let refusal = judge_refusal(Version::LEGACY, status("accepted are 2025-06-18, 2025-03-26"));
        assert!(matches!(refusal, Refusal::Retry(Version::V2025_06_18)));
        let refusal = judge_refusal(Version::LEGACY, status("you sent 2025-11-25"));
        assert!(matches!(refusal, Refusal::Final(_)));
        let modern =
            RpcError::new(-32022, "x").with_data(&serde_json::json!({"supported": ["2026-07-28"]}));
        let refusal = judge_refusal(Version::LEGACY, Failure::Rpc(modern));
        assert!(matches!(refusal, Refusal::SpeaksModern));
    }
}
