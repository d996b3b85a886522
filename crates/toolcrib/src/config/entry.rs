//! One entry of a configuration file, from the tree to a [`ServerConfig`].
//!
//! Every mistake in an entry is reported, and costs only that entry; an unknown key is a warning.
//! `${VAR}` stays as written: it is expanded when the server is connected to.

use std::path::{Path, PathBuf};

use toolcrib_core::{
    secret::Secret,
    target::{Command, Endpoint, HttpFlavor, ServerConfig, Target, ToolFilter},
};

use super::{
    fields::{Field, Fields},
    node::Member,
    problem::Problem,
    settings::Settings,
    text::Source,
};

/// Every key of an entry, each with the other spellings it is known by.
const KEYS: &[(&str, &[&str])] = &[
    ("command", &[]),
    ("args", &[]),
    ("env", &[]),
    ("cwd", &[]),
    ("url", &["httpUrl", "serverUrl"]),
    ("headers", &[]),
    ("transport", &["type"]),
    ("enabled", &[]),
    ("disabled", &[]),
    ("era", &[]),
    ("include_tools", &["includeTools"]),
    ("exclude_tools", &["excludeTools"]),
    ("start_timeout_ms", &[]),
    ("probe_timeout_ms", &[]),
    ("list_timeout_ms", &[]),
    ("call_timeout_ms", &[]),
    ("call_max_timeout_ms", &[]),
    ("max_message_bytes", &[]),
    ("ca_file", &[]),
    ("client_cert_file", &[]),
    // What editors write for themselves, without a meaning for us.
    ("description", &[]),
    ("gallery", &[]),
    ("source", &[]),
];

const MESSAGE_BYTES: std::ops::RangeInclusive<u64> = 1_024..=(1 << 30);

/// What reading one entry came to.
pub(crate) struct Entry {
    /// The server, unless the entry is broken.
    pub(crate) server: Option<ServerConfig>,
    /// Unknown keys.
    pub(crate) warnings: Vec<Problem>,
    /// Everything that is wrong with it.
    pub(crate) errors: Vec<Problem>,
}

/// Where relative paths of an entry start, and what it inherits.
pub(crate) struct Surroundings<'a> {
    /// The file.
    pub(crate) source: &'a Source,
    /// The folder of relative paths.
    pub(crate) folder: &'a Path,
    /// The file's `defaults`.
    pub(crate) defaults: &'a Settings,
}

/// Reads one entry.
pub(crate) fn read(around: &Surroundings<'_>, member: &Member) -> Entry {
    let mut fields = Fields::new(around.source, Some(&member.key), member.at);
    let mut server = None;
    match member.node.value.members() {
        Some(members) => {
            fields.take(members, KEYS);
            server = build(around, &member.key, &mut fields);
        }
        None => fields.error(
            member.node.at,
            format!("is {}; expected a table with `command` or `url`", member.node.value.kind()),
        ),
    }
    let server = server.filter(|_| fields.errors.is_empty());
    fields.errors.sort_by_key(|problem| problem.place);
    Entry { server, warnings: fields.warnings, errors: fields.errors }
}

fn build(around: &Surroundings<'_>, name: &str, fields: &mut Fields<'_>) -> Option<ServerConfig> {
    let transport = transport(fields);
    let command = fields.get("command");
    let url = fields.get("url");
    let target = match (command, url) {
        (Some(command), Some(url)) => {
            let url = url.key;
            let what = format!("has both `command` and `{url}`; a server is reached by one");
            fields.error(command.at, what);
            None
        }
        (None, None) => {
            let hint = "give `command` to start a program, or `url` to connect to one";
            fields.error_with_hint(fields.at, "has neither `command` nor `url`", hint);
            None
        }
        (Some(command), None) => command_target(around, fields, command, transport),
        (None, Some(url)) => http_target(around, fields, url, transport),
    };
    let enabled = enabled(fields);
    let tools = ToolFilter {
        include: fields.texts("include_tools"),
        exclude: fields.texts("exclude_tools"),
    };
    let settings = Settings::read(fields).over(around.defaults);
    let (era, timeouts) = settings.resolve(fields);
    let max_message_bytes = fields
        .number("max_message_bytes", MESSAGE_BYTES)
        .and_then(|bytes| usize::try_from(bytes).ok());
    Some(ServerConfig {
        name: name.to_owned(),
        target: target?,
        enabled,
        era,
        timeouts,
        tools,
        max_message_bytes,
    })
}

/// The transport an entry names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http(HttpFlavor),
}

fn transport(fields: &mut Fields<'_>) -> Option<Transport> {
    let field = fields.get("transport")?;
    let text = fields.text("transport")?;
    let transport = match text.as_str() {
        "stdio" | "local" => Transport::Stdio,
        // Editors that write `http` fall back to the old transport themselves.
        "http" | "remote" => Transport::Http(HttpFlavor::Auto),
        "streamable-http" | "streamableHttp" | "streamable_http" => {
            Transport::Http(HttpFlavor::Streamable)
        }
        "sse" => Transport::Http(HttpFlavor::OldSse),
        _ => {
            let what = format!("`{}` is not a transport", field.key);
            let hint = "use \"stdio\", \"http\", \"streamable-http\" or \"sse\"";
            fields.error_with_hint(field.node.at, what, hint);
            return None;
        }
    };
    Some(transport)
}

