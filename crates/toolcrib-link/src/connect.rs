//! From a configured target to a session.
//!
//! A process that ends during the probe is started once more and spoken to in the other era; an
//! HTTP endpoint that refuses both POSTs is tried as HTTP+SSE. The first error is the one that is
//! reported: what a fallback said after it is secondary.

use std::path::PathBuf;

use thiserror::Error;
use tokio::{sync::mpsc, time::Instant};
use toolcrib_core::{
    code::Code,
    limits::Limits,
    target::{Command, Endpoint, ExpandError, HttpFlavor, ServerConfig, Target},
    version::{Era, EraPolicy},
};

use crate::{
    channel::{ExchangeError, INBOX, StatusError},
    handshake::{Handshake, Plan},
    host::Host,
    http::{OldSse, OpenError, SetupError, Streamable},
    mux::Mux,
    process::SpawnError,
    session::Session,
    stdio::Pipe,
    trace::Trace,
    verdict::HandshakeError,
    wire::Wire,
};

/// What a connection needs besides its configuration.
#[derive(Clone, Default)]
pub struct Connecting {
    /// Bounds to keep.
    pub limits: Limits,
    /// Where a process's standard error is kept, besides the tail in memory.
    pub log_file: Option<PathBuf>,
    /// Sees every message out and in, sanitised.
    pub trace: Option<Trace>,
    /// The era found the last time; saves the probe, and is given up when it fails.
    pub known_era: Option<Era>,
    /// What this client offers servers that ask it for something.
    pub host: Option<Host>,
}

