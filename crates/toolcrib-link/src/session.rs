//! A session: one live connection whose handshake is done.
//!
//! It dresses requests for its era, keeps their time, starts a new legacy HTTP session when the
//! server has forgotten the old one, and reads results just far enough to tell a finished answer
//! from one that asks for input.

use std::{
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use thiserror::Error;
use tokio::{
    sync::{Mutex, broadcast, mpsc, watch},
    time::Instant,
};
use toolcrib_core::{
    finding::Finding,
    level::LogLevel,
    limits::Limits,
    raw::Raw,
    rpc::{Params, Progress, RpcError, error, meta, method},
    surface::Negotiated,
    target::Timeouts,
    version::Era,
};

use crate::{
    channel::{Closed, ExchangeError, Mirror},
    handshake::{Handshake, Plan, mirror_after, modern_params},
    mux::{Changes, Mux, ServerEvent},
    patience::{PROGRESS, Patience},
    pending::{Failure, Outcome},
    verdict::{HandshakeError, NoAnswer},
    wire,
};

/// Why a request gave no result.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered with an error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The server asks for authorization.
    #[error("the server asks for authorization{}", challenge.as_deref().map(|c| format!(" ({c})")).unwrap_or_default())]
    NeedsAuth {
        /// Its challenge.
        challenge: Option<String>,
    },
    /// The HTTP exchange failed.
    #[error("{0}")]
    Exchange(ExchangeError),
    /// The connection ended.
    #[error("{0}")]
    Closed(Closed),
    /// The server broke the protocol; the connection was given up.
    #[error("{0}")]
    Violation(String),
    /// No answer in time.
    #[error("{0}")]
    Timeout(NoAnswer),
    /// The result is none this revision knows.
    #[error("the result of {method} is not usable: {why}")]
    Unusable {
        /// Which request.
        method: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The server asked for input first, and the host had no answer to it.
    #[error("it asks for input ({asked}) and got none: {}", error.message)]
    Unanswered {
        /// The method that it asked for.
        asked: String,
        /// What the host said.
        error: RpcError,
    },
    /// The server had forgotten the session and a new one could not be made.
    #[error("the session was lost and could not be renewed: {0}")]
    Renewal(HandshakeError),
}

impl RequestError {
    /// True when the server says it has no such method.
    pub fn is_method_not_found(&self) -> bool {
        matches!(self, Self::Rpc(error) if error.code == error::METHOD_NOT_FOUND)
    }
}

/// A finished answer, or one that asks the client for input first.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The result.
    Complete(Raw),
    /// `input_required` (specification, basic/patterns/mrtr), as sent.
    InputRequired(Raw),
}

/// How one request is sent.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    pub(crate) mirror_name: Option<String>,
    pub(crate) mirror_params: Vec<(String, String)>,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    pub(crate) wait: Duration,
    pub(crate) wait_max: Duration,
    /// The level of log messages wanted with a modern request.
    pub(crate) log_level: Option<LogLevel>,
}

/// One live connection with its handshake done.
pub struct Session {
    mux: Mux,
    negotiated: StdMutex<Arc<Negotiated>>,
    timeouts: Timeouts,
    limits: Limits,
    /// Counts renewals; held while one runs, so that all who lost the session wait for one.
    renewals: Mutex<u64>,
    /// Counts them for those who have to begin something anew in a new session.
    renewed: watch::Sender<u64>,
    /// True once the standing stream was asked for.
    streaming: AtomicBool,
    /// The least level of log messages that a legacy server was asked for.
    log_level: StdMutex<Option<LogLevel>>,
    /// True once an answer showed that the negotiated era does not hold.
    era_wrong: AtomicBool,
    /// True when the server handed out a session id, which it may forget.
    sessionful: bool,
}

