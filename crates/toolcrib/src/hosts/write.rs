//! From a server of ours to the entry a host has for it.
//!
//! A secret is written as the host's own reference to a variable, or the entry is not written: never
//! in clear.

use serde_json::{Map, Value as Json, json};
use toolcrib_core::target::{Command, Endpoint, HttpFlavor, ServerConfig, Target};

use super::{
    reference::{self, Part},
    secrecy::{self, Variables},
    shape::{Fixed, Shape, Sse},
    table::Host,
};

/// An entry to write.
#[derive(Debug)]
pub(crate) struct Entry {
    /// It.
    pub(crate) value: Json,
    /// What does not come along.
    pub(crate) notes: Vec<String>,
}

/// The entry for a server. `home` is written where a host has no form for `${HOME}`.
///
/// # Errors
/// All reasons why this host cannot have it, each with what to do.
pub(crate) fn entry(
    host: &Host,
    server: &ServerConfig,
    home: Option<&str>,
) -> Result<Entry, Vec<String>> {
    let mut copy = server.clone();
    let mut whys: Vec<String> = secrecy::conceal(&mut copy, &mut Variables::default())
        .into_iter()
        .map(|one| {
            let variable = one.variable;
            format!(
                "{} may be a secret, and none is copied: write `${{{variable}}}` there in our \
                 configuration and set {variable}",
                one.place
            )
        })
        .collect();
    if !whys.is_empty() {
        return Err(whys);
    }
    let mut writer = Writer {
        host,
        shape: host.shape,
        home,
        members: Map::new(),
        passed: Vec::new(),
        whys: Vec::new(),
    };
    writer.fixed(host.shape.first, &server.name);
    match &server.target {
        Target::Command(command) => writer.command(command),
        Target::Http(endpoint) => writer.endpoint(endpoint),
    }
    whys.append(&mut writer.whys);
    if !whys.is_empty() {
        return Err(whys);
    }
    let notes = writer.tools(server);
    writer.fixed(host.shape.last, &server.name);
    Ok(Entry { value: Json::Object(writer.members), notes })
}

struct Writer<'a> {
    host: &'a Host,
    shape: &'a Shape,
    home: Option<&'a str>,
    members: Map<String, Json>,
    passed: Vec<String>,
    whys: Vec<String>,
}

