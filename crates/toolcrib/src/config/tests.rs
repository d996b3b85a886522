//! The whole way from files to servers.

use std::{fs, path::Path, time::Duration};

use proptest::prelude::{
    ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, proptest,
};
use tempfile::TempDir;
use toolcrib_core::{
    catalog::is_server_name,
    target::{HttpFlavor, ServerConfig, Target},
    version::EraPolicy,
};

use super::{
    Loaded, document, load,
    locate::{Candidate, Search, Trust},
    names,
};

/// A folder with files, and what reading them in this order came to.
struct World {
    dir: TempDir,
    loaded: Loaded,
}

fn load_files(files: &[(&str, &str)]) -> World {
    let dir = tempfile::tempdir().unwrap();
    let mut candidates = Vec::new();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        candidates.push(Candidate { path, trust: Trust::Given });
    }
    let loaded = load(&candidates);
    World { dir, loaded }
}

impl World {
    /// Servers, warnings and errors, one a line, without the folder.
    fn report(&self) -> String {
        let mut lines = Vec::new();
        for (server, origin) in &self.loaded.servers {
            let off = if server.enabled { "" } else { " (disabled)" };
            let target = server.target.summary();
            lines.push(format!("{}:{} = {target}{off}", server.name, origin.line));
        }
        for (kind, problems) in [("warning", &self.loaded.warnings), ("error", &self.loaded.errors)]
        {
            for problem in problems {
                lines.push(format!("{kind}: {problem}"));
                lines.extend(problem.hint.iter().map(|hint| format!("  hint: {hint}")));
            }
        }
        lines.join("\n").replace(&format!("{}/", self.dir.path().display()), "")
    }

    fn server(&self, name: &str) -> &ServerConfig {
        &self.loaded.find(name).unwrap().0
    }
}

fn report(file: &str, text: &str) -> String {
    load_files(&[(file, text)]).report()
}

#[test]
fn c57_comments_and_trailing_commas_are_read() {
    let text = r#"{
  // work servers
  "mcpServers": {
    "a": {"command": "python3", "args": ["fakeserver.py", "x.json"],},
    /* "off": {"command": "no"}, */
    "b": {"url": "http://127.0.0.1:9/mcp // not a comment"},
  },
}
"#;
    insta::assert_snapshot!(report("mcp.json", text), @"
    a:4 = python3 fakeserver.py x.json
    b:6 = http://127.0.0.1:9/mcp // not a comment
    ");
}

#[test]
fn c57_a_syntax_error_has_its_place_and_keeps_the_other_files() {
    let world = load_files(&[
        ("a.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}"),
        ("b.toml", "[servers.b]\ncommand = \"b\nargs = []\n"),
        ("c.json", "{\"servers\": {\"c\": {\"command\": \"c\"}}"),
        ("d.json", "{\"servers\": {\"d\": {\"command\": \"d\"}}}"),
        ("e.json", "{\"servers\": {\"e\": {\"command\": \"e\" \"args\": []}}}"),
        ("f.yaml", "servers:\n  f: x\n"),
    ]);
    insta::assert_snapshot!(world.report(), @r#"
    d:1 = d
    error: a.json:3:21: not valid JSON: expected colon after the string or word in object property
    error: b.toml:2:13: not valid TOML: invalid basic string, expected `"`
    error: c.json:1:1: not valid JSON: unterminated object
    error: e.json:1:34: not valid JSON: expected comma
    error: f.yaml:1:9: not valid TOML: key with no value, expected `=`
      hint: configurations are read as TOML or JSON, not YAML
    "#);
}

#[test]
fn c58_byte_order_marks_do_not_matter() {
    let text = "{\"mcpServers\":{\"a\":{\"command\":\"python3\"}}}\r\n";
    let marked = format!("\u{feff}{text}");
    assert_eq!(report("bom.json", &marked), "a:1 = python3");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("utf16.json");
    let bytes: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&path, bytes).unwrap();
    let loaded = load(&[Candidate { path, trust: Trust::Given }]);
    assert_eq!((loaded.servers.len(), loaded.errors.len()), (1, 0));
}

