//! What holds in each era on each transport: every body runs four times.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_core::version::Era;

use crate::{
    house::{House, SOON, code, fits},
    talk::{Talk, everywhere as serve_everywhere},
};

async fn everywhere(body: impl AsyncFn(Talk<House>)) {
    serve_everywhere(House::new, &json!({}), body).await;
}

#[tokio::test]
async fn every_answer_fits_its_schema() {
    everywhere(async |mut talk| {
        for (method, definition, params) in [
            ("tools/list", "ListToolsResult", json!({})),
            ("prompts/list", "ListPromptsResult", json!({})),
            ("resources/list", "ListResourcesResult", json!({})),
            ("resources/templates/list", "ListResourceTemplatesResult", json!({})),
            ("resources/read", "ReadResourceResult", json!({"uri": "door:front"})),
            ("tools/call", "CallToolResult", json!({"name": "knock"})),
        ] {
            let answer = talk.ask(method, params).await;
            fits(talk.revision(), "JSONRPCResultResponse", &answer);
            let result = &answer["result"];
            fits(talk.revision(), definition, result);
            let modern = talk.era == Era::Modern;
            let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
            assert_eq!(info == "house", modern, "{method}: {result}");
            assert_eq!(result["resultType"] == "complete", modern, "{method}: {result}");
            let cached = modern && method != "tools/call";
            assert_eq!(result["cacheScope"] == "public", cached, "{method}: {result}");
        }
        let answer = talk.call("no-such").await;
        fits(talk.revision(), "JSONRPCErrorResponse", &answer);
    })
    .await;
}

#[tokio::test]
async fn what_a_handler_says_itself_is_never_replaced() {
    everywhere(async |mut talk| {
        let result = talk.ask("resources/read", json!({"uri": "door:front"})).await;
        assert_eq!(result["result"]["ttlMs"], 7);
        let result = &talk.call("ask").await["result"];
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["_meta"]["a/b"], 1.0);
        let answer = talk.ask("resources/read", json!({"uri": "door:locked"})).await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required");
        // An open question is nothing to keep.
        assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{result}");
    })
    .await;
}

#[tokio::test]
async fn what_is_not_declared_is_not_there() {
    everywhere(async |mut talk| {
        for method in ["completion/complete", "no/such"] {
            assert_eq!(code(&talk.ask(method, json!({})).await), -32601, "{method}");
        }
        let answer = talk.ask("resources/read", json!({"uri": "door:back"})).await;
        let expected = if talk.era == Era::Modern { -32602 } else { -32002 };
        assert_eq!(code(&answer), expected);
        assert_eq!(answer["error"]["data"]["uri"], "door:back");
    })
    .await;
}

#[tokio::test]
async fn requests_run_at_the_same_time() {
    everywhere(async |mut talk| {
        let first = talk.begin("tools/call", json!({"name": "meet"})).await;
        let second = talk.begin("tools/call", json!({"name": "meet"})).await;
        for begun in [second, first] {
            let answer = talk.finish(begun).await.pop().unwrap();
            assert_eq!(answer["result"]["content"][0]["text"], "come in");
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_given_up_is_dropped() {
    everywhere(async |mut talk| {
        let house = Arc::clone(talk.house());
        let begun = talk.begin("tools/call", json!({"name": "wait"})).await;
        timeout(SOON, house.waiting.notified()).await.expect("it began");
        talk.give_up(begun).await;
        timeout(SOON, house.left.notified()).await.expect("it was dropped");
        assert_eq!(talk.call("knock").await["result"]["content"][0]["text"], "come in");
    })
    .await;
}

#[tokio::test]
async fn progress_grows_and_precedes_the_answer() {
    everywhere(async |mut talk| {
        let params = json!({"name": "count", "_meta": {"progressToken": 99}});
        let begun = talk.begin("tools/call", params).await;
        let told = talk.finish(begun).await;
        let steps: Vec<_> = told[..told.len() - 1].iter().collect();
        for step in &steps {
            fits(talk.revision(), "ProgressNotification", step);
            assert_eq!(step["params"]["progressToken"], 99);
        }
        let grown: Vec<_> = steps.iter().map(|step| step["params"]["progress"].as_f64()).collect();
        assert_eq!(grown, [Some(1.0), Some(2.0)]);
        let begun = talk.begin("tools/call", json!({"name": "count"})).await;
        assert_eq!(talk.finish(begun).await.len(), 1, "nobody asked for progress");
    })
    .await;
}

#[tokio::test]
async fn log_messages_come_at_the_level_that_was_asked_for() {
    everywhere(async |mut talk| {
        let mut params = json!({"name": "mutter"});
        let logged = |told: Vec<Value>| -> Vec<Value> {
            told.into_iter().filter(|one| one["method"] == "notifications/message").collect()
        };
        if talk.era == Era::Modern {
            let begun = talk.begin("tools/call", params.clone()).await;
            assert_eq!(logged(talk.finish(begun).await), Vec::<Value>::new());
            params["_meta"]["io.modelcontextprotocol/logLevel"] = "notice".into();
        } else {
            let answer = talk.ask("logging/setLevel", json!({"level": "notice"})).await;
            assert_eq!(answer["result"], json!({}));
            let answer = talk.ask("logging/setLevel", json!({"level": "loud"})).await;
            assert_eq!(code(&answer), -32602);
        }
        let begun = talk.begin("tools/call", params).await;
        let told = logged(talk.finish(begun).await);
        assert_eq!(told.len(), 1, "{told:?}");
        fits(talk.revision(), "LoggingMessageNotification", &told[0]);
        assert_eq!(
            (&told[0]["params"]["level"], &told[0]["params"]["logger"]),
            (&"warning".into(), &"door".into())
        );
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_fails_costs_its_request_only() {
    everywhere(async |mut talk| {
        for tool in ["collapse", "shrug"] {
            assert_eq!(code(&talk.call(tool).await), -32603, "{tool}");
        }
        // A line break inside a result would end the message on a pipe, and the event over HTTP.
        let params = json!({"name": "sprawl", "_meta": {"progressToken": 1}});
        let answer = talk.ask("tools/call", params).await;
        assert_eq!(answer["result"]["content"], json!([]));
        assert_eq!(talk.call("knock").await["result"]["content"][0]["text"], "come in");
    })
    .await;
}