impl Writer<'_> {
    fn put(&mut self, key: &str, value: impl Into<Json>) {
        self.members.insert(key.to_owned(), value.into());
    }

    fn fixed(&mut self, members: &[(&str, Fixed)], name: &str) {
        for (key, fixed) in members {
            match fixed {
                Fixed::Text(text) => self.put(key, *text),
                Fixed::Bool(value) => self.put(key, *value),
                Fixed::Number(number) => self.put(key, *number),
                Fixed::Name => self.put(key, name),
            }
        }
    }

    fn command(&mut self, command: &Command) {
        if let Some(kind) = self.shape.kinds.stdio {
            self.put("type", kind);
        }
        let program = self.text("the command", &command.program);
        let args: Vec<String> = command
            .args
            .iter()
            .enumerate()
            .map(|(index, arg)| self.text(&format!("argument {}", index + 1), arg))
            .collect();
        match self.shape.words {
            true => {
                let words: Vec<_> = std::iter::once(program).chain(args).collect();
                self.put(self.shape.command, words);
            }
            false => {
                self.put(self.shape.command, program);
                self.put("args", args);
            }
        }
        let mut env = Map::new();
        for (key, value) in &command.env {
            match self.env(key, value.expose()) {
                Some(text) => drop(env.insert(key.clone(), Json::String(text))),
                None => self.passed.push(key.clone()),
            }
        }
        if !env.is_empty() {
            self.put(self.shape.env, env);
        }
        self.put_passed();
        match (&command.cwd, self.shape.cwd) {
            (Some(cwd), Some(key)) => {
                let cwd = self.text("the working directory", &cwd.to_string_lossy());
                self.put(key, cwd);
            }
            (Some(_), None) => self.whys.push(format!(
                "{} starts programs in a folder of its own choice, and this one needs `cwd`: let \
                 a script change the folder and start it",
                self.host.name
            )),
            (None, _) => {}
        }
    }

    /// The value of a variable; `None` when it is passed on instead.
    fn env(&mut self, key: &str, value: &str) -> Option<String> {
        let passes = self.shape.reference.is_none() && self.shape.passed.is_some();
        if passes && reference::only(value) == Some(key) {
            return None;
        }
        Some(self.text(&format!("env {key}"), value))
    }

    fn put_passed(&mut self) {
        if let Some(key) = self.shape.passed.filter(|_| !self.passed.is_empty()) {
            self.passed.sort();
            self.passed.dedup();
            let names = std::mem::take(&mut self.passed);
            self.put(key, names);
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint) {
        let Some(key) = self.shape.url else {
            self.whys.push(format!(
                "the file of {} holds programs only: add this server in its settings, under \
                 connectors",
                self.host.name
            ));
            return;
        };
        let old = endpoint.flavor == HttpFlavor::OldSse;
        let (kind, key) = match self.shape.sse {
            Sse::Never if old => {
                let what = "does not speak the older HTTP+SSE that this server is set to";
                self.whys.push(format!("{} {what}", self.host.name));
                return;
            }
            Sse::Kind(kind) if old => (Some(kind), key),
            Sse::Key(key) if old => (None, key),
            _ => (self.shape.kinds.http, key),
        };
        if let Some(kind) = kind {
            self.put("type", kind);
        }
        let url = self.text("the URL", &endpoint.url);
        self.put(key, url);
        self.headers(endpoint);
        if endpoint.ca_file.is_some() || endpoint.client_cert_file.is_some() {
            self.whys.push(format!(
                "{} takes no certificates of a server's own, and this one has `ca_file` or \
                 `client_cert_file`",
                self.host.name
            ));
        }
    }

    fn headers(&mut self, endpoint: &Endpoint) {
        let (mut plain, mut by_variable) = (Map::new(), Map::new());
        for (name, value) in &endpoint.headers {
            let value = value.expose();
            let bearer = value.strip_prefix("Bearer ").and_then(reference::only);
            match (self.shape.bearer, self.shape.header_variables, bearer, reference::only(value)) {
                (Some(key), _, Some(variable), _) if name.eq_ignore_ascii_case("authorization") => {
                    self.put(key, variable);
                }
                (_, Some(_), _, Some(variable)) => {
                    by_variable.insert(name.clone(), json!(variable));
                }
                _ if self.shape.passed_in_headers => {
                    for (_, part) in reference::parts(value) {
                        match part {
                            Part::Variable { name, default: None } => {
                                self.passed.push(name.to_owned());
                            }
                            Part::Variable { name: variable, .. } => self.whys.push(format!(
                                "header {name}: gives `{variable}` a default, for which {} has \
                                 no form",
                                self.host.name
                            )),
                            Part::Text(_) => {}
                        }
                    }
                    plain.insert(name.clone(), json!(value));
                }
                _ => {
                    let text = self.text(&format!("header {name}"), value);
                    plain.insert(name.clone(), Json::String(text));
                }
            }
        }
        if !plain.is_empty() {
            self.put(self.shape.headers, plain);
        }
        if let Some(key) = self.shape.header_variables.filter(|_| !by_variable.is_empty()) {
            self.put(key, by_variable);
        }
        self.put_passed();
    }

    /// A text in the host's form; what cannot be said is noted.
    fn text(&mut self, place: &str, text: &str) -> String {
        let said = match self.shape.reference {
            Some(form) => reference::render(text, form),
            None => self.without_references(text),
        };
        said.unwrap_or_else(|why| {
            self.whys.push(format!("{place}: {why}"));
            String::new()
        })
    }

    fn without_references(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        for (_, part) in reference::parts(text) {
            match (part, self.home) {
                (Part::Text(text), _) => out.push_str(text),
                // No secret, and the same for whoever this file belongs to.
                (Part::Variable { name: "HOME", default: None }, Some(home)) => out.push_str(home),
                (Part::Variable { name, .. }, _) => {
                    let name = toolcrib_core::sanitise::line(name, 80);
                    return Err(format!(
                        "refers to the variable {name}, for which {} has no form here, and no \
                         value is copied: add this server in {0} by hand",
                        self.host.name
                    ));
                }
            }
        }
        Ok(out)
    }

    /// Writes the filter of tools as far as the host has one; says what is lost.
    fn tools(&mut self, server: &ServerConfig) -> Vec<String> {
        let (include, exclude) = self.shape.tools;
        let mut lost = false;
        for (texts, key) in [(&server.tools.include, include), (&server.tools.exclude, exclude)] {
            match key {
                _ if texts.is_empty() => {}
                Some(key) if !texts.iter().any(|text| text.contains('*')) => {
                    self.put(key, texts.clone());
                }
                _ => lost = true,
            }
        }
        let note = || {
            format!("{} sees more of its tools: the filter cannot be written there", self.host.name)
        };
        lost.then(note).into_iter().collect()
    }
}
