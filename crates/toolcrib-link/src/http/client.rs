//! One HTTP client per endpoint: TLS, proxies, configured headers, redirects within the origin.
//!
//! Configured headers go to the origin of the configured URL and nowhere else: a redirect or an
//! announced address on another origin is refused by name. No cookie is kept, nothing is
//! decompressed, no request is repeated.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use reqwest::{
    Certificate, Client, Identity, Method, Response, StatusCode, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use thiserror::Error;
use toolcrib_core::{
    rpc::header::SESSION_ID,
    sanitise,
    target::{Endpoint, redact_url},
};

use super::body;
use crate::{
    channel::{ExchangeError, StatusError},
    trace::{Direction, Trace},
};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Most redirects followed for one request.
const REDIRECTS: usize = 5;
/// Common servers close a plain connection that was idle for 5 s; one about to be closed is not
/// worth the risk of a lost request.
const IDLE_PLAIN: Duration = Duration::from_secs(4);
/// A TLS connection costs more to make, and its servers keep it longer.
const IDLE_TLS: Duration = Duration::from_secs(50);
/// A stream that carries nothing for long is probed, so that a dead one is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Headers whose values a trace never shows, beside the configured ones.
const MASKED: [HeaderName; 4] =
    [header::AUTHORIZATION, header::COOKIE, header::SET_COOKIE, header::PROXY_AUTHORIZATION];

