//! How the era of a real server is found out when it starts slowly, and remembered.

use std::time::Duration;

use toolcrib_core::version::Era;
use toolcrib_engine::Options;
use toolcrib_testkit::peers::Peer;

use crate::house::{Watched, stdio};

/// A peer that is silent for longer than the probe waits, and then reads `server/discover` and
/// `initialize` at once: the first message settles what some speak.
async fn check_slow(peer: Peer, era: Era, version: &str) {
    let mut reached = stdio(peer.slow_to_start(1.0));
    reached.config.timeouts.probe = Duration::from_millis(300);
    let peer = Watched::settled(&reached, Options::default()).await;
    assert_eq!((peer.wire.sent("server/discover"), peer.wire.sent("initialize")), (1, 1));
    peer.speaks(era, version);
    assert!(peer.part().tools().count() >= 3);
    peer.shutdown().await;
}

#[tokio::test]
async fn peer_python_2_3_that_starts_slowly_is_modern() {
    check_slow(Peer::python("2.3"), Era::Modern, "2026-07-28").await;
}

#[tokio::test]
async fn peer_python_1_30_that_starts_slowly_is_legacy() {
    check_slow(Peer::python("1.30"), Era::Legacy, "2025-11-25").await;
}

#[tokio::test]
async fn peer_everything_that_starts_slowly_is_legacy() {
    check_slow(Peer::node("mcp-server-everything"), Era::Legacy, "2025-11-25").await;
}

/// The second connection to a legacy server begins with `initialize`.
#[tokio::test]
async fn peer_everything_is_probed_once() {
    let folder = tempfile::tempdir().unwrap();
    let reached = stdio(Peer::node("mcp-server-everything"));
    for probes in [1, 0] {
        let memory = Some(folder.path().join("eras.json"));
        let peer = Watched::settled(&reached, Options { memory, ..Options::default() }).await;
        assert_eq!(peer.wire.sent("server/discover"), probes);
        peer.speaks(Era::Legacy, "2025-11-25");
        peer.shutdown().await;
    }
}