#[test]
fn c109_a_command_line_in_command_names_the_entry_and_starts_nothing() {
    let text = r#"{"mcpServers": {
  "k": {"command": "/usr/bin/env -S python3 fakeserver.py x.json"},
  "ok": {"command": "python3"}
}}"#;
    insta::assert_snapshot!(report("c.json", text), @"
    ok:3 = python3
    error: c.json:2:20: server `k`: command contains spaces and args is empty
      hint: no shell splits it: keep `/usr/bin/env` in `command` and put each further word into `args`
    ");
}

#[test]
fn a_program_whose_path_has_spaces_is_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("my server"), "").unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, "[servers.a]\ncommand = \"./my server\"\n").unwrap();
    let loaded = load(&[Candidate { path, trust: Trust::Given }]);
    assert_eq!((loaded.servers.len(), loaded.errors.len()), (1, 0));
}

#[test]
fn every_key_is_read() {
    let world = load_files(&[(
        "conf/toolcrib.toml",
        r#"
[defaults]
era = "legacy"
list_timeout_ms = 7000

[servers.one]
command = "./bin/server"
args = ["--a", "${B}"]
env = { TOKEN = "hunter2" }
cwd = "work"
enabled = false
era = "modern"
include_tools = ["read_*"]
exclude_tools = ["read_all"]
start_timeout_ms = 1000
probe_timeout_ms = 200
call_timeout_ms = 700_000
max_message_bytes = 4096

[servers.two]
url = "https://h.example/mcp"
headers = { Authorization = "Bearer hunter2" }
transport = "sse"
ca_file = "ca.pem"
client_cert_file = "/abs.pem"
call_max_timeout_ms = 90000
"#,
    )]);
    assert_eq!(world.loaded.warnings, []);
    assert_eq!(world.loaded.errors, []);
    let one = world.server("one");
    let conf = world.dir.path().join("conf");
    let Target::Command(command) = &one.target else { panic!("a command") };
    assert_eq!(command.program, conf.join("work/./bin/server").to_string_lossy());
    assert_eq!(command.args, ["--a", "${B}"]);
    assert_eq!(command.env["TOKEN"].expose(), "hunter2");
    assert_eq!(command.cwd, Some(conf.join("work")));
    assert!(!one.enabled);
    assert_eq!(one.era, EraPolicy::Modern);
    assert!(one.tools.allows("read_x") && !one.tools.allows("read_all"));
    assert_eq!(one.timeouts.start, Duration::from_secs(1));
    assert_eq!(one.timeouts.probe, Duration::from_millis(200));
    assert_eq!(one.timeouts.list, Duration::from_secs(7));
    assert_eq!(one.timeouts.call, Duration::from_secs(700));
    assert_eq!(one.timeouts.call_max, Duration::from_secs(700));
    assert_eq!(one.max_message_bytes, Some(4096));
    let two = world.server("two");
    let Target::Http(endpoint) = &two.target else { panic!("an endpoint") };
    assert_eq!(endpoint.flavor, HttpFlavor::OldSse);
    assert_eq!(endpoint.headers["Authorization"].expose(), "Bearer hunter2");
    assert_eq!(endpoint.ca_file, Some(conf.join("ca.pem")));
    assert_eq!(endpoint.client_cert_file, Some("/abs.pem".into()));
    assert_eq!(two.era, EraPolicy::Legacy);
    assert_eq!(two.timeouts.call_max, Duration::from_secs(90));
    assert!(!format!("{:?}", world.loaded).contains("hunter2"));
}

