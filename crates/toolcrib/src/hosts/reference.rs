//! References to variables inside a text: ours (`${NAME}`, `${NAME:-default}`), and the forms that
//! hosts have for the same.
//!
//! Nothing is looked up here: a reference is only written another way.

use std::ops::Range;

use toolcrib_core::sanitise;

/// A part of a text in our form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text as it is.
    Text(&'a str),
    /// A variable.
    Variable {
        /// Its name.
        name: &'a str,
        /// What stands in when it is not set.
        default: Option<&'a str>,
    },
}

/// How a host writes a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// What stands before the name.
    pub(crate) open: &'static str,
    /// True when a default may follow the name, as in ours.
    pub(crate) defaults: bool,
    /// True when `$NAME` is a reference as well.
    pub(crate) bare: bool,
}

/// `${NAME}`, with defaults.
pub(crate) const BRACES: Form = Form { open: "${", defaults: true, bare: false };
/// `${NAME}` and `$NAME`.
pub(crate) const DOLLAR: Form = Form { open: "${", defaults: false, bare: true };
/// `${env:NAME}`.
pub(crate) const DOLLAR_ENV: Form = Form { open: "${env:", defaults: false, bare: false };
/// `{env:NAME}`.
pub(crate) const ENV: Form = Form { open: "{env:", defaults: false, bare: false };

/// A word as the name of a variable: `my-server` is `MY_SERVER`.
pub(crate) fn variable_name(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.trim_start_matches('-').chars().map(fit).collect();
    match name.chars().next() {
        Some('0'..='9') | None => format!("_{name}"),
        Some(_) => name,
    }
}

/// The parts of a text in our form, each with its bytes. A `${` that is never closed is text.
pub(crate) fn parts(text: &str) -> Vec<(Range<usize>, Part<'_>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find("${").map(|open| at + open) {
        let Some(close) = text[open..].find('}').map(|close| open + close) else { break };
        if open > at {
            found.push((at..open, Part::Text(&text[at..open])));
        }
        let body = &text[open + 2..close];
        let (name, default) = match body.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (body, None),
        };
        found.push((open..close + 1, Part::Variable { name, default }));
        at = close + 1;
    }
    if at < text.len() {
        found.push((at..text.len(), Part::Text(&text[at..])));
    }
    found
}

/// The variable a text consists of.
pub(crate) fn only(text: &str) -> Option<&str> {
    match parts(text)[..] {
        [(_, Part::Variable { name, default: None })] => Some(name),
        _ => None,
    }
}

/// A text of ours in a host's form.
///
/// # Errors
/// Why the host has no way to say it.
pub(crate) fn render(text: &str, form: Form) -> Result<String, String> {
    let mut out = String::new();
    for (_, part) in parts(text) {
        match part {
            Part::Text(text) if form.bare && bare_at(text).is_some() => {
                return Err("holds a `$` that this host would take for a variable".to_owned());
            }
            Part::Text(text) if text.contains(form.open) => {
                return Err(format!("holds `{}`, which this host would expand", form.open));
            }
            Part::Text(text) => out.push_str(text),
            Part::Variable { name, default: None } => {
                out.push_str(&format!("{}{name}}}", form.open));
            }
            Part::Variable { name, default: Some(default) } if form.defaults => {
                out.push_str(&format!("{}{name}:-{default}}}", form.open));
            }
            Part::Variable { name, .. } => {
                return Err(format!("gives `{name}` a default, for which this host has no form"));
            }
        }
    }
    Ok(out)
}

