//! Which texts of a server entry may be secrets, and how each is replaced by a `${NAME}`.
//!
//! A judgement by names and looks that errs towards secrecy: a harmless value that is taken for a
//! secret costs a variable, the other way round it costs the secret. No value is ever repeated.

use std::{collections::HashMap, ops::Range};

use serde::Serialize;
use toolcrib_core::{
    secret::Secret,
    target::{ServerConfig, Target},
};

use super::reference::{self, Part, variable_name};

/// Words that make a name one of a secret.
const SECRET_WORDS: [&str; 24] = [
    "token",
    "tokens",
    "secret",
    "secrets",
    "key",
    "keys",
    "apikey",
    "password",
    "passwd",
    "pass",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "jwt",
    "pat",
    "dsn",
    "private",
    "session",
];
/// The same where words run into each other.
const SECRET_PARTS: [&str; 6] = ["token", "secret", "password", "passwd", "apikey", "credential"];
/// Last words of names that say where a secret is, or something about it.
const ABOUT: [&str; 25] = [
    "path", "file", "dir", "folder", "url", "uri", "endpoint", "host", "port", "name", "type",
    "method", "mode", "enabled", "disabled", "prefix", "timeout", "ttl", "scheme", "provider",
    "region", "id", "limit", "count", "version",
];
/// First words of names that switch something on or off.
const SWITCHES: [&str; 5] = ["no", "skip", "disable", "enable", "without"];
/// What issued tokens begin with.
const TOKEN_STARTS: [&str; 34] = [
    "sk-",
    "sk_",
    "rk_live",
    "pk_live",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "ntn_",
    "lin_api_",
    "figd_",
    "dckr_pat_",
    "shpat_",
    "SG.",
    "whsec_",
    "ATATT",
    "dop_v1_",
    "secret_",
    "-----BEGIN",
];
/// Words before the secret in a header.
const SCHEMES: [&str; 4] = ["Bearer", "Basic", "Token", "ApiKey"];

/// Most rounds in which a text is looked through.
const MAX_ROUNDS: usize = 8;

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spot<'a> {
    /// The value of this environment variable, or of a member of this name.
    Named(&'a str),
    /// The value of this header.
    Header(&'a str),
    /// An argument, behind this one.
    Argument(Option<&'a str>),
    /// An address.
    Address,
}

/// A part of a text that may be a secret.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    at: Range<usize>,
    /// What a variable for it may be called.
    called: String,
}

/// A text that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Concealed {
    /// Where it stood, such as `env TOKEN`.
    pub(crate) place: String,
    /// The variable that stands in its place.
    pub(crate) variable: String,
}

/// True when a text may hold a secret.
pub(crate) fn is_secret(spot: Spot<'_>, text: &str) -> bool {
    !pieces(spot, text).is_empty()
}

/// True when a name itself may be a secret: of a variable that is set, or of a header.
pub(crate) fn has_secret_name(server: &ServerConfig) -> bool {
    match &server.target {
        Target::Command(command) => command.env.keys().any(|name| looks_like_token(name)),
        Target::Http(endpoint) => endpoint.headers.keys().any(|name| looks_like_token(name)),
    }
}

/// The variables handed out so far; each stands for one value.
#[derive(Default)]
pub(crate) struct Variables {
    values: HashMap<String, Secret>,
}

impl Variables {
    /// The variable for a value. One of the server's `own` environment keeps its name as long as no
    /// other value has it; others begin with the server's.
    fn name(&mut self, called: &str, server: &str, own: bool, value: &str) -> String {
        let called = variable_name(called);
        let full = format!("{}_{called}", variable_name(server));
        let numbered = (2..).map(|number| format!("{full}_{number}"));
        for name in own.then_some(called).into_iter().chain([full.clone()]).chain(numbered) {
            let held = self.values.entry(name.clone()).or_insert_with(|| Secret::new(value));
            if held.expose() == value {
                return name;
            }
        }
        full
    }
}

