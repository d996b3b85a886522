//! Two servers, one catalog: wait for them, list their tools, call one and watch its progress.
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]
use tokio::sync::mpsc;
use toolcrib_engine::{CallOptions, Engine, ListKind, Options, Raw, ServerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (program, args) = words.split_first().ok_or("usage: embed PROGRAM [ARGS…]")?;
    let servers = ["here", "there"].map(|name| ServerConfig::command(name, program, args));
    let engine = Engine::start(servers.into(), Options::default());
    let snapshot = engine.settled(&[ListKind::Tools], None).await; // each has its own timeouts
    for part in snapshot.parts() {
        let tools: Vec<_> = part.tools().map(|tool| &*tool.name).collect();
        println!("{} is {}: {}", part.name(), part.status.word(), tools.join(", "));
    }
    let (progress, mut steps) = mpsc::channel(16);
    let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
    let arguments = Raw::parse(r#"{"a": 2, "b": 40}"#)?; // checked before it is sent
    let called = engine.call("here.add", Some(&arguments), options).await?;
    while let Some(step) = steps.recv().await {
        println!("{} of {:?}", step.progress, step.total);
    }
    println!("{}", called.result.get());
    engine.shutdown().await;
    Ok(())
}