#[test]
fn the_shapes_of_other_programs_are_read() {
    let check = |text: &str, expect: HttpFlavor| {
        let world = load_files(&[("c.json", text)]);
        assert_eq!(world.loaded.errors, [], "{text}");
        let Target::Http(endpoint) = &world.server("a").target else { panic!("{text}") };
        assert_eq!((endpoint.url.as_str(), endpoint.flavor), ("http://h/", expect), "{text}");
    };
    check(r#"{"mcpServers": {"a": {"url": "http://h/"}}}"#, HttpFlavor::Auto);
    check(r#"{"mcpServers": {"a": {"serverUrl": "http://h/"}}}"#, HttpFlavor::Auto);
    check(r#"{"mcpServers": {"a": {"httpUrl": "http://h/"}}}"#, HttpFlavor::Streamable);
    check(
        r#"{"servers": {"a": {"type": "streamableHttp", "url": "http://h/"}}}"#,
        HttpFlavor::Streamable,
    );
    check(r#"{"servers": {"a": {"type": "http", "url": "http://h/"}}}"#, HttpFlavor::Auto);
    check(
        r#"{"mcp": {"servers": {"a": {"type": "sse", "url": "http://h/"}}}}"#,
        HttpFlavor::OldSse,
    );
    check(
        r#"{"context_servers": {"a": {"source": "custom", "url": "http://h/"}}}"#,
        HttpFlavor::Auto,
    );
    check(r#"{"a": {"url": "http://h/"}}"#, HttpFlavor::Auto);
}

#[test]
fn the_format_is_told_by_the_content() {
    let check = |file: &str, text: &str| {
        assert_eq!(report(file, text), "a:1 = x", "{file}");
    };
    check("c.conf", r#"{"servers": {"a": {"command": "x"}}}"#);
    check("c.toml", r#"{"servers": {"a": {"command": "x"}}}"#);
    check("c.json", "[servers.a]\ncommand = \"x\"");
    check("c", "servers.a.command = \"x\"");
    assert_eq!(
        report("c.json", "[1, 2]"),
        "error: c.json:1:1: holds a list, not a table of servers"
    );
    assert_eq!(report("empty.json", " \n"), "");
    assert_eq!(report("empty.toml", ""), "");
}

#[test]
fn unknown_keys_warn_and_cost_nothing() {
    let toml = "[server.x]\n[servers.a]\ncomand = 1\ncommand = \"x\"\nstart_timeout = 2\n";
    let json = r#"{
  "numStartups": 3, "theme": {}, "mcpServer": {}, "inputs": [],
  "mcpServers": {"b": {"command": "x", "alwaysAllow": ["t"], "description": "d"}}
}"#;
    let none = r#"{"editor.fontSize": 12}"#;
    let world = load_files(&[("a.toml", toml), ("b.json", json), ("c.json", none)]);
    insta::assert_snapshot!(world.report(), @"
    a:2 = x
    b:3 = x
    warning: a.toml:1:2: unknown key `server` is ignored
      hint: servers stand under `[servers.NAME]`
    warning: a.toml:3:1: server `a`: unknown key `comand` is ignored
      hint: did you mean `command`?
    warning: a.toml:5:1: server `a`: unknown key `start_timeout` is ignored
      hint: did you mean `start_timeout_ms`?
    warning: b.json:2:34: unknown key `mcpServer` is ignored
      hint: did you mean `mcpServers`?
    warning: b.json:2:3: unknown key `numStartups` is ignored, and 1 more
    warning: b.json:3:40: server `b`: unknown key `alwaysAllow` is ignored
    warning: c.json: holds no servers: there is no `mcpServers` or `servers` in it
    ");
}

#[test]
fn a_bad_entry_costs_only_itself_and_tells_everything() {
    let text = r#"{"mcpServers": {
  "good": {"command": "x", "env": null, "args": null},
  "none": {},
  "both": {"command": "x", "url": "http://h/"},
  "types": {"command": 1, "args": ["a", 8080], "env": {"P": 1, "Q": ["s3cret"]}, "enabled": "yes",
            "cwd": {}},
  "list": ["x"],
  "transport": {"type": "websocket", "url": "ws://s3cret@h/"},
  "mismatch": {"type": "stdio", "url": "http://h/"},
  "times": {"command": "x", "call_timeout_ms": 0, "list_timeout_ms": 1.5, "era": "future"},
  "max": {"command": "x", "call_timeout_ms": 100, "call_max_timeout_ms": 50},
  "header": {"url": "http://h/", "headers": {"a b": "x", "c": "s3cret\r\nd: e"}},
  "nul": {"command": "x", "args": ["\u0000"], "env": {"A=B": "s3cret"}},
  "contra": {"command": "x", "enabled": true, "disabled": true},
  "empty": {"command": ""},
  "alias": {"url": "http://h/", "serverUrl": "http://g/"},
  "twice": {"command": "x", "env": {"A": "s3cret", "A": "s3cret"},
            "command": "y"},
  "headers": {"command": "x", "headers": {"A": "s3cret"}},
  "off": {"command": "x", "disabled": true}
}, "defaults": {"era": 1, "xera": 2}}"#;
    let report = report("c.json", text);
    assert!(!report.contains("s3cret"));
    insta::assert_snapshot!(report, @r#"
    good:2 = x
    headers:19 = x
    off:20 = x (disabled)
    warning: c.json:21:27: unknown key `xera` is ignored
      hint: did you mean `era`?
    warning: c.json:19:31: server `headers`: `headers` means nothing for a server that is started and is ignored
    error: c.json:21:24: `era` is a number, not a string
      hint: put it in quotes
    error: c.json:3:3: server `none`: has neither `command` nor `url`
      hint: give `command` to start a program, or `url` to connect to one
    error: c.json:4:12: server `both`: has both `command` and `url`; a server is reached by one
    error: c.json:5:24: server `types`: `command` is a number, not a string
      hint: put it in quotes
    error: c.json:5:41: server `types`: `args[1]` is a number, not a string
      hint: put it in quotes
    error: c.json:5:61: server `types`: `env.P` is a number, not a string
      hint: put it in quotes
    error: c.json:5:69: server `types`: `env.Q` is a list, not a string
    error: c.json:5:93: server `types`: `enabled` is a string, not true or false
    error: c.json:6:20: server `types`: `cwd` is a table, not a string
    error: c.json:7:11: server `list`: is a list; expected a table with `command` or `url`
    error: c.json:8:25: server `transport`: `type` is not a transport
      hint: use "stdio", "http", "streamable-http" or "sse"
    error: c.json:8:45: server `transport`: `url` does not start with http:// or https://
    error: c.json:9:33: server `mismatch`: has `url`, but its transport is stdio
    error: c.json:10:48: server `times`: `call_timeout_ms` is not a whole number from 1 to 86400000
    error: c.json:10:70: server `times`: `list_timeout_ms` is not a whole number from 1 to 86400000
    error: c.json:10:82: server `times`: `era` is not "auto", "modern" or "legacy"
    error: c.json:11:51: server `max`: `call_max_timeout_ms` is less than `call_timeout_ms`
    error: c.json:12:45: server `header`: header `a b` has a name or value that HTTP cannot carry
    error: c.json:12:45: server `header`: header `c` has a name or value that HTTP cannot carry
    error: c.json:13:35: server `nul`: `args` holds a zero byte
    error: c.json:13:54: server `nul`: `env` has a name that is empty or holds `=`
    error: c.json:14:47: server `contra`: `enabled` and `disabled` contradict each other
    error: c.json:15:24: server `empty`: `command` is empty
    error: c.json:16:33: server `alias`: `serverUrl` repeats `url` of line 16
    error: c.json:17:52: server `twice`: `env.A` is given twice
    error: c.json:18:13: server `twice`: `command` repeats `command` of line 17
    "#);
}

#[test]
fn a_server_defined_twice_in_a_file_is_neither() {
    let json = r#"{"mcpServers": {
  "a": {"command": "x"},
  "b": {"command": "x"},
  "a": {"command": "y"}},
"servers": {"b": {"command": "z"}, "c": {"command": "c"}}}"#;
    let toml = "[servers.d]\ncommand = \"x\"\n\n[servers.e]\ncommand = \"x\"\n\n\
                [servers.\"d\"]\ncommand = \"y\"\n";
    let key = "[servers.f]\ncommand = \"x\"\n[servers.g]\ncommand = \"x\"\ncommand = \"y\"\n";
    let world = load_files(&[("a.json", json), ("b.toml", toml), ("c.toml", key)]);
    insta::assert_snapshot!(world.report(), @"
    c:5 = c
    e:4 = x
    error: a.json:4:3: server `a`: defined twice, on line 2 and on line 4
      hint: rename or remove one of them; neither is used
    error: a.json:5:13: server `b`: defined twice, on line 3 and on line 5
      hint: rename or remove one of them; neither is used
    error: b.toml:7:1: server `d`: defined twice, on line 1 and on line 7
      hint: rename or remove one of them; neither is used
    error: c.toml:5:1: not valid TOML: duplicate key, first on line 4
    ");
}

#[test]
fn the_nearer_file_wins_also_with_a_broken_entry() {
    let world = load_files(&[
        ("near.toml", "[servers.a]\ncommand = \"near\"\n[servers.b]\nurl = \"b\"\n"),
        (
            "far.json",
            r#"{"servers": {"a": {"command": "far"}, "b": {"command": "far"},
  "c": {"command": "far"}}}"#,
        ),
    ]);
    insta::assert_snapshot!(world.report(), @"
    a:1 = near
    c:2 = far
    warning: far.json:1:1: server `a`: not used: near.toml:1 has a server of this name
    warning: far.json:1:1: server `b`: not used: near.toml:3 has a server of this name
    error: near.toml:4:7: server `b`: `url` does not start with http:// or https://
    ");
}

#[test]
fn names_people_use_are_made_to_fit() {
    let text = r#"{"mcpServers": {
  "My Server": {"command": "a"}, "github.com/x": {"command": "b"}, "My-Server": {"command": "c"},
  "ok_1": {"command": "d"}
}}"#;
    let world = load_files(&[("c.json", text)]);
    insta::assert_snapshot!(world.report(), @"
    My-Server-c2d9a82f:2 = a
    github-com-x:2 = b
    My-Server:2 = c
    ok_1:3 = d
    warning: c.json:2:1: server `My Server`: is called `My-Server-c2d9a82f` here
      hint: names of servers are 1 to 64 letters, digits, `_` and `-`
    warning: c.json:2:1: server `github.com/x`: is called `github-com-x` here
      hint: names of servers are 1 to 64 letters, digits, `_` and `-`
    ");
    assert_eq!(world.loaded.find("github.com/x").unwrap().0.name, "github-com-x");
}

#[test]
fn paths_start_where_the_file_is() {
    let world = load_files(&[(
        ".vscode/mcp.json",
        r#"{"servers": {"a": {"command": "./run", "env": {"K": "${env:KEY}"}},
            "b": {"command": "bare", "cwd": "~/x"}, "c": {"command": "${BIN}/y"}}}"#,
    )]);
    let program = |name: &str| match &world.server(name).target {
        Target::Command(command) => command.clone(),
        Target::Http(_) => panic!("a command"),
    };
    assert_eq!(program("a").program, world.dir.path().join("./run").to_string_lossy());
    assert_eq!(program("a").env["K"].expose(), "${KEY}");
    assert_eq!(program("b").program, "bare");
    assert_eq!(program("b").cwd, Some("${HOME}/x".into()));
    assert_eq!(program("c").program, "${BIN}/y");
}

#[test]
fn files_that_cannot_be_read_are_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let load_one = |name: &str, trust| {
        let loaded = load(&[Candidate { path: dir.path().join(name), trust }]);
        loaded
            .errors
            .first()
            .map(|problem| problem.to_string().replace(&format!("{}/", dir.path().display()), ""))
    };
    fs::create_dir(dir.path().join("folder")).unwrap();
    let check = |name, trust, expect: Option<&str>| {
        assert_eq!(load_one(name, trust).as_deref(), expect);
    };
    check("none", Trust::Given, Some("none: there is no such file"));
    check("none", Trust::Found, None);
    check("none/none", Trust::User, None);
    check("folder", Trust::Given, Some("folder: is a folder, not a file"));
}

