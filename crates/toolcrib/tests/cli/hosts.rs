//! `import` and `connect` with the files of other programs, as those write them. What stands there
//! for a secret begins with `hush` and must never be seen again.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use toolcrib_testkit::world::{Run, World};

use crate::play::{parsed, world};

/// A host, its own file and that of a project on this system, and one as people have it.
struct Sample {
    id: &'static str,
    file: &'static str,
    project: Option<&'static str>,
    text: &'static str,
}

const SAMPLES: [Sample; 12] = [
    Sample {
        id: "claude-code",
        file: ".claude.json",
        project: Some(".mcp.json"),
        text: include_str!("../hosts/claude-code.json"),
    },
    Sample {
        id: "claude-desktop",
        file: ".config/Claude/claude_desktop_config.json",
        project: None,
        text: include_str!("../hosts/claude-desktop.json"),
    },
    Sample {
        id: "cline",
        file: ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        project: None,
        text: include_str!("../hosts/cline.json"),
    },
    Sample {
        id: "codex",
        file: ".codex/config.toml",
        project: Some(".codex/config.toml"),
        text: include_str!("../hosts/codex.toml"),
    },
    Sample {
        id: "cursor",
        file: ".cursor/mcp.json",
        project: Some(".cursor/mcp.json"),
        text: include_str!("../hosts/cursor.json"),
    },
    Sample {
        id: "gemini",
        file: ".gemini/settings.json",
        project: Some(".gemini/settings.json"),
        text: include_str!("../hosts/gemini.json"),
    },
    Sample {
        id: "goose",
        file: ".config/goose/config.yaml",
        project: None,
        text: include_str!("../hosts/goose.yaml"),
    },
    Sample {
        id: "lmstudio",
        file: ".lmstudio/mcp.json",
        project: None,
        text: include_str!("../hosts/lmstudio.json"),
    },
    Sample {
        id: "opencode",
        file: ".config/opencode/opencode.jsonc",
        project: Some("opencode.json"),
        text: include_str!("../hosts/opencode.jsonc"),
    },
    Sample {
        id: "vscode",
        file: ".config/Code/User/mcp.json",
        project: Some(".vscode/mcp.json"),
        text: include_str!("../hosts/vscode.json"),
    },
    Sample {
        id: "windsurf",
        file: ".codeium/windsurf/mcp_config.json",
        project: None,
        text: include_str!("../hosts/windsurf.json"),
    },
    Sample {
        id: "zed",
        file: ".config/zed/settings.json",
        project: Some(".zed/settings.json"),
        text: include_str!("../hosts/zed.json"),
    },
];

/// Servers of ours, with all that may be hard to say elsewhere.
const OURS: &str = r#"[servers.files]
command = "npx"
args = ["-y", "server-filesystem", "${HOME}/notes"]
env = { LOG = "debug" }

[servers.github]
command = "github-mcp"
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }
include_tools = ["get_issue"]

[servers.renamed]
command = "renamed-mcp"
env = { API_KEY = "${RENAMED_KEY}" }

[servers.tracker]
url = "https://tracker.example/mcp"
headers = { Authorization = "Bearer ${TRACKER_TOKEN}", X-Region = "eu" }

[servers.keyed]
url = "https://keyed.example/mcp"
headers = { X-Api-Key = "${KEYED}" }
exclude_tools = ["drop_*"]

[servers.open]
url = "https://open.example/mcp"

[servers.old]
url = "https://old.example/sse"
transport = "sse"

[servers.there]
command = "there-mcp"
cwd = "/srv/there"

[servers.default]
command = "default-mcp"
args = ["${PORT:-80}"]

[servers.clear]
command = "clear-mcp"
env = { CLEAR_TOKEN = "hush-clear" }

[servers.off]
command = "off-mcp"
enabled = false
"#;

fn own_file(world: &World) -> PathBuf {
    world.state().join("toolcrib.toml")
}

/// The files at both places, told and read, and nothing of a secret in what was said.
fn shown(world: &World, run: &Run) -> String {
    for said in [&run.stdout, &run.stderr] {
        assert!(!said.contains("hush"), "{said}");
    }
    world.normal(&format!("{}exit {}\n\n{}", run.stderr, run.code.unwrap_or(-1), run.stdout))
}

