//! The example that shows how to embed the library: it runs as it is shown.

use std::path::PathBuf;

use serde_json::json;
use tokio::{process::Command, time::timeout};
use toolcrib_testkit::fake::Fake;

use crate::house::{PATIENCE, scenario};

fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("tests stand in <target>/<profile>/deps");
    folder.join("examples/embed")
}

#[tokio::test]
async fn the_example_runs() {
    let number = json!({"type": "number"});
    let tool = json!({"name": "add", "inputSchema": {"type": "object", "required": ["a", "b"],
        "properties": {"a": number, "b": number}}});
    let progress = json!({"progressToken": "$progressToken", "progress": 1, "total": 2});
    let fake = Fake::scripted(&scenario(&json!({"tools": [tool], "steps": [
        {"expect": "tools/call"}, {"notify": {"method": "notifications/progress", "params": progress}},
        {"reply": {"content": [{"type": "text", "text": "42"}]}},
    ]})));
    let running = Command::new(built()).arg(fake.program()).args(fake.args()).output();
    let run = timeout(PATIENCE, running).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    assert_eq!(
        said,
        "here is ready: add\nthere is ready: add\n1 of Some(2.0)\n\
         {\"content\": [{\"type\": \"text\", \"text\": \"42\"}]}\n"
    );
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = include_str!("../../examples/embed.rs");
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&format!("```rust\n{example}```\n")), "copy examples/embed.rs there");
    assert!(example.lines().count() <= 30, "it is to be read at a glance");
}
