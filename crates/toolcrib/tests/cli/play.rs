//! Plays faulty servers against the real program and reads what it says of them.
//!
//! Every play has a world and servers of its own; nothing here waits without a bound.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    marker::PhantomData,
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolcrib_testkit::{
    dialogue::Dialogue,
    fake::{Fake, HttpFake},
    traffic::Traffic,
    world::{Run, World},
};

/// A new world around the program under test.
pub(crate) fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_toolcrib"))
}

/// What `inspect --json` said of a server, and what the server saw.
#[derive(Debug)]
pub(crate) struct Report {
    /// How the program ended.
    pub(crate) run: Run,
    /// What it printed.
    pub(crate) json: Value,
    /// What the server saw.
    pub(crate) log: Traffic,
}

/// Inspects the stdio server of a case.
pub(crate) fn inspect(id: &str) -> Report {
    inspect_fake(&Fake::stdio(id), &[])
}

/// Inspects a stdio server.
pub(crate) fn inspect_fake(fake: &Fake, flags: &[&str]) -> Report {
    let args = fake.args();
    let mut command = vec![fake.program()];
    command.extend(args.iter().map(String::as_str));
    let run = inspect_command(&world(), flags, &command);
    Report { json: parsed(&run), log: fake.log(), run }
}

/// Inspects a command.
pub(crate) fn inspect_command(world: &World, flags: &[&str], command: &[&str]) -> Run {
    let mut all = vec!["inspect", "--json"];
    all.extend(flags);
    all.push("--");
    all.extend(command);
    world.run(&all)
}

/// Inspects a URL; the log is empty.
pub(crate) fn inspect_url(url: &str, flags: &[&str]) -> Report {
    let mut all = vec!["inspect", "--json", url];
    all.extend(flags);
    let run = world().run(&all);
    Report { json: parsed(&run), log: Traffic::default(), run }
}

/// Inspects an HTTP server.
pub(crate) fn inspect_http(server: &HttpFake, flags: &[&str]) -> Report {
    let report = inspect_url(&server.url, flags);
    Report { log: server.log(), ..report }
}

/// Serves a scenario over HTTP.
pub(crate) fn serve(fake: Fake) -> HttpFake {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fake.listen())
}

/// The object on standard output.
pub(crate) fn parsed(run: &Run) -> Value {
    let text = run.stdout.trim();
    assert!(!text.is_empty(), "nothing on stdout; exit {:?}, stderr:\n{}", run.code, run.stderr);
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

impl Report {
    /// The report of a server that was reached and listed.
    #[track_caller]
    pub(crate) fn reached(self) -> Self {
        let (code, stderr) = (self.run.code, &self.run.stderr);
        assert_eq!(code, Some(0), "{}\n{stderr}\n{:#?}", self.json, self.log.entries);
        self
    }

    /// Reached and listed, with exactly these tools.
    #[track_caller]
    pub(crate) fn shows(self, tools: &[&str]) -> Self {
        let report = self.reached();
        assert_eq!(report.tools(), tools, "{}", report.json["findings"]);
        report
    }

    /// Reached and listed, with the tools nearly every case has.
    #[track_caller]
    pub(crate) fn shows_both(self) -> Self {
        self.shows(&["alpha", "beta"])
    }

    /// Failed with this exit code; gives the message.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32) -> &str {
        assert_eq!(self.run.code, Some(code), "{}\n{}", self.json, self.run.stderr);
        self.json["error"]["message"].as_str().expect("a failure has a message")
    }

    /// The names of the tools listed.
    pub(crate) fn tools(&self) -> Vec<&str> {
        names(&self.json["tools"])
    }

    /// The whole tool of this name.
    #[track_caller]
    pub(crate) fn tool(&self, name: &str) -> &Value {
        let tools = self.json["tools"].as_array().expect("a list");
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// The findings whose text, subject, path or rule holds all of `parts`.
    pub(crate) fn findings(&self, parts: &[&str]) -> Vec<&Value> {
        let all = self.json["findings"].as_array().map_or(&[][..], Vec::as_slice);
        let fits = |finding: &&Value| {
            let text = finding.to_string();
            parts.iter().all(|part| text.contains(part))
        };
        all.iter().filter(fits).collect()
    }

    /// There is a finding that holds all of `parts`.
    #[track_caller]
    pub(crate) fn notes(self, parts: &[&str]) -> Self {
        let found = self.findings(parts);
        assert!(!found.is_empty(), "no finding with {parts:?} in {:#}", self.json["findings"]);
        self
    }

    /// Nothing was found that is more than worth knowing.
    #[track_caller]
    pub(crate) fn notes_nothing(self) -> Self {
        let all = self.json["findings"].as_array().map_or(&[][..], Vec::as_slice);
        let worse: Vec<_> = all.iter().filter(|finding| finding["tier"] != "info").collect();
        assert!(worse.is_empty(), "{worse:#?}");
        assert_eq!(self.run.stderr, "");
        self
    }

    /// How the server stands: `ready`, `degraded`.
    pub(crate) fn state(&self) -> &str {
        self.json["status"]["state"].as_str().unwrap_or_default()
    }

    /// The protocol version each `initialize` asked for.
    pub(crate) fn initialized_with(&self) -> Vec<&str> {
        let requests = self.log.requests("initialize").into_iter();
        requests.filter_map(|entry| entry["params"]["protocolVersion"].as_str()).collect()
    }
}

/// The `name` members of an array.
pub(crate) fn names(items: &Value) -> Vec<&str> {
    items.as_array().expect("a list").iter().filter_map(|item| item["name"].as_str()).collect()
}

/// A configuration of servers and the program run on it. The folders of the servers it names must
/// outlive it.
pub(crate) struct Crib<'a> {
    pub(crate) world: World,
    servers: Map<String, Value>,
    owned: Vec<Fake>,
    lent: PhantomData<&'a Fake>,
}