/// Why there is no session.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The configuration names a variable that nothing sets.
    #[error("{0}")]
    Expand(#[from] ExpandError),
    /// The process could not be started.
    #[error("{0}")]
    Spawn(#[from] SpawnError),
    /// The endpoint's settings cannot be used.
    #[error("{0}")]
    Endpoint(#[from] SetupError),
    /// The HTTP+SSE stream could not be opened.
    #[error("{0}")]
    OldSse(#[from] OpenError),
    /// The server asks for authorization.
    #[error("the server asks for authorization{}", metadata.as_deref().map(|url| format!("; its metadata is at {url}")).unwrap_or_default())]
    NeedsAuth {
        /// Where it describes its authorization servers (RFC 9728).
        metadata: Option<String>,
        /// Its whole challenge.
        challenge: Option<String>,
    },
    /// The handshake failed.
    #[error("{error}{}{}", after(" — then, as HTTP+SSE: ", also.as_deref()), after("\nits last words on standard error:\n", stderr.as_deref()))]
    Handshake {
        /// Why.
        error: HandshakeError,
        /// What a fallback said after it.
        also: Option<String>,
        /// The process's last words.
        stderr: Option<String>,
    },
}

fn after(lead: &str, text: Option<&str>) -> String {
    text.map(|text| format!("{lead}{text}")).unwrap_or_default()
}

impl ConnectError {
    /// The stable code of this failure.
    pub const fn code(&self) -> Code {
        match self {
            Self::Expand(_) | Self::Endpoint(_) => Code::Config,
            Self::NeedsAuth { .. } => Code::NeedsAuth,
            Self::Handshake { error: HandshakeError::Timeout { .. }, .. } => Code::Timeout,
            Self::Spawn(_) | Self::OldSse(_) | Self::Handshake { .. } => Code::Unreachable,
        }
    }

    /// True when a process ended before it was ready.
    pub const fn is_exit(&self) -> bool {
        matches!(self, Self::Handshake { error: HandshakeError::Closed(_), .. })
    }
}

/// Connects to a server: starts or reaches it, and shakes hands.
///
/// `lookup` gives the values of `${VAR}` in the configuration. Takes at most the start timeout,
/// and six seconds more to stop what it started when it fails.
///
/// # Errors
/// See [`ConnectError`]; whatever was started has been stopped.
pub async fn connect(
    config: &ServerConfig,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    connecting: Connecting,
) -> Result<Session, ConnectError> {
    let target = config.target.expand(lookup)?;
    let mut limits = connecting.limits.clone();
    limits.message_bytes = config.max_message_bytes.unwrap_or(limits.message_bytes);
    let attempt = Attempt {
        config,
        deadline: Instant::now() + config.timeouts.start,
        limits,
        connecting: &connecting,
    };
    match &target {
        Target::Command(command) => attempt.command(command).await,
        Target::Http(endpoint) => attempt.http(endpoint).await,
    }
}

struct Attempt<'a> {
    config: &'a ServerConfig,
    deadline: Instant,
    limits: Limits,
    connecting: &'a Connecting,
}

impl Attempt<'_> {
    /// The plans in the order they are tried.
    fn plans(&self) -> Vec<Plan> {
        match (self.config.era, self.connecting.known_era) {
            (EraPolicy::Auto, Some(Era::Legacy)) => vec![Plan::Legacy, Plan::Probe],
            (EraPolicy::Auto, _) => vec![Plan::Probe, Plan::Legacy],
            (policy, _) => vec![policy.into()],
        }
    }

    async fn command(&self, command: &Command) -> Result<Session, ConnectError> {
        let plans = self.plans();
        let mut result = self.command_once(command, plans[0]).await;
        if let (Err(error), Some(plan)) = (&result, plans.get(1)) {
            let again = match plans[0] {
                // The era we remembered did not hold.
                Plan::Legacy => matches!(error, ConnectError::Handshake { .. }),
                // It may have died of the probe.
                _ => error.is_exit(),
            };
            if again && Instant::now() < self.deadline {
                tracing::debug!(%error, "starting the process once more");
                result = self.command_once(command, *plan).await;
            }
        }
        result
    }

    async fn command_once(&self, command: &Command, plan: Plan) -> Result<Session, ConnectError> {
        let (sender, inbox) = mpsc::channel(INBOX);
        let log_file = self.connecting.log_file.clone();
        let trace = self.connecting.trace.clone();
        let pipe = Pipe::start(command, &self.limits, log_file, sender, trace)?;
        self.shake(Wire::Pipe(pipe), inbox, plan).await
    }

    async fn http(&self, endpoint: &Endpoint) -> Result<Session, ConnectError> {
        if endpoint.flavor == HttpFlavor::OldSse {
            return self.old_sse(endpoint).await;
        }
        let plans = self.plans();
        let mut result = self.http_once(endpoint, plans[0]).await;
        if plans[0] == Plan::Legacy
            && plans.len() > 1
            && matches!(result, Err(ConnectError::Handshake { .. }))
        {
            result = self.http_once(endpoint, Plan::Probe).await;
        }
        let Err(ConnectError::Handshake { error, also: None, stderr }) = result else {
            return result;
        };
        let worth_a_try = endpoint.flavor == HttpFlavor::Auto
            && self.config.era != EraPolicy::Modern
            && is_no_post_endpoint(&error);
        if !worth_a_try {
            return Err(ConnectError::Handshake { error, also: None, stderr });
        }
        match self.old_sse(endpoint).await {
            Ok(session) => Ok(session),
            Err(challenge @ ConnectError::NeedsAuth { .. }) => Err(challenge),
            Err(second) => {
                let also = Some(second.to_string());
                Err(ConnectError::Handshake { error, also, stderr })
            }
        }
    }

    async fn http_once(&self, endpoint: &Endpoint, plan: Plan) -> Result<Session, ConnectError> {
        let (sender, inbox) = mpsc::channel(INBOX);
        let trace = self.connecting.trace.clone();
        let http = Streamable::new(endpoint, &self.limits, trace, sender)?;
        self.shake(Wire::Http(http), inbox, plan).await
    }

    async fn old_sse(&self, endpoint: &Endpoint) -> Result<Session, ConnectError> {
        let (sender, inbox) = mpsc::channel(INBOX);
        let trace = self.connecting.trace.clone();
        let opened = OldSse::open(endpoint, &self.limits, trace, sender, self.deadline).await;
        let sse = opened.map_err(|error| match asks_for_auth(&error) {
            Some(status) => needs_auth(status),
            None => ConnectError::OldSse(error),
        })?;
        self.shake(Wire::OldSse(sse), inbox, Plan::Legacy).await
    }

    async fn shake(
        &self,
        wire: Wire,
        inbox: mpsc::Receiver<crate::channel::Inbound>,
        plan: Plan,
    ) -> Result<Session, ConnectError> {
        let mux = Mux::start(wire, inbox, self.connecting.host.clone(), self.limits.inputs);
        let timeouts = self.config.timeouts;
        let handshake = Handshake::new(&mux, timeouts.probe, timeouts.start, self.deadline);
        match handshake.run(plan).await {
            Ok(negotiated) => {
                let session = Session::new(mux, negotiated, timeouts, self.limits.clone());
                if self.connecting.host.is_some() {
                    // What a legacy server asks may come on the stream of its own.
                    session.open_stream();
                }
                Ok(session)
            }
            Err(error) => {
                mux.close().await;
                let stderr = mux.wire().stderr(STDERR_LINES);
                Err(explain(error, stderr))
            }
        }
    }
}

/// How many of a process's last lines an error carries.
const STDERR_LINES: usize = 8;

/// The status with which the stream was refused, when it asks for authorization.
fn asks_for_auth(error: &OpenError) -> Option<&StatusError> {
    match error {
        OpenError::NoStream(ExchangeError::Status(status)) if is_challenge(status) => Some(status),
        _ => None,
    }
}

fn is_challenge(status: &StatusError) -> bool {
    status.status == 401 || status.status == 403 && status.challenge.is_some()
}

fn explain(error: HandshakeError, stderr: Option<String>) -> ConnectError {
    if let HandshakeError::Exchange(ExchangeError::Status(status)) = &error
        && is_challenge(status)
    {
        return needs_auth(status);
    }
    ConnectError::Handshake { error, also: None, stderr }
}

fn needs_auth(status: &StatusError) -> ConnectError {
    let metadata = status.challenge.as_deref().and_then(|challenge| {
        let rest = challenge.split_once("resource_metadata=")?.1;
        let url = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => rest.split([',', ' ']).next()?,
        };
        Some(url.to_owned())
    });
    ConnectError::NeedsAuth { metadata, challenge: status.challenge.clone() }
}

/// True when both POSTs were met as if nobody listened for them here.
fn is_no_post_endpoint(error: &HandshakeError) -> bool {
    match error {
        HandshakeError::Exchange(ExchangeError::Status(status)) => {
            matches!(status.status, 400 | 404 | 405 | 406 | 415)
        }
        HandshakeError::Exchange(ExchangeError::NotRpc { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_url_is_read_from_the_challenge() {
        let check = |challenge: &str, expect: Option<&str>| {
            let status = StatusError {
                status: 401,
                challenge: Some(challenge.to_owned()),
                ..StatusError::default()
            };
            match needs_auth(&status) {
                ConnectError::NeedsAuth { metadata, .. } => {
                    assert_eq!(metadata.as_deref(), expect, "{challenge}");
                }
                other => panic!("{other}"),
            }
        };
        check(
            r#"Bearer resource_metadata="https://a.example/x", scope="s""#,
            Some("https://a.example/x"),
        );
        check("Bearer resource_metadata=https://a.example/x, scope=s", Some("https://a.example/x"));
        check("Bearer", None);
    }
}
