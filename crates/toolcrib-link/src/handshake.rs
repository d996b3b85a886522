//! The handshake: which era a server speaks, and what it says about itself.
//!
//! Rules (specification, basic/versioning and the transports' backward compatibility): ask with
//! `server/discover`; an answer or one of the three modern error codes settles the modern era;
//! any other error, or silence, means `initialize`. While the probe is silent both ids stay
//! pending, since some servers lock the era on what they saw first. An outage, an ended process and
//! a request for authorization are never taken for an era.

use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::{
    raw::Raw,
    rpc::{Params, meta, method},
    surface::Negotiated,
    version::{Era, EraPolicy, Version},
};

use crate::{
    channel::Mirror,
    host::{Host, declared},
    mux::{Mux, Ticket},
    pending::Outcome,
    verdict::{
        HandshakeError, NoAnswer, Refusal, Verdict, bare_modern, failed, judge_probe,
        judge_refusal, read_initialize, refuses_ours, seconds,
    },
};

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// `server/discover` only.
    Modern,
    /// `initialize` only.
    Legacy,
    /// `server/discover`, then `initialize` when the answer or silence asks for it.
    Probe,
}

impl From<EraPolicy> for Plan {
    fn from(policy: EraPolicy) -> Self {
        match policy {
            EraPolicy::Auto => Self::Probe,
            EraPolicy::Modern => Self::Modern,
            EraPolicy::Legacy => Self::Legacy,
        }
    }
}

/// One handshake on one connection.
pub(crate) struct Handshake<'a> {
    mux: &'a Mux,
    probe: Duration,
    deadline: Instant,
    start: Duration,
    how: Vec<String>,
}

impl<'a> Handshake<'a> {
    pub(crate) fn new(mux: &'a Mux, probe: Duration, start: Duration, deadline: Instant) -> Self {
        Self { mux, probe, deadline, start, how: Vec::new() }
    }

    /// Runs the plan. On success the mux knows the era.
    pub(crate) async fn run(mut self, plan: Plan) -> Result<Negotiated, HandshakeError> {
        let mut negotiated = match plan {
            Plan::Legacy => self.initialize(Version::LEGACY).await?,
            Plan::Modern => self.modern().await?,
            Plan::Probe => self.auto().await?,
        };
        negotiated.how = self.how;
        self.mux.settle_era(negotiated.era, mirror_after(&negotiated));
        if negotiated.era == Era::Legacy {
            let mirror = mirror_after(&negotiated);
            self.mux.notify(method::INITIALIZED, &Params::new(), mirror).await;
        }
        Ok(negotiated)
    }

    async fn modern(&mut self) -> Result<Negotiated, HandshakeError> {
        let mut again = false;
        loop {
            let mut ticket = self.discover().await?;
            let outcome = self.wait(&mut ticket, method::DISCOVER).await?;
            match judge_probe(outcome) {
                Verdict::Modern(negotiated) => {
                    self.how.push("server/discover answered".to_owned());
                    return Ok(*negotiated);
                }
                Verdict::Again if !again => again = true,
                Verdict::Again => return Err(refuses_ours()),
                Verdict::Legacy { why, .. } => {
                    return Err(HandshakeError::Unusable {
                        method: method::DISCOVER,
                        why: format!("{why}, and only the modern era is allowed here"),
                    });
                }
                Verdict::Fail(error) => return Err(error),
            }
        }
    }

    async fn auto(&mut self) -> Result<Negotiated, HandshakeError> {
        let mut again = false;
        loop {
            let mut probe = self.discover().await?;
            let until = (Instant::now() + self.probe).min(self.deadline);
            let Some(outcome) = probe.answer_by(until).await else {
                let waited = seconds(self.probe);
                self.how.push(format!("server/discover was silent for {waited}"));
                return self.both(probe).await;
            };
            match judge_probe(outcome) {
                Verdict::Modern(negotiated) => {
                    self.how.push("server/discover answered".to_owned());
                    return Ok(*negotiated);
                }
                Verdict::Again if !again => again = true,
                Verdict::Again => return Err(refuses_ours()),
                Verdict::Legacy { version, why, empty } => {
                    self.how.push(why);
                    let outcome = self.initialize(version).await;
                    return match outcome {
                        Err(HandshakeError::Refused { .. }) if empty => {
                            self.how.push("initialize refused: modern after all".to_owned());
                            Ok(bare_modern())
                        }
                        other => other,
                    };
                }
                Verdict::Fail(error) => return Err(error),
            }
        }
    }

