//! Every bound Toolcrib puts on what comes from outside, in one value.
//!
//! A limit is never a verdict on a server's meaning: it says how much we are willing to hold.

/// Bounds on messages, lists, schemas and kept diagnostics.
///
/// Units stand last in each name. [`Limits::default`] is what the command line uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest JSON-RPC message accepted from a server, in bytes (one line, one HTTP body or one
    /// SSE event). A longer one ends the connection.
    pub message_bytes: usize,
    /// How much of a server's standard error is kept for diagnosis, in bytes.
    pub stderr_bytes: usize,
    /// Most pages one list may have.
    pub list_pages: usize,
    /// Most items one list may have.
    pub list_items: usize,
    /// Most bytes of items one list may hold.
    pub list_bytes: usize,
    /// Longest time one walk over all pages of a list may take, in milliseconds.
    pub list_ms: u64,
    /// Deepest nesting of a JSON value that is judged (schemas, arguments).
    pub json_depth: usize,
    /// Most subschemas a schema may have once its references are expanded.
    pub schema_refs: usize,
    /// Most JSON values a schema may hold before it is read at all: as a tree, a byte of text may
    /// cost a hundred.
    pub schema_values: usize,
    /// Most JSON values that arguments or a result may hold to be judged.
    pub judged_values: usize,
    /// Longest excerpt of outside text inside a finding or an error, in characters.
    pub excerpt_chars: usize,
    /// Most findings kept per server; further ones are counted only.
    pub findings: usize,
    /// Most times that one request may be answered with a question to the client.
    pub input_rounds: usize,
    /// Most inputs that a server may ask for at one time.
    pub inputs: usize,
    /// Longest answer that asks for input, in bytes, state included.
    pub input_bytes: usize,
    /// Least silence after which a change stream counts as broken whose keep-alives have stopped,
    /// in milliseconds. A stream that never had any may be silent for ever.
    pub stream_idle_ms: u64,
    /// Most resources of one server that are subscribed to at one time: over HTTP each is a stream.
    pub subscriptions: usize,
    /// Most requests of ours that may be in flight on one connection.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 32 << 20,
            stderr_bytes: 64 << 10,
            list_pages: 1_000,
            list_items: 50_000,
            list_bytes: 128 << 20,
            list_ms: 60_000,
            json_depth: 64,
            schema_refs: 10_000,
            schema_values: 100_000,
            judged_values: 1_000_000,
            excerpt_chars: 200,
            findings: 1_000,
            input_rounds: 8,
            inputs: 16,
            input_bytes: 1 << 20,
            stream_idle_ms: 60_000,
            subscriptions: 100,
            in_flight: 256,
        }
    }
}
