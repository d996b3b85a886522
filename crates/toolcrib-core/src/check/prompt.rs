//! The arguments of a prompt against what the prompt declares (specification, server/prompts): each
//! is a string, the required ones are there, and no other is.

use super::{
    arguments::{ArgumentError, ArgumentErrors},
    explain::nearest,
};
use crate::{raw::Raw, rpc::message::members, sanitise, surface::Prompt};

/// Holds arguments against a prompt's declaration; absent ones count as `{}`.
///
/// # Errors
/// They do not fit.
pub fn arguments(prompt: &Prompt, given: Option<&Raw>) -> Result<(), ArgumentErrors> {
    let given = match given {
        None => Vec::new(),
        Some(given) => members(given).map_err(|_| {
            let got = sanitise::line(given.get(), 60);
            ArgumentErrors::whole("is no object", "an object of strings", got, "")
        })?,
    };
    let declared = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let path = |name: &str| format!("/{}", sanitise::line(name, 80));
    let mut errors = Vec::new();
    for argument in &prompt.arguments {
        if argument.required && !given.iter().any(|(name, _)| *name == argument.name) {
            errors.push(ArgumentError {
                path: path(&argument.name),
                problem: "is missing".to_owned(),
                expected: "a string".to_owned(),
                ..ArgumentError::default()
            });
        }
    }
    for (at, (name, value)) in given.iter().enumerate() {
        let problem = if !declared().any(|known| known == name) {
            "is unknown"
        } else if given[..at].iter().any(|(earlier, _)| earlier == name) {
            "is given twice"
        } else if !value.get().starts_with('"') {
            "has the wrong type"
        } else {
            continue;
        };
        let unknown = problem == "is unknown";
        let meant = unknown.then(|| nearest(name, declared())).flatten();
        errors.push(ArgumentError {
            path: path(name),
            problem: problem.to_owned(),
            expected: if problem == "has the wrong type" { "a string" } else { "" }.to_owned(),
            got: if unknown { String::new() } else { sanitise::line(value.get(), 60) },
            hint: meant
                .map(|meant| format!("did you mean {}?", sanitise::line(meant, 80)))
                .unwrap_or_default(),
        });
    }
    if errors.is_empty() { Ok(()) } else { Err(ArgumentErrors::of(errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::PromptArgument;

    #[test]
    fn what_is_missing_unknown_or_no_string_is_named() {
        let argument = |name: &str, required| PromptArgument {
            name: name.to_owned(),
            description: None,
            required,
        };
        let prompt = Prompt {
            raw: Raw::empty_object(),
            name: "p".to_owned(),
            title: None,
            description: None,
            arguments: vec![argument("code", true), argument("language", false)],
        };
        let check = |given: &str, expect: &str| {
            let given = (!given.is_empty()).then(|| Raw::parse(given).unwrap());
            let outcome = arguments(&prompt, given.as_ref());
            let text = outcome.err().map(|errors| errors.to_string()).unwrap_or_default();
            assert_eq!(text, expect);
        };
        check(r#"{"code":"x"}"#, "");
        check(r#"{"code":"x","language":"c"}"#, "");
        check("", "/code is missing: expected a string");
        check(r#"{"code":1}"#, "/code has the wrong type: expected a string, got 1");
        check(r#"{"code":"x","languag":"c"}"#, "/languag is unknown; did you mean language?");
        check(r#"{"code":"x","code":"y"}"#, "/code is given twice: got \"y\"");
        check("[]", "the whole is no object: expected an object of strings, got []");
    }
}
