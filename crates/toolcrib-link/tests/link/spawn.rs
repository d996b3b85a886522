//! What a child is started with, and why it is not started.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use tokio::sync::mpsc;
use toolcrib_core::{limits::Limits, secret::Secret, target::Command};
use toolcrib_link::{process::INHERITED, stdio::Pipe};

use crate::child::{Server, brief};

fn start(command: &Command) -> Result<Server, String> {
    let (sender, inbox) = mpsc::channel(8);
    let folder = tempfile::tempdir().unwrap();
    match Pipe::start(command, &Limits::default(), None, sender, None) {
        Ok(pipe) => Ok(Server { pipe: pipe.into(), inbox, folder }),
        Err(error) => Err(error.to_string()),
    }
}

fn command(program: &str, args: &[&str], env: &[(&str, &str)], cwd: Option<&Path>) -> Command {
    Command {
        program: program.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect(),
        cwd: cwd.map(Path::to_path_buf),
    }
}

#[tokio::test]
async fn a_failed_start_says_what_and_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("plain"), "#!/bin/sh\n").unwrap();
    fs::write(at.join("orphan"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(at.join("orphan"), fs::Permissions::from_mode(0o755)).unwrap();
    let missing = at.join("missing");

    let check = |command: Command, expect: &str| {
        let error = start(&command).map(|_| ()).unwrap_err();
        assert_eq!(error.replace(&at.to_string_lossy().into_owned(), "DIR"), expect);
    };
    check(
        command("no-such-thing", &[], &[("PATH", "/a:/b")], None),
        "command \"no-such-thing\" not found in PATH /a:/b; install it, or give its full path",
    );
    check(
        command("npx -y some-server", &[], &[("PATH", "/a")], None),
        "command \"npx -y some-server\" not found in PATH /a; command contains spaces and args is \
         empty: put the arguments into args",
    );
    // c109
    check(
        command("/usr/bin/env -S python3 fakeserver.py x.json", &[], &[], None),
        "command \"/usr/bin/env -S python3 fakeserver.py x.json\" not found; command contains \
         spaces and args is empty: put the arguments into args",
    );
    check(
        command("npx -y", &["x"], &[("PATH", "")], None),
        "command \"npx -y\" not found; PATH is empty; install it, or give its full path",
    );
    check(
        command("./plain", &[], &[], Some(at)),
        "command \"./plain\": permission denied; the file must be executable and the working \
         directory open to you",
    );
    check(
        command("python3", &[], &[], Some(&missing)),
        "working directory \"DIR/missing\" does not exist; create it, or correct cwd",
    );
    check(
        command("python3", &[], &[], Some(&at.join("plain"))),
        "working directory \"DIR/plain\" is not a directory; create it, or correct cwd",
    );
    check(
        command("./orphan", &[], &[], Some(at)),
        "command \"./orphan\" cannot be started: No such file or directory (os error 2); the \
         interpreter named in its first line is missing",
    );
    for name in ["", "A=B", "A\0"] {
        let error = start(&command("python3", &[], &[(name, "x")], None)).map(|_| ()).unwrap_err();
        assert!(error.contains("cannot be set"), "{error}");
    }
    assert!(start(&command("python3", &["a\0b"], &[], None)).is_err());
}

#[tokio::test]
async fn the_environment_is_the_allowed_and_the_configured_one() {
    let configured = [("MY_TOKEN", "configured"), ("LANG", "overridden")];
    let mut server = start(&command("env", &[], &configured, None)).unwrap();
    let (said, _) = server.rest().await;
    let env: BTreeMap<&str, &str> =
        said.iter().filter_map(|line| line.strip_prefix("noise ")?.split_once('=')).collect();
    assert_eq!((env["MY_TOKEN"], env["LANG"]), ("configured", "overridden"));
    // What is no message is cut, hence only the start.
    let path = std::env::var("PATH").unwrap();
    assert!(path.starts_with(env["PATH"].trim_end_matches('…')));
    // The test runner sets this in our environment, so it is there to be kept back.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    for name in env.keys() {
        let allowed = INHERITED.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == allowed,
        });
        assert!(allowed || *name == "MY_TOKEN", "{name} reached the child");
    }
}

#[tokio::test]
async fn a_program_is_found_in_the_childs_path_and_starts_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("my-shell")).unwrap();
    let script = r#"printf '{"method":"%s"}\n' "$PWD""#;
    let here = fs::canonicalize(folder.path()).unwrap();
    let expect = here.to_string_lossy().into_owned();
    let check = |command: Command| async move {
        let mut server = start(&command).unwrap();
        brief(&server.next().await)
    };
    let path = bin.to_string_lossy().into_owned();
    let by_name = command("my-shell", &["-c", script], &[("PATH", &path)], Some(&here));
    assert_eq!(check(by_name).await, expect);
    let relative = command("bin/my-shell", &["-c", script], &[], Some(&here));
    assert_eq!(check(relative).await, expect);
    let relative_path = command("my-shell", &["-c", script], &[("PATH", "bin")], Some(&here));
    assert_eq!(check(relative_path).await, expect);
}

#[tokio::test]
async fn no_shell_sees_the_arguments() {
    let odd = "$(touch x); `y` * \"";
    let echo = command(
        "python3",
        &["-c", "import json, sys; print(json.dumps({'method': sys.argv[1]}))", odd],
        &[],
        None,
    );
    let mut server = start(&echo).unwrap();
    assert_eq!(brief(&server.next().await), odd);
}