#[test]
fn the_search_finds_working_directory_and_user() {
    let dir = tempfile::tempdir().unwrap();
    let user_file = dir.path().join("user.toml");
    fs::write(&user_file, "[servers.a]\ncommand = \"user\"\n[servers.b]\ncommand = \"user\"\n")
        .unwrap();
    fs::write(dir.path().join(".mcp.json"), r#"{"mcpServers": {"a": {"command": "near"}}}"#)
        .unwrap();
    let search = Search {
        working_dir: dir.path().to_owned(),
        user_file: Some(user_file),
        ..Search::default()
    };
    let loaded = load(&search.candidates());
    let (a, origin) = loaded.find("a").unwrap();
    assert_eq!(a.target.summary(), "near");
    assert_eq!((&origin.file, loaded.files[0].trust), (&loaded.files[0].path, Trust::Found));
    assert_eq!(loaded.find("b").unwrap().0.target.summary(), "user");
}

#[test]
fn nesting_and_numbers_of_problems_are_bounded() {
    let deep = format!("{{\"servers\": {}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(report("c.json", &deep).contains("not valid JSON: maximum nesting depth exceeded"));
    let deep = format!("servers = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(report("c.toml", &deep).contains("not valid TOML"));
    let many: String = (0..2_000).map(|i| format!("[servers.s{i}]\nx{i} = 1\n")).collect();
    let world = load_files(&[("c.toml", &many)]);
    assert_eq!((world.loaded.warnings.len(), world.loaded.errors.len()), (201, 201));
    let many: String = (0..10_001).map(|i| format!("servers.s{i}.command = \"x\"\n")).collect();
    let world = load_files(&[("c.toml", &many)]);
    assert_eq!((world.loaded.servers.len(), world.loaded.errors.len()), (10_000, 1));
    let twice: String = (0..2_000).map(|i| format!("[servers.s{}]\n", i / 2)).collect();
    assert!(report("c.toml", &twice).ends_with("not valid TOML: duplicate key, first on line 1"));
}

/// Text that is nearly a configuration.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "=",
        "\n",
        " ",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "#",
        "\\",
        "\\u",
        "\"servers\"",
        "\"mcpServers\":",
        "servers",
        "defaults",
        "[servers.a]",
        "[servers.a.env]",
        "[[servers.a]]",
        "[servers.ä]",
        "command",
        "\"command\":",
        "\"x y\"",
        "args",
        "env",
        "null",
        "true",
        "1",
        "-1",
        "1e9",
        "9999999999999999999999",
        "\u{feff}",
        "ä",
        "\u{0}",
        "1979-05-27",
        "'''",
        "\"\"\"",
        "a.b",
        "${",
        "{\"a\":{\"command\":\"x\"}}",
        "\r\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for file in ["c.json", "c.toml"] {
            document::read(Path::new(file), &bytes);
        }
    }

    #[test]
    fn nearly_configurations_never_panic(text in nearly()) {
        for file in ["c.json", "c.toml"] {
            let document = document::read(Path::new(file), text.as_bytes());
            for problem in document.errors {
                prop_assert!(!problem.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn names_always_fit_and_differ(names in prop::collection::hash_set(".{0,80}|[a-c .-]{0,4}", 0..20)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let fitted = names::fit(&names);
        prop_assert!(fitted.iter().all(|name| is_server_name(name)));
        let different: std::collections::HashSet<_> = fitted.iter().collect();
        prop_assert_eq!(different.len(), names.len());
    }
}
