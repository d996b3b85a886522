//! The client scenarios of the protocol's conformance harness, played against the example
//! `conformance_client`. The harness judges what it sees on the wire; it has to find nothing.

use std::time::Duration;

use tokio::{process::Command, time::timeout};
use toolcrib_testkit::peers;

use crate::house::example;

async fn check(version: &str, scenario: &str) {
    let folder = tempfile::tempdir().unwrap();
    let client = example("conformance_client");
    let mut harness = Command::new(peers::node());
    harness
        .arg(peers::bin().join("conformance"))
        .args(["client", "--scenario", scenario, "--spec-version", version])
        .args(["--timeout", "30000", "--command", &format!("\"{}\"", client.display())])
        .arg("--output-dir")
        .arg(folder.path())
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(60), harness.output()).await;
    let output = output.expect("the harness ends").unwrap();
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.contains("OVERALL: PASSED"), "{said}");
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_tools_call() {
    check("2026-07-28", "tools_call").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_request_metadata() {
    check("2026-07-28", "request-metadata").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_request_state() {
    check("2026-07-28", "sep-2322-client-request-state").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_standard_headers() {
    check("2026-07-28", "http-standard-headers").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_custom_headers() {
    check("2026-07-28", "http-custom-headers").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_invalid_tool_headers() {
    check("2026-07-28", "http-invalid-tool-headers").await;
}

#[tokio::test]
async fn peer_conformance_client_2026_07_28_no_deref() {
    check("2026-07-28", "json-schema-ref-no-deref").await;
}

/// Not among the scenarios that are scored.
#[tokio::test]
async fn peer_conformance_client_2026_07_28_schema_preservation() {
    check("2026-07-28", "json-schema-2020-12-preservation").await;
}

#[tokio::test]
async fn peer_conformance_client_2025_11_25_initialize() {
    check("2025-11-25", "initialize").await;
}

#[tokio::test]
async fn peer_conformance_client_2025_11_25_tools_call() {
    check("2025-11-25", "tools_call").await;
}

#[tokio::test]
async fn peer_conformance_client_2025_11_25_elicitation_defaults() {
    check("2025-11-25", "elicitation-sep1034-client-defaults").await;
}

#[tokio::test]
async fn peer_conformance_client_2025_11_25_sse_retry() {
    check("2025-11-25", "sse-retry").await;
}
