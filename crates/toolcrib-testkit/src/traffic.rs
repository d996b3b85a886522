//! What a scripted server saw and did: its log, one JSON object a line, and questions asked of it.
//!
//! The log is written by `fakeserver.py`; its entries stay plain JSON here.

use std::{fs, path::Path};

use serde_json::Value;

/// The entries of one log, in the order they were written.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// All entries as they are.
    pub entries: Vec<Value>,
}

impl Traffic {
    /// Reads a log; one that does not exist yet is empty, and a line still being written is
    /// left out.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        Self { entries: text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect() }
    }

    /// The entries whose `dir` is `dir` (`in`, `out`, `start`, `child`, `exit`, `eof`, `play`).
    pub fn of(&self, dir: &str) -> impl Iterator<Item = &Value> {
        self.entries.iter().filter(move |entry| entry["dir"] == dir)
    }

    /// The methods that came in, requests and notifications, in order.
    pub fn methods(&self) -> Vec<&str> {
        self.of("in").filter_map(|entry| entry["method"].as_str()).collect()
    }

    /// What came in under this method; each entry has `id`, `params`, `headers`, `path`.
    pub fn requests(&self, method: &str) -> Vec<&Value> {
        self.of("in").filter(|entry| entry["method"] == method).collect()
    }

    /// How often this method came in.
    pub fn count(&self, method: &str) -> usize {
        self.requests(method).len()
    }

    /// The answers that came in to requests the server made: whole messages.
    pub fn answers(&self) -> Vec<&Value> {
        self.of("in").map(|entry| &entry["message"]).filter(|message| !message.is_null()).collect()
    }

    /// The HTTP exchanges of a verb that carried no message (`GET`, `DELETE`, a routed `POST`).
    pub fn http(&self, verb: &str) -> Vec<&Value> {
        self.of("in").filter(|entry| entry["http"] == verb).collect()
    }

    /// How often the server was started.
    pub fn starts(&self) -> usize {
        self.of("start").count()
    }

    /// The ids of the processes that played, then of the children they spawned.
    pub fn pids(&self) -> Vec<u32> {
        let pid = |value: &Value| value.as_u64().and_then(|pid| u32::try_from(pid).ok());
        let servers = self.of("start").filter_map(|entry| pid(&entry["pid"]));
        servers.chain(self.of("child").filter_map(|entry| pid(&entry["child_pid"]))).collect()
    }
}
