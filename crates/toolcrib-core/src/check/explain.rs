//! Turns the validator's errors into faults a caller can mend.
//!
//! Runs only when a value does not fit, and only on values small enough for every fault to be
//! collected; never decides whether a value fits.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Map, Value};

use super::{
    arguments::{ArgumentError, ArgumentErrors},
    describe,
    keywords::push_token,
};
use crate::sanitise;

/// Most faults looked at, and most alternatives of a choice.
const LOOKED_AT: usize = 100;
/// How far choices inside choices are followed.
const CHOICE_DEPTH: usize = 4;
/// Most alternatives of a choice that are told one by one.
const TOLD: usize = 4;
/// Longest name compared for likeness, in characters, and most names compared with.
const LIKENESS_CHARS: usize = 64;
const LIKENESS_NAMES: usize = 500;

/// The faults behind `errors`, found by a validator made from `document`.
pub(super) fn explain<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    document: &Value,
) -> ArgumentErrors {
    let mut faults = Vec::new();
    let mut rest = 0;
    for (number, error) in errors.enumerate() {
        if number < LOOKED_AT {
            fault(&error, document, CHOICE_DEPTH, &mut faults);
        } else {
            rest += 1;
        }
    }
    faults.dedup();
    let mut errors = ArgumentErrors::of(faults);
    errors.more += rest;
    errors
}

fn fault(
    error: &ValidationError<'_>,
    document: &Value,
    depth: usize,
    faults: &mut Vec<ArgumentError>,
) {
    let instance: &Value = error.instance();
    let holder = holder(error, document);
    let expected = || holder.map(|holder| describe::schema(holder, document)).unwrap_or_default();
    let (problem, expected) = match error.kind() {
        Kind::Required { property } => {
            return faults.push(missing(
                error,
                property.as_str().unwrap_or_default(),
                holder,
                document,
            ));
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return faults.extend(unexpected.iter().map(|name| unknown(error, name, holder)));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            return choice(error, context, holder, document, depth, faults);
        }
        Kind::PropertyNames { error: inner } => {
            let name = inner.instance().as_str().unwrap_or_default().to_owned();
            let at = push(error.instance_path().as_str(), &name);
            let problem = "is not allowed as a name".to_owned();
            return faults.push(ArgumentError { path: at, problem, ..ArgumentError::default() });
        }
        Kind::Type { kind } => ("has the wrong type", types(kind)),
        Kind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            ("is not one of the allowed values", describe::one_of(options))
        }
        Kind::Constant { expected_value } => {
            ("is not the allowed value", describe::quoted(expected_value))
        }
        Kind::Minimum { .. }
        | Kind::Maximum { .. }
        | Kind::ExclusiveMinimum { .. }
        | Kind::ExclusiveMaximum { .. } => ("is out of range", expected()),
        Kind::MultipleOf { .. } => ("is no such multiple", expected()),
        Kind::Pattern { .. } => ("does not match", expected()),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            ("cannot be matched in bounded time", expected())
        }
        Kind::MinLength { .. } => ("is too short", expected()),
        Kind::MaxLength { .. } => ("is too long", expected()),
        Kind::MinItems { .. } => ("has too few items", expected()),
        Kind::MaxItems { .. } => ("has too many items", expected()),
        Kind::AdditionalItems { limit } => ("has too many items", format!("at most {limit} items")),
        Kind::UnevaluatedItems { .. } => ("has items that are not allowed", expected()),
        Kind::MinProperties { .. } => ("has too few members", expected()),
        Kind::MaxProperties { .. } => ("has too many members", expected()),
        Kind::UniqueItems => ("has equal items", "items that all differ".to_owned()),
        Kind::Contains => ("lacks an item that fits", contained(holder, document)),
        Kind::Not { .. } => ("is excluded", String::new()),
        Kind::FalseSchema => ("is not allowed here", "nothing".to_owned()),
        Kind::OneOfMultipleValid { .. } => {
            ("fits several alternatives at once", "exactly one of them to fit".to_owned())
        }
        // What is left is our own refusal of external references, already in words of ours.
        _ => {
            let problem = format!("cannot be judged: {}", sanitise::line(&error.to_string(), 200));
            let path = path(error.instance_path().as_str());
            return faults.push(ArgumentError { path, problem, ..ArgumentError::default() });
        }
    };
    faults.push(ArgumentError {
        path: path(error.instance_path().as_str()),
        problem: problem.to_owned(),
        expected,
        got: describe::quoted(instance),
        hint: hint(error.kind(), instance),
    });
}