/// Replaces every text that may be a secret by a reference.
pub(crate) fn conceal(server: &mut ServerConfig, variables: &mut Variables) -> Vec<Concealed> {
    let mut concealed = Vec::new();
    let name = server.name.clone();
    let mut take = |place: String, spot: Spot<'_>, text: &str| {
        let mut new = text.to_owned();
        // What is left beside one reference may show itself as a secret only then.
        for _ in 0..MAX_ROUNDS {
            let pieces = pieces(spot, &new);
            if pieces.is_empty() {
                break;
            }
            for Piece { at, called } in pieces.into_iter().rev() {
                let variable = match called_in(&new[at.clone()]) {
                    Some(kept) => kept.to_owned(),
                    None => {
                        // What is only a part of the value needs the server's name to be told
                        // apart.
                        let own = matches!(spot, Spot::Named(name) if *name == called);
                        let called = called.trim_start_matches('-');
                        let variable = variables.name(called, &name, own, &new[at.clone()]);
                        let place = place.clone();
                        concealed.push(Concealed { place, variable: variable.clone() });
                        variable
                    }
                };
                new.replace_range(at, &format!("${{{variable}}}"));
            }
        }
        new
    };
    match &mut server.target {
        Target::Command(command) => {
            command.program =
                take("the command".to_owned(), Spot::Argument(None), &command.program);
            for index in 0..command.args.len() {
                let before = index.checked_sub(1).map(|before| command.args[before].clone());
                let spot = Spot::Argument(before.as_deref());
                command.args[index] =
                    take(format!("argument {}", index + 1), spot, &command.args[index]);
            }
            for (key, value) in &mut command.env {
                let new = take(format!("env {key}"), Spot::Named(key), value.expose());
                *value = Secret::new(new);
            }
        }
        Target::Http(endpoint) => {
            endpoint.url = take("the URL".to_owned(), Spot::Address, &endpoint.url);
            for (key, value) in &mut endpoint.headers {
                let new = take(format!("header {key}"), Spot::Header(key), value.expose());
                *value = Secret::new(new);
            }
        }
    }
    concealed
}

/// The variable of a reference whose default is the secret.
fn called_in(piece: &str) -> Option<&str> {
    let body = piece.strip_prefix("${")?.strip_suffix('}')?;
    body.split(":-").next().filter(|name| !looks_like_token(name))
}

fn pieces(spot: Spot<'_>, text: &str) -> Vec<Piece> {
    let whole = |called: &str| vec![Piece { at: 0..text.len(), called: called.to_owned() }];
    if text.contains("${") {
        return pieces_around_references(spot, text);
    }
    match spot {
        Spot::Named(name) if is_secret_name(name) && !is_harmless(text) => whole(name),
        Spot::Named(name) => pieces_of_any(text, name),
        Spot::Header(name) => header_pieces(name, text),
        Spot::Argument(before) => argument_pieces(before, text),
        Spot::Address => pieces_of_any(text, "TOKEN"),
    }
}

/// Where a text refers to a variable, only the variable's default and what looks like a token
/// beside it may be secret.
fn pieces_around_references(spot: Spot<'_>, text: &str) -> Vec<Piece> {
    let named = match spot {
        Spot::Named(name) => is_secret_name(name),
        Spot::Header(name) => is_secret_name(name),
        Spot::Argument(before) => before.is_some_and(is_secret_name) || is_secret_name(text),
        Spot::Address => false,
    };
    let parts = reference::parts(text);
    let refers = |piece: &Piece| {
        let meets = |at: &Range<usize>| at.start < piece.at.end && piece.at.start < at.end;
        parts.iter().any(|(at, part)| matches!(part, Part::Variable { .. }) && meets(at))
    };
    let mut found: Vec<Piece> = match text.contains("://") {
        true => address_pieces(text).into_iter().filter(|piece| !refers(piece)).collect(),
        false => Vec::new(),
    };
    let free = |found: &[Piece], at: &Range<usize>| {
        found.iter().all(|piece| at.end <= piece.at.start || piece.at.end <= at.start)
    };
    for (at, part) in &parts {
        match part {
            Part::Text(words) => {
                let before = found.len();
                let separators = |c: char| c.is_whitespace() || "=,;:/?&@\"'".contains(c);
                for word in words.split(separators).filter(|word| looks_like_token(word)) {
                    let start = at.start + (word.as_ptr().addr() - words.as_ptr().addr());
                    let at = start..start + word.len();
                    if free(&found, &at) {
                        found.push(Piece { at, called: "TOKEN".to_owned() });
                    }
                }
                if found.len() == before && free(&found, at) && holds_secret(words) {
                    found.push(Piece { at: at.clone(), called: "SECRET".to_owned() });
                }
            }
            // Somebody took the braces for a place to put it in.
            Part::Variable { name, .. } if looks_like_token(name) => {
                found.push(Piece { at: at.clone(), called: "TOKEN".to_owned() });
            }
            Part::Variable { name, default: Some(default) }
                if looks_like_token(default) || (named && !is_harmless(default)) =>
            {
                found.push(Piece { at: at.clone(), called: (*name).to_owned() });
            }
            Part::Variable { .. } => {}
        }
    }
    found.sort_by_key(|piece| piece.at.start);
    found
}