fn enabled(fields: &mut Fields<'_>) -> bool {
    let enabled = fields.boolean("enabled");
    let disabled = fields.boolean("disabled");
    if let (Some(enabled), Some(disabled), Some(field)) =
        (enabled, disabled, fields.get("disabled"))
        && enabled == disabled
    {
        fields.error(field.at, "`enabled` and `disabled` contradict each other");
    }
    enabled.unwrap_or(true) && !disabled.unwrap_or(false)
}

fn command_target(
    around: &Surroundings<'_>,
    fields: &mut Fields<'_>,
    command: Field<'_>,
    transport: Option<Transport>,
) -> Option<Target> {
    if matches!(transport, Some(Transport::Http(_))) {
        fields.error(command.at, "has `command`, but its transport is not stdio");
    }
    fields.pointless(&["headers", "ca_file", "client_cert_file"], "a server that is started");
    let args = fields.texts("args");
    let env = fields.secrets("env");
    let cwd = fields.text("cwd").map(|path| around.path(&path));
    let text = fields.text("command")?;
    let program = around.program(&text, cwd.as_deref());
    if text.trim().is_empty() {
        fields.error(command.node.at, "`command` is empty");
    } else if args.is_empty() && text.contains(char::is_whitespace) && !program.is_file() {
        // Only the first word is repeated: what follows may hold a token.
        let first = text.split_whitespace().next().unwrap_or_default();
        let hint = format!(
            "no shell splits it: keep {} in `command` and put each further word into `args`",
            super::problem::quoted(first)
        );
        fields.error_with_hint(command.node.at, "command contains spaces and args is empty", hint);
    }
    let odd_name = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    for (key, broken, what) in [
        ("command", text.contains('\0'), "`command` holds a zero byte"),
        ("args", args.iter().any(|arg| arg.contains('\0')), "`args` holds a zero byte"),
        ("env", env.values().any(|value| value.expose().contains('\0')), "`env` holds a zero byte"),
        ("env", env.keys().any(odd_name), "`env` has a name that is empty or holds `=`"),
    ] {
        if broken && let Some(field) = fields.get(key) {
            fields.error(field.node.at, what);
        }
    }
    let program = program.to_string_lossy().into_owned();
    Some(Target::Command(Command { program, args, env, cwd }))
}

fn http_target(
    around: &Surroundings<'_>,
    fields: &mut Fields<'_>,
    url: Field<'_>,
    transport: Option<Transport>,
) -> Option<Target> {
    if transport == Some(Transport::Stdio) {
        let what = format!("has `{}`, but its transport is stdio", url.key);
        fields.error(url.at, what);
    }
    fields.pointless(&["args", "env", "cwd"], "a server that is connected to");
    let headers = fields.secrets("headers");
    for (name, value) in &headers {
        if !is_header(name, value)
            && let Some(field) = fields.get("headers")
        {
            let what = format!(
                "header {} has a name or value that HTTP cannot carry",
                super::problem::quoted(name)
            );
            fields.error(field.node.at, what);
        }
    }
    let text = fields.text("url")?;
    let lower = text.to_ascii_lowercase();
    if !["http://", "https://", "${"].iter().any(|start| lower.starts_with(start)) {
        let what = format!("`{}` does not start with http:// or https://", url.key);
        fields.error(url.node.at, what);
    }
    let flavor = match transport {
        Some(Transport::Http(flavor)) => flavor,
        _ if url.key == "httpUrl" => HttpFlavor::Streamable,
        _ => HttpFlavor::Auto,
    };
    let ca_file = fields.text("ca_file").map(|path| around.path(&path));
    let client_cert_file = fields.text("client_cert_file").map(|path| around.path(&path));
    Some(Target::Http(Endpoint { url: text, headers, flavor, ca_file, client_cert_file }))
}

fn is_header(name: &str, value: &Secret) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(token)
        && !value.expose().contains(|c: char| c.is_control() && c != '\t')
}

impl Surroundings<'_> {
    /// A path of the file: relative to its folder, `~/` being the home directory.
    fn path(&self, text: &str) -> PathBuf {
        match text.strip_prefix("~/") {
            Some(rest) => PathBuf::from(format!("${{HOME}}/{rest}")),
            // What a variable stands for may well be absolute.
            None if text.starts_with("${") => PathBuf::from(text),
            None => self.folder.join(text),
        }
    }

    /// A program: one with a slash is a path, relative to `cwd` or else to the file's folder; a
    /// bare name is left to PATH.
    fn program(&self, text: &str, cwd: Option<&Path>) -> PathBuf {
        match cwd {
            _ if !text.contains('/') => PathBuf::from(text),
            Some(cwd) if !text.starts_with("${") && !text.starts_with("~/") => cwd.join(text),
            _ => self.path(text),
        }
    }
}
