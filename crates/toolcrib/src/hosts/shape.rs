//! The shapes of other programs' entries, as data: what each of their keys means to us, and how a
//! server of ours is written there.
//!
//! A shape says nothing about where files are ([`super::table`]). A new host of a known shape needs
//! no line here.

use super::reference::{BRACES, DOLLAR, DOLLAR_ENV, ENV, Form};

/// What a key of a host's entry means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning {
    /// The same as this key of ours.
    As(&'static str),
    /// A program and its arguments in one list.
    Words,
    /// Names of variables that are passed on under their own names.
    Passed,
    /// The name of the variable that holds a bearer token.
    Bearer,
    /// Headers, each with the name of the variable that holds its value.
    HeaderVariables,
    /// A time in seconds, with our key in milliseconds.
    Seconds(&'static str),
    /// What cannot be taken over, said in these words.
    Lost(&'static str),
}

/// How a transport is named in `type`, which is not written where it is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kinds {
    /// For a program.
    pub(crate) stdio: Option<&'static str>,
    /// For streamable HTTP.
    pub(crate) http: Option<&'static str>,
}

/// How the older HTTP+SSE is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sse {
    /// The host finds out by itself.
    Found,
    /// With this `type`.
    Kind(&'static str),
    /// With the URL under this key.
    Key(&'static str),
    /// The host does not speak it.
    Never,
}

/// A fixed member of every entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixed {
    /// This text.
    Text(&'static str),
    /// This boolean.
    Bool(bool),
    /// This number.
    Number(u32),
    /// The name of the server.
    Name,
}

/// The shape of an entry.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Keys that mean something else than [`COMMON`] says, and further ones.
    pub(crate) keys: &'static [(&'static str, Meaning)],
    /// Values of `type` of what is no server but a part of the host.
    pub(crate) built_in: &'static [&'static str],
    /// How a reference to a variable is written; without, only [`Shape::passed`] and the like are
    /// left.
    pub(crate) reference: Option<Form>,
    /// How transports are named.
    pub(crate) kinds: Kinds,
    /// Program and arguments stand in one list.
    pub(crate) words: bool,
    /// The key of the program.
    pub(crate) command: &'static str,
    /// The key of the environment.
    pub(crate) env: &'static str,
    /// The key for variables that are passed on under their own names.
    pub(crate) passed: Option<&'static str>,
    /// The key of the working directory.
    pub(crate) cwd: Option<&'static str>,
    /// The key of the URL; absent when files hold programs only.
    pub(crate) url: Option<&'static str>,
    /// How HTTP+SSE is written.
    pub(crate) sse: Sse,
    /// The key of the headers.
    pub(crate) headers: &'static str,
    /// The key for the variable of a bearer token.
    pub(crate) bearer: Option<&'static str>,
    /// The key for headers that are given by variables.
    pub(crate) header_variables: Option<&'static str>,
    /// Headers may hold references to the variables under [`Shape::passed`].
    pub(crate) passed_in_headers: bool,
    /// The keys of the tools let in and kept out, by exact name.
    pub(crate) tools: (Option<&'static str>, Option<&'static str>),
    /// Members every entry has, before the others.
    pub(crate) first: &'static [(&'static str, Fixed)],
    /// Likewise, after the others.
    pub(crate) last: &'static [(&'static str, Fixed)],
}

/// Keys that mean the same in all shapes.
pub(crate) const COMMON: &[(&str, Meaning)] = &[
    ("command", Meaning::As("command")),
    ("args", Meaning::As("args")),
    ("env", Meaning::As("env")),
    ("cwd", Meaning::As("cwd")),
    ("url", Meaning::As("url")),
    ("httpUrl", Meaning::As("httpUrl")),
    ("serverUrl", Meaning::As("serverUrl")),
    ("headers", Meaning::As("headers")),
    ("type", Meaning::As("type")),
    ("transport", Meaning::As("type")),
    ("enabled", Meaning::As("enabled")),
    ("disabled", Meaning::As("disabled")),
    ("envFile", Meaning::Lost("its envFile is not read: set the variables of that file yourself")),
    ("oauth", Meaning::Lost("its settings for signing in are not taken over")),
    ("auth", Meaning::Lost("its settings for signing in are not taken over")),
    ("sandbox", Meaning::Lost("its sandbox is not taken over")),
    ("disabledTools", Meaning::As("exclude_tools")),
];