fn header_pieces(name: &str, text: &str) -> Vec<Piece> {
    let scheme = scheme_len(text);
    if scheme.is_none() && !is_secret_name(name) {
        return pieces_of_any(text, name);
    }
    let start = scheme.unwrap_or(text.len() - text.trim_start().len());
    let called = match name.to_ascii_lowercase().as_str() {
        "authorization" | "proxy-authorization" => "TOKEN".to_owned(),
        _ => name.to_owned(),
    };
    let secret = text[start..].trim_end();
    match secret.is_empty() {
        true => Vec::new(),
        false => vec![Piece { at: start..start + secret.len(), called }],
    }
}

fn argument_pieces(before: Option<&str>, text: &str) -> Vec<Piece> {
    let shifted = |by: usize, pieces: Vec<Piece>| {
        let shift = |piece: Piece| Piece { at: piece.at.start + by..piece.at.end + by, ..piece };
        pieces.into_iter().map(shift).collect::<Vec<_>>()
    };
    // Two of them stand in versions of packages.
    let pair =
        text.split_once('=').filter(|(name, value)| is_simple(name) && !value.starts_with('='));
    if let Some((name, value)) = pair {
        return shifted(name.len() + 1, pieces(Spot::Named(name), value));
    }
    if let Some((name, value)) = text.split_once(':').filter(|(name, _)| is_simple(name))
        && is_secret_name(name)
        && !value.starts_with("//")
        && !is_harmless(value)
    {
        return shifted(name.len() + 1, header_pieces(name, value));
    }
    match before.filter(|before| before.starts_with('-') && !before.contains('=')) {
        Some(flag) if !text.starts_with('-') => pieces(Spot::Named(flag), text),
        _ => pieces_of_any(text, "TOKEN"),
    }
}

/// What shows itself as a secret wherever it stands.
fn pieces_of_any(text: &str, called: &str) -> Vec<Piece> {
    let one_word = |start: &usize| !text[*start..].trim().contains(char::is_whitespace);
    if let Some(start) = scheme_len(text).filter(one_word) {
        let called = called.to_owned();
        return vec![Piece { at: start..text.len(), called }];
    }
    let several = |c: char| c.is_whitespace() || "{;".contains(c);
    if text.contains("://") && !text.contains(several) {
        return address_pieces(text);
    }
    match looks_like_token(text.trim()) || holds_secret(text) {
        true => vec![Piece { at: 0..text.len(), called: called.to_owned() }],
        false => Vec::new(),
    }
}

/// The bytes of a `Bearer ` at the start of a text, blanks before it included.
fn scheme_len(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    SCHEMES.iter().find_map(|scheme| {
        let end = start + scheme.len();
        let word = text.get(start..end)?;
        let rest = text[end..].strip_prefix(' ')?;
        (word.eq_ignore_ascii_case(scheme) && !rest.trim().is_empty()).then_some(end + 1)
    })
}