impl Session {
    pub(crate) fn new(
        mux: Mux,
        negotiated: Negotiated,
        timeouts: Timeouts,
        limits: Limits,
    ) -> Self {
        let negotiated = StdMutex::new(Arc::new(negotiated));
        let sessionful = mux.wire().has_session();
        Self {
            mux,
            negotiated,
            sessionful,
            timeouts,
            limits,
            renewals: Mutex::new(0),
            renewed: watch::Sender::new(0),
            streaming: AtomicBool::new(false),
            log_level: StdMutex::new(None),
            era_wrong: AtomicBool::new(false),
        }
    }

    /// What the handshake settled.
    pub fn negotiated(&self) -> Arc<Negotiated> {
        Arc::clone(&self.negotiated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bounds this session keeps.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How long this session waits for what.
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// `stdio`, `streamable HTTP` or `HTTP+SSE`.
    pub fn transport(&self) -> &'static str {
        wire::name(self.mux.wire())
    }

    /// The process id of the server, when it is a child of ours.
    pub fn pid(&self) -> Option<u32> {
        self.mux.wire().pid()
    }

    /// The last words of the server on standard error.
    pub fn stderr(&self, lines: usize) -> Option<String> {
        self.mux.wire().stderr(lines)
    }

    /// How often each list was announced as changed.
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.mux.changes()
    }

