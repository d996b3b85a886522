//! A person's session with five real servers in one configuration: both Python SDKs, the reference
//! servers over stdio and HTTP. Needs the peers.

use std::fmt::Write as _;

use toolcrib_testkit::{
    dialogue::Dialogue,
    peers::{HttpPeer, Peer},
    world::World,
};

use crate::play::{parsed, world};

/// A world whose `crib.toml` names five servers.
struct Session {
    world: World,
    web: HttpPeer,
}

impl Session {
    fn new() -> Self {
        let world = world();
        world.write("notes/a.md", "Sharpen the chisels.\n");
        let web = Peer::node("mcp-server-everything").env("PORT", "0").arg("streamableHttp");
        let web = web.listen("/mcp");
        let notes = world.cwd().join("notes");
        let mut config = format!("[servers.web]\nurl = {:?}\n", web.url);
        for (name, peer) in [
            ("everything", Peer::node("mcp-server-everything")),
            ("files", Peer::node("mcp-server-filesystem").arg(notes.to_string_lossy())),
            ("modern", Peer::python("2.3")),
            ("older", Peer::python("1.30")),
        ] {
            let (program, args) = (peer.command.program, peer.command.args);
            write!(config, "\n[servers.{name}]\ncommand = {program:?}\nargs = {args:?}\n").unwrap();
        }
        world.write("crib.toml", &config);
        Self { world, web }
    }

    /// Runs the program; gives its standard output, then its standard error, with runs of blanks
    /// made one.
    #[track_caller]
    fn run(&self, args: &[&str], code: i32) -> String {
        let run = self.world.run(&[&["--config", "crib.toml"], args].concat());
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, Some(code), "{args:?}\n{all}");
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        all.lines().map(|line| squeeze(line) + "\n").collect()
    }

    /// Each of `lines` begins a line of what the program says, in this order.
    #[track_caller]
    fn says(&self, args: &[&str], code: i32, lines: &[&str]) {
        let all = self.run(args, code);
        let mut said = all.lines();
        for line in lines {
            assert!(said.any(|said| said.starts_with(line)), "no line {line:?} here:\n{all}");
        }
    }
}

#[test]
fn peer_session_status_and_lists() {
    let session = Session::new();
    session.says(
        &["status"],
        0,
        &[
            "NAME STATE PROTOCOL TOOLS RESOURCES PROMPTS FINDINGS",
            "everything ready 2025-11-25 13 9 4 ",
            "files ready 2025-11-25 14 0 0 ",
            "modern ready 2026-07-28 3 2 1 ",
            "older ready 2025-11-25 3 2 1 ",
            "web ready 2025-11-25 13 9 4 ",
        ],
    );
    session.says(
        &["list"],
        0,
        &[
            "everything.echo message ",
            "files.read_text_file path, [tail], [head] ",
            "modern.add a, b Add two integers.",
            "older.grow name ",
            "web.get-sum a, b ",
            "demo://resource/static/document/features.md everything ",
            "docs://handbook modern handbook",
            "docs://handbook older handbook",
            "users://{user_id}/profile modern profile",
            "everything.args-prompt city, [state] ",
            "web.simple-prompt ",
        ],
    );
    let run = session.world.run(&["--config", "crib.toml", "list", "tools", "--json"]);
    let tools = parsed(&run)["tools"].as_array().unwrap().len();
    assert_eq!(tools, 13 + 14 + 3 + 3 + 13);
}

#[test]
fn peer_session_inspect() {
    let session = Session::new();
    session.says(
        &["inspect", "modern"],
        0,
        &[
            "protocol 2026-07-28 (modern), server/discover answered",
            "transport stdio",
            "server peer-python-2.3 1.0.0",
            "tools (3)",
            "count to, pause_ms ",
            "resources (1)",
            "resource templates (1)",
            "users://{user_id}/profile text/plain ",
            "prompts (1)",
            "review code, [language] ",
        ],
    );
    let run = session.world.run(&["inspect", &session.web.url, "--json"]);
    let json = parsed(&run);
    let shown = [&json["protocol"], &json["era"], &json["transport"], &json["server"]["name"]];
    assert_eq!(shown, ["2025-11-25", "legacy", "streamable HTTP", "mcp-servers/everything"]);
    let counts = ["tools", "resources", "resourceTemplates", "prompts"]
        .map(|list| json[list].as_array().map(Vec::len));
    assert_eq!(counts, [13, 7, 2, 4].map(Some), "{json}");
}