/// A text of a host in our form. `project` is what stands for the folder of the project.
///
/// # Errors
/// It refers to something that only the host knows.
pub(crate) fn ours(
    text: &str,
    form: Option<Form>,
    project: Option<&str>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let braces = rest.find("${").map(|at| (at, 2));
        let env = form
            .filter(|form| *form == ENV)
            .and_then(|_| ["{env:", "{file:"].iter().filter_map(|open| rest.find(open)).min())
            .map(|at| (at, 1));
        let bare = form.filter(|form| form.bare).and_then(|_| bare_at(rest)).map(|at| (at, 0));
        let Some((at, open)) = [braces, env, bare].into_iter().flatten().min() else { break };
        out.push_str(&rest[..at]);
        if open == 0 {
            let name = bare_name(&rest[at..]);
            out.push_str(&format!("${{{name}}}"));
            rest = &rest[at + 1 + name.len()..];
            continue;
        }
        let Some(close) = rest[at..].find('}').map(|close| at + close) else {
            return Err("has a reference without its closing `}`".to_owned());
        };
        out.push_str(&resolved(&rest[at + open..close], project)?);
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// What the body of one reference is with us.
fn resolved(body: &str, project: Option<&str>) -> Result<String, String> {
    let only_there = || {
        let what = sanitise::line(body.split(':').next().unwrap_or_default(), 40);
        match body.contains(':') {
            true => format!("refers to a `{what}:…`, which only the host knows"),
            false => format!("refers to `{what}`, which only the host knows"),
        }
    };
    match body.split_once(':') {
        Some(("env", name)) => Ok(format!("${{{name}}}")),
        Some(("input", id)) => Ok(format!("${{{}}}", variable_name(id))),
        Some((_, default)) if default.starts_with('-') => Ok(format!("${{{body}}}")),
        Some(_) => Err(only_there()),
        None if body == "userHome" => Ok("${HOME}".to_owned()),
        None if ["/", "pathSeparator"].contains(&body) => Ok("/".to_owned()),
        None if body == "workspaceFolder" => project.map(str::to_owned).ok_or_else(only_there),
        None => Ok(format!("${{{body}}}")),
    }
}

/// Where a `$NAME` starts.
fn bare_at(text: &str) -> Option<usize> {
    text.match_indices('$').map(|(at, _)| at).find(|at| !bare_name(&text[*at..]).is_empty())
}

/// The name behind a `$`.
fn bare_name(text: &str) -> &str {
    let text = &text[1..];
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => "",
        false => &text[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_references_become_ours() {
        let check = |form, text: &str, expect: Result<&str, &str>| {
            let ours = ours(text, form, Some("/p"));
            assert_eq!(ours.as_deref().map_err(String::as_str), expect, "{text}");
        };
        check(None, "Bearer ${T}", Ok("Bearer ${T}"));
        check(None, "${T:-d}", Ok("${T:-d}"));
        check(Some(DOLLAR_ENV), "a ${env:T} b", Ok("a ${T} b"));
        check(Some(DOLLAR_ENV), "${input:github-token}", Ok("${GITHUB_TOKEN}"));
        check(Some(DOLLAR_ENV), "${userHome}${/}x", Ok("${HOME}/x"));
        check(Some(DOLLAR_ENV), "${workspaceFolder}/x", Ok("/p/x"));
        check(None, "${command:x}", Err("refers to a `command:…`, which only the host knows"));
        check(Some(ENV), "Bearer {env:T}", Ok("Bearer ${T}"));
        check(Some(ENV), "{file:~/x}", Err("refers to a `file:…`, which only the host knows"));
        check(None, "{env:T} {}", Ok("{env:T} {}"));
        check(Some(DOLLAR), "$T/x $5 ${U}", Ok("${T}/x $5 ${U}"));
        check(None, "$T", Ok("$T"));
        check(None, "${T", Err("has a reference without its closing `}`"));
    }

    #[test]
    fn ours_become_the_hosts() {
        let check = |form, text: &str, expect: &str| {
            assert_eq!(render(text, form).unwrap_or_else(|why| why), expect, "{text}");
        };
        check(BRACES, "Bearer ${T:-d}", "Bearer ${T:-d}");
        check(DOLLAR_ENV, "Bearer ${T}", "Bearer ${env:T}");
        check(ENV, "${A}${B}", "{env:A}{env:B}");
        check(DOLLAR, "${T}x", "${T}x");
        check(DOLLAR, "a$b", "holds a `$` that this host would take for a variable");
        check(ENV, "{env:x}", "holds `{env:`, which this host would expand");
        check(ENV, "${T:-d}", "gives `T` a default, for which this host has no form");
    }
}
