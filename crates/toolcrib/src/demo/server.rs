//! A small MCP server to try things against: a sum, a search, a handbook, and a catalog that
//! changes when told to.
//!
//! It touches nothing outside its own memory.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    os::unix::fs::FileTypeExt as _,
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use toolcrib_serve::{
    EraSupport, HttpOptions, StdioOptions,
    declare::{
        Completing, Content, Context, DeclareError, Elicited, Failure, Json, Prompt, Resource,
        Server, Template, Tool,
    },
    serve_http, serve_stdio, stdin,
};

const HANDBOOK_URI: &str = "docs://handbook";

/// The handbook: title, tags, text.
const HANDBOOK: [(&str, &[Tag], &str); 4] = [
    (
        "Borrowing a tool",
        &[Tag::Tools, Tag::Rules],
        "Ask for a tool by what you want to do. You are given one that fits, with a receipt.",
    ),
    (
        "Returning a tool",
        &[Tag::Tools],
        "Bring it back in the state you got it. Say what went wrong, if anything did.",
    ),
    (
        "Opening hours",
        &[Tag::People],
        "The crib is open from seven to five, and at night for whoever keeps watch.",
    ),
    (
        "Safety",
        &[Tag::Rules],
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
    let server = Arc::new(declared(&options).map_err(io::Error::other)?);
    let Some(address) = http else {
        let options = StdioOptions { era, ..StdioOptions::default() };
        return serve_stdio(server, stdin(), tokio::io::stdout(), options, told).await;
    };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })?;
    let bound = listener.local_addr()?;
    // Who reads this may be gone; the server is there all the same.
    let _ = writeln!(io::stderr(), "listening on http://{bound}/mcp");
    let options = HttpOptions { era, ..HttpOptions::default() };
    let stop = async {
        tokio::select! {
            () = told => {}
            () = parent_gone() => {}
        }
    };
    serve_http(listener, server, options, stop).await
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
fn declared(options: &DemoOptions) -> Result<Server, DeclareError> {
    let mut server = Server::builder(&options.name, env!("CARGO_PKG_VERSION"))
        .title("Toolcrib demo server")
        .instructions("Use add for sums and search_docs for questions about the handbook.")
        .ttl_ms(60_000)
        .public()
        .with(Tool::new("add", add).title("Add").read_only().closed_world())
        .with(
            Tool::new("search_docs", search)
                .title("Search the handbook")
                .read_only()
                .closed_world(),
        )
        .with(Tool::new("count", count).title("Count slowly").read_only().closed_world())
        .with(Tool::new("borrow", borrow).title("Borrow a tool").additive().closed_world())
        .with(
            Tool::new("refresh", refresh)
                .title("Change the catalog")
                .description("Add the tool greet, or take it away again")
                .additive()
                .closed_world(),
        )
        .with(
            Resource::new(HANDBOOK_URI, "handbook", handbook)
                .title("Handbook of the crib")
                .description("How tools are borrowed and returned")
                .mime_type("text/markdown"),
        )
        .with(
            Template::new("users://{user_id}/profile", "profile", profile)
                .title("Profile of a user")
                .mime_type("application/json"),
        )
        .with(Prompt::new("review", review).title("Review code").complete("language", languages));
    if options.broken {
        server = server.with(broken());
    }
    server.build()
}

/// Add two integers
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// First summand
    a: i64,
    /// Second summand
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(Add { a, b }: Add) -> Result<Json<Sum>, Failure> {
    let sum = a.checked_add(b).ok_or_else(|| Failure::new("the sum is too large"))?;
    Ok(Json(Sum { sum }))
}