/// Why an endpoint cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    /// Not an `http` or `https` URL.
    #[error("{url:?} is no address of an HTTP server: {why}; write http://… or https://…")]
    Url {
        /// The URL as configured, without secrets.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A configured header that HTTP cannot carry.
    #[error("header {name:?} cannot be sent: its {part} has characters HTTP does not allow")]
    Header {
        /// Its name.
        name: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// A certificate file that cannot be used.
    #[error("cannot use {what} {path}: {why}")]
    File {
        /// What the file is for.
        what: &'static str,
        /// Where it was looked for.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// TLS or the client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// Sends requests to one origin.
pub(super) struct HttpClient {
    client: Client,
    /// The configured URL.
    pub(super) url: Url,
    headers: HeaderMap,
    trace: Option<Trace>,
}

impl HttpClient {
    /// Prepares a client; nothing is sent. Reads certificate files.
    pub(super) fn new(endpoint: &Endpoint, trace: Option<Trace>) -> Result<Self, SetupError> {
        let url = parse_url(&endpoint.url)?;
        let headers = configured_headers(endpoint)?;
        Ok(Self { client: build(endpoint, &url)?, url, headers, trace })
    }

    /// Sends one request and returns the head of its answer, whatever its status; redirects within
    /// the origin are followed where the method allows it.
    pub(super) async fn request(
        &self,
        method: Method,
        url: &Url,
        own: HeaderMap,
        content: Option<String>,
    ) -> Result<Response, ExchangeError> {
        let had_session = own.contains_key(SESSION_ID);
        let mut headers = self.headers.clone();
        headers.extend(own);
        let content = content.map(Bytes::from);
        let mut url = url.clone();
        let mut last = StatusCode::OK;
        for _ in 0..=REDIRECTS {
            self.trace_request(&method, &url, &headers, content.as_ref());
            let mut request =
                self.client.request(method.clone(), url.clone()).headers(headers.clone());
            if let Some(content) = &content {
                request = request.body(content.clone());
            }
            let response = request.send().await.map_err(|error| unreachable(&error, &url))?;
            self.trace_response(&response);
            last = response.status();
            match redirect(&method, &url, &response) {
                None => return Ok(response),
                Some(Ok(next)) => url = next,
                Some(Err(why)) => return Err(refused(last, why, had_session)),
            }
        }
        let why = format!("redirects more than {REDIRECTS} times");
        Err(refused(last, why, had_session))
    }

    /// Shows text that came in.
    pub(super) fn trace_in(&self, text: &str) {
        if let Some(trace) = &self.trace {
            trace(Direction::In, text);
        }
    }

    fn trace_request(&self, method: &Method, url: &Url, headers: &HeaderMap, body: Option<&Bytes>) {
        let Some(trace) = &self.trace else { return };
        let head = self.head(headers);
        trace(Direction::Out, &format!("{method} {}{head}", redact_url(url.as_str())));
        if let Some(text) = body.and_then(|body| std::str::from_utf8(body).ok()) {
            trace(Direction::Out, text);
        }
    }

    fn trace_response(&self, response: &Response) {
        let Some(trace) = &self.trace else { return };
        let head = self.head(response.headers());
        trace(Direction::In, &format!("HTTP {}{head}", response.status().as_u16()));
    }

    /// Headers as `; name: value`, the secret ones masked.
    fn head(&self, headers: &HeaderMap) -> String {
        let mut out = String::new();
        for (name, value) in headers {
            let secret = MASKED.contains(name)
                || name == SESSION_ID
                || self.headers.contains_key(name)
                || value.is_sensitive();
            let value =
                if secret { "***".into() } else { String::from_utf8_lossy(value.as_bytes()) };
            out.push_str("; ");
            out.push_str(name.as_str());
            out.push_str(": ");
            out.push_str(&value);
        }
        out
    }
}

fn parse_url(text: &str) -> Result<Url, SetupError> {
    let fail = |why: String| SetupError::Url { url: sanitise::line(&redact_url(text), 200), why };
    let url = Url::parse(text.trim()).map_err(|error| fail(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        "http" | "https" => Err(fail("it names no host".to_owned())),
        scheme => Err(fail(format!("{scheme:?} is not HTTP"))),
    }
}

fn configured_headers(endpoint: &Endpoint) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let fail = |part| SetupError::Header { name: sanitise::line(name, 80), part };
        let key = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| fail("name"))?;
        let mut value = HeaderValue::from_str(value.expose().trim()).map_err(|_| fail("value"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

fn build(endpoint: &Endpoint, url: &Url) -> Result<Client, SetupError> {
    // One provider for the process; when another one is installed already, that one serves, too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let loopback = is_loopback(url);
    let plain = url.scheme() == "http";
    let client = |system_roots: bool| {
        let mut builder = Client::builder()
            .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(if plain { IDLE_PLAIN } else { IDLE_TLS })
            .tcp_keepalive(KEEP_ALIVE)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE);
        if loopback {
            builder = builder.no_proxy();
        }
        let extra = match &endpoint.ca_file {
            Some(path) => certificates(path)?,
            None => Vec::new(),
        };
        builder = if system_roots {
            builder.tls_certs_merge(extra)
        } else {
            builder.tls_certs_only(extra)
        };
        if let Some(path) = &endpoint.client_cert_file {
            builder = builder.identity(identity(path)?);
        }
        builder.build().map_err(|error| SetupError::Client(body::broken(&error)))
    };
    // System roots are read from disk for each client, and some machines have none: neither
    // matters where no TLS is spoken. A proxy of a far host may speak it.
    if plain && loopback {
        return client(false);
    }
    client(true).or_else(|error| if plain { client(false) } else { Err(error) })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, SetupError> {
    let fail = |why| file_error("the certificate authority file", path, why);
    let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| fail(body::broken(&error)))?;
    if found.is_empty() {
        return Err(fail("it holds no PEM certificate".to_owned()));
    }
    Ok(found)
}

fn identity(path: &Path) -> Result<Identity, SetupError> {
    let fail = |why| file_error("the client certificate file", path, why);
    let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    Identity::from_pem(&pem).map_err(|error| fail(body::broken(&error)))
}

fn file_error(what: &'static str, path: &Path, why: String) -> SetupError {
    SetupError::File { what, path: sanitise::line(&path.to_string_lossy(), 200), why }
}

/// Where a redirect leads, or why it is not followed; nothing when there is none.
fn redirect(method: &Method, from: &Url, response: &Response) -> Option<Result<Url, String>> {
    let status = response.status().as_u16();
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?;
    let location = String::from_utf8_lossy(location.as_bytes());
    let Ok(next) = from.join(&location) else {
        return Some(Err("redirects to something that is no URL".to_owned()));
    };
    let shown = sanitise::line(&redact_url(next.as_str()), 200);
    Some(if next.origin() != from.origin() {
        Err(format!(
            "redirects to {shown}, another origin; nothing was sent there, configure that URL if \
             it is the right one"
        ))
    } else if method == Method::GET || matches!(status, 307 | 308) {
        Ok(next)
    } else {
        Err(format!("redirects to {shown}; configure that URL if it is the right one"))
    })
}

fn refused(status: StatusCode, why: String, had_session: bool) -> ExchangeError {
    ExchangeError::Status(Box::new(StatusError {
        status: status.as_u16(),
        excerpt: why,
        had_session,
        ..StatusError::default()
    }))
}

fn unreachable(error: &reqwest::Error, url: &Url) -> ExchangeError {
    let shown = sanitise::line(&redact_url(url.as_str()), 200);
    let what = if error.is_connect() { "cannot connect to" } else { "no answer from" };
    let mut text = format!("{what} {shown}: {}", body::broken(error));
    if text.contains("UnknownIssuer") {
        text.push_str("; if a private authority signed it, set ca_file");
    }
    ExchangeError::Io(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_addresses_are_taken() {
        let check = |text: &str, expect: &str| {
            let error = parse_url(text).unwrap_err().to_string();
            assert!(error.contains(expect), "{text}: {error}");
        };
        check("example.com/mcp", "relative URL without a base");
        check("ftp://example.com/", "\"ftp\" is not HTTP");
        check("localhost:8080/mcp", "\"localhost\" is not HTTP");
        check("file:///etc/passwd", "\"file\" is not HTTP");
        assert!(!parse_url("ws://me:secret@h/").unwrap_err().to_string().contains("secret"));
        assert!(parse_url(" https://example.com/mcp ").is_ok());
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let check = |name: &str, value: &str, part: &str| {
            let mut endpoint = Endpoint::new("http://127.0.0.1:9/");
            endpoint.headers.insert(name.to_owned(), value.into());
            let error = configured_headers(&endpoint).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{error}");
        };
        check("X-Key", "secret\u{1}", "its value");
        check("X Key", "secret", "its name");
    }

    #[test]
    fn loopback_is_known_by_name_and_number() {
        let check = |text: &str, expect: bool| {
            assert_eq!(is_loopback(&Url::parse(text).unwrap()), expect, "{text}");
        };
        check("http://localhost:1/", true);
        check("http://127.8.0.1/", true);
        check("http://[::1]:2/", true);
        check("http://localhost.example.com/", false);
        check("http://10.0.0.1/", false);
    }
}
