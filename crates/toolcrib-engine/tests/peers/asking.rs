//! What the reference server asks of its client, and the resources it updates.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tokio::time::timeout;
use toolcrib_engine::{
    CallOptions, Completing, Elicited, Handlers, Options, ResourceEvent, Root, Sampled,
};
use toolcrib_testkit::peers::Peer;

use crate::house::{PATIENCE, Watched, http, stdio, text};

/// The reference server, with everything on that a client can offer.
async fn everything(
    handlers: Handlers,
    over_http: bool,
) -> (Watched, Vec<toolcrib_testkit::peers::HttpPeer>) {
    let options = Options { handlers, ..Options::default() };
    let peer = Peer::node("mcp-server-everything");
    if over_http {
        let server = peer.env("PORT", "0").arg("streamableHttp").listen("/mcp");
        (Watched::settled(&http(&server), options).await, vec![server])
    } else {
        (Watched::settled(&stdio(peer), options).await, Vec::new())
    }
}

/// Every shape of field it has; defaults are for the handler to take, and it takes them.
#[tokio::test]
async fn peer_everything_asks_by_a_form() {
    let handlers = Handlers::new().on_form(|question| async move {
        assert_eq!(question.form.fields.len(), 13);
        let defaults = question.form.fields.iter();
        let defaults =
            defaults.filter_map(|field| Some((field.name.clone(), field.default.clone()?)));
        let mut content: Map<String, Value> = defaults.collect();
        content.insert("name".to_owned(), json!("Ada"));
        Elicited::Accept(content)
    });
    for over_http in [false, true] {
        let (peer, _server) = everything(handlers.clone(), over_http).await;
        peer.until_it_shows("trigger-elicitation-request").await;
        let said = text(peer.call("trigger-elicitation-request", &json!({})).await);
        for part in ["- Name: Ada", "Favorite Integer: 42", "fish-1", "pet-1"] {
            assert!(said.contains(part), "{said}");
        }
        peer.shutdown().await;
    }
}

#[tokio::test]
async fn peer_everything_sends_to_a_page() {
    let handlers = Handlers::new().on_url(|question| async move {
        assert!(question.url.starts_with("https://"));
        Elicited::Accept(Map::new())
    });
    let (peer, _) = everything(handlers, false).await;
    peer.until_it_shows("trigger-url-elicitation").await;
    for by_error in [false, true] {
        let arguments = json!({"url": "https://a.example/x", "errorPath": by_error});
        let said = text(peer.call("trigger-url-elicitation", &arguments).await);
        assert!(said.contains("accept"), "{said}");
    }
    peer.shutdown().await;
}

#[tokio::test]
async fn peer_everything_asks_a_model_and_for_roots() {
    let handlers = Handlers::new()
        .on_sampling(|question| async move {
            assert_eq!(question.max_tokens, Some(7));
            Ok(Sampled::text("a-model", "Gladly."))
        })
        .on_roots(|_| async {
            vec![Root { uri: "file:///shop".into(), name: Some("shop".into()) }]
        });
    let (peer, _) = everything(handlers, false).await;
    peer.until_it_shows("get-roots-list").await;
    let arguments = json!({"prompt": "Will you?", "maxTokens": 7});
    let said = text(peer.call("trigger-sampling-request", &arguments).await);
    assert!(said.contains("Gladly.") && said.contains("a-model"), "{said}");
    let said = text(peer.call("get-roots-list", &json!({})).await);
    assert!(said.contains("file:///shop"), "{said}");
    peer.shutdown().await;
}

/// It announces updates of what is subscribed to, over both transports, and of nothing else.
#[tokio::test]
async fn peer_everything_announces_updates() {
    const URI: &str = "demo://resource/static/document/features.md";
    for over_http in [false, true] {
        let (peer, _server) = everything(Handlers::new(), over_http).await;
        let mut subscription = peer.engine.subscribe(URI, None).await.unwrap();
        peer.call("toggle-subscriber-updates", &json!({})).await.unwrap();
        let event = timeout(PATIENCE, subscription.next()).await.expect("an update comes").unwrap();
        assert_eq!(event, ResourceEvent::Updated { uri: URI.to_owned() });
        drop(subscription);
        let mut waits = 0..200;
        while peer.wire.sent("resources/unsubscribe") == 0 && waits.next().is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let sent = ["resources/subscribe", "resources/unsubscribe"].map(|it| peer.wire.sent(it));
        assert_eq!(sent, [1, 1]);
        peer.shutdown().await;
    }
}

/// A modern server of another maker takes the stream for one resource, and is told of its end.
#[tokio::test]
async fn peer_python_2_3_takes_a_subscription() {
    let reached = stdio(Peer::python("2.3"));
    let peer = Watched::settled(&reached, Options::default()).await;
    let streams = peer.wire.sent("subscriptions/listen");
    let subscription = peer.engine.subscribe("docs://handbook", None).await.unwrap();
    assert_eq!(peer.wire.sent("subscriptions/listen"), streams + 1);
    drop(subscription);
    let mut waits = 0..200;
    while peer.wire.sent("notifications/cancelled") == 0 && waits.next().is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(peer.wire.sent("notifications/cancelled"), 1);
    peer.shutdown().await;
}

#[tokio::test]
async fn peer_everything_completes_an_argument() {
    let (peer, _) = everything(Handlers::new(), false).await;
    let complete = async |argument: (&str, &str), others: &BTreeMap<String, String>| {
        let of = Completing::Prompt("completable-prompt");
        peer.engine.complete(of, argument, others, CallOptions::default()).await.unwrap().values
    };
    assert_eq!(complete(("department", "E"), &BTreeMap::new()).await, ["Engineering"]);
    let others = BTreeMap::from([("department".to_owned(), "Engineering".to_owned())]);
    assert!(complete(("name", ""), &others).await.len() >= 2);
    peer.shutdown().await;
}
