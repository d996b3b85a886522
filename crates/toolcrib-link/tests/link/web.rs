//! A scripted HTTP server on a real socket: it answers each request as the test says, byte for
//! byte, and remembers what it was asked.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The text of all headers.
    pub(crate) fn head(&self) -> String {
        format!("{:?}", self.headers)
    }

    /// The JSON-RPC id of the body.
    pub(crate) fn id(&self) -> u64 {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["id"].as_u64().unwrap()
    }
}

/// What is answered.
pub(crate) struct Reply {
    head: String,
    steps: Vec<Step>,
    keep_alive: bool,
}

enum Step {
    Write(Vec<u8>),
    Wait(Duration),
    /// Waits until the client closes the connection.
    Hold,
}

impl Reply {
    /// A whole answer of a known length.
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
        if !content_type.is_empty() {
            head.push_str(&format!("content-type: {content_type}\r\n"));
        }
        if status == 204 {
            head = "HTTP/1.1 204 Said\r\n".to_owned();
        }
        Self { head, steps: vec![Step::Write(body)], keep_alive: true }
    }

    pub(crate) fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "application/json", body)
    }

    /// An event stream that ends with the connection.
    pub(crate) fn events(text: &str) -> Self {
        Self::open(200, "text/event-stream").write(text)
    }

    /// An answer that ends with the connection.
    pub(crate) fn open(status: u16, content_type: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-type: {content_type}\r\n"
        );
        Self { head, steps: Vec::new(), keep_alive: false }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn write(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Write(bytes.into()));
        self
    }

    pub(crate) fn wait(mut self, ms: u64) -> Self {
        self.steps.push(Step::Wait(Duration::from_millis(ms)));
        self
    }

    pub(crate) fn hold(mut self) -> Self {
        self.steps.push(Step::Hold);
        self
    }
}

/// Turns the n-th request (from 0) into an answer.
type Script = dyn Fn(&Request, usize) -> Reply + Send + Sync;

/// The running server; it ends with the value.
pub(crate) struct Web {
    pub(crate) origin: String,
    seen: Arc<Mutex<Vec<Request>>>,
    dropped: Arc<Mutex<usize>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Web {
    pub(crate) async fn start(
        script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with(script, None).await
    }

    /// The same over TLS.
    pub(crate) async fn start_tls(
        config: rustls::ServerConfig,
        script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with(script, Some(tokio_rustls::TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn with(
        script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let dropped = Arc::new(Mutex::new(0));
        let shared = (Arc::new(script) as Arc<Script>, Arc::clone(&seen), Arc::clone(&dropped));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    let (script, seen, dropped) = shared;
                    match tls {
                        None => talk(socket, &script, &seen, &dropped).await,
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                talk(socket, &script, &seen, &dropped).await;
                            }
                        }
                    }
                });
            }
        });
        Self { origin: format!("{scheme}://{address}"), seen, dropped, connections, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests of this method came.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|request| request.method == method).count()
    }

    /// How many connections the client made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// How many held connections the client closed.
    pub(crate) fn dropped(&self) -> usize {
        *self.dropped.lock().unwrap()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    script: &Arc<Script>,
    seen: &Mutex<Vec<Request>>,
    dropped: &Mutex<usize>,
) {
    while let Some(request) = read_request(&mut socket).await {
        let reply = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            script(&request, seen.len() - 1)
        };
        if socket.write_all(format!("{}\r\n", reply.head).as_bytes()).await.is_err() {
            return;
        }
        for step in reply.steps {
            let sent = match step {
                Step::Write(bytes) => socket.write_all(&bytes).await,
                Step::Wait(time) => {
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                Step::Hold => {
                    let closed = socket.read(&mut [0; 16]).await;
                    *dropped.lock().unwrap() += 1;
                    closed.map(drop)
                }
            };
            if sent.is_err() {
                return;
            }
        }
        // Nothing to do about a client that is gone already.
        let _ = socket.flush().await;
        if !reply.keep_alive {
            let _ = socket.shutdown().await;
            return;
        }
    }
}

async fn read_request<S: AsyncRead + Unpin>(socket: &mut S) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut chunk = [0; 4_096];
        let count = socket.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(key, _)| key == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        let mut chunk = [0; 4_096];
        let count = socket.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        body.extend_from_slice(&chunk[..count]);
    }
    let body = String::from_utf8(body).unwrap();
    Some(Request { method, path, headers, body, at: Instant::now() })
}