/// True for a text with a secret somewhere inside: JSON with headers, or `Password=…;` among other
/// settings.
fn holds_secret(text: &str) -> bool {
    let apart = |c: char| c.is_whitespace() || "\"'`,;&{}[]()|<>".contains(c);
    let words: Vec<&str> = text.split(apart).filter(|word| !word.is_empty()).collect();
    // A scheme says only what kind of secret follows.
    let scheme = |word: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
    let given = |from: usize| {
        let value = words.iter().skip(from).find(|word| !scheme(word));
        value.is_some_and(|value| !is_harmless(value))
    };
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1);
        if holds_token(word) || (word.eq_ignore_ascii_case("bearer") && next.is_some()) {
            return true;
        }
        if word.contains("://") && !address_pieces(word).is_empty() {
            return true;
        }
        let pair = word.split_once(['=', ':']).filter(|(name, value)| {
            is_simple(name) && !value.starts_with('=') && !value.starts_with("//")
        });
        match pair {
            Some((name, "")) => is_secret_name(name) && given(at + 1),
            Some((name, value)) => is_secret_name(name) && !is_harmless(value),
            None if next.is_some_and(|next| [":", "="].contains(next)) => {
                is_secret_name(word) && given(at + 2)
            }
            None => false,
        }
    })
}

/// True when a word is a token or joins one to something else. What follows the name of a digest is
/// none.
fn holds_token(word: &str) -> bool {
    let joined = || !word.contains("://") && !word.contains("sha256") && !word.contains("sha512");
    looks_like_token(word) || joined() && word.split(['=', ':', '#']).any(looks_like_token)
}

/// A password, a query or a path of a URL that gives access.
fn address_pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let Some(scheme) = text.find("://").map(|at| at + 3) else { return found };
    let end = text[scheme..].find(['/', '?', '#']).map_or(text.len(), |at| scheme + at);
    let piece = |at: Range<usize>, called: &str| Piece { at, called: called.to_owned() };
    let mut start = scheme;
    if let Some(user) = user_end(text, scheme, end) {
        let password = text[scheme..user].find(':').map(|at| scheme + at + 1);
        start = password.unwrap_or(scheme);
        let secret = password.is_some() || looks_like_token(&unescaped(&text[start..user]));
        if secret && start < user {
            found.push(piece(start..user, "PASSWORD"));
        }
        start = user + 1;
    }
    let end = end.max(start);
    for label in text[start..end].split(['.', ':']) {
        if looks_like_token(label) {
            found.push(piece(start..start + label.len(), "TOKEN"));
        }
        start += label.len() + 1;
    }
    let query = text[end..].find(['?', '#']).map_or(text.len(), |at| end + at);
    let mut start = end;
    for segment in text[end..query].split('/') {
        if looks_like_token(segment) {
            found.push(piece(start..start + segment.len(), "TOKEN"));
        }
        start += segment.len() + 1;
    }
    let mut start = query + 1;
    for pair in text.get(query + 1..).unwrap_or_default().split(['?', '&', '#']) {
        let named = pair.split_once('=').filter(|(name, _)| !looks_like_token(name));
        let (name, value) = named.unwrap_or(("", pair));
        if (is_secret_name(name) && !is_harmless(value)) || looks_like_token(&unescaped(value)) {
            let at = start + pair.len() - value.len();
            let called = if name.is_empty() { "TOKEN" } else { name };
            found.push(piece(at..at + value.len(), called));
        }
        start += pair.len() + 1;
    }
    found
}

/// Where the user and password of a URL end. A password may hold a `/` that should have been
/// escaped: then what follows the colon is no port.
fn user_end(text: &str, scheme: usize, end: usize) -> Option<usize> {
    if let Some(at) = text[scheme..end].rfind('@') {
        return Some(scheme + at);
    }
    let (_, port) = text[scheme..end].split_once(':').filter(|(host, _)| !host.starts_with('['))?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let last = text[end..].find(['?', '#']).map_or(text.len(), |at| end + at);
    text[end..last].rfind('@').filter(|_| !is_port).map(|at| end + at)
}