fn with_sample(sample: &Sample) -> (World, PathBuf) {
    let world = world();
    let file = world.write(world.home().join(sample.file), sample.text);
    (world, file)
}

#[test]
fn every_host_is_taken_over_without_its_secrets() {
    for sample in &SAMPLES {
        let (world, file) = with_sample(sample);
        let run = world.run(&["import", sample.id, "--yes"]);
        insta::assert_snapshot!(format!("import_{}", sample.id), shown(&world, &run));
        let own = fs::read_to_string(own_file(&world)).unwrap();
        assert!(!own.contains("hush"), "{own}");
        assert_eq!(fs::read_to_string(&file).unwrap(), sample.text, "it is only read");
        let again = world.run(&["import", sample.id, "--yes"]);
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert!(again.stderr.contains("nothing to add"), "{}", again.stderr);
        assert_eq!(fs::read_to_string(own_file(&world)).unwrap(), own);
        // And what was taken over is a configuration of ours.
        let list = world.run(&["hosts", "--json"]);
        assert_eq!(parsed(&list)["format"], "toolcrib/hosts/1");
        assert!(!list.stdout.contains("hush"));
    }
}

#[test]
fn all_hosts_are_taken_over_at_once() {
    let world = world();
    for sample in &SAMPLES {
        world.write(world.home().join(sample.file), sample.text);
    }
    world.write(world.home().join(".config/Code/User/settings.json"), "{\"mcp\": {\"servers\": ");
    let run = world.run(&["import", "--yes"]);
    insta::assert_snapshot!(shown(&world, &run));
    let names: Vec<String> = toml(&own_file(&world)).into_keys().collect();
    assert!(names.contains(&"github-vscode".to_owned()), "{names:?}");
}

