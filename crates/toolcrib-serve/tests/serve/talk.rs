//! A client of either era on either transport, so that one body can run four times.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};
use toolcrib_core::version::Era;
use toolcrib_serve::{Handler, HttpOptions, StdioOptions};

use crate::{
    house::{SOON, fits, initialize_as, legacy, modern},
    http::{Reply, Server, mirror},
    stdio::Client,
};

enum Wire<H> {
    Pipe(Box<Client<H>>),
    Socket(Server<H>, Option<String>),
}

/// A client of one era on one transport; a legacy one has shaken hands.
pub(crate) struct Talk<H> {
    pub(crate) era: Era,
    wire: Wire<H>,
    capabilities: Value,
    last_id: i64,
    /// Answers read while another was waited for.
    early: Vec<Value>,
}

/// A request that is not answered yet.
pub(crate) struct Begun {
    id: i64,
    stream: Option<TcpStream>,
}

impl<H: Handler> Talk<H> {
    /// Serves `handler` to a client with these capabilities.
    pub(crate) async fn new(handler: Arc<H>, era: Era, socket: bool, capabilities: &Value) -> Self {
        let hello = initialize_as("2025-11-25", capabilities);
        let wire = if socket {
            let server = Server::of(handler, HttpOptions::default()).await;
            let session = match era {
                Era::Modern => None,
                Era::Legacy => Some(server.session_of(&hello).await),
            };
            Wire::Socket(server, session)
        } else {
            let mut client = Client::of(handler, StdioOptions::default());
            if era == Era::Legacy {
                client.send(&hello.to_string()).await;
                client.next().await;
                client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
            }
            Wire::Pipe(Box::new(client))
        };
        Self { era, wire, capabilities: capabilities.clone(), last_id: 1, early: Vec::new() }
    }

    pub(crate) fn house(&self) -> &Arc<H> {
        match &self.wire {
            Wire::Pipe(client) => &client.house,
            Wire::Socket(server, _) => &server.house,
        }
    }

    /// The published schema of this era.
    pub(crate) fn revision(&self) -> &'static str {
        match self.era {
            Era::Modern => "2026-07-28",
            Era::Legacy => "2025-11-25",
        }
    }

    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> Begun {
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        self.last_id += 1;
        let id = self.last_id;
        let message = match self.era {
            Era::Modern => modern(id, method, params),
            Era::Legacy => legacy(id, method, params),
        };
        let stream = match &mut self.wire {
            Wire::Pipe(client) => {
                client.send(&message.to_string()).await;
                None
            }
            Wire::Socket(server, None) => Some(server.begin(&mirror(&message), &message).await),
            Wire::Socket(server, Some(session)) => {
                Some(server.begin(&[("Mcp-Session-Id", session)], &message).await)
            }
        };
        Begun { id, stream }
    }

    /// Every message of a request, the answer last.
    pub(crate) async fn finish(&mut self, begun: Begun) -> Vec<Value> {
        let Wire::Pipe(client) = &mut self.wire else {
            return Reply::of(begun.stream.unwrap()).await.messages();
        };
        let mut told = Vec::new();
        if let Some(at) = self.early.iter().position(|answer| answer["id"] == begun.id) {
            return vec![self.early.remove(at)];
        }
        loop {
            let message = client.next().await;
            if message["id"] == begun.id {
                told.push(message);
                return told;
            }
            let kept = if message["id"].is_null() { &mut told } else { &mut self.early };
            kept.push(message);
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let begun = self.begin(method, params).await;
        self.finish(begun).await.pop().unwrap()
    }

    pub(crate) async fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", json!({"name": tool})).await
    }

    /// Calls a tool and answers what it asks meanwhile: question (its method and params) in, result
    /// out; `None` leaves it unanswered, and the call with it.
    pub(crate) async fn converse(
        &mut self,
        params: Value,
        answer: impl Fn(&Value) -> Option<Value>,
    ) -> Value {
        let mut params = params;
        if self.era == Era::Legacy {
            let begun = self.begin("tools/call", params).await;
            return self.answer_requests(begun, answer).await;
        }
        for _ in 0..10 {
            let asked = self.ask("tools/call", params.clone()).await;
            if asked["result"]["resultType"] != "input_required" {
                return asked;
            }
            fits("2026-07-28", "InputRequiredResult", &asked["result"]);
            params["inputResponses"] = json!({});
            for (key, question) in asked["result"]["inputRequests"].as_object().unwrap() {
                match answer(question) {
                    Some(given) => params["inputResponses"][key] = given,
                    None => return asked,
                }
            }
            params["requestState"] = asked["result"]["requestState"].clone();
        }
        panic!("it asks without end");
    }

    /// Answers the requests that come before the answer of one that was begun.
    async fn answer_requests(
        &mut self,
        begun: Begun,
        answer: impl Fn(&Value) -> Option<Value>,
    ) -> Value {
        let mut stream = begun.stream.map(BufReader::new);
        loop {
            let message = match (&mut self.wire, &mut stream) {
                (Wire::Pipe(client), _) => client.next().await,
                (Wire::Socket(..), Some(stream)) => next_event(stream).await,
                (Wire::Socket(..), None) => unreachable!("a request over HTTP has a connection"),
            };
            if message["method"].is_null() {
                return message;
            }
            if message["id"].is_null() {
                continue;
            }
            fits("2025-11-25", "ServerRequest", &message);
            let Some(given) = answer(&message) else { return message };
            let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": given});
            match &mut self.wire {
                Wire::Pipe(client) => client.send(&reply.to_string()).await,
                Wire::Socket(server, session) => {
                    let session = session.clone().unwrap();
                    let taken = server.post(&[("Mcp-Session-Id", &session)], &reply).await;
                    assert_eq!(taken.status, 202);
                }
            }
        }
    }

    /// Gives a request up as this transport does in this era.
    pub(crate) async fn give_up(&mut self, begun: Begun) {
        let told = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": begun.id},
        });
        match &mut self.wire {
            Wire::Pipe(client) => client.send(&told.to_string()).await,
            Wire::Socket(_, None) => drop(begun.stream),
            Wire::Socket(server, Some(session)) => {
                let reply = server.post(&[("Mcp-Session-Id", session)], &told).await;
                assert_eq!(reply.status, 202);
            }
        }
    }
}

/// Serves a handler four times: to both eras, on both transports.
pub(crate) async fn everywhere<H: Handler>(
    handler: impl Fn() -> Arc<H>,
    capabilities: &Value,
    body: impl AsyncFn(Talk<H>),
) {
    for era in [Era::Modern, Era::Legacy] {
        for socket in [false, true] {
            body(Talk::new(handler(), era, socket, capabilities).await).await;
        }
    }
}

/// The next message of an event stream, or the one message of a plain body.
async fn next_event(stream: &mut BufReader<TcpStream>) -> Value {
    let mut line = String::new();
    loop {
        line.clear();
        let read = timeout(SOON, stream.read_line(&mut line)).await.expect("more in time").unwrap();
        assert_ne!(read, 0, "the stream ended");
        let text = line.strip_prefix("data: ").unwrap_or(&line);
        if text.starts_with('{') {
            return serde_json::from_str(text).unwrap();
        }
    }
}
