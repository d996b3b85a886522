//! What comes through a pipe, and what does not stop it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use toolcrib_core::limits::Limits;
use toolcrib_link::{
    channel::{Closed, Inbound, SendError},
    stdio::Pipe,
    trace::{Direction, Trace},
};

use crate::child::{self, PATIENCE, brief, serve, serve_within, wait_for};

fn exited(status: &str) -> Closed {
    Closed::Exited { status: Some(status.to_owned()) }
}

/// Runs a program to its end.
async fn check(program: &str, expect: &[&str], end: Closed) {
    let (said, closed) = serve(program).rest().await;
    assert_eq!(
        (said, closed),
        (expect.iter().map(ToString::to_string).collect(), end),
        "{program}"
    );
}

#[tokio::test]
async fn lines_go_out_and_answers_come_back() {
    let mut server = serve(
        r#"
for line in sys.stdin:
    id = json.loads(line)["id"]
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"line": line.rstrip("\n")}}) + "\n")
"#,
    );
    for id in 1..=100 {
        server.send(&format!("{{\"id\":{id}}}")).await;
        let answer = format!(r#"Ours({id})={{"line": "{{\"id\":{id}}}"}}"#);
        assert_eq!(brief(&server.next().await), answer);
    }
    // A line break inside JSON is layout and must not cut the message in two.
    server.send("{\"id\":\r\n101}").await;
    assert_eq!(brief(&server.next().await), r#"Ours(101)={"line": "{\"id\":  101}"}"#);
    assert_eq!(server.pipe.shutdown().await, "exit code 0");
    assert_eq!(server.rest().await, (vec![], Closed::ByUs));
}

#[tokio::test]
async fn c09_c10_what_is_no_message_is_noise() {
    check(
        r#"
say("Some Server, release 9.9.9\n\n{\"lvl\":\"i\",\"id\":1}\n42\nnull\n")
say("Content-Length: 5\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n")
say("[{\"method\":\"b\"},{\"method\":\"c\"}]\n\x1b[2Jdone\n")
sys.exit(3)
"#,
        &[
            "noise Some Server, release 9.9.9",
            "noise {\"lvl\":\"i\",\"id\":1}",
            "noise 42",
            "noise null",
            "noise Content-Length: 5",
            "a",
            "[b,c]",
            "noise \\u{1b}[2Jdone",
        ],
        exited("exit code 3"),
    )
    .await;
}

#[tokio::test]
async fn c12_marks_and_a_missing_last_newline_are_tolerated() {
    check(
        "say('\\ufeff{\"method\":\"a\"}\\r\\n{\"id\":1,\"result\":\"bye\"}')",
        &["a", "Ours(1)=\"bye\""],
        exited("exit code 0"),
    )
    .await;
}

#[tokio::test]
async fn c77_undecodable_bytes_are_said_and_the_next_line_is_fine() {
    check(
        r#"
os.write(1, b'{"id":1,"result":"\xb0\xa1"}\n\xff noise\n{"method":"next"}\n')
os.kill(os.getpid(), signal.SIGTERM)
"#,
        &["lossy", "Ours(1)=\"\u{fffd}\u{fffd}\"", "noise \u{fffd} noise", "next"],
        exited("signal 15 (SIGTERM)"),
    )
    .await;
}

#[tokio::test]
async fn c78_a_line_over_the_limit_ends_the_server() {
    let limits = Limits { message_bytes: 32 << 10, ..Limits::default() };
    let mut server = serve_within(
        &limits,
        r#"
say('{"method":"first"}\n')
while True: os.write(1, b"z" * 65536)
"#,
    );
    let before = resident_kb();
    assert_eq!(
        server.rest().await,
        (vec!["first".to_owned()], Closed::TooLong { limit: 32 << 10 })
    );
    assert_eq!(timeout(PATIENCE, server.pipe.shutdown()).await.unwrap(), "signal 9 (SIGKILL)");
    assert!(!child::is_listed(server.pipe.pid()));
    // Other tests run in this process at the same time, hence the room.
    assert!(resident_kb().saturating_sub(before) < 40 << 10, "memory stays bounded");
}

#[tokio::test]
async fn a_long_line_within_the_limit_arrives_whole() {
    let mut server = serve(r#"say('{"id":1,"result":"' + "x" * (8 << 20) + '"}\n')"#);
    let first = brief(&server.next().await);
    assert_eq!(first.len(), "Ours(1)=\"\"".len() + (8 << 20));
}

#[tokio::test]
async fn c55_standard_error_never_stands_in_the_way() {
    let mut server = serve(
        r##"
for line in sys.stdin:
    os.write(2, b"#" * 1000000 + b"\nlast words\n\n")
    say('{"id":1,"result":"answered"}\n')
"##,
    );
    let start = Instant::now();
    server.send("{}").await;
    assert_eq!(brief(&server.next().await), "Ours(1)=\"answered\"");
    assert!(start.elapsed() < Duration::from_secs(5));
    let stderr = server.pipe.stderr().clone();
    wait_for(|| stderr.total_bytes() == 1_000_013).await;
    assert_eq!(stderr.tail().len(), Limits::default().stderr_bytes);
    assert_eq!(stderr.last_lines(1), "last words");
    server.pipe.shutdown().await;
    let log = server.folder.path().join("stderr.log");
    wait_for(|| std::fs::read_to_string(&log).is_ok_and(|log| log.ends_with("last words\n\n")))
        .await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.starts_with(&format!("--- process {} ---\n##", server.pipe.pid())));
}

#[tokio::test]
async fn last_words_on_standard_error_are_there_when_the_end_is_told() {
    for _ in 0..5 {
        let mut server = serve("sys.stderr.write('fatal: no key\\n'); sys.exit(1)");
        assert_eq!(server.rest().await.1, exited("exit code 1"));
        assert_eq!(server.pipe.stderr().tail(), "fatal: no key\n");
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_up_only_the_sender() {
    let server = serve("note('up', 1); time.sleep(60)");
    server.noted("up").await;
    let line = "x".repeat(100_000);
    let mut sent = 0;
    while let Ok(done) = timeout(Duration::from_millis(300), server.pipe.send(line.clone())).await {
        done.unwrap();
        sent += 1;
        assert!(sent < 40, "the queue is bounded");
    }
    let start = Instant::now();
    let waiting = tokio::spawn({
        let pipe = server.pipe.clone();
        async move { pipe.send("late".to_owned()).await }
    });
    server.pipe.shutdown().await;
    assert_eq!(waiting.await.unwrap(), Err(SendError::Closed));
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn what_waits_is_still_written_before_input_is_closed() {
    let mut server = serve(
        r#"
time.sleep(0.1)
for line in sys.stdin: say('{"method":%s}\n' % line.strip())
"#,
    );
    for id in 0..10 {
        server.send(&format!("\"m{id}\"")).await;
    }
    server.pipe.shutdown().await;
    let (said, closed) = server.rest().await;
    assert_eq!(said, (0..10).map(|id| format!("m{id}")).collect::<Vec<_>>());
    assert_eq!(closed, Closed::ByUs);
    assert_eq!(server.pipe.send("late".to_owned()).await, Err(SendError::Closed));
}

#[tokio::test]
async fn a_flood_waits_for_the_listener_and_loses_nothing() {
    let mut server = serve(
        "for n in range(20000): sys.stdout.write('{\"id\":%d,\"result\":\"%s\"}\\n' % (n, 'y' * 60))",
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (said, closed) = server.rest().await;
    assert_eq!(said.len(), 20_000);
    assert!(said.last().unwrap().starts_with("Ours(19999)"));
    assert_eq!(closed, exited("exit code 0"));
}

#[tokio::test]
async fn what_was_written_before_the_end_arrives_even_late() {
    // Fits into the pipe, so the process is long gone when anybody reads; the inbox is tiny.
    let folder = tempfile::tempdir().unwrap();
    let command =
        child::python(folder.path(), "for n in range(1500): say('{\"method\":\"%d\"}\\n' % n)");
    let (sender, inbox) = mpsc::channel(1);
    let pipe = Pipe::start(&command, &Limits::default(), None, sender, None).unwrap();
    let pid = pipe.pid();
    wait_for(|| !child::is_listed(pid)).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let mut server = child::Server { pipe: Arc::new(pipe), inbox, folder };
    assert_eq!(server.rest().await.0.len(), 1500);
}

#[tokio::test]
async fn closing_output_alone_ends_the_server() {
    let mut server = serve("os.close(1); time.sleep(60)");
    assert_eq!(server.rest().await, (vec![], Closed::Exited { status: None }));
    // It was told to leave: SIGTERM after two seconds.
    assert_eq!(timeout(PATIENCE, server.pipe.shutdown()).await.unwrap(), "signal 15 (SIGTERM)");
}

#[tokio::test]
async fn a_dropped_inbox_ends_the_server() {
    let mut server = serve("while True: say('noise\\n'); time.sleep(0.01)");
    assert!(matches!(server.next().await, Inbound::Noise(_)));
    server.inbox.close();
    while server.inbox.recv().await.is_some() {}
    let pid = server.pipe.pid();
    wait_for(|| !child::is_listed(pid)).await;
}

#[tokio::test]
async fn a_trace_sees_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let command = child::python(folder.path(), "say(sys.stdin.readline())");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let trace: Trace = Arc::new({
        let seen = seen.clone();
        move |direction, text: &str| seen.lock().unwrap().push((direction, text.to_owned()))
    });
    let (sender, inbox) = mpsc::channel(8);
    let pipe = Pipe::start(&command, &Limits::default(), None, sender, Some(trace)).unwrap();
    pipe.send("{\"method\":\"a\"}".to_owned()).await.unwrap();
    let mut server = child::Server { pipe: Arc::new(pipe), inbox, folder };
    assert_eq!(server.rest().await.0, ["a"]);
    let line = "{\"method\":\"a\"}".to_owned();
    assert_eq!(*seen.lock().unwrap(), [(Direction::Out, line.clone()), (Direction::In, line)]);
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
