//! A small MCP server to try things against: a sum, a search, a handbook, and a catalog that
//! changes when told to.
//!
//! It touches nothing outside its own memory.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    os::unix::fs::FileTypeExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, method},
};
use toolcrib_serve::{
    Answer, CacheScope, Change, Changes, EraSupport, Handler, HttpOptions, ListKind, Peer, Request,
    ServerAbout, StdioOptions, invalid_params, method_not_found, serve_http, serve_stdio, stdin,
    unknown_resource,
};

const HANDBOOK_URI: &str = "docs://handbook";

/// The handbook: title, tags, text.
const HANDBOOK: [(&str, &[&str], &str); 4] = [
    (
        "Borrowing a tool",
        &["tools", "rules"],
        "Ask for a tool by what you want to do. You are given one that fits, with a receipt.",
    ),
    (
        "Returning a tool",
        &["tools"],
        "Bring it back in the state you got it. Say what went wrong, if anything did.",
    ),
    (
        "Opening hours",
        &["people"],
        "The crib is open from seven to five, and at night for whoever keeps watch.",
    ),
    (
        "Safety",
        &["rules"],
        "Nothing leaves the crib unchecked. A tool whose label changed is checked again.",
    ),
];

const LANGUAGES: [&str; 8] =
    ["c", "go", "java", "javascript", "python", "ruby", "rust", "typescript"];

/// Which demo server to be.
#[derive(Debug, Clone)]
pub(crate) struct DemoOptions {
    /// `serverInfo.name`
    pub(crate) name: String,
    /// Adds a tool whose definition cannot be used.
    pub(crate) broken: bool,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self { name: "toolcrib-demo".to_owned(), broken: false }
    }
}

/// Serves on standard input and output, or over HTTP, until SIGINT, SIGTERM or the end of standard
/// input. Over HTTP only a pipe counts as standard input, so that a server in the background goes
/// on.
///
/// # Errors
/// The address cannot be bound, or reading or writing failed.
pub(crate) async fn run(
    http: Option<SocketAddr>,
    era: EraSupport,
    options: DemoOptions,
) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let told = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let handler = Arc::new(Demo::new(options));
    let Some(address) = http else {
        let options = StdioOptions { era, ..StdioOptions::default() };
        return serve_stdio(handler, stdin(), tokio::io::stdout(), options, told).await;
    };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })?;
    let bound = listener.local_addr()?;
    // Who reads this may be gone; the server is there all the same.
    let _ = writeln!(io::stderr(), "listening on http://{bound}/mcp");
    let options = HttpOptions { era, hosts: host_names(bound), ..HttpOptions::default() };
    let stop = async {
        tokio::select! {
            () = told => {}
            () = parent_gone() => {}
        }
    };
    serve_http(listener, handler, options, stop).await
}

/// The names a server is reached by that is bound to one address on purpose.
fn host_names(bound: SocketAddr) -> Vec<String> {
    match bound {
        SocketAddr::V4(address) => vec![address.ip().to_string()],
        SocketAddr::V6(address) => vec![format!("[{}]", address.ip())],
    }
}

async fn parent_gone() {
    let piped = std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo());
    if !piped {
        return std::future::pending().await;
    }
    let (mut input, mut ignored) = (stdin(), [0_u8; 64]);
    while input.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}

/// The demo server.
struct Demo {
    about: Arc<ServerAbout>,
    changes: Changes,
    broken: bool,
    greets: AtomicBool,
}

impl Demo {
    fn new(options: DemoOptions) -> Self {
        let capabilities = json!({
            "tools": { "listChanged": true },
            "resources": {},
            "prompts": {},
            "completions": {},
        });
        let about = ServerAbout {
            name: options.name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: Some("Toolcrib demo server".to_owned()),
            instructions: Some(
                "Use add for sums and search_docs for questions about the handbook.".to_owned(),
            ),
            capabilities: Raw::of(&capabilities),
            ttl_ms: 60_000,
            cache_scope: CacheScope::Public,
        };
        Self {
            about: Arc::new(about),
            changes: Changes::new(),
            broken: options.broken,
            greets: AtomicBool::new(false),
        }
    }

    async fn answer(&self, request: Request, peer: Peer) -> Result<Raw, RpcError> {
        if request.method.ends_with("/list") {
            only_page(&request)?;
        }
        let result = match request.method.as_str() {
            method::TOOLS_LIST => json!({ "tools": self.tools() }),
            method::TOOLS_CALL => self.call(request.read()?, &peer).await?,
            method::RESOURCES_LIST => {
                json!({ "resources": [{
                    "uri": HANDBOOK_URI,
                    "name": "handbook",
                    "title": "Handbook of the crib",
                    "description": "How tools are borrowed and returned",
                    "mimeType": "text/markdown",
                }] })
            }
            method::TEMPLATES_LIST => {
                json!({ "resourceTemplates": [{
                    "uriTemplate": "users://{user_id}/profile",
                    "name": "profile",
                    "title": "Profile of a user",
                    "description": "Who a user is, by id",
                    "mimeType": "application/json",
                }] })
            }
            method::RESOURCES_READ => read(&request)?,
            method::PROMPTS_LIST => {
                json!({ "prompts": [review_prompt()] })
            }
            method::PROMPTS_GET => review(&request)?,
            method::COMPLETE => complete(&request)?,
            other => return Err(method_not_found(other)),
        };
        Ok(Raw::of(&result))
    }