#[test]
fn every_host_gets_what_it_can_have() {
    for sample in &SAMPLES {
        let world = world();
        world.write(own_file(&world), OURS);
        let run = world.run(&["connect", sample.id, "--yes"]);
        insta::assert_snapshot!(format!("connect_{}", sample.id), shown(&world, &run));
        let files = world.run(&["hosts", "--json"]);
        let row = host(&parsed(&files), sample.id);
        let file = PathBuf::from(row["file"].as_str().unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("hush"), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = world.run(&["connect", sample.id, "--yes"]);
        assert!(again.stderr.contains("nothing to write"), "{}", again.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "no backup of nothing"
        );
    }
}

fn host(hosts: &Value, id: &str) -> Value {
    let rows = hosts["hosts"].as_array().unwrap();
    rows.iter().find(|row| row["host"] == id).unwrap().clone()
}

/// A file as people have it, and an empty one.
#[test]
fn what_stands_in_a_file_stays_as_it_is() {
    for sample in &SAMPLES {
        for text in [sample.text, ""] {
            let world = world();
            let file = world.write(world.home().join(sample.file), text);
            world.write(own_file(&world), OURS);
            let run = world.run(&["connect", sample.id, "--yes"]);
            shown(&world, &run);
            let new = fs::read_to_string(&file).unwrap();
            let mut lines = new.lines();
            for line in text.lines() {
                // A comma may have to follow what was last.
                let same = |new: &str| new == line || new.strip_suffix(',') == Some(line);
                assert!(lines.any(same), "{}: {line} is not in\n{new}", sample.id);
            }
            assert_ne!(new, text);
            let backup = format!("{}.bak-1", file.display());
            assert_eq!(fs::read_to_string(backup).unwrap(), text);
            let again = world.run(&["connect", sample.id, "--yes"]);
            assert!(again.stderr.contains("nothing to write"), "{}", again.stderr);
        }
    }
}

/// What went there comes back as it was.
#[test]
fn what_is_connected_is_imported_alike() {
    for sample in &SAMPLES {
        let mut world = world();
        world.write(own_file(&world), OURS);
        let run = world.run(&["connect", sample.id, "--yes", "--json"]);
        let report = parsed(&run);
        assert_eq!(
            (&report["format"], &report["written"]),
            (&json!("toolcrib/connect/1"), &json!(true))
        );
        let ours = toml(&own_file(&world));
        world.env("TOOLCRIB_HOME", world.home().join("other"));
        let run = world.run(&["import", sample.id, "--yes", "--json"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let theirs = toml(&world.home().join("other/toolcrib.toml"));
        let mut added = 0;
        for entry in report["entries"].as_array().unwrap() {
            let name = entry["server"].as_str().unwrap();
            let there = entry["outcome"] == "added";
            assert_eq!(theirs.contains_key(name), there, "{}: {name}", sample.id);
            if there {
                added += 1;
                let [one, other] =
                    [&ours[name], &theirs[name]].map(|server| target(&world, server));
                assert_eq!(one, other, "{}: {name}", sample.id);
            }
        }
        assert!(added > 0, "{}: {report}", sample.id);
    }
}

fn toml(file: &Path) -> BTreeMap<String, toml::Table> {
    let text = fs::read_to_string(file).unwrap();
    let mut table: toml::Table = text.parse().unwrap();
    let servers = table.remove("servers").unwrap().try_into::<toml::Table>().unwrap();
    servers.into_iter().map(|(name, server)| (name, server.try_into().unwrap())).collect()
}

/// How a server is reached, where `${HOME}` may have been written out.
fn target(world: &World, server: &toml::Table) -> String {
    let keys = ["command", "args", "env", "cwd", "url", "headers"];
    let parts = keys.map(|key| server.get(key).map(ToString::to_string).unwrap_or_default());
    parts.join("\n").replace("${HOME}", &world.home().to_string_lossy())
}

#[test]
fn a_project_has_a_file_of_its_own() {
    for sample in &SAMPLES {
        let world = world();
        world.write(own_file(&world), OURS);
        let run = world.run(&["connect", sample.id, "open", "files", "--project", "--yes"]);
        let Some(project) = sample.project else {
            assert_eq!(run.code, Some(2), "{}", run.stderr);
            assert!(run.stderr.contains("has no file for projects"), "{}", run.stderr);
            continue;
        };
        let text = fs::read_to_string(world.cwd().join(project)).unwrap();
        assert!(text.contains("https://open.example/mcp"), "{text}");
        // Nobody's home folder belongs into a file that others read.
        assert!(!text.contains(&*world.home().to_string_lossy()), "{text}");
        let run = world.run(&["import", sample.id, "--project", "--dry-run"]);
        assert!(run.stderr.contains("open: already here"), "{}", run.stderr);
    }
}

/// A file of the folder may be anybody's.
#[test]
fn servers_of_the_folder_are_connected_only_by_name() {
    let world = world();
    world.write("toolcrib.toml", "[servers.found]\ncommand = \"found\"\n");
    world.write(own_file(&world), "[servers.own]\ncommand = \"own\"\n");
    let run = world.run(&["connect", "cursor", "--dry-run"]);
    assert!(!run.stdout.contains("found"), "{}", run.stdout);
    assert!(run.stderr.contains("found: left out"), "{}", run.stderr);
    let run = world.run(&["connect", "cursor", "found", "--dry-run"]);
    assert!(run.stdout.contains("\"found\""), "{}", run.stdout);
    assert!(!world.home().join(".cursor").exists(), "it was only shown");
}

#[test]
fn another_entry_of_the_name_is_replaced_only_when_asked() {
    let world = world();
    world.write(own_file(&world), "[servers.a]\ncommand = \"new\"\nargs = [\"x\"]\n");
    let text = "{\n  \"mcpServers\": {\n    // keep\n    \"a\": {\"command\": \"old\", \"env\": {\"A_KEY\": \
                \"hush\"}},\n    \"b\": {}\n  }\n}\n";
    let file = world.write(world.home().join(".cursor/mcp.json"), text);
    let run = world.run(&["connect", "cursor", "--yes"]);
    insta::assert_snapshot!(shown(&world, &run));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let run = world.run(&["connect", "cursor", "--replace", "--yes"]);
    insta::assert_snapshot!(shown(&world, &run));
    let new = fs::read_to_string(&file).unwrap();
    assert!(new.contains("// keep\n    \"a\": {\n") && new.contains("\"b\": {}"), "{new}");
}

/// What was imported stands there with the secret that was not taken over, and keeps it.
#[test]
fn an_entry_that_was_imported_keeps_its_secret() {
    for sample in &SAMPLES {
        let (world, file) = with_sample(sample);
        assert_eq!(world.run(&["import", sample.id, "--yes"]).code, Some(0));
        let before = fs::read(&file).unwrap();
        let run = world.run(&["connect", sample.id, "--yes", "--replace"]);
        let after = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&before);
        for secret in
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| w.starts_with("hush"))
        {
            let kept = String::from_utf8_lossy(&after).contains(secret);
            assert!(kept, "{}: {secret} is gone: {}", sample.id, run.stderr);
        }
    }
}

#[test]
fn nothing_is_written_without_a_yes() {
    let world = world();
    world.write(own_file(&world), "[servers.a]\ncommand = \"x\"\n");
    let file = world.write(world.home().join(".cursor/mcp.json"), "{}");
    for flag in [None, Some("--dry-run"), Some("--json")] {
        for command in [["connect", "cursor"], ["import", "zed"]] {
            world.write(world.home().join(".config/zed/settings.json"), SAMPLES[11].text);
            let args: Vec<&str> = command.into_iter().chain(flag).collect();
            let run = world.run(&args);
            shown(&world, &run);
            assert_eq!(run.code, Some(if flag == Some("--dry-run") { 0 } else { 3 }), "{args:?}");
            assert!(!run.stdout.is_empty(), "{args:?} shows what it would write");
        }
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    assert_eq!(fs::read_dir(world.home().join(".cursor")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(own_file(&world)).unwrap(), "[servers.a]\ncommand = \"x\"\n");
}

/// Files that cannot be changed: each is named with the reason and left as it is.
#[test]
fn a_file_that_cannot_be_changed_is_left_alone() {
    let check = |prepare: &dyn Fn(&World, &Path)| {
        let world = world();
        world.write(own_file(&world), "[servers.a]\ncommand = \"x\"\n");
        let file = world.home().join(".cursor/mcp.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        prepare(&world, &file);
        let bytes =
            || fs::metadata(&file).is_ok_and(|it| it.is_file()).then(|| fs::read(&file).unwrap());
        let before = bytes();
        let run = world.run(&["connect", "cursor", "--yes"]);
        assert_eq!(bytes(), before);
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        world.normal(&run.stderr)
    };
    let write = |text: &'static [u8]| move |_: &World, file: &Path| fs::write(file, text).unwrap();
    let said = [
        check(&write(b"{\n  \"mcpServers\": {\n")),
        check(&write(b"{\"mcpServers\": 7}")),
        check(&write(b"[]")),
        check(&write(b"{\"a\": \"\xe4\"}")),
        check(&|_, file| fs::File::create(file).unwrap().set_len((16 << 20) + 1).unwrap()),
        check(&|_, file| {
            fs::write(file, "{}").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
        }),
        check(&|_, file| fs::create_dir(file).unwrap()),
        check(&|_, file| {
            let made = Command::new("mkfifo").arg(file).status().unwrap();
            assert!(made.success());
        }),
        check(&|world, file| {
            fs::remove_dir(file.parent().unwrap()).unwrap();
            fs::write(world.home().join(".cursor"), "no folder").unwrap();
        }),
    ];
    insta::assert_snapshot!(said.concat());
}

#[test]
fn marks_encodings_permissions_and_links_stay() {
    let world = world();
    world.write(own_file(&world), "[servers.a]\ncommand = \"x\"\n");
    let text = "\u{feff}{\r\n  // c\r\n  \"mcpServers\": {}\r\n}\r\n";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let real = world.home().join("dotfiles.json");
    let link = world.home().join(".cursor/mcp.json");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../dotfiles.json", &link).unwrap();
    for bytes in [text.as_bytes(), &wide] {
        fs::write(&real, bytes).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        let run = world.run(&["connect", "cursor", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let new = fs::read(&real).unwrap();
        assert_eq!(new[..2], bytes[..2]);
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o644);
        let run = world.run(&["import", "cursor", "--dry-run"]);
        assert!(run.stderr.contains("a: already here"), "{}", run.stderr);
    }
    let backups = fs::read_dir(link.parent().unwrap()).unwrap().count() - 1;
    assert_eq!(backups, 2);
}

#[test]
fn a_host_that_is_not_here_is_named_with_the_places() {
    let world = world();
    let runs = [
        world.run(&["import"]),
        world.run(&["import", "cursor"]),
        world.run(&["import", "goose", "--project"]),
        world.run(&["import", "emacs"]),
        world.run(&["connect", "cursor"]),
    ];
    let said: Vec<_> =
        runs.iter().map(|run| format!("{}exit {:?}\n", run.stderr, run.code)).collect();
    insta::assert_snapshot!(world.normal(&said.join("\n")));
}

/// VS Code kept its servers in its settings once: they are read, and new ones go where it has them
/// now.
#[test]
fn settings_of_earlier_versions_are_only_read() {
    let world = world();
    let settings = "{\"mcp\": {\"servers\": {\"old\": {\"command\": \"old-mcp\"}}}}";
    let file = world.write(world.home().join(".config/Code/User/settings.json"), settings);
    let run = world.run(&["import", "vscode", "--yes"]);
    assert!(run.stderr.contains("vscode old: new"), "{}", run.stderr);
    let run = world.run(&["connect", "vscode", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), settings);
    let new = fs::read_to_string(file.with_file_name("mcp.json")).unwrap();
    assert!(new.contains("old-mcp"), "{new}");
}

#[test]
fn the_reports_for_scripts_have_these_shapes() {
    let world = world();
    world.write(own_file(&world), OURS);
    world.write(world.home().join(".cursor/mcp.json"), SAMPLES[4].text);
    let reports = [
        world.run(&["import", "cursor", "--dry-run", "--json"]),
        world.run(&["connect", "claude-desktop", "files", "github", "--yes", "--json"]),
    ];
    let shown: Vec<_> = reports
        .iter()
        .map(|run| {
            let json = serde_json::to_string_pretty(&parsed(run)).unwrap();
            format!("{}exit {:?}\n{json}", run.stderr, run.code)
        })
        .collect();
    insta::assert_snapshot!(world.normal(&shown.join("\n\n")));
}

/// At a terminal, with the file changing while the person thinks. `script` lends the terminal.
#[test]
fn a_person_is_asked_and_a_change_in_between_is_noticed() {
    if !cfg!(target_os = "linux") || !Path::new("/usr/bin/script").exists() {
        return;
    }
    let answers = |answer: &str, meanwhile: &str| {
        let world = world();
        world.write(own_file(&world), "[servers.a]\ncommand = \"x\"\n");
        let file = world.write(world.home().join(".cursor/mcp.json"), "{}");
        let connect = format!("{} connect cursor", env!("CARGO_BIN_EXE_toolcrib"));
        let mut child = Command::new("timeout")
            .args(["20", "/usr/bin/script", "-qec", &connect, "/dev/null"])
            .env("HOME", world.home())
            .env("TOOLCRIB_HOME", world.state())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("TOOLCRIB_CONFIG")
            .current_dir(world.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut said, mut byte) = (Vec::new(), [0]);
        let mut out = child.stdout.take().unwrap();
        while !said.ends_with(b"[y/N] ") && out.read(&mut byte).unwrap() == 1 {
            said.push(byte[0]);
        }
        fs::write(&file, meanwhile).unwrap();
        child.stdin.take().unwrap().write_all(format!("{answer}\n").as_bytes()).unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        (code, rest, fs::read_to_string(&file).unwrap())
    };
    let (code, _, file) = answers("y", "{}");
    assert!(code == Some(0) && file.contains("\"a\""), "{code:?} {file}");
    let (code, rest, file) = answers("n", "{}");
    assert_eq!((code, file.as_str()), (Some(3), "{}"), "{rest}");
    let (code, rest, file) = answers("y", "{\"other\": 1}");
    assert_eq!((code, file.as_str()), (Some(3), "{\"other\": 1}"), "{rest}");
    assert!(rest.contains("has changed since it was read"), "{rest}");
}

#[test]
fn hosts_are_listed_with_their_files() {
    let world = world();
    world.write(world.home().join(".cursor/mcp.json"), SAMPLES[4].text);
    world.write(world.home().join(".config/zed/settings.json"), "{");
    world.write(".mcp.json", "{\"mcpServers\": {}}");
    let run = world.run(&["hosts"]);
    insta::assert_snapshot!(shown(&world, &run));
}