    /// Log messages and resource updates, as they come. The first who asks for them hears those
    /// of the time before, from the start of the connection on.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.mux.events()
    }

    /// Why the connection is gone, once it is.
    pub fn closed(&self) -> watch::Receiver<Option<String>> {
        self.mux.closed()
    }

    /// What was noticed on the wire and in the handshake so far.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.negotiated().findings.clone();
        findings.extend(self.mux.findings());
        findings
    }

    /// Ends the session and the process behind it, within six seconds; idempotent.
    pub async fn close(&self) {
        self.mux.close().await;
    }

    /// Kills the process behind the session and drops what is under way, from where nothing can be
    /// awaited.
    pub fn kill(&self) {
        self.mux.kill();
    }

    /// Sets the least level of the log messages that a legacy server sends (`logging/setLevel`), over
    /// renewals. Nothing is sent to a modern server, or to one that does not declare `logging`.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), RequestError> {
        let negotiated = self.negotiated();
        if negotiated.era == Era::Modern || !negotiated.capabilities.has("logging") {
            return Ok(());
        }
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        let wait = self.timeouts.list;
        let sending = Sending { wait, wait_max: wait, ..Sending::default() };
        self.request(method::SET_LEVEL, &of_level(level), sending).await.map(drop)
    }

    /// Sets the log level of a new session in place of a lost one. Log messages are worth only a
    /// short wait of the request that found the old one lost.
    async fn set_log_level_again(&self) {
        let level = *self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(level) = level.filter(|_| self.negotiated().capabilities.has("logging")) else {
            return;
        };
        let wait = self.timeouts.list.min(SET_AGAIN_WITHIN);
        let sending = Sending { wait, wait_max: wait, ..Sending::default() };
        let set = self.attempt(method::SET_LEVEL, &of_level(level), &sending).await;
        if !matches!(set, Ok(Ok(_))) {
            tracing::debug!("the log level was not set again");
        }
    }

    /// Opens the standing stream of a legacy HTTP server; kept open over renewals.
    pub(crate) fn open_stream(&self) {
        let negotiated = self.negotiated();
        if negotiated.era == Era::Legacy {
            self.streaming.store(true, Ordering::Relaxed);
            self.mux.wire().open_stream(mirror_after(&negotiated));
        }
    }

    /// Counts the sessions that were begun in place of a lost one; what was subscribed to is not
    /// known to a new one.
    pub(crate) fn renewed(&self) -> watch::Receiver<u64> {
        self.renewed.subscribe()
    }

    pub(crate) const fn mux(&self) -> &Mux {
        &self.mux
    }

    /// Sends one request and waits for its result, renewing a lost legacy session once.
    pub(crate) async fn request(
        &self,
        method: &'static str,
        params: &Params,
        sending: Sending,
    ) -> Result<Answer, RequestError> {
        let outcome = self.exchange(method, params, &sending).await?;
        self.judge(method, outcome)
    }

    /// As [`Session::request`], for a request that is repeated until the server judges it: an
    /// overload that speaks JSON-RPC is no [`RequestError::Rpc`].
    pub(crate) async fn request_until_judged(
        &self,
        method: &'static str,
        params: &Params,
        sending: Sending,
    ) -> Result<Answer, RequestError> {
        match self.exchange(method, params, &sending).await? {
            Err(Failure::Exchange(ExchangeError::Status(status))) if !status.is_refusal() => {
                Err(RequestError::Exchange(ExchangeError::Status(status)))
            }
            outcome => self.judge(method, outcome),
        }
    }

    async fn exchange(
        &self,
        method: &'static str,
        params: &Params,
        sending: &Sending,
    ) -> Result<Outcome, RequestError> {
        let renewals = *self.renewals.lock().await;
        let outcome = self.attempt(method, params, sending).await?;
        if !self.lost_session(&outcome) {
            return Ok(outcome);
        }
        self.renew(renewals).await?;
        self.attempt(method, params, sending).await
    }

    async fn attempt(
        &self,
        method: &'static str,
        params: &Params,
        sending: &Sending,
    ) -> Result<Outcome, RequestError> {
        let negotiated = self.negotiated();
        let mirror = Mirror {
            name: sending.mirror_name.clone(),
            params: sending.mirror_params.clone(),
            ..mirror_after(&negotiated)
        };
        let dressed;
        let params = if negotiated.era == Era::Modern {
            let mut modern = modern_params(params.clone(), self.mux.host());
            if let Some(level) = sending.log_level {
                modern = modern.with_meta(meta::LOG_LEVEL, Raw::of(&level));
            }
            dressed = modern;
            &dressed
        } else {
            params
        };
        let (notices, arriving) = match &sending.progress {
            Some(_) => {
                let (sender, receiver) = mpsc::channel(PROGRESS);
                (Some(sender), Some(receiver))
            }
            None => (None, None),
        };
        let begun = Instant::now();
        let patience = Patience::begin(sending.wait, sending.wait_max);
        let begin = self.mux.begin(method, params, mirror, notices);
        let mut ticket = match tokio::time::timeout_at(patience.deadline, begin).await {
            Ok(Ok(ticket)) => ticket,
            Ok(Err(failure)) => return Ok(Err(failure)),
            Err(_) => return Err(self.timeout(method, begun.elapsed())),
        };
        let (progress, answering) = (sending.progress.as_ref(), self.mux.answering());
        let outcome = patience.wait_for(ticket.answer(), arriving, progress, answering).await;
        outcome.ok_or_else(|| self.timeout(method, begun.elapsed()))
    }

    fn timeout(&self, method: &'static str, after: Duration) -> RequestError {
        let after = Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        RequestError::Timeout(NoAnswer { method, after, hint: self.mux.hint() })
    }

    /// True when the server answered as if it spoke the other era: what was negotiated no longer
    /// holds, and the session has ended.
    pub fn era_was_wrong(&self) -> bool {
        self.era_wrong.load(Ordering::Relaxed)
    }

    /// Ends the session when an error says that the negotiated era or version does not hold.
    fn doubt_era(&self, failure: &Failure) {
        let error = match failure {
            Failure::Rpc(error) => error,
            Failure::Exchange(ExchangeError::Status(status)) => match &status.rpc {
                Some(error) => error,
                None => return,
            },
            _ => return,
        };
        let negotiated = self.negotiated();
        let wrong = match negotiated.era {
            Era::Modern => error.code == error::UNSUPPORTED_VERSION,
            Era::Legacy => error.is_modern(),
        };
        if wrong {
            self.era_wrong.store(true, Ordering::Relaxed);
            let version = &negotiated.version;
            self.mux.give_up(&format!("the server no longer speaks {version}: {error}"));
        }
    }

    fn judge(&self, method: &'static str, outcome: Outcome) -> Result<Answer, RequestError> {
        if let Err(failure) = &outcome {
            self.doubt_era(failure);
        }
        let result = outcome.map_err(|failure| match failure {
            Failure::Rpc(error) => RequestError::Rpc(error),
            Failure::Exchange(ExchangeError::Status(status)) => {
                match (status.status, &status.rpc) {
                    (401, _) => RequestError::NeedsAuth { challenge: status.challenge },
                    (_, Some(error)) => RequestError::Rpc(error.clone()),
                    _ => RequestError::Exchange(ExchangeError::Status(status)),
                }
            }
            Failure::Exchange(error) => RequestError::Exchange(error),
            Failure::Closed(closed) => RequestError::Closed(closed),
            Failure::Violation(what) => RequestError::Violation(what),
        })?;
        if self.negotiated().era == Era::Legacy {
            return Ok(Answer::Complete(result));
        }
        match result_type(&result).as_deref() {
            None | Some("complete") => Ok(Answer::Complete(result)),
            Some("input_required") if method::may_ask_for_input(method) => {
                Ok(Answer::InputRequired(result))
            }
            Some(other) => {
                let why = format!("resultType {:?}", toolcrib_core::sanitise::line(other, 40));
                Err(RequestError::Unusable { method, why })
            }
        }
    }

    /// True when the server no longer knows the session this request belonged to: 404 with a
    /// session id, or the words for it under another status. A request that was sent while another
    /// renews the session carries no id and hears the same words.
    ///
    /// Under status 200 the words count only with a code that a transport sends: with any other the
    /// request may have run, and the words may be about something else.
    fn lost_session(&self, outcome: &Outcome) -> bool {
        if self.negotiated().era == Era::Modern || !self.sessionful {
            return false;
        }
        match outcome {
            Err(Failure::Exchange(ExchangeError::Status(status))) => {
                let rpc = status.rpc.as_ref();
                let unknown_method = rpc.is_some_and(|error| error.code == error::METHOD_NOT_FOUND);
                let words = rpc.map_or(status.excerpt.as_str(), |error| error.message.as_str());
                match status.status {
                    404 if status.had_session => !unknown_method,
                    // The last renewal failed or was given up, so there is nothing to be sent.
                    400 | 404 if !self.mux.wire().has_session() => !unknown_method,
                    400 | 404 => speaks_of_lost_session(words),
                    _ => false,
                }
            }
            Err(Failure::Exchange(ExchangeError::NotRpc { excerpt, .. })) => {
                speaks_of_lost_session(excerpt)
            }
            Err(Failure::Rpc(error)) => {
                matches!(error.code, error::INVALID_REQUEST | -32001 | -32000)
                    && speaks_of_lost_session(&error.message)
            }
            _ => false,
        }
    }

    /// Runs `initialize` again on the same connection; whoever comes second finds it done.
    async fn renew(&self, seen: u64) -> Result<(), RequestError> {
        let mut renewals = self.renewals.lock().await;
        if *renewals != seen {
            return Ok(());
        }
        tracing::debug!("the server has forgotten the session; starting a new one");
        self.mux.wire().drop_session();
        let deadline = Instant::now() + self.timeouts.start;
        let handshake =
            Handshake::new(&self.mux, self.timeouts.probe, self.timeouts.start, deadline);
        let negotiated = handshake.run(Plan::Legacy).await.map_err(RequestError::Renewal)?;
        if self.streaming.load(Ordering::Relaxed) {
            self.mux.wire().open_stream(mirror_after(&negotiated));
        }
        *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(negotiated);
        *renewals += 1;
        self.renewed.send_replace(*renewals);
        // Whatever changed while no stream was open was not announced to us.
        self.mux.bump_all();
        drop(renewals);
        self.set_log_level_again().await;
        Ok(())
    }
}