    fn tools(&self) -> Vec<Value> {
        let mut tools = vec![add_tool(), search_tool(), refresh_tool()];
        if self.greets.load(Ordering::Acquire) {
            tools.push(greet_tool());
        }
        if self.broken {
            tools.push(broken_tool());
        }
        tools
    }

    async fn call(&self, call: Call, peer: &Peer) -> Result<Value, RpcError> {
        let arguments = call.arguments.unwrap_or_else(Raw::empty_object);
        let outcome = match call.name.as_str() {
            "add" => arguments_of(&arguments).and_then(add),
            "search_docs" => match arguments_of(&arguments) {
                Ok(wanted) => search(wanted, peer).await,
                Err(why) => Err(why),
            },
            "refresh" => arguments_of(&arguments).map(|Nothing {}| self.refresh()),
            "greet" if self.greets.load(Ordering::Acquire) => {
                arguments_of(&arguments).map(|Greet { name }| text(&format!("Hello, {name}!")))
            }
            other => return Err(invalid_params(format!("there is no tool {other:?}"))),
        };
        // What a model can repair is told in a result, not as an error of the protocol.
        Ok(outcome.unwrap_or_else(|why| {
            let mut result = text(&format!("{}: {why}", call.name));
            result["isError"] = true.into();
            result
        }))
    }

    fn refresh(&self) -> Value {
        let greets = !self.greets.fetch_xor(true, Ordering::AcqRel);
        self.changes.announce(Change::List(ListKind::Tools));
        text(if greets { "the tool greet was added" } else { "the tool greet was removed" })
    }
}

impl Handler for Demo {
    fn about(&self) -> Arc<ServerAbout> {
        Arc::clone(&self.about)
    }

    fn changes(&self) -> &Changes {
        &self.changes
    }

    fn handle(&self, request: Request, peer: Peer) -> Answer<'_> {
        Box::pin(self.answer(request, peer))
    }
}

/// Every list here has one page, so no cursor was ever given out.
fn only_page(request: &Request) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Page {
        cursor: Option<String>,
    }
    match request.read::<Page>()?.cursor {
        None => Ok(()),
        Some(cursor) => Err(invalid_params(format!("unknown cursor {cursor:?}"))),
    }
}

fn text(words: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": words }] })
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Option<Raw>,
}