    /// The probe is silent: `initialize` is sent too and whichever settles the era first counts, a
    /// late `DiscoverResult` before an answer to `initialize`.
    async fn both(&mut self, mut probe: Ticket) -> Result<Negotiated, HandshakeError> {
        let mut init = self.send_initialize(Version::LEGACY).await?;
        let mut probe_open = true;
        let mut refused: Option<HandshakeError> = None;
        loop {
            tokio::select! {
                biased;
                outcome = probe.answer(), if probe_open => {
                    probe_open = false;
                    match judge_probe(outcome) {
                        Verdict::Modern(negotiated) => {
                            self.how.push("server/discover answered late".to_owned());
                            return Ok(*negotiated);
                        }
                        Verdict::Again => return self.modern().await,
                        Verdict::Legacy { .. } | Verdict::Fail(_) => {}
                    }
                    if let Some(error) = refused.take() {
                        return Err(error);
                    }
                }
                outcome = init.answer(), if refused.is_none() => {
                    match self.judge_initialize(Version::LEGACY, outcome) {
                        Ok(negotiated) => return Ok(negotiated),
                        Err(Refusal::SpeaksModern) => return self.modern().await,
                        Err(Refusal::Retry(version)) => return self.initialize(version).await,
                        // The probe may still be answered: a slow modern server refuses this.
                        Err(Refusal::Final(error)) if probe_open => refused = Some(error),
                        Err(Refusal::Final(error)) => return Err(error),
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => {
                    return Err(refused.unwrap_or_else(|| self.timeout(method::INITIALIZE)));
                }
            }
        }
    }

    async fn initialize(&mut self, version: Version) -> Result<Negotiated, HandshakeError> {
        let mut version = version;
        let mut retried = false;
        loop {
            let mut ticket = self.send_initialize(version).await?;
            let outcome = self.wait(&mut ticket, method::INITIALIZE).await?;
            match self.judge_initialize(version, outcome) {
                Ok(negotiated) => return Ok(negotiated),
                Err(Refusal::Retry(other)) if !retried => {
                    self.how.push(format!("initialize with {version} refused, trying {other}"));
                    retried = true;
                    version = other;
                }
                Err(Refusal::Retry(_) | Refusal::SpeaksModern) => return Err(refuses_ours()),
                Err(Refusal::Final(error)) => return Err(error),
            }
        }
    }

    async fn discover(&self) -> Result<Ticket, HandshakeError> {
        let params = modern_params(Params::new(), self.mux.host());
        let mirror = Mirror {
            version: Some(Version::MODERN.as_str().to_owned()),
            modern: true,
            ..Mirror::default()
        };
        self.mux.begin(method::DISCOVER, &params, mirror, None).await.map_err(failed)
    }

    async fn send_initialize(&self, version: Version) -> Result<Ticket, HandshakeError> {
        let params = Params::new()
            .with("protocolVersion", Raw::of(&version.as_str()))
            .with("capabilities", declared(self.mux.host()))
            .with("clientInfo", client_info());
        self.mux.begin(method::INITIALIZE, &params, Mirror::default(), None).await.map_err(failed)
    }

    async fn wait(
        &self,
        ticket: &mut Ticket,
        method: &'static str,
    ) -> Result<Outcome, HandshakeError> {
        ticket.answer_by(self.deadline).await.ok_or_else(|| self.timeout(method))
    }

    fn timeout(&self, method: &'static str) -> HandshakeError {
        let hint = self.mux.hint();
        HandshakeError::Timeout(NoAnswer { method, after: self.start, hint })
    }

    fn judge_initialize(&mut self, sent: Version, outcome: Outcome) -> Result<Negotiated, Refusal> {
        match outcome {
            Ok(result) => {
                let negotiated = read_initialize(&result).map_err(Refusal::Final)?;
                self.how.push(format!("initialize answered {}", negotiated.version));
                Ok(negotiated)
            }
            Err(failure) => Err(judge_refusal(sent, failure)),
        }
    }
}

/// The rules a session follows: those of its version, or of the nearest one when the server named
/// a version that nobody published.
pub(crate) fn rules(negotiated: &Negotiated) -> Version {
    Version::parse(&negotiated.version).unwrap_or_else(|| match negotiated.era {
        Era::Modern => Version::MODERN,
        Era::Legacy if negotiated.version.as_str() < Version::V2025_03_26.as_str() => {
            Version::V2024_11_05
        }
        Era::Legacy => Version::LEGACY,
    })
}

/// How messages are headed after the handshake.
pub(crate) fn mirror_after(negotiated: &Negotiated) -> Mirror {
    let modern = negotiated.era == Era::Modern;
    // The header exists since 2025-06-18; older servers may not know it.
    let version = (rules(negotiated) >= Version::V2025_06_18).then(|| negotiated.version.clone());
    Mirror { version, modern, ..Mirror::default() }
}

/// Adds what every modern request carries.
pub(crate) fn modern_params(params: Params, host: Option<&Host>) -> Params {
    params
        .with_meta(meta::PROTOCOL_VERSION, Raw::of(&Version::MODERN.as_str()))
        .with_meta(meta::CLIENT_CAPABILITIES, declared(host))
        .with_meta(meta::CLIENT_INFO, client_info())
}

fn client_info() -> Raw {
    Raw::of(&serde_json::json!({"name": "toolcrib", "version": env!("CARGO_PKG_VERSION")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpublished_versions_get_the_rules_of_their_time() {
        let check = |version: &str, expect: Version| {
            let mut negotiated = bare_modern();
            negotiated.era = Era::Legacy;
            negotiated.version = version.to_owned();
            assert_eq!(rules(&negotiated), expect, "{version}");
        };
        check("2024-10-07", Version::V2024_11_05);
        check("2025-06-18", Version::V2025_06_18);
        check("2025-12-01", Version::V2025_11_25);
        check("", Version::V2024_11_05);
    }
}