/// A part of a URL with what base64 has of escapes undone.
fn unescaped(text: &str) -> String {
    let escapes =
        [("%2F", "/"), ("%2f", "/"), ("%2B", "+"), ("%2b", "+"), ("%3D", "="), ("%3d", "=")];
    escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// True for what may be a name in front of `=` or `:`.
fn is_simple(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let secret = |word: &String| {
        SECRET_WORDS.contains(&&**word) || SECRET_PARTS.iter().any(|part| word.contains(part))
    };
    let about = words.last().is_some_and(|last| ABOUT.contains(&&**last));
    let switch = words.first().is_some_and(|first| SWITCHES.contains(&&**first));
    !about && !switch && words.iter().any(secret)
}

/// The words of `API_KEY`, `api-key` and `apiKey`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A value that is no secret whatever it is called.
fn is_harmless(value: &str) -> bool {
    let value = value.trim();
    let short_number = value.len() <= 6 && value.chars().all(|c| c.is_ascii_digit());
    let switch = ["true", "false", "yes", "no", "on", "off", "none", "null", "latest"];
    let path = ["/", "~/", "./"].iter().any(|start| value.starts_with(start));
    let path = path && !looks_random(value);
    let numbers = value.strip_prefix('v').unwrap_or(value).split('.').take(2);
    let digits = |number: &str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let version = value.len() <= 16 && numbers.filter(|number| digits(number)).count() == 2;
    short_number || version || switch.contains(&value.to_ascii_lowercase().as_str()) || path
}

/// What begins like an issued token, or is as long and as mixed as only generated text is.
fn looks_like_token(text: &str) -> bool {
    let rest = |start: &str| text.strip_prefix(start).is_some_and(|rest| rest.len() >= 8);
    if TOKEN_STARTS.iter().any(|start| rest(start)) {
        return true;
    }
    if looks_random(text) {
        return true;
    }
    if text.len() < 20 || !text.chars().all(|c| c.is_ascii_alphanumeric() || "_-+=.~".contains(c)) {
        return false;
    }
    let hex = text.len() >= 32 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let has = |kind: fn(&char) -> bool| text.chars().any(|c| kind(&c));
    let mixed = has(char::is_ascii_lowercase)
        && has(char::is_ascii_uppercase)
        && text.chars().filter(char::is_ascii_digit).count() >= 2;
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let dense = text.len() >= 24 && digits >= 4 && text.chars().all(|c| c.is_ascii_alphanumeric());
    hex || mixed || dense
}

/// True for base64 with `/` or `+` in it, which is told from a path by how often it breaks: a letter
/// beside a digit, a capital after a small letter.
fn looks_random(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '/' || c == '+';
    if text.len() < 28 || !text.contains(['/', '+']) || !text.chars().all(fits) {
        return false;
    }
    let pairs =
        text.as_bytes().windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphanumeric));
    let broken = |pair: &&[u8]| {
        pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
            || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
    };
    let (all, breaks) = (pairs.clone().count(), pairs.filter(broken).count());
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && breaks * 100 >= all * 22
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolcrib_core::target::{Command, Endpoint};

    use super::*;

    fn shown(server: &ServerConfig) -> String {
        let line = |(name, value): (&String, &Secret)| format!("\n{name}: {}", value.expose());
        match &server.target {
            Target::Command(command) => {
                format!("{:?}{}", command.args, command.env.iter().map(line).collect::<String>())
            }
            Target::Http(endpoint) => {
                format!("{}{}", endpoint.url, endpoint.headers.iter().map(line).collect::<String>())
            }
        }
    }

    #[test]
    fn names_and_looks_tell_secrets() {
        let check = |spot, text: &str, expect: bool| {
            assert_eq!(is_secret(spot, text), expect, "{spot:?} {text}");
        };
        let env = Spot::Named;
        check(env("GITHUB_TOKEN"), "abc", true);
        check(env("githubToken"), "abc", true);
        check(env("GITHUB_TOKEN"), "${GITHUB_TOKEN}", false);
        check(env("GITHUB_TOKEN"), "${GITHUB_TOKEN:-abc}", true);
        check(env("GITHUB_TOKEN"), "", false);
        check(env("MONKEY"), "abc", false);
        check(env("SSH_KEY_PATH"), "/home/me/.ssh/id", false);
        check(env("AUTH_ENABLED"), "true", false);
        check(env("USE_AUTH"), "true", false);
        check(env("LOG_LEVEL"), "debug", false);
        check(env("REGION"), "ghp_0123456789abcdefghij", true);
        check(env("DATABASE_URL"), "postgres://u:pw@h/d", true);
        check(env("DATABASE_URL"), "postgres://u@h/d", false);
        check(env("DATABASE_URL"), "postgres://${U}:pw@h/d", true);
        check(env("DATABASE_URL"), "postgres://u:${PW}@h/d", false);
        check(env("HEADERS"), r#"{"Cookie": "a", "X": "${X}"}"#, true);
        check(env("HEADERS"), r#"{"Cookie": "${C}"}"#, false);
        check(env("AUTH_HEADER"), "Bearer abc", true);
        check(env("HEADERS"), r#"{"Authorization": "Bearer abc", "X-Version": "1"}"#, true);
        check(env("HEADERS"), r#"{"X-Api-Key":"abc"}"#, true);
        check(env("HEADERS"), r#"{"X-Version": "2022-06-28"}"#, false);
        check(env("CONNECTION"), "Server=h;User Id=u;Password=pw", true);
        check(env("CONNECTION"), "Server=h;Timeout=3", false);
        check(env("PEM"), "-----BEGIN PRIVATE KEY-----\nabc", true);
        check(env("NOTE"), "Basic usage of keys: none", false);
        check(env("ID"), "a1b2c3d4e5f6a7b8c9d0zzzz", true);
        let header = Spot::Header;
        check(header("Authorization"), "Bearer x", true);
        check(header("Authorization"), "Bearer ${X}", false);
        check(header("X-Api-Key"), "x", true);
        check(header("Cookie"), "a=b", true);
        check(header("X-Region"), "eu", false);
        check(header("X-Custom"), "Bearer x", true);
        let arg = Spot::Argument(None);
        check(arg, "--token=abc", true);
        check(arg, "--port=8080", false);
        check(arg, "Authorization: Bearer abc", true);
        check(arg, "Authorization:${AUTH}", false);
        check(arg, "@modelcontextprotocol/server-filesystem", false);
        check(arg, "https://h.example/s/aB3dEf6hIj9kLmN0pQr5/mcp", true);
        check(arg, "https://h.example/mcp?api_key=abc", true);
        check(arg, "https://h.example/mcp?page=1", false);
        check(Spot::Argument(Some("--api-key")), "abc", true);
        check(Spot::Argument(Some("--api-key")), "--verbose", false);
        check(Spot::Argument(Some("-e")), "API_KEY", false);
        check(Spot::Argument(Some("-e")), "API_KEY=abc", true);
        check(Spot::Argument(Some("--root")), "/home/me", false);
        check(Spot::Argument(Some("--no-auth")), "server.js", false);
        check(Spot::Argument(Some("--from")), "auth-mcp==1.2.3", false);
        check(arg, "--headers={\"Cookie\":\"a=b\"}", true);
        check(arg, "mcp-server-filesystem@2025.11.25", false);
        check(arg, "auth-server:latest", false);
        check(arg, "registry.example/acme/token-server:1.2.3", false);
        check(arg, "git+https://git.example/x/y@0123456789abcdef0123456789abcdef01234567", false);
    }

    #[test]
    fn tokens_are_told_beside_other_things() {
        let check = |spot, text: &str, expect: bool| {
            assert_eq!(is_secret(spot, text), expect, "{spot:?} {text}");
        };
        let (env, arg) = (Spot::Named, Spot::Argument(None));
        let random = "/JalrXUtnFEMI/K7MDENG+bPxRfiCY2Kd8sQwVzL";
        check(env("AWS_SECRET_ACCESS_KEY"), random, true);
        check(env("STUFF"), random, true);
        check(env("STUFF"), &format!("a,b,{random}"), true);
        check(env("SSH_KEY"), "/home/me/.ssh/id", false);
        check(env("SSH_KEY"), "/Users/Me/Projects2024/MyServer3/Build/key", false);
        check(env("A"), "${ghp_0123456789abcdefghij}", true);
        check(arg, "https://h.example/mcp#t=ghp_0123456789abcdefghij", true);
        check(arg, "https://h.example/mcp#ghp_0123456789abcdefghij", true);
        check(arg, "https://h.example/mcp#top", false);
        check(arg, "https://h.example/mcp#aHVzaDpTRUNSRVQvKys5ODc2NTQz==", true);
        check(arg, "https://a1b2c3d4-e5f6-4718-9a0b-c1d2e3f4a5b6.h.example/mcp", true);
        check(arg, "https://u:ab/cd@h.example/mcp", true);
        check(arg, "https://h.example:8080/npm/x@1.2", false);
        check(arg, "http://[::1]:8080/npm/x@1.2", false);
        check(arg, "curl -H 'X-Any: ghp_0123456789abcdefghij' https://h.example", true);
        check(arg, "curl https://h.example/a -o b", false);
        check(arg, "https://h.example/mcp?x=JalrXUtnFEMI%2FK7MDENG%2BbPxRfiCY2Kd8sQ", true);
        check(arg, "a:b:ghp_0123456789abcdefghij", true);
        check(arg, "--env=FOO=ghp_0123456789abcdefghij", true);
        check(arg, "a|ghp_0123456789abcdefghij", true);
        check(arg, "--kv=FOO=debug", false);
        check(arg, "acme/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef", false);
    }

    #[test]
    fn only_the_secret_part_is_replaced() {
        let command = Command {
            args: ["--token", "t0p", "--header", "Authorization: Bearer abc", "-e", "A_KEY=k"]
                .map(str::to_owned)
                .to_vec(),
            env: [("A_KEY", "other"), ("B", "${B_TOKEN:-sk-0123456789}"), ("C", "plain")]
                .map(|(name, value)| (name.to_owned(), value.into()))
                .into(),
            ..Command::default()
        };
        let mut server = ServerConfig::new("my-crm", Target::Command(command));
        let concealed = conceal(&mut server, &mut Variables::default());
        insta::assert_snapshot!(shown(&server), @r#"
        ["--token", "${MY_CRM_TOKEN}", "--header", "Authorization: Bearer ${MY_CRM_TOKEN_2}", "-e", "A_KEY=${MY_CRM_A_KEY}"]
        A_KEY: ${A_KEY}
        B: ${B_TOKEN}
        C: plain
        "#);
        let places: Vec<_> =
            concealed.iter().map(|one| format!("{} {}", one.place, one.variable)).collect();
        insta::assert_debug_snapshot!(places, @r#"
        [
            "argument 2 MY_CRM_TOKEN",
            "argument 4 MY_CRM_TOKEN_2",
            "argument 6 MY_CRM_A_KEY",
            "env A_KEY A_KEY",
        ]
        "#);
    }

    proptest! {
        /// Whatever the texts, the second time there is nothing left to do.
        #[test]
        fn what_is_concealed_stays_concealed(
            texts in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![
                "Bearer ", "sk-0123456789ab", "${X}", "${X:-sk-0123456789ab}", "h://", "u:p@", "/",
                "?key=", "&", "=", ":", "\u{3000}", "é", "Password=", ";", "{\"token\": \"", "\"}",
                " ", "--token", "a", "$", "${", "}", "abc",
            ]), 0..8), 5),
        ) {
            let texts: Vec<String> = texts.into_iter().map(|parts| parts.concat()).collect();
            let command = Command {
                args: texts.clone(),
                env: [("A_TOKEN", &texts[0]), ("B", &texts[1])]
                    .map(|(name, text)| (name.to_owned(), text.as_str().into()))
                    .into(),
                ..Command::default()
            };
            let mut endpoint = Endpoint::new(&texts[2]);
            endpoint.headers.insert("Authorization".into(), texts[3].as_str().into());
            endpoint.headers.insert("X".into(), texts[4].as_str().into());
            for target in [Target::Command(command), Target::Http(endpoint)] {
                let mut server = ServerConfig::new("s", target);
                conceal(&mut server, &mut Variables::default());
                let once = server.clone();
                let again = conceal(&mut server, &mut Variables::default());
                prop_assert!(again.is_empty(), "{}\n{again:?}", shown(&once));
                prop_assert_eq!(server, once);
            }
        }
    }

    #[test]
    fn addresses_and_headers_keep_what_is_not_secret() {
        let mut endpoint = Endpoint::new("https://u:pw@h.example/mcp?key=abc&page=1");
        endpoint.headers.insert("Authorization".into(), "Bearer abc".into());
        endpoint.headers.insert("X-Api-Key".into(), "k".into());
        endpoint.headers.insert("X-Region".into(), "eu".into());
        let mut server = ServerConfig::new("crm", Target::Http(endpoint));
        conceal(&mut server, &mut Variables::default());
        insta::assert_snapshot!(shown(&server), @"
        https://u:${CRM_PASSWORD}@h.example/mcp?key=${CRM_KEY}&page=1
        Authorization: Bearer ${CRM_TOKEN}
        X-Api-Key: ${CRM_X_API_KEY}
        X-Region: eu
        ");
    }
}