fn arguments_of<T: DeserializeOwned>(arguments: &Raw) -> Result<T, String> {
    arguments.read().map_err(|error| {
        // The position inside a message the model never saw as text says nothing to it.
        let words = error.to_string();
        words.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

fn add_tool() -> Value {
    json!({
        "name": "add",
        "title": "Add",
        "description": "Add two integers",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "First summand" },
                "b": { "type": "integer", "description": "Second summand" },
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": { "sum": { "type": "integer" } },
            "required": ["sum"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    #[serde(deserialize_with = "integer")]
    a: i64,
    #[serde(deserialize_with = "integer")]
    b: i64,
}

fn add(Add { a, b }: Add) -> Result<Value, String> {
    let sum = a.checked_add(b).ok_or("the sum is too large")?;
    let mut result = text(&sum.to_string());
    result["structuredContent"] = json!({ "sum": sum });
    Ok(result)
}

/// An integer as JSON Schema means it: `2.0` is one.
fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15).map(|n| n as i64);
    number.as_i64().or(whole).ok_or_else(|| {
        serde::de::Error::custom(format!("{number} is no integer, or one that is too large"))
    })
}

fn search_tool() -> Value {
    json!({
        "name": "search_docs",
        "title": "Search the handbook",
        "description": "Find the sections of the handbook that answer a question",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "object",
                    "properties": {
                        "text": { "type": "string", "description": "Words to look for" },
                        "limit": {
                            "type": "integer", "minimum": 1, "maximum": 10, "default": 3,
                            "description": "Most sections to return",
                        },
                        "filter": {
                            "type": "object",
                            "properties": {
                                "tags": {
                                    "type": "array",
                                    "items": { "type": "string", "enum": ["people", "rules", "tools"] },
                                    "description": "Only sections with all of these tags",
                                },
                            },
                            "additionalProperties": false,
                        },
                    },
                    "required": ["text"],
                    "additionalProperties": false,
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: Query,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    text: String,
    #[serde(default = "three", deserialize_with = "integer")]
    limit: i64,
    #[serde(default)]
    filter: TagFilter,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TagFilter {
    tags: Vec<String>,
}

const fn three() -> i64 {
    3
}

async fn search(Search { query }: Search, peer: &Peer) -> Result<Value, String> {
    let limit = usize::try_from(query.limit)
        .ok()
        .filter(|limit| (1..=10).contains(limit))
        .ok_or_else(|| format!("query.limit is {}, not from 1 to 10", query.limit))?;
    let words: Vec<_> = query.text.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Err("query.text is empty; say what to look for".to_owned());
    }
    let mut found = Vec::new();
    for (index, (title, tags, body)) in HANDBOOK.into_iter().enumerate() {
        peer.progress((index + 1) as f64, Some(HANDBOOK.len() as f64), Some(title)).await;
        let section = format!("{title} {body}").to_lowercase();
        let hits = words.iter().filter(|word| section.contains(word.as_str())).count();
        if hits > 0 && query.filter.tags.iter().all(|tag| tags.contains(&tag.as_str())) {
            found.push((hits, title, body));
        }
    }
    // Stable: among equals the order of the handbook stays.
    found.sort_by_key(|(hits, ..)| std::cmp::Reverse(*hits));
    let sections: Vec<_> = found
        .into_iter()
        .take(limit)
        .map(|(_, title, body)| json!({ "type": "text", "text": format!("## {title}\n{body}") }))
        .collect();
    if sections.is_empty() {
        return Ok(text("nothing found"));
    }
    Ok(json!({ "content": sections }))
}

fn refresh_tool() -> Value {
    json!({
        "name": "refresh",
        "title": "Change the catalog",
        "description": "Add the tool greet, or take it away again",
        "inputSchema": { "type": "object", "additionalProperties": false },
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "openWorldHint": false },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn greet_tool() -> Value {
    json!({
        "name": "greet",
        "title": "Greet",
        "description": "Say hello to someone",
        "inputSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "description": "Whom to greet" } },
            "required": ["name"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Greet {
    name: String,
}

/// No argument can ever fit it: `strng` is no type.
fn broken_tool() -> Value {
    json!({
        "name": "forecast",
        "description": "Tell the weather of tomorrow",
        "inputSchema": {
            "type": "object",
            "properties": { "place": { "type": "strng" } },
            "required": ["place"],
        },
    })
}

fn read(request: &Request) -> Result<Value, RpcError> {
    #[derive(Deserialize)]
    struct Read {
        uri: String,
    }
    let Read { uri } = request.read()?;
    let (media, content) = if uri == HANDBOOK_URI {
        let sections: Vec<_> =
            HANDBOOK.iter().map(|(title, _, body)| format!("## {title}\n\n{body}\n")).collect();
        ("text/markdown", format!("# Handbook\n\n{}", sections.join("\n")))
    } else if let Some(id) = user_id(&uri) {
        let profile = json!({ "id": id, "name": format!("User {id}"), "role": "borrower" });
        ("application/json", profile.to_string())
    } else {
        return Err(unknown_resource(request.era, &uri));
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": media, "text": content }] }))
}

fn user_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("users://")?.strip_suffix("/profile")?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    (plain && !id.is_empty()).then_some(id)
}

fn review_prompt() -> Value {
    json!({
        "name": "review",
        "title": "Review code",
        "description": "Ask for a review of a piece of code",
        "arguments": [
            { "name": "code", "description": "The code to review", "required": true },
            { "name": "language", "description": "The language it is written in", "required": false },
        ],
    })
}

fn review(request: &Request) -> Result<Value, RpcError> {
    #[derive(Deserialize)]
    struct Get {
        name: String,
        #[serde(default)]
        arguments: Arguments,
    }
    #[derive(Default, Deserialize)]
    struct Arguments {
        code: Option<String>,
        language: Option<String>,
    }
    let Get { name, arguments } = request.read()?;
    if name != "review" {
        return Err(invalid_params(format!("there is no prompt {name:?}")));
    }
    let code = arguments.code.ok_or_else(|| invalid_params("review needs the argument code"))?;
    let language = arguments.language.unwrap_or_default();
    let words = format!(
        "Review this code. Name what is wrong, where, and how to repair it.\n\n```{language}\n{code}\n```"
    );
    Ok(json!({
        "description": "A review of a piece of code",
        "messages": [{ "role": "user", "content": { "type": "text", "text": words } }],
    }))
}

fn complete(request: &Request) -> Result<Value, RpcError> {
    #[derive(Deserialize)]
    struct Complete {
        #[serde(rename = "ref")]
        reference: Reference,
        argument: Argument,
    }
    #[derive(Deserialize)]
    struct Reference {
        name: Option<String>,
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    let Complete { reference, argument } = request.read()?;
    let known = reference.name.as_deref() == Some("review") && argument.name == "language";
    let values: Vec<_> = LANGUAGES
        .into_iter()
        .filter(|language| known && language.starts_with(&argument.value.to_lowercase()))
        .collect();
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
}
