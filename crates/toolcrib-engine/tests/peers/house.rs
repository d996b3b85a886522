//! An engine over one real server, `s`, that is watched from all sides: the wire in both
//! directions, and the processes it started.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::time::{Instant, timeout};
use toolcrib_core::{
    raw::Raw,
    surface::ListKind,
    target::{Endpoint, ServerConfig, Target},
    version::Era,
};
use toolcrib_engine::{
    CallError, CallOptions, Called, Engine, Mode, Options, Part, Snapshot, Status,
};
use toolcrib_link::trace::Direction;
use toolcrib_testkit::{
    peers::{HttpPeer, Peer},
    process,
};

/// How long anything may take that is not measured.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Marks the processes of one test.
const MARK: &str = "TOOLCRIB_TEST_MARK";

/// An example of this crate, as built beside this test.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("tests stand in <target>/<profile>/deps");
    let example = folder.join("examples").join(name);
    assert!(
        example.is_file(),
        "{} is missing; build it: cargo build -p toolcrib-engine --examples",
        example.display()
    );
    example
}

/// How to reach a peer, and by what its processes are known.
pub(crate) struct Reached {
    pub(crate) config: ServerConfig,
    mark: Option<String>,
}

/// A peer over stdio.
pub(crate) fn stdio(peer: Peer) -> Reached {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let command = peer.env(MARK, &mark).command;
    Reached { config: ServerConfig::new("s", Target::Command(command)), mark: Some(mark) }
}

/// A peer that serves HTTP.
pub(crate) fn http(peer: &HttpPeer) -> Reached {
    let target = Target::Http(Endpoint::new(&peer.url));
    Reached { config: ServerConfig::new("s", target), mark: None }
}

/// Every message, as it crossed the wire.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Vec<(Direction, Value)>>>);

impl Wire {
    fn note(&self, direction: Direction, text: &str) {
        let message = serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((direction, message));
    }

    /// How often we sent this method.
    pub(crate) fn sent(&self, method: &str) -> usize {
        self.count(Direction::Out, method)
    }

    /// How often the server sent this method.
    pub(crate) fn received(&self, method: &str) -> usize {
        self.count(Direction::In, method)
    }

    fn count(&self, direction: Direction, method: &str) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(way, message)| *way == direction && message["method"] == method).count()
    }
}

/// A watched engine over one server.
pub(crate) struct Watched {
    pub(crate) engine: Engine,
    pub(crate) wire: Wire,
    mark: Option<String>,
}

impl Watched {
    /// Starts keeping the server, and waits for all its lists.
    pub(crate) async fn settled(reached: &Reached, options: Options) -> Self {
        let wire = Wire::default();
        let seen = wire.clone();
        let trace: toolcrib_engine::options::TraceFor = Arc::new(move |_| {
            let seen = seen.clone();
            Arc::new(move |direction, text: &str| seen.note(direction, text))
        });
        let options = Options { mode: Mode::Live, trace: Some(trace), ..options };
        let engine = Engine::start(vec![reached.config.clone()], options);
        let snapshot = engine.settled(&ListKind::ALL, Some(Instant::now() + PATIENCE)).await;
        assert_eq!(part(&snapshot).status, Status::Ready);
        Self { engine, wire, mark: reached.mark.clone() }
    }

    /// What is known of the server now.
    pub(crate) fn part(&self) -> Arc<Part> {
        Arc::clone(part(&self.engine.snapshot()))
    }

    /// Its tools.
    pub(crate) fn tools(&self) -> Vec<String> {
        self.part().tools().map(|tool| tool.name.clone()).collect()
    }

    /// Waits until it shows this tool.
    pub(crate) async fn until_it_shows(&self, tool: &str) {
        let looking = async {
            let mut snapshot = self.engine.snapshot();
            while part(&snapshot).tool(tool).is_none() {
                snapshot = self.engine.next(snapshot.generation()).await;
            }
        };
        let seen = timeout(PATIENCE, looking).await;
        assert!(seen.is_ok(), "{tool} did not appear among {:?}", self.tools());
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Result<Called, CallError> {
        self.call_with(tool, arguments, CallOptions::default()).await
    }

    /// Calls a tool.
    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: &Value,
        options: CallOptions,
    ) -> Result<Called, CallError> {
        let arguments = Raw::of(arguments);
        let name = format!("s.{tool}");
        let calling = self.engine.call(&name, Some(&arguments), options);
        timeout(PATIENCE, calling).await.expect("a call ends")
    }

    /// Asserts the era and its version.
    pub(crate) fn speaks(&self, era: Era, version: &str) {
        let part = self.part();
        let negotiated = &part.surface.as_ref().expect("a ready server has one").negotiated;
        let now = (negotiated.era, negotiated.version.as_str());
        assert_eq!(now, (era, version), "{:?}", negotiated.how);
    }

    /// Ends the session; no process of it may be left.
    pub(crate) async fn shutdown(self) {
        let marked = || {
            let mark = self.mark.as_deref();
            mark.map(|mark| process::with_variable(MARK, mark)).unwrap_or_default()
        };
        let pids = marked();
        assert_eq!(pids.is_empty(), self.mark.is_none(), "a stdio server is a process");
        self.engine.shutdown().await;
        assert_eq!(process::still_there(&pids, Duration::ZERO), []);
        assert!(marked().is_empty(), "a process was left behind");
    }
}

/// What is known of `s`.
pub(crate) fn part(snapshot: &Snapshot) -> &Arc<Part> {
    snapshot.part("s").expect("s is configured")
}

/// The whole result as text.
pub(crate) fn text(called: Result<Called, CallError>) -> String {
    called.unwrap_or_else(|error| panic!("{error}")).result.get().to_owned()
}
