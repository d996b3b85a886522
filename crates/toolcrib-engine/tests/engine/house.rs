//! An engine over one scripted server, `s`, and the waiting that tests do on it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use toolcrib_core::{
    raw::Raw,
    surface::ListKind,
    target::{Endpoint, ServerConfig, Target},
};
use toolcrib_engine::{CallError, CallOptions, Called, Engine, Mode, Options, Part, Snapshot};
use toolcrib_testkit::fake::{Fake, HttpFake};

/// How long anything may take that is not measured.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server `s` that plays over stdio.
pub(crate) fn stdio(fake: &Fake) -> ServerConfig {
    ServerConfig::new("s", Target::Command(fake.command()))
}

/// A server `s` that plays over HTTP.
pub(crate) fn http(server: &HttpFake) -> ServerConfig {
    ServerConfig::new("s", Target::Http(Endpoint::new(&server.url)))
}

/// An engine that stays.
pub(crate) fn live(config: ServerConfig) -> Engine {
    Engine::start(vec![config], Options { mode: Mode::Live, ..Options::default() })
}

/// An engine that stays, with its tools listed once.
pub(crate) async fn settled(config: ServerConfig) -> Engine {
    let engine = live(config);
    let snapshot = engine.settled(&[ListKind::Tools], Some(Instant::now() + PATIENCE)).await;
    assert!(snapshot.is_settled(&[ListKind::Tools]), "not settled within {PATIENCE:?}");
    engine
}

/// What is known of `s`.
pub(crate) fn part(snapshot: &Snapshot) -> &Arc<Part> {
    snapshot.part("s").expect("s is configured")
}

/// The tools of `s`.
pub(crate) fn tools(snapshot: &Snapshot) -> Vec<String> {
    part(snapshot).tools().map(|tool| tool.name.clone()).collect()
}

/// The snapshot in which `seen` holds of `s`.
///
/// # Panics
/// There is none within `within`.
pub(crate) async fn until(
    engine: &Engine,
    within: Duration,
    seen: impl Fn(&Part) -> bool,
) -> Arc<Snapshot> {
    let looking = async {
        let mut snapshot = engine.snapshot();
        while !seen(part(&snapshot)) {
            snapshot = engine.next(snapshot.generation()).await;
        }
        snapshot
    };
    match timeout(within, looking).await {
        Ok(snapshot) => snapshot,
        Err(_) => {
            let snapshot = engine.snapshot();
            let (state, tools) = (&part(&snapshot).status, tools(&snapshot));
            panic!("not seen within {within:?}; s is {state:?} with {tools:?}")
        }
    }
}

/// Calls a tool without arguments.
pub(crate) async fn call(engine: &Engine, name: &str) -> Result<Called, CallError> {
    let calling = engine.call(name, None, CallOptions::default());
    timeout(PATIENCE, calling).await.expect("a call ends")
}

/// The text of a result.
pub(crate) fn text(called: &Called) -> String {
    let result: Value = called.result.read().unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// A JSON value as sent.
pub(crate) fn raw(value: &Value) -> Raw {
    Raw::parse(value.to_string()).unwrap()
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

/// Seconds since the epoch at which each start is logged.
pub(crate) fn starts(fake: &Fake) -> Vec<f64> {
    fake.log().of("start").filter_map(|entry| entry["t"].as_f64()).collect()
}
