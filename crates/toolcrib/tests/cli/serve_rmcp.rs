//! A client built on rmcp against the demo server, over both transports and in both eras. It notes
//! the same as the clients in `peers/clients`; needs no peer.

use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientServiceExt as _, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        GetPromptRequestParams, Implementation, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams, Request, SubscriptionFilter,
    },
    service::{
        ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext,
        RunningService,
    },
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};
use toolcrib_testkit::process;

use crate::{
    play::world,
    seen::{Progress, check, url},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolcrib");
const PATIENCE: Duration = Duration::from_secs(30);
const MARK: &str = "TOOLCRIB_TEST_MARK";

/// Notes what the server sends unasked, and signs for tools.
#[derive(Clone)]
struct Watcher(Arc<Watched>);

struct Watched {
    asked: Mutex<Vec<Value>>,
    steps: mpsc::UnboundedSender<Value>,
    tools_changed: Notify,
}

impl ClientHandler for Watcher {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("peer-rmcp", "1.0.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(plain(&request));
        let signature = json!({"name": "Ada", "days": "7", "outdoors": true});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(signature))
    }

    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // Nobody counts any more at the end.
        let _ = self.0.steps.send(json!([step.progress, step.total, step.message]));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}

/// A connected client, and the progress it is told.
struct Client {
    session: RunningService<RoleClient, Watcher>,
    steps: mpsc::UnboundedReceiver<Value>,
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn watcher() -> (Watcher, mpsc::UnboundedReceiver<Value>) {
    let (sender, steps) = mpsc::unbounded_channel();
    let watched = Watched { asked: Mutex::default(), steps: sender, tools_changed: Notify::new() };
    (Watcher(Arc::new(watched)), steps)
}

fn mode(modern: bool) -> ClientLifecycleMode {
    if modern {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        ClientLifecycleMode::Discover { preferred_versions }
    } else {
        ClientLifecycleMode::Initialize
    }
}

fn call(name: &'static str, arguments: &Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(name).with_arguments(arguments)
}

fn names(list: &[impl Serialize], member: &str) -> Vec<Value> {
    list.iter().map(|item| plain(item)[member].clone()).collect()
}

impl Client {
    async fn call(&self, name: &'static str, arguments: Value) -> Value {
        plain(&self.session.call_tool(call(name, &arguments)).await.unwrap())
    }

    async fn read(&self, uri: &str) -> Value {
        let read = self.session.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        plain(&read)["contents"].clone()
    }

    async fn tools(&self) -> Vec<Value> {
        names(&self.session.list_all_tools().await.unwrap(), "name")
    }

    /// Everything that the clients in `peers/clients` do.
    async fn uses(mut self, modern: bool) -> Value {
        let mut seen = self.looks().await;
        seen["found"] = self
            .call("search_docs", json!({"query": {"text": "tool", "limit": 1}}))
            .await["content"]
            .clone();
        seen["counted"] =
            self.call("count", json!({"to": 3, "step_ms": 1})).await["content"].clone();
        let mut told = Vec::new();
        while told.len() < 7 {
            told.push(self.steps.recv().await.unwrap());
        }
        seen["progress"] = told.into();
        seen["steps_after_cancel"] = self.gives_up().await.into();
        seen["after_cancel"] = self.call("add", json!({"a": 20, "b": 22})).await;
        seen["borrowed"] = self.call("borrow", json!({"tool": "plane"})).await["content"].clone();
        let asked = Arc::clone(&self.session.service().0);
        seen["asked"] = plain(&*asked.asked.lock().unwrap_or_else(PoisonError::into_inner));
        self.changes(&mut seen, modern).await;
        self.session.cancel().await.unwrap();
        seen
    }

