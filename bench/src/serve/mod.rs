//! A typed tool called over HTTP, and a list of tools: ours beside a bare JSON echo and rmcp's
//! server.
//!
//! Server and load are processes of their own; the load is this one, on one thread.

mod host;
mod load;

use std::{
    env,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use toolcrib_core::{
    rpc::{header, method},
    version::Version,
};
use toolcrib_testkit::process;

pub(crate) use host::run as host;

use crate::measure::{Result, least, middle, say, verdict};
use load::{Connection, Post, latency, throughput};

const SIDES: [&str; 3] = ["toolcrib", "axum", "rmcp"];
const CONNECTIONS: usize = 32;
const LISTED: usize = 100;
/// Exchanges on one connection, of which the median counts; as many before it do not.
const EXCHANGES: usize = 2_000;
/// How long the connections are kept busy.
const BUSY: Duration = Duration::from_millis(500);

/// What one side did with one kind of request in one round.
#[derive(Clone, Copy)]
struct Sample {
    /// Median time of an exchange on one connection.
    latency_us: f64,
    /// Exchanges in a second on all connections.
    per_second: f64,
    /// Processor time of the server for each of those, in microseconds.
    processor_us: f64,
}

/// The sides in turn, and the ratios.
///
/// # Errors
/// A side failed, or did not answer what was asked.
pub(crate) fn report(rounds: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    say(format_args!(
        "serve: tools/call of a typed add, and tools/list of {LISTED} tools, over kept-alive HTTP"
    ))?;
    say(format_args!(
        "request      side        p50 µs   {CONNECTIONS} conn. req/s   server µs/req"
    ))?;
    let mut tables = Vec::new();
    for (method, tools) in [(method::TOOLS_CALL, 1), (method::TOOLS_LIST, LISTED)] {
        let mut samples: [Vec<Sample>; 3] = Default::default();
        for round in 0..rounds {
            for step in 0..SIDES.len() {
                let side = if round % 2 == 0 { step } else { SIDES.len() - 1 - step };
                samples[side].push(runtime.block_on(one(SIDES[side], method, tools))?);
            }
        }
        let medians = samples.map(|samples| median(&samples));
        for (side, median) in SIDES.iter().zip(medians) {
            let Sample { latency_us, per_second, processor_us } = median;
            say(format_args!(
                "{method:<12} {side:<9} {latency_us:>8.1} {per_second:>18.0} {processor_us:>15.1}"
            ))?;
        }
        tables.push(medians);
    }
    let ([ours, echo, peer], [our_list, _, peer_list]) = (tables[0], tables[1]);
    verdict("call p50 / bare echo", ours.latency_us / echo.latency_us, 1.5, "")?;
    least("calls per second / rmcp", ours.per_second / peer.per_second, 2.0, "")?;
    least("lists per second / rmcp", our_list.per_second / peer_list.per_second, 2.0, "")
}

fn median(samples: &[Sample]) -> Sample {
    let of = |value: fn(&Sample) -> f64| middle(samples.iter().map(value).collect());
    Sample {
        latency_us: of(|sample| sample.latency_us),
        per_second: of(|sample| sample.per_second),
        processor_us: of(|sample| sample.processor_us),
    }
}

/// One side, started anew, warmed up and measured.
async fn one(side: &str, method: &str, tools: usize) -> Result<Sample> {
    let (server, address) = start(side, tools)?;
    let post = request(address, method);
    let answer: Value =
        serde_json::from_slice(Connection::open(address).await?.exchange(&post).await?)?;
    let expected = match (side, method) {
        ("axum", _) => answer["method"] == method,
        (_, method::TOOLS_CALL) => answer["result"]["structuredContent"]["sum"] == 5,
        _ => answer["result"]["tools"].as_array().is_some_and(|list| list.len() == tools),
    };
    if !expected {
        return Err(format!("{side} answers {method} with {answer}").into());
    }
    latency(address, &post, EXCHANGES).await?;
    let latency_us = latency(address, &post, EXCHANGES).await?;
    throughput(address, &post, CONNECTIONS, BUSY / 2).await?;
    let before = server.processor_us()?;
    let per_second = throughput(address, &post, CONNECTIONS, BUSY).await?;
    let spent = server.processor_us()? - before;
    let processor_us = spent / (per_second * BUSY.as_secs_f64());
    Ok(Sample { latency_us, per_second, processor_us })
}

/// A server in a process of its own; killed when dropped.
struct Host(Child);

impl Host {
    /// Processor time so far, in microseconds.
    fn processor_us(&self) -> Result<f64> {
        let time = process::processor_time(self.0.id()).ok_or("the server is gone")?;
        Ok(time.as_secs_f64() * 1e6)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It is a measurement's own child and may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(side: &str, tools: usize) -> Result<(Host, SocketAddr)> {
    let mut child = Command::new(env::current_exe()?)
        .args(["host", side, &tools.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take();
    let host = Host(child);
    let mut line = String::new();
    BufReader::new(stdout.ok_or("no stdout")?).read_line(&mut line)?;
    Ok((host, line.trim().parse()?))
}

fn request(to: SocketAddr, method: &str) -> Post {
    let version = Version::MODERN.as_str();
    let meta = serde_json::json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut params = serde_json::json!({ "_meta": meta });
    let mut headers = vec![(header::PROTOCOL_VERSION, version), (header::METHOD, method)];
    if method == method::TOOLS_CALL {
        params["name"] = "add".into();
        params["arguments"] = serde_json::json!({"a": 2, "b": 3});
        headers.push((header::NAME, "add"));
    }
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Post::new(to, &headers, &body.to_string())
}
