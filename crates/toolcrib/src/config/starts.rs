//! One line for what a server entry would do, complete enough to agree to: the exact command with
//! its folder and the names of its environment, or the endpoint and the variables sent to it.

use toolcrib_core::{
    sanitise,
    target::{Command, Endpoint, ServerConfig, Target, redact_url},
};

/// What starting this server does; `None` when it neither runs anything nor sends anything of
/// ours anywhere.
pub(crate) fn describe(name: &str, server: &ServerConfig) -> Option<String> {
    if !server.enabled {
        return None;
    }
    let what = match &server.target {
        Target::Command(command) => run(command),
        Target::Http(endpoint) => connect(endpoint)?,
    };
    Some(format!("{}: {what}", super::problem::quoted(name)))
}

fn run(command: &Command) -> String {
    let words = std::iter::once(&command.program).chain(&command.args);
    let mut line = format!("run {}", words.map(|text| word(text)).collect::<Vec<_>>().join(" "));
    if let Some(cwd) = &command.cwd {
        line.push_str(&format!(" in {}", word(&cwd.to_string_lossy())));
    }
    if !command.env.is_empty() {
        let names: Vec<_> = command.env.keys().map(|name| word(name)).collect();
        line.push_str(&format!(" with {} set", names.join(", ")));
    }
    line
}

fn connect(endpoint: &Endpoint) -> Option<String> {
    let texts = std::iter::once(endpoint.url.as_str())
        .chain(endpoint.headers.values().map(toolcrib_core::secret::Secret::expose));
    let mut variables: Vec<_> = texts.flat_map(variables).map(word).collect();
    variables.sort();
    variables.dedup();
    if variables.is_empty() && endpoint.client_cert_file.is_none() {
        return None;
    }
    let mut line = format!("connect to {}", word(&redact_url(&endpoint.url)));
    if !variables.is_empty() {
        line.push_str(&format!(" and send the value of {}", variables.join(", ")));
    }
    if let Some(file) = &endpoint.client_cert_file {
        line.push_str(&format!(" as the owner of {}", word(&file.to_string_lossy())));
    }
    Some(line)
}

/// The names of the variables in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| {
        let body = rest.split('}').next()?;
        body.split(":-").next()
    })
}

/// One word of a command, in quotes where its ends would not be seen, never cut.
fn word(text: &str) -> String {
    let shown = sanitise::line(text, usize::MAX / 4);
    let plain = !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || "-_./:=@%+,${}~".contains(c));
    if plain { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}