#[test]
fn peer_session_describe_and_call() {
    let session = Session::new();
    session.says(
        &["describe", "web.get-sum"],
        0,
        &["web.get-sum", "for model APIs: web__get-sum", "Returns the sum of two numbers"],
    );
    let sum = ["--arg", "a=2", "--arg", "b=40"];
    let call = |name| [&["call", name][..], &sum].concat();
    session.says(&call("everything.get-sum"), 0, &["The sum of 2 and 40 is 42."]);
    session.says(&call("web.get-sum"), 0, &["The sum of 2 and 40 is 42."]);
    session.says(&call("modern__add"), 0, &["42"]);
    session.says(&call("add"), 5, &["error: add is ambiguous: modern.add, older.add"]);
    session.says(
        &["call", "older.add", r#"{"a": "two"}"#],
        6,
        &[
            "error: the arguments do not fit add of older; nothing was sent",
            "/b is missing: ",
            "/a has the wrong type: ",
        ],
    );
}

#[test]
fn peer_session_read_and_prompt() {
    let session = Session::new();
    let path = format!("path={}", session.world.cwd().join("notes/a.md").display());
    let read = |path| ["call", "files.read_text_file", "--arg", path];
    session.says(&read(&path), 0, &["Sharpen the chisels."]);
    session.says(
        &read("path=/etc/hostname"),
        1,
        &["Access denied - path outside allowed directories"],
    );
    session.says(
        &["read", "users://42/profile"],
        5,
        &["error: several servers offer users://42/profile: modern, older; name one with --server"],
    );
    session.says(&["read", "users://42/profile", "--server", "older"], 0, &["profile of 42"]);
    session.says(
        &["prompt", "web.args-prompt", "--arg", "city=Lyon"],
        0,
        &["user:", "What's weather in Lyon?"],
    );
}

/// A person answers the reference server, at a terminal.
#[test]
fn peer_session_answers_a_form_at_a_terminal() {
    let mut session = Session::new();
    session.world.env("NO_COLOR", "1");
    let args = ["--config", "crib.toml", "call", "everything.trigger-elicitation-request"];
    let mut person = Dialogue::at_terminal(&session.world, &args);
    person.hears("everything asks for input:");
    person.hears("Answer? [");
    person.says("yes\n");
    let answers = [
        "Ada",
        "yes",
        "",
        "ada@host",
        "https://a.example",
        "1815-12-10",
        "7",
        "2.5",
        "Joey",
        "Drums, piano, 3",
        "2",
        "Trout",
        "Dogs",
    ];
    for answer in answers {
        person.hears("> ");
        person.says(&format!("{answer}\n"));
    }
    let review = person.hears("Send it? [");
    assert!(
        review.contains(r#"untitledMultipleSelectEnum = ["Drums","Piano","Violin"]"#),
        "{review}"
    );
    person.says("yes\n");
    let (code, said, _) = person.ends();
    assert_eq!(code, Some(0), "{said}");
    for part in ["- Name: Ada", "- Email: ada@host", "\"hero-2\"", "\"fish-3\"", "\"pet-2\""] {
        assert!(said.contains(part), "{said}");
    }
}

/// The reference server's updates of a resource, until it is interrupted.
#[test]
fn peer_session_watches_lists_and_a_resource() {
    let session = Session::new();
    let watch =
        Dialogue::over_pipes(&session.world, &["--config", "crib.toml", "watch", "modern", "web"]);
    watch.hears_on_stderr("watching modern, which is ready: it announces ");
    watch.hears_on_stderr("watching web, which is ready: it announces ");
    watch.interrupt();
    assert_eq!(watch.ends().0, Some(130));
    let uri = "demo://resource/static/document/features.md";
    let args = ["--config", "crib.toml", "watch", "everything", uri];
    let mut watch = Dialogue::over_pipes(&session.world, &args);
    watch.hears("everything  following demo://resource/static/document/features.md\n");
    watch.interrupt();
    assert_eq!(watch.ends().0, Some(130));
}