/// `mcpServers` as most write it, where each host differs in a few fields.
const PLAIN: Shape = Shape {
    keys: &[],
    built_in: &[],
    reference: None,
    kinds: Kinds { stdio: None, http: None },
    words: false,
    command: "command",
    env: "env",
    passed: None,
    cwd: None,
    url: Some("url"),
    sse: Sse::Found,
    headers: "headers",
    bearer: None,
    header_variables: None,
    passed_in_headers: false,
    tools: (None, None),
    first: &[],
    last: &[],
};

pub(crate) static CLAUDE_DESKTOP: Shape = Shape { url: None, ..PLAIN };

pub(crate) static CLAUDE_CODE: Shape = Shape {
    reference: Some(BRACES),
    kinds: Kinds { stdio: None, http: Some("http") },
    sse: Sse::Kind("sse"),
    ..PLAIN
};

pub(crate) static VSCODE: Shape = Shape {
    reference: Some(DOLLAR_ENV),
    kinds: Kinds { stdio: Some("stdio"), http: Some("http") },
    sse: Sse::Kind("sse"),
    cwd: Some("cwd"),
    ..PLAIN
};

pub(crate) static CURSOR: Shape = Shape { reference: Some(DOLLAR_ENV), ..PLAIN };

pub(crate) static WINDSURF: Shape = Shape {
    reference: Some(DOLLAR_ENV),
    url: Some("serverUrl"),
    tools: (None, Some("disabledTools")),
    ..PLAIN
};

pub(crate) static GEMINI: Shape = Shape {
    keys: &[
        ("includeTools", Meaning::As("include_tools")),
        ("excludeTools", Meaning::As("exclude_tools")),
        ("timeout", Meaning::As("call_timeout_ms")),
    ],
    reference: Some(DOLLAR),
    cwd: Some("cwd"),
    url: Some("httpUrl"),
    sse: Sse::Key("url"),
    tools: (Some("includeTools"), Some("excludeTools")),
    ..PLAIN
};

pub(crate) static ZED: Shape = Shape {
    keys: &[("settings", Meaning::Lost("the settings of its Zed extension are not taken over"))],
    sse: Sse::Never,
    first: &[("source", Fixed::Text("custom"))],
    ..PLAIN
};

pub(crate) static CLINE: Shape = Shape {
    keys: &[("timeout", Meaning::Seconds("call_timeout_ms"))],
    kinds: Kinds { stdio: Some("stdio"), http: Some("streamableHttp") },
    sse: Sse::Kind("sse"),
    cwd: Some("cwd"),
    ..PLAIN
};

pub(crate) static LM_STUDIO: Shape = PLAIN;

pub(crate) static CODEX: Shape = Shape {
    keys: &[
        ("env_vars", Meaning::Passed),
        ("bearer_token_env_var", Meaning::Bearer),
        ("http_headers", Meaning::As("headers")),
        ("env_http_headers", Meaning::HeaderVariables),
        ("enabled_tools", Meaning::As("include_tools")),
        ("disabled_tools", Meaning::As("exclude_tools")),
        ("startup_timeout_sec", Meaning::Seconds("start_timeout_ms")),
        ("startup_timeout_ms", Meaning::As("start_timeout_ms")),
        ("tool_timeout_sec", Meaning::Seconds("call_timeout_ms")),
    ],
    passed: Some("env_vars"),
    cwd: Some("cwd"),
    sse: Sse::Never,
    headers: "http_headers",
    bearer: Some("bearer_token_env_var"),
    header_variables: Some("env_http_headers"),
    tools: (Some("enabled_tools"), Some("disabled_tools")),
    ..PLAIN
};

pub(crate) static GOOSE: Shape = Shape {
    keys: &[
        ("cmd", Meaning::As("command")),
        ("envs", Meaning::As("env")),
        ("env_keys", Meaning::Passed),
        ("uri", Meaning::As("url")),
        ("available_tools", Meaning::As("include_tools")),
        ("timeout", Meaning::Seconds("call_timeout_ms")),
    ],
    built_in: &["builtin", "platform", "frontend", "inline_python"],
    kinds: Kinds { stdio: Some("stdio"), http: Some("streamable_http") },
    command: "cmd",
    env: "envs",
    passed: Some("env_keys"),
    url: Some("uri"),
    sse: Sse::Never,
    passed_in_headers: true,
    tools: (Some("available_tools"), None),
    first: &[("enabled", Fixed::Bool(true)), ("name", Fixed::Name)],
    last: &[("description", Fixed::Text("")), ("timeout", Fixed::Number(300))],
    ..PLAIN
};

pub(crate) static OPENCODE: Shape = Shape {
    keys: &[("command", Meaning::Words), ("environment", Meaning::As("env"))],
    reference: Some(ENV),
    kinds: Kinds { stdio: Some("local"), http: Some("remote") },
    words: true,
    env: "environment",
    ..PLAIN
};