/// A JSON Pointer as shown.
fn path(pointer: &str) -> String {
    sanitise::line(pointer, 200)
}

fn push(parent: &str, name: &str) -> String {
    let mut pointer = parent.to_owned();
    push_token(&mut pointer, name);
    path(&pointer)
}

/// The schema whose keyword failed.
fn holder<'d>(error: &ValidationError<'_>, document: &'d Value) -> Option<&'d Value> {
    let at = error.schema_path().as_str();
    let keyword = format!("/{}", error.kind().keyword());
    // `/required/0` and `/required` both stand on their schema.
    let mut cut = at;
    loop {
        let (before, token) = cut.rsplit_once('/')?;
        if token == &keyword[1..] {
            return document.pointer(before);
        }
        cut = before;
    }
}

fn missing(
    error: &ValidationError<'_>,
    name: &str,
    holder: Option<&Value>,
    document: &Value,
) -> ArgumentError {
    let properties = holder.and_then(|holder| holder.get("properties")).and_then(Value::as_object);
    let own = properties.and_then(|properties| properties.get(name));
    let given = error.instance().as_object();
    let known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    let strangers = given.into_iter().flat_map(Map::keys).map(String::as_str).filter(|n| !known(n));
    let hint = nearest(name, strangers)
        .map(|near| format!("`{}` was given, did you mean `{}`?", shown(near), shown(name)));
    ArgumentError {
        path: push(error.instance_path().as_str(), name),
        problem: "is missing".to_owned(),
        expected: own.map(|own| describe::schema(own, document)).unwrap_or_default(),
        got: String::new(),
        hint: hint.unwrap_or_default(),
    }
}

fn unknown(error: &ValidationError<'_>, name: &str, holder: Option<&Value>) -> ArgumentError {
    let properties = holder.and_then(|holder| holder.get("properties")).and_then(Value::as_object);
    let given = error.instance().as_object();
    let free = |name: &str| given.is_none_or(|given| !given.contains_key(name));
    let names = || properties.into_iter().flat_map(Map::keys).map(String::as_str);
    let hint = nearest(name, names().filter(|name| free(name)))
        .map(|near| format!("did you mean `{}`?", shown(near)));
    let expected = match names().next() {
        Some(_) => format!("only {}", describe::names(names())),
        None => "no properties".to_owned(),
    };
    ArgumentError {
        path: push(error.instance_path().as_str(), name),
        problem: "is unknown".to_owned(),
        expected,
        got: String::new(),
        hint: hint.unwrap_or_default(),
    }
}

fn shown(name: &str) -> String {
    sanitise::line(name, LIKENESS_CHARS)
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.as_str().to_owned(),
        TypeKind::Multiple(several) => {
            let names: Vec<&str> = several.iter().map(jsonschema::JsonType::as_str).collect();
            names.join(" or ")
        }
    }
}

fn contained(holder: Option<&Value>, document: &Value) -> String {
    holder
        .and_then(|holder| holder.get("contains"))
        .map(|schema| describe::schema(schema, document))
        .unwrap_or_default()
}

/// A value that fits no alternative. Where one alternative was plainly meant, its own faults are
/// told; else each is told by its first fault.
fn choice(
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'static>>],
    holder: Option<&Value>,
    document: &Value,
    depth: usize,
    faults: &mut Vec<ArgumentError>,
) {
    let here = error.instance_path().as_str();
    let misses_here = |branch: &&Vec<ValidationError<'static>>| {
        let miss = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == here
        };
        !branch.iter().any(miss)
    };
    // A tag (`"kind": "circle"`) that names another alternative rules an alternative out.
    let is_untagged = |branch: &&Vec<ValidationError<'static>>| {
        !branch.iter().any(|error| {
            matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
                && error.instance_path().as_str() != here
        })
    };
    let fitting: Vec<_> = context.iter().take(LOOKED_AT).filter(misses_here).collect();
    let tagged: Vec<_> = fitting.iter().copied().filter(is_untagged).collect();
    let meant = match (fitting.as_slice(), tagged.as_slice()) {
        ([one], _) | (_, [one]) => Some(*one),
        _ => None,
    };
    if let (Some(meant), true) = (meant, depth > 0) {
        for error in meant.iter().take(LOOKED_AT) {
            fault(error, document, depth - 1, faults);
        }
        return;
    }
    if let (true, Some(fault)) = (tagged.is_empty(), unknown_tag(&fitting, here)) {
        return faults.push(fault);
    }
    let told = if tagged.is_empty() { fitting } else { tagged };
    let mut reasons = Vec::new();
    for branch in told.iter().take(TOLD) {
        let mut own = Vec::new();
        if let (Some(first), true) = (branch.first(), depth > 0) {
            fault(first, document, depth - 1, &mut own);
        }
        reasons.extend(own.first().map(ToString::to_string));
    }
    reasons.dedup();
    let hint = if reasons.is_empty() {
        hint(error.kind(), error.instance())
    } else {
        format!("of the alternatives: {}", reasons.join(" | "))
    };
    faults.push(ArgumentError {
        path: path(here),
        problem: "fits none of the alternatives".to_owned(),
        expected: holder.map(|holder| describe::schema(holder, document)).unwrap_or_default(),
        got: describe::quoted(error.instance()),
        hint,
    });
}

