//! A light load: requests over kept-alive HTTP/1.1 connections, one after the other on each.
//!
//! It reads no more of an answer than its status and length, so that it costs every side the same
//! and little. It never retries: an odd answer ends the measurement.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::sleep,
};

use crate::measure::Result;

/// Longest head of an answer that is read, in bytes.
const HEAD: usize = 8 << 10;

/// One request as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Post(Arc<[u8]>);

impl Post {
    /// A POST of `body` to `/mcp` with these further headers.
    pub(crate) fn new(to: SocketAddr, headers: &[(&str, &str)], body: &str) -> Self {
        let mut text = format!(
            "POST /mcp HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            // Writing into a string cannot fail.
            let _ = write!(text, "{name}: {value}\r\n");
        }
        Self(format!("{text}\r\n{body}").into_bytes().into())
    }
}

/// One kept-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens.
    pub(crate) async fn open(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(HEAD) })
    }

    /// Sends a request and reads its answer to the end.
    ///
    /// # Errors
    /// The answer is not 200 with a length, or the connection broke.
    pub(crate) async fn exchange(&mut self, post: &Post) -> Result<&[u8]> {
        self.stream.write_all(&post.0).await?;
        self.buffer.clear();
        let head = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.buffer.len() > HEAD || self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(self.odd());
            }
        };
        let whole = head + length(&self.buffer[..head]).ok_or_else(|| self.odd())?;
        while self.buffer.len() < whole {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(self.odd());
            }
        }
        Ok(&self.buffer[head..whole])
    }

    fn odd(&self) -> Box<dyn std::error::Error + Send + Sync> {
        format!("an odd answer: {}", String::from_utf8_lossy(&self.buffer)).into()
    }
}

/// The length of the body after this head of a good answer.
fn length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.lines();
    if !lines.next()?.starts_with("HTTP/1.1 200 ") {
        return None;
    }
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next()?.1.trim().parse().ok()
}

/// The median time of one exchange on one connection, in microseconds.
///
/// # Errors
/// As [`Connection::exchange`].
pub(crate) async fn latency(to: SocketAddr, post: &Post, count: usize) -> Result<f64> {
    let mut connection = Connection::open(to).await?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        connection.exchange(post).await?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times[count / 2].as_secs_f64() * 1e6)
}

/// Exchanges in a second over `connections` at a time.
///
/// # Errors
/// As [`Connection::exchange`].
pub(crate) async fn throughput(
    to: SocketAddr,
    post: &Post,
    connections: usize,
    time: Duration,
) -> Result<f64> {
    let over = Arc::new(AtomicBool::new(false));
    let mut load = JoinSet::new();
    let begin = Instant::now();
    for _ in 0..connections {
        let (post, over) = (post.clone(), Arc::clone(&over));
        load.spawn(async move {
            let mut connection = Connection::open(to).await?;
            let mut count = 0_u64;
            while !over.load(Ordering::Relaxed) {
                connection.exchange(&post).await?;
                count += 1;
            }
            Result::Ok(count)
        });
    }
    sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut count = 0;
    while let Some(done) = load.join_next().await {
        count += done??;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
