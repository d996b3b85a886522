//! Every way a server ends leaves nothing behind.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use toolcrib_link::{channel::Closed, process::STOP_WITHIN};

use crate::child::{PATIENCE, Server, is_listed, runs, serve, wait_for};

/// Starts a grandchild that sleeps, with our standard streams.
const GRANDCHILD: &str = r#"
def grandchild(**how):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code if how.pop("stubborn", False)
                              else "import time; time.sleep(60)"], **how)
    note("grandchild", child.pid)
"#;

fn with_grandchild(program: &str) -> Server {
    serve(&format!("{GRANDCHILD}{program}"))
}

async fn stop(server: &Server) -> (String, Duration) {
    let start = Instant::now();
    let words = timeout(PATIENCE, server.pipe.shutdown()).await.expect("it ends");
    assert!(start.elapsed() < STOP_WITHIN, "took {:?}", start.elapsed());
    assert!(!is_listed(server.pipe.pid()), "gone and reaped");
    (words, start.elapsed())
}

#[tokio::test]
async fn a_server_that_leaves_on_eof_is_not_signalled() {
    let server = serve("sys.stdin.read(); time.sleep(0.3); sys.exit(5)");
    let (words, took) = stop(&server).await;
    assert_eq!(words, "exit code 5");
    assert!(took < Duration::from_secs(2));
    assert_eq!(stop(&server).await.0, "exit code 5", "asking again is harmless");
}

#[tokio::test]
async fn c107_a_stubborn_server_is_gone_within_six_seconds() {
    let server = serve(
        r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note("up", 1)
while True: time.sleep(60)
"#,
    );
    server.noted("up").await;
    let both = tokio::join!(stop(&server), stop(&server));
    assert_eq!(both.0.0, "signal 9 (SIGKILL)");
    assert_eq!(both.1.0, "signal 9 (SIGKILL)");
    assert!(both.0.1 >= Duration::from_secs(4), "it had its time");
}

#[tokio::test]
async fn a_server_that_heeds_sigterm_may_clean_up() {
    let server = serve(
        r#"
def leave(*_):
    note("cleaned", 1); sys.exit(7)
signal.signal(signal.SIGTERM, leave)
note("up", 1)
while True: time.sleep(60)
"#,
    );
    server.noted("up").await;
    assert_eq!(stop(&server).await.0, "exit code 7");
    server.noted("cleaned").await;
}

#[tokio::test]
async fn giving_up_waiting_does_not_stop_the_ending() {
    let server = serve("note('up', 1); time.sleep(60)");
    server.noted("up").await;
    assert!(timeout(Duration::from_millis(50), server.pipe.shutdown()).await.is_err());
    let pid = server.pipe.pid();
    wait_for(|| !is_listed(pid)).await;
}

#[tokio::test]
async fn c54_a_grandchild_goes_with_the_server() {
    let check = |program: &'static str| async move {
        let mut server = with_grandchild(program);
        let grandchild = server.noted_pid("grandchild").await;
        assert!(runs(grandchild), "{program}");
        stop(&server).await;
        wait_for(|| !runs(grandchild)).await;
        assert_eq!(server.rest().await.1, Closed::ByUs, "{program}");
    };
    // Leaves on EOF; ignores it; the grandchild ignores SIGTERM; it left the group.
    tokio::join!(
        check("grandchild(); sys.stdin.read()"),
        check("grandchild(); time.sleep(60)"),
        check("grandchild(stubborn=True); sys.stdin.read()"),
        check("grandchild(start_new_session=True); sys.stdin.read()"),
        check("grandchild(start_new_session=True, stubborn=True); time.sleep(60)"),
    );
}

#[tokio::test]
async fn c54_a_server_that_ends_by_itself_takes_its_grandchild_along() {
    let mut server = with_grandchild("grandchild(); say('{\"method\":\"a\"}\\n'); sys.exit(4)");
    let start = Instant::now();
    let (said, closed) = server.rest().await;
    assert_eq!(
        (said, closed),
        (vec!["a".to_owned()], Closed::Exited { status: Some("exit code 4".to_owned()) })
    );
    assert!(start.elapsed() < Duration::from_secs(3));
    let grandchild = server.noted_pid("grandchild").await;
    let pid = server.pipe.pid();
    wait_for(|| !runs(grandchild) && !is_listed(pid)).await;
}

#[tokio::test]
async fn a_pipe_held_open_by_an_unknown_process_does_not_hold_us() {
    // The grandchild's session is its own and its parent is gone: nobody can tell whose it is.
    let mut server = with_grandchild("grandchild(start_new_session=True); sys.exit(0)");
    let grandchild = server.noted_pid("grandchild").await;
    assert_eq!(timeout(Duration::from_secs(3), server.rest()).await.unwrap().0, [""; 0]);
    assert_eq!(stop(&server).await.0, "exit code 0");
    if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(grandchild).unwrap()) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[tokio::test]
async fn dropping_kills_everything_at_once() {
    let server = with_grandchild(
        "grandchild(start_new_session=True, stubborn=True)\n\
         signal.signal(signal.SIGTERM, signal.SIG_IGN); note('up', 1); time.sleep(60)",
    );
    let grandchild = server.noted_pid("grandchild").await;
    server.noted("up").await;
    let pid = server.pipe.pid();
    let start = Instant::now();
    drop(server);
    wait_for(|| !is_listed(pid) && !runs(grandchild)).await;
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_runtime_that_ends_takes_the_server_along() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    let first = runtime();
    let (server, pid, grandchild) = first.block_on(async {
        let server = with_grandchild("grandchild(); time.sleep(60)");
        let grandchild = server.noted_pid("grandchild").await;
        let pid = server.pipe.pid();
        (server, pid, grandchild)
    });
    // The handle outlives the runtime: only the task that keeps the process can act.
    drop(first);
    assert!(!is_listed(pid), "gone and reaped");
    runtime().block_on(wait_for(|| !runs(grandchild)));
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_servers_end_together_in_time() {
    let servers: Vec<_> =
        (0..20).map(|_| with_grandchild("grandchild(); time.sleep(60)")).collect();
    let mut pids = Vec::new();
    for server in &servers {
        pids.push(server.noted_pid("grandchild").await);
    }
    let stops: Vec<_> = servers
        .into_iter()
        .map(|server| tokio::spawn(async move { stop(&server).await.0 }))
        .collect();
    for stop in stops {
        assert_eq!(stop.await.unwrap(), "signal 15 (SIGTERM)");
    }
    sleep(Duration::from_millis(50)).await;
    assert!(pids.into_iter().all(|pid| !runs(pid)));
}