/// The fault of a tag that names none of the alternatives, where all of them have the same one.
fn unknown_tag(branches: &[&Vec<ValidationError<'static>>], here: &str) -> Option<ArgumentError> {
    let mut values = Vec::new();
    let mut found: Option<&ValidationError<'_>> = None;
    for branch in branches {
        let tag = branch.iter().find(|error| {
            matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
                && error.instance_path().as_str() != here
        })?;
        match tag.kind() {
            Kind::Constant { expected_value } => values.push(Value::clone(expected_value)),
            Kind::Enum { options } => {
                values.extend(options.as_array().into_iter().flatten().cloned());
            }
            _ => {}
        }
        let same = found.is_none_or(|other| other.instance_path() == tag.instance_path());
        found = same.then_some(tag);
        found?;
    }
    let tag = found?;
    let hint = tag.instance().as_str().and_then(|given| {
        nearest(given, values.iter().filter_map(Value::as_str))
            .map(|near| format!("did you mean \"{}\"?", shown(near)))
    });
    Some(ArgumentError {
        path: path(tag.instance_path().as_str()),
        problem: "is not one of the allowed values".to_owned(),
        expected: describe::one_of(&values),
        got: describe::quoted(tag.instance()),
        hint: hint.unwrap_or_default(),
    })
}

/// How a value of the wrong kind is usually mended.
fn hint(kind: &Kind, instance: &Value) -> String {
    match (kind, instance) {
        (Kind::Enum { options }, Value::String(given)) => {
            let options = options.as_array().into_iter().flatten().filter_map(Value::as_str);
            nearest(given, options)
                .map(|near| format!("did you mean \"{}\"?", shown(near)))
                .unwrap_or_default()
        }
        (Kind::Type { kind }, given) => {
            let wants = types(kind);
            let wants = |name: &str| wants.split(" or ").any(|own| own == name);
            let text = match given {
                Value::String(text)
                    if (wants("integer") && text.parse::<i64>().is_ok())
                        || (wants("number") && text.parse::<f64>().is_ok())
                        || (wants("boolean") && matches!(text.as_str(), "true" | "false")) =>
                {
                    "send it without quotes"
                }
                Value::String(text)
                    if (wants("object") && text.trim_start().starts_with('{'))
                        || (wants("array") && text.trim_start().starts_with('[')) =>
                {
                    "send the JSON itself, not a string that holds it"
                }
                Value::Number(_) | Value::Bool(_) if wants("string") => "put it in quotes",
                Value::Null => "leave it out instead of sending null",
                Value::Array(_) => "",
                _ if wants("array") => "put it in a list",
                _ => "",
            };
            text.to_owned()
        }
        _ => String::new(),
    }
}

/// The candidate most like `name`, if any is like enough to have been meant.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    if name.len() > LIKENESS_CHARS {
        return None;
    }
    let wanted = plain(name);
    candidates
        .filter(|candidate| candidate.len() <= LIKENESS_CHARS)
        .take(LIKENESS_NAMES)
        .map(|candidate| {
            let other = plain(candidate);
            let (short, long) =
                if wanted.len() < other.len() { (&wanted, &other) } else { (&other, &wanted) };
            let part = short.len() >= 3
                && (long.starts_with(short.as_str()) || long.ends_with(short.as_str()));
            let likeness = strsim::normalized_damerau_levenshtein(&wanted, &other);
            (if part { likeness.max(0.65) } else { likeness }, candidate)
        })
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