/// How long setting the log level of a renewed session may take.
const SET_AGAIN_WITHIN: Duration = Duration::from_secs(2);

fn of_level(level: LogLevel) -> Params {
    Params::new().with("level", Raw::of(&level))
}

fn result_type(result: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a> {
        #[serde(borrow, default)]
        result_type: Option<std::borrow::Cow<'a, str>>,
    }
    if !result.is_object() {
        return None;
    }
    result.view::<Typed<'_>>().ok()?.result_type.map(std::borrow::Cow::into_owned)
}

fn speaks_of_lost_session(words: &str) -> bool {
    let words = words.to_lowercase();
    words.contains("session")
        && [
            "not found",
            "unknown",
            "not known",
            "invalid",
            "expired",
            "no longer",
            "does not exist",
            "terminated",
            "missing",
            "no valid",
        ]
        .iter()
        .any(|sign| words.contains(sign))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use toolcrib_core::target::Endpoint;

    use super::*;
    use crate::{channel::INBOX, http::Streamable};

    #[test]
    fn words_for_a_lost_session() {
        let check = |words: &str, expect: bool| {
            assert_eq!(speaks_of_lost_session(words), expect, "{words}");
        };
        check("Session not found", true);
        check("bad request: this session is not known here", true);
        check("Bad Request: No valid session ID provided", true);
        check("tool not found", false);
        check("the session fee is 3 EUR", false);
    }

    /// What a server says to a POST: it forgets its session, cannot make a new one at first, and
    /// never says what a request without a session lacks.
    fn forgetful(request: &str, initialized: &mut u32) -> (&'static str, &'static str) {
        const SETTLED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"capabilities":{"tools":{}},
            "protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}"#;
        const LISTED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[]}}"#;
        if request.contains(r#""method":"initialize""#) {
            *initialized += 1;
            return match initialized {
                1 => ("200 OK\r\nMcp-Session-Id: one", SETTLED),
                2 => ("503 Service Unavailable", ""),
                _ => ("200 OK\r\nMcp-Session-Id: two", SETTLED),
            };
        }
        let head = request.to_lowercase();
        match () {
            () if request.contains("notifications/") => ("202 Accepted", ""),
            () if head.contains("mcp-session-id: two") => ("200 OK", LISTED),
            () if head.contains("mcp-session-id") => ("404 Not Found", ""),
            () => ("400 Bad Request", "Bad Request: the header is required"),
        }
    }

    async fn serve(listener: tokio::net::TcpListener) {
        let mut initialized = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            // Every body sent here is an object that ends its request.
            while !request.ends_with(b"}") {
                match stream.read(&mut buffer).await {
                    Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request);
            let (status, body) = forgetful(&request, &mut initialized);
            let id = request.split(r#""id":"#).nth(1).unwrap_or("0");
            let id: String = id.chars().take_while(char::is_ascii_digit).collect();
            let (body, length) = (body.replace("ID", &id), body.replace("ID", &id).len());
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_session_that_could_not_be_renewed_is_renewed_later() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = tokio::spawn(serve(listener));
        let (sender, inbox) = mpsc::channel(INBOX);
        let http = Streamable::new(&Endpoint::new(&url), &Limits::default(), None, sender);
        let mux = Mux::start(wire::Wire::Http(http.unwrap()), inbox, None, 1);
        let timeouts = Timeouts::default();
        let deadline = Instant::now() + timeouts.start;
        let handshake = Handshake::new(&mux, timeouts.probe, timeouts.start, deadline);
        let negotiated = handshake.run(Plan::Legacy).await.unwrap();
        let session = Session::new(mux, negotiated, timeouts, Limits::default());
        let list = || async {
            let wait = Duration::from_secs(10);
            let sending = Sending { wait, ..Sending::default() };
            session.request(method::TOOLS_LIST, &Params::new(), sending).await
        };
        assert!(matches!(list().await, Err(RequestError::Renewal(_))));
        let listed = list().await;
        assert!(matches!(listed, Ok(Answer::Complete(_))), "{listed:?}");
        server.abort();
    }

    #[test]
    fn a_result_type_is_read_from_objects_only() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(result_type(&Raw::parse(text).unwrap()).as_deref(), expect, "{text}");
        };
        check(r#"{"resultType":"complete"}"#, Some("complete"));
        check(r#"{"resultType":null}"#, None);
        check(r#"{"content":[]}"#, None);
        check("[]", None);
    }
}
