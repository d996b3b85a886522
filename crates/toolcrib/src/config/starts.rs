//! One line for what a server entry would do, complete enough to agree to: the exact command with
//! its folder and the names of its environment (with the values where they choose what code runs),
//! or the endpoint and the variables sent to it.

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

/// Variables that make common programs run other code. Their values decide what is run, so they are
/// shown; those of all others may be secrets.
const LOADS_CODE: [&str; 16] = [
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "ENV",
    "GIT_SSH_COMMAND",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5OPT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

fn run(command: &Command) -> String {
    let words = std::iter::once(&command.program).chain(&command.args);
    let mut line = format!("run {}", words.map(|text| word(text)).collect::<Vec<_>>().join(" "));
    if let Some(cwd) = &command.cwd {
        line.push_str(&format!(" in {}", word(&cwd.to_string_lossy())));
    }
    if !command.env.is_empty() {
        let set = command.env.iter().map(|(name, value)| {
            if LOADS_CODE.contains(&name.as_str()) {
                format!("{}={}", word(name), word(value.expose()))
            } else {
                word(name)
            }
        });
        line.push_str(&format!(" with {} set", set.collect::<Vec<_>>().join(", ")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_where_they_choose_what_runs_and_nowhere_else() {
        let env = [("NODE_OPTIONS", "--require ./x.js"), ("TOKEN", "secret")];
        let env = env.map(|(name, value)| (name.to_owned(), value.into()));
        let command = Command { program: "node".to_owned(), env: env.into(), ..Command::default() };
        assert_eq!(run(&command), "run node with NODE_OPTIONS='--require ./x.js', TOKEN set");
    }
}
