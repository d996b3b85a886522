//! What all exchanges with one endpoint share: the client, the bounds, the inbox, and the session
//! id a legacy server handed out.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::{
    Method, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use toolcrib_core::{
    limits::Limits,
    rpc::header::{self, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID},
    target::Endpoint,
};

use super::{
    body,
    client::{HttpClient, SetupError},
    events::EventReader,
};
use crate::{
    channel::{ExchangeError, Inbox, Mirror},
    trace::Trace,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Longest session id accepted.
const SESSION_BYTES: usize = 4_096;

/// One endpoint.
pub(super) struct Peer {
    pub(super) http: HttpClient,
    pub(super) inbox: Inbox,
    pub(super) message_bytes: usize,
    pub(super) excerpt_chars: usize,
    /// Least silence after which a change stream whose keep-alives stopped is broken.
    pub(super) stream_idle: Duration,
    session: Mutex<Option<String>>,
}

impl Peer {
    pub(super) fn new(
        endpoint: &Endpoint,
        limits: &Limits,
        trace: Option<Trace>,
        inbox: Inbox,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            http: HttpClient::new(endpoint, trace)?,
            inbox,
            message_bytes: limits.message_bytes,
            excerpt_chars: limits.excerpt_chars,
            stream_idle: Duration::from_millis(limits.stream_idle_ms),
            session: Mutex::new(None),
        })
    }

    /// The session id, once a server gave one.
    pub(super) fn session(&self) -> Option<String> {
        lock(&self.session).clone()
    }

    pub(super) fn set_session(&self, id: Option<String>) {
        *lock(&self.session) = id;
    }

    /// Takes the session id of a response to `initialize`; false when it has one that breaks the
    /// rule (visible ASCII, bounded) and cannot be sent back.
    pub(super) fn adopt_session(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(SESSION_ID).map(HeaderValue::as_bytes).filter(|id| !id.is_empty());
        let usable = given.filter(|id| id.len() <= SESSION_BYTES);
        let usable = usable.filter(|id| id.iter().all(u8::is_ascii_graphic));
        self.set_session(usable.map(|id| String::from_utf8_lossy(id).into_owned()));
        given.is_none() || usable.is_some()
    }

    /// Posts a message and returns the head of an answer with a good status.
    pub(super) async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        message: String,
    ) -> Result<Response, ExchangeError> {
        headers.insert(ACCEPT, EITHER);
        headers.insert(CONTENT_TYPE, JSON);
        self.send(Method::POST, url, headers, Some(message)).await
    }

    /// Opens an event stream; a good status with any other body is an error.
    pub(super) async fn get_events(
        &self,
        mut headers: HeaderMap,
    ) -> Result<EventReader, ExchangeError> {
        headers.insert(ACCEPT, EVENTS);
        let response = self.send(Method::GET, &self.http.url, headers, None).await?;
        if !body::is_event_stream(&response) {
            let content_type = body::media_type(response.headers());
            let excerpt = body::refusal(response, false, self.excerpt_chars).await.excerpt;
            return Err(ExchangeError::NotRpc { content_type, excerpt });
        }
        self.events(response)
    }

    /// Ends a session.
    pub(super) async fn delete(&self, headers: HeaderMap) -> Result<(), ExchangeError> {
        self.send(Method::DELETE, &self.http.url, headers, None).await.map(drop)
    }

    /// Reads the events of a response.
    pub(super) fn events(&self, response: Response) -> Result<EventReader, ExchangeError> {
        body::check_encoding(&response)?;
        Ok(EventReader::new(response, self.message_bytes))
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        content: Option<String>,
    ) -> Result<Response, ExchangeError> {
        let had_session = headers.contains_key(SESSION_ID);
        let response = self.http.request(method, url, headers, content).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let error = body::refusal(response, had_session, self.excerpt_chars).await;
        self.http.trace_in(&error.excerpt);
        Err(ExchangeError::Status(Box::new(error)))
    }

    /// The headers of one legacy request on this session: version, session id, and where to
    /// resume.
    pub(super) fn session_headers(
        &self,
        version: Option<&str>,
        last_id: Option<&str>,
    ) -> Result<HeaderMap, ExchangeError> {
        let mut headers = HeaderMap::new();
        put(&mut headers, PROTOCOL_VERSION, version)?;
        put(&mut headers, SESSION_ID, self.session().as_deref())?;
        put(&mut headers, LAST_EVENT_ID, last_id)?;
        Ok(headers)
    }

    /// The headers that mirror a posted message.
    pub(super) fn mirror_headers(
        &self,
        mirror: &Mirror,
        method: Option<&str>,
    ) -> Result<HeaderMap, ExchangeError> {
        if !mirror.modern {
            return self.session_headers(mirror.version.as_deref(), None);
        }
        let mut headers = HeaderMap::new();
        put(&mut headers, PROTOCOL_VERSION, mirror.version.as_deref())?;
        put(&mut headers, header::METHOD, method)?;
        put(&mut headers, header::NAME, mirror.name.as_deref().map(header::encode).as_deref())?;
        for (name, value) in &mirror.params {
            let name = format!("{}{name}", header::PARAM_PREFIX);
            put(&mut headers, &name, Some(&header::encode(value)))?;
        }
        Ok(headers)
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: Option<&str>) -> Result<(), ExchangeError> {
    let Some(value) = value else { return Ok(()) };
    let key = HeaderName::from_bytes(name.as_bytes());
    match (key, HeaderValue::from_bytes(value.as_bytes())) {
        (Ok(key), Ok(value)) => {
            headers.insert(key, value);
            Ok(())
        }
        _ => Err(ExchangeError::Io(format!("header {name:?} cannot be sent; nothing was sent"))),
    }
}

/// Locks, whatever happened to another holder.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
