//! A small handler, and the published schemas to hold its answers against.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};
use toolcrib_core::{
    raw::Raw,
    rpc::{RpcError, method},
};
use toolcrib_serve::{
    Answer, CacheScope, Change, Changes, Handler, ListKind, LogLevel, Peer, Request, ServerAbout,
    invalid_params, method_not_found, unknown_resource,
};

/// Longest wait for anything a test expects.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) struct House {
    about: Arc<ServerAbout>,
    changes: Changes,
    /// A guest began to wait.
    pub(crate) waiting: Notify,
    /// A guest that waited was dropped.
    pub(crate) left: Notify,
    /// Two guests meet here; one alone stays for ever.
    meeting: Barrier,
}

/// Says that it is dropped.
struct Guest<'a>(&'a Notify);

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl House {
    pub(crate) fn new() -> Arc<Self> {
        let capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {},
            "resources": {"subscribe": true},
            "logging": {},
        });
        let about = ServerAbout {
            name: "house".to_owned(),
            version: "1.2.3".to_owned(),
            title: None,
            instructions: Some("Knock first.".to_owned()),
            capabilities: Raw::of(&capabilities),
            ttl_ms: 5_000,
            cache_scope: CacheScope::Public,
        };
        Arc::new(Self {
            about: Arc::new(about),
            changes: Changes::new(),
            waiting: Notify::new(),
            left: Notify::new(),
            meeting: Barrier::new(2),
        })
    }

    pub(crate) fn change(&self, kind: ListKind) {
        self.changes.announce(Change::List(kind));
    }

    pub(crate) fn rewrite(&self, uri: &str) {
        self.changes.announce(Change::Resource(uri.to_owned()));
    }

    async fn call(&self, request: &Request, peer: &Peer) -> Result<Raw, RpcError> {
        let params: Value = request.read()?;
        match params["name"].as_str() {
            Some("knock") => {}
            Some("wait") => {
                let _guest = Guest(&self.left);
                self.waiting.notify_one();
                tokio::time::sleep(SOON * 6).await;
            }
            Some("linger") => {
                self.waiting.notify_one();
                tokio::time::sleep(Duration::from_millis(200)).await;
                self.change(ListKind::Tools);
            }
            Some("meet") => {
                self.meeting.wait().await;
            }
            Some("count") => {
                peer.progress(1.0, Some(2.0), Some("half")).await;
                peer.progress(2.0, Some(2.0), None).await;
            }
            Some("mutter") => {
                peer.log(LogLevel::Debug, None, &"too low").await;
                peer.log(LogLevel::Warning, Some("door"), &json!({"hinge": "dry"})).await;
            }
            Some("collapse") => panic!("a tool that fails on purpose"),
            Some("shrug") => return Ok(Raw::of(&"no object")),
            Some("sprawl") => {
                peer.progress(1.0, None, None).await;
                // Line breaks between tokens are good JSON.
                return Ok(Raw::parse("{\n \"content\":\r\n []\n}").unwrap());
            }
            Some("ask") => {
                let ask = r#"{"resultType":"input_required","requestState":"\u0073","_meta":{"a/b":1.0}}"#;
                return Ok(Raw::parse(ask).unwrap());
            }
            _ => return Err(invalid_params("there is no such tool")),
        }
        Ok(Raw::of(&json!({"content": [{"type": "text", "text": "come in"}]})))
    }
}

impl Handler for House {
    fn about(&self) -> Arc<ServerAbout> {
        Arc::clone(&self.about)
    }

    fn changes(&self) -> &Changes {
        &self.changes
    }

    fn handle(&self, request: Request, peer: Peer) -> Answer<'_> {
        Box::pin(async move {
            let result: Result<Raw, RpcError> = match request.method.as_str() {
                // Lexemes that a re-serialisation would change.
                method::TOOLS_LIST => Ok(Raw::parse(
                    r#"{"tools":[{"name":"knock","inputSchema":{"type":"object"},"x-weight":1.0e2}]}"#,
                )
                .unwrap()),
                method::PROMPTS_LIST => Ok(Raw::of(&json!({"prompts": []}))),
                method::RESOURCES_LIST => {
                    Ok(Raw::of(&json!({"resources": [{"uri": "door:front", "name": "front"}]})))
                }
                method::TEMPLATES_LIST => Ok(Raw::of(&json!({"resourceTemplates": []}))),
                method::RESOURCES_READ => {
                    let params: Value = request.read()?;
                    let uri = params["uri"].as_str().unwrap_or_default();
                    if uri == "door:locked" {
                        let ask = r#"{"resultType":"input_required","requestState":"k"}"#;
                        return Ok(Raw::parse(ask).unwrap().into());
                    }
                    if uri != "door:front" {
                        return Err(unknown_resource(request.era, uri));
                    }
                    // Its own word on how long it keeps.
                    Ok(Raw::of(&json!({"contents": [{"uri": uri, "text": "oak"}], "ttlMs": 7})))
                }
                method::TOOLS_CALL => self.call(&request, &peer).await,
                other => Err(method_not_found(other)),
            };
            result.map(Into::into)
        })
    }
}

/// A modern request.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A legacy request.
pub(crate) fn legacy(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// The legacy handshake's first message.
pub(crate) fn initialize(version: &str) -> Value {
    initialize_as(version, &json!({}))
}

/// The same of a client with these capabilities.
pub(crate) fn initialize_as(version: &str, capabilities: &Value) -> Value {
    let info = json!({"name": "test", "version": "0"});
    let params =
        json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
    legacy(1, "initialize", params)
}

/// Holds a value against a definition of a published schema.
#[track_caller]
pub(crate) fn fits(revision: &str, definition: &str, value: &Value) {
    let text = match revision {
        "2026-07-28" => include_str!("../../../toolcrib-testkit/spec/schema-2026-07-28.json"),
        _ => include_str!("../../../toolcrib-testkit/spec/schema-2025-11-25.json"),
    };
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema["$ref"] = format!("#/$defs/{definition}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{definition} of {revision}: {errors:?}\n{value:#}");
}

/// The code of an error answer.
#[track_caller]
pub(crate) fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}