impl Crib<'static> {
    /// The server `s`, playing a case over stdio.
    pub(crate) fn case(id: &str) -> Self {
        Self::new().with_case("s", id)
    }
}

impl<'a> Crib<'a> {
    pub(crate) fn new() -> Self {
        Self { world: world(), servers: Map::new(), owned: Vec::new(), lent: PhantomData }
    }

    /// The server `s`, playing over stdio.
    pub(crate) fn of(fake: &'a Fake) -> Self {
        Self::new().with("s", fake)
    }

    /// The server `s`, playing over HTTP.
    pub(crate) fn of_http(server: &HttpFake) -> Self {
        Self::new().with_entry("s", json!({"url": server.url}))
    }

    pub(crate) fn with(self, name: &str, fake: &'a Fake) -> Self {
        self.with_entry(name, entry(fake))
    }

    pub(crate) fn with_case(mut self, name: &str, id: &str) -> Self {
        let fake = Fake::stdio(id);
        let entry = entry(&fake);
        self.owned.push(fake);
        self.with_entry(name, entry)
    }

    pub(crate) fn with_entry(mut self, name: &str, entry: Value) -> Self {
        self.servers.insert(name.to_owned(), entry);
        self
    }

    /// Runs a command on the configuration.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.with_config(args, |all| self.world.run(all))
    }

    /// Starts a command on the configuration, to be talked to over pipes.
    pub(crate) fn talk(&self, args: &[&str]) -> Dialogue {
        self.with_config(args, |all| Dialogue::over_pipes(&self.world, all))
    }

    /// Starts a command on the configuration at a terminal of its own.
    pub(crate) fn talk_at_terminal(&self, args: &[&str]) -> Dialogue {
        self.with_config(args, |all| Dialogue::at_terminal(&self.world, all))
    }

    fn with_config<T>(&self, args: &[&str], start: impl FnOnce(&[&str]) -> T) -> T {
        let config = json!({"mcpServers": self.servers});
        let config = self.world.write("servers.json", &config.to_string());
        let config = config.to_string_lossy();
        let mut all = vec!["--config", &*config];
        all.extend(args);
        start(&all)
    }

    /// Calls a tool with JSON arguments.
    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Run {
        self.run(&["call", "--json", name, &arguments.to_string()])
    }

    /// Calls a tool and holds the exit code; gives the text of a result, or of a failure.
    #[track_caller]
    pub(crate) fn calls(&self, name: &str, arguments: &Value, code: i32) -> String {
        let run = self.call(name, arguments);
        let said = format!("{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.code, Some(code), "{name} {arguments}: {said}");
        let json = parsed(&run);
        let mut text = json["error"]["message"].as_str().unwrap_or_default().to_owned();
        for block in json["result"]["content"].as_array().into_iter().flatten() {
            let _ = write!(text, "{}", block["text"].as_str().unwrap_or_default());
        }
        text
    }

    /// The state word of every server by name.
    pub(crate) fn status(&self) -> Map<String, Value> {
        let run = self.run(&["status", "--json"]);
        let json = parsed(&run);
        let servers = json["servers"].as_array().expect("a list").clone();
        let name = |server: &Value| server["name"].as_str().unwrap_or_default().to_owned();
        servers.into_iter().map(|server| (name(&server), server)).collect()
    }
}

fn entry(fake: &Fake) -> Value {
    json!({"command": fake.program(), "args": fake.args()})
}

/// A scenario of two plain tools with these members added.
pub(crate) fn scenario(extra: &Value) -> Value {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut scenario = json!({"era": "legacy", "tools": [tool("alpha"), tool("beta")]});
    for (key, value) in extra.as_object().expect("an object") {
        scenario[key] = value.clone();
    }
    scenario
}

/// The scenario of a case, to be changed by a test.
pub(crate) fn scenario_of(id: &str) -> Value {
    let text = std::fs::read_to_string(toolcrib_testkit::case::scenario(id)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A server that answers every request with these bytes, or once and then goes on with `rest`
/// for ever. Counts its connections. It lives as long as the test program.
pub(crate) fn raw_server(head: Vec<u8>, rest: Option<(Vec<u8>, Duration)>) -> (String, Hits) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let hits = Hits::default();
    let counted = hits.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counted.0.fetch_add(1, Ordering::Relaxed);
            let (head, rest) = (head.clone(), rest.clone());
            thread::spawn(move || {
                // A client may use the connection again, so it stays as long as the client likes.
                while read_request(&mut stream) {
                    let mut sent = stream.write_all(&head);
                    while let (Ok(()), Some((bytes, pause))) = (&sent, &rest) {
                        thread::sleep(*pause);
                        sent = stream.write_all(bytes);
                    }
                }
            });
        }
    });
    (url, hits)
}

/// Reads a request to the end of its body; false when there is none.
fn read_request(stream: &mut TcpStream) -> bool {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return true;
            }
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
            _ => return false,
        }
    }
}

/// How often a raw server was connected to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits(Arc<AtomicUsize>);

impl Hits {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