/// Find the sections of the handbook that answer a question
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    query: Query,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Words to look for
    #[schemars(length(min = 1))]
    text: String,
    /// Most sections to return
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 10))]
    limit: u8,
    #[serde(default)]
    filter: TagFilter,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TagFilter {
    /// Only sections with all of these tags
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tag {
    People,
    Rules,
    Tools,
}

const fn three() -> u8 {
    3
}

async fn search(Search { query }: Search, context: Context) -> Vec<Content> {
    let words: Vec<_> = query.text.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for (index, (title, tags, body)) in HANDBOOK.into_iter().enumerate() {
        context.progress((index + 1) as f64, Some(HANDBOOK.len() as f64), Some(title)).await;
        let section = format!("{title} {body}").to_lowercase();
        let hits = words.iter().filter(|word| section.contains(word.as_str())).count();
        if hits > 0 && query.filter.tags.iter().all(|tag| tags.contains(tag)) {
            found.push((hits, title, body));
        }
    }
    if found.is_empty() {
        return vec!["nothing found".into()];
    }
    // Stable: among equals the order of the handbook stays.
    found.sort_by_key(|(hits, ..)| std::cmp::Reverse(*hits));
    let section = |(_, title, body)| Content::text(format!("## {title}\n{body}"));
    found.into_iter().take(query.limit.into()).map(section).collect()
}

/// Count up to a number, one step at a time
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Count {
    /// Where to stop
    #[schemars(range(min = 1, max = 1_000))]
    to: u32,
    /// How long each step takes, in milliseconds
    #[serde(default = "a_second")]
    #[schemars(range(max = 60_000))]
    step_ms: u64,
}

const fn a_second() -> u64 {
    1_000
}

async fn count(Count { to, step_ms }: Count, context: Context) -> String {
    for number in 1..=to {
        sleep(Duration::from_millis(step_ms)).await;
        context.progress(number.into(), Some(to.into()), None).await;
    }
    format!("counted to {to}")
}

/// Borrow a tool of the crib; whoever borrows it is asked to sign
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Borrow {
    /// Which tool
    tool: String,
}

#[derive(Deserialize, JsonSchema)]
struct Signature {
    /// Who borrows it
    name: String,
    /// For how long
    days: Days,
    /// Whether it may leave the house
    #[serde(default)]
    outdoors: bool,
}

#[derive(Deserialize, JsonSchema)]
enum Days {
    /// Until tonight
    #[serde(rename = "0")]
    Today,
    /// A week
    #[serde(rename = "7")]
    Week,
}

async fn borrow(Borrow { tool }: Borrow, context: Context) -> Result<String, Failure> {
    let question = format!("Sign for the {tool}");
    let signature: Elicited<Signature> = context.elicit("signature", &question).await?;
    Ok(match signature {
        Elicited::Accepted(Signature { name, days, outdoors }) => {
            let until = match days {
                Days::Today => "until tonight",
                Days::Week => "for a week",
            };
            let place = if outdoors { "" } else { ", indoors only" };
            format!("{name} has the {tool} {until}{place}")
        }
        Elicited::Declined => format!("the {tool} stays here: nobody signed for it"),
        Elicited::Cancelled => format!("the {tool} stays here for now"),
    })
}

async fn refresh(context: Context) -> Result<&'static str, Failure> {
    let server = context.server();
    if server.remove_tool("greet") {
        return Ok("the tool greet was removed");
    }
    server.add(Tool::new("greet", greet).title("Greet").read_only().closed_world())?;
    Ok("the tool greet was added")
}

/// Say hello to someone
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    /// Whom to greet
    name: String,
}

async fn greet(Greet { name }: Greet) -> String {
    format!("Hello, {name}!")
}

async fn handbook() -> String {
    let section = |(title, _, body): &(&str, &[Tag], &str)| format!("## {title}\n\n{body}\n");
    let sections: Vec<_> = HANDBOOK.iter().map(section).collect();
    format!("# Handbook\n\n{}", sections.join("\n"))
}

/// Who a user is, by id
#[derive(Deserialize, JsonSchema)]
struct Profile {
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]+$"))]
    user_id: String,
}

async fn profile(Profile { user_id: id }: Profile) -> Json<Value> {
    Json(json!({ "id": id, "name": format!("User {id}"), "role": "borrower" }))
}

/// Ask for a review of a piece of code
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code to review
    code: String,
    /// The language it is written in
    #[serde(default)]
    language: String,
}

async fn review(Review { code, language }: Review) -> String {
    format!(
        "Review this code. Name what is wrong, where, and how to repair it.\n\n```{language}\n{code}\n```"
    )
}

async fn languages(asked: Completing) -> Vec<String> {
    let begin = asked.value.to_lowercase();
    LANGUAGES.into_iter().filter(|name| name.starts_with(&begin)).map(str::to_owned).collect()
}

/// No argument can ever fit it: `strng` is no type.
fn broken() -> Tool {
    Tool::new("forecast", async || "fine").description("Tell the weather of tomorrow").input_schema(
        json!({
            "type": "object",
            "properties": { "place": { "type": "strng" } },
            "required": ["place"],
        }),
    )
}