    /// Lists, calls, reads, prompts and completions.
    async fn looks(&self) -> Value {
        let session = &self.session;
        let peer = plain(&*session.peer_info().unwrap());
        let prompt = json!({"code": "x = 1", "language": "python"});
        let prompt = GetPromptRequestParams::new("review")
            .with_arguments(prompt.as_object().unwrap().clone());
        let completion = session.complete_prompt_argument("review", "language", "ja", None).await;
        json!({
            "protocol": peer["protocolVersion"],
            "server": peer["serverInfo"]["name"],
            "tools": self.tools().await,
            "resources": names(&session.list_all_resources().await.unwrap(), "uri"),
            "templates":
                names(&session.list_all_resource_templates().await.unwrap(), "uriTemplate"),
            "prompts": names(&session.list_all_prompts().await.unwrap(), "name"),
            "called": self.call("add", json!({"a": 2, "b": 40})).await,
            "misfit": self.call("add", json!({"a": "two"})).await,
            "handbook": self.read("docs://handbook").await,
            "profile": self.read("users://7/profile").await,
            "prompt": plain(&session.get_prompt(prompt).await.unwrap())["messages"],
            "completion": completion.unwrap().values,
        })
    }

    /// Gives up a call of twenty seconds once it has begun; how many steps were told afterwards.
    async fn gives_up(&mut self) -> usize {
        let count = call("count", &json!({"to": 1000, "step_ms": 20}));
        let request = ClientRequest::CallToolRequest(Request::new(count));
        let options = PeerRequestOptions::no_options();
        let running = self.session.send_cancellable_request(request, options).await.unwrap();
        self.steps.recv().await.unwrap();
        running.cancel(Some("no longer wanted".to_owned())).await.unwrap();
        // What was under way when the server heard of it has time to arrive.
        sleep(Duration::from_millis(200)).await;
        while self.steps.try_recv().is_ok() {}
        sleep(Duration::from_millis(300)).await;
        let mut after = 0;
        while self.steps.try_recv().is_ok() {
            after += 1;
        }
        after
    }

    async fn changes(&self, seen: &mut Value, modern: bool) {
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = Some(true);
        let mut changes =
            if modern { Some(self.session.listen(filter).await.unwrap()) } else { None };
        seen["refreshed"] = self.call("refresh", json!({})).await["content"].clone();
        match &mut changes {
            Some(changes) => {
                let change = plain(&changes.next().await.unwrap());
                assert_eq!(change["method"], "notifications/tools/list_changed", "{change}");
                changes.cancel().await.unwrap();
            }
            None => self.session.service().0.tools_changed.notified().await,
        }
        seen["event"] = "ToolsListChanged".into();
        seen["tools_after"] = self.tools().await.into();
        seen["greeted"] = self.call("greet", json!({"name": "Ada"})).await["content"].clone();
    }
}

async fn over_stdio(modern: bool) -> Value {
    let mark = format!("rmcp-{}-{modern}", std::process::id());
    let mut command = Command::new(PROGRAM);
    command.arg("demo-server").env(MARK, &mark);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().unwrap();
    let (watcher, steps) = watcher();
    let session = watcher.serve_with_lifecycle(transport, mode(modern)).await.unwrap();
    let seen = timeout(PATIENCE, Client { session, steps }.uses(modern)).await.unwrap();
    let left = process::with_variable(MARK, &mark);
    assert_eq!(process::still_there(&left, Duration::from_secs(5)), []);
    seen
}

async fn over_http(modern: bool) -> Value {
    // Another test of this process may have said so before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = world();
    let mut server = world.start(&["demo-server", "--http", "127.0.0.1:0"]);
    let transport = StreamableHttpClientTransport::from_uri(url(&mut server));
    let (watcher, steps) = watcher();
    let session = watcher.serve_with_lifecycle(transport, mode(modern)).await.unwrap();
    let seen = timeout(PATIENCE, Client { session, steps }.uses(modern)).await.unwrap();
    assert_eq!(server.wait(Duration::from_secs(10)), Some(Some(0)), "the server ends");
    seen
}

#[tokio::test]
async fn rmcp_modern_over_stdio() {
    check("2026-07-28", &over_stdio(true).await, Progress::Whole);
}

#[tokio::test]
async fn rmcp_modern_over_http() {
    check("2026-07-28", &over_http(true).await, Progress::Whole);
}

#[tokio::test]
async fn rmcp_legacy_over_stdio() {
    check("2025-11-25", &over_stdio(false).await, Progress::Whole);
}

#[tokio::test]
async fn rmcp_legacy_over_http() {
    check("2025-11-25", &over_http(false).await, Progress::Whole);
}
