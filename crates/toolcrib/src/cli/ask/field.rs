//! One field of a form in words, and a typed line as its value. Pure: nothing is read or written
//! here, and nothing is filled in that was not shown.

use serde_json::Value;
use toolcrib_core::{limits::Limits, sanitise};
use toolcrib_engine::{Choice, Field, FieldKind};

/// What a line comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Typed {
    /// This value.
    Value(Value),
    /// The field is left out.
    LeftOut,
    /// It does not fit, with why.
    Misfit(String),
}

/// The lines that introduce a field.
pub(super) fn introduction(field: &Field) -> Vec<String> {
    let name = sanitise::line(&field.name, 80);
    let title = field.title.as_deref().map(|title| sanitise::line(title, 200));
    let shown = match title {
        Some(title) if title != name => format!("{title} ({name})"),
        _ => name,
    };
    let need = if field.required { "required" } else { "optional" };
    let mut lines = vec![format!("{shown}: {}, {need}", takes(field))];
    if let Some(description) = &field.description {
        lines.push(format!("  {}", sanitise::line(description, 1_000)));
    }
    if let FieldKind::One(choices) | FieldKind::Many(choices) = &field.kind {
        for (at, choice) in choices.iter().enumerate() {
            let (value, title) =
                (sanitise::line(&choice.value, 200), sanitise::line(&choice.title, 200));
            let beside = if value == title { String::new() } else { format!(" ({value})") };
            lines.push(format!("  {}) {title}{beside}", at + 1));
        }
    }
    lines.push(format!("  {}", on_empty(field)));
    lines
}

/// What kind of value it takes, with the bounds of its schema.
fn takes(field: &Field) -> String {
    let bounds = |low: &str, high: &str, of: &str| match (&field.schema[low], &field.schema[high]) {
        (Value::Null, Value::Null) => String::new(),
        (low, Value::Null) => format!(", at least {low}{of}"),
        (Value::Null, high) => format!(", at most {high}{of}"),
        (low, high) => format!(", {low} to {high}{of}"),
    };
    match &field.kind {
        FieldKind::Text { format } => {
            let what = match format.as_deref() {
                Some("email") => "an e-mail address",
                Some("uri") => "a URI",
                Some("date") => "a date like 2026-07-28",
                Some("date-time") => "a time like 2026-07-28T09:30:00Z",
                _ => "text",
            };
            format!("{what}{}", bounds("minLength", "maxLength", " characters"))
        }
        FieldKind::Number { whole: true } => {
            format!("a whole number{}", bounds("minimum", "maximum", ""))
        }
        FieldKind::Number { whole: false } => {
            format!("a number{}", bounds("minimum", "maximum", ""))
        }
        FieldKind::Flag => "yes or no".to_owned(),
        FieldKind::One(_) => "one of these".to_owned(),
        FieldKind::Many(_) => {
            format!("any of these, with commas{}", bounds("minItems", "maxItems", " of them"))
        }
    }
}

/// What an empty line means.
fn on_empty(field: &Field) -> String {
    match &field.default {
        Some(default) if field.required => format!("an empty line takes {}", shown(default)),
        Some(default) => format!("an empty line takes {}, a - leaves it out", shown(default)),
        None if field.required => "it cannot be left out".to_owned(),
        None => "an empty line leaves it out".to_owned(),
    }
}

/// A value as a person reads it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => format!("{:?}", sanitise::line(text, 200)),
        other => sanitise::line(&other.to_string(), 400),
    }
}

/// What a typed line says.
pub(super) fn typed(field: &Field, line: &str, limits: &Limits) -> Typed {
    let line = line.trim();
    let value = match (line, &field.default) {
        ("", Some(default)) => Ok(default.clone()),
        ("", None) if field.required => Err("it is required".to_owned()),
        ("", None) => return Typed::LeftOut,
        ("-", Some(_)) if !field.required => return Typed::LeftOut,
        _ => value(&field.kind, line),
    };
    let value = match value {
        Ok(value) => value,
        Err(why) => return Typed::Misfit(why),
    };
    match field.check(&value, limits) {
        Ok(()) => Typed::Value(value),
        Err(misfit) => {
            let own = format!("/{} ", sanitise::line(&field.name, 80));
            Typed::Misfit(misfit.to_string().replace(&own, ""))
        }
    }
}

fn value(kind: &FieldKind, line: &str) -> Result<Value, String> {
    match kind {
        FieldKind::Text { .. } => match line {
            // The one text that cannot be typed as it is.
            "\"\"" => Ok("".into()),
            line => Ok(line.into()),
        },
        FieldKind::Number { .. } => match serde_json::from_str(line) {
            Ok(number @ Value::Number(_)) => Ok(number),
            _ => Err("that is no number".to_owned()),
        },
        FieldKind::Flag => match &*line.to_lowercase() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("answer yes or no".to_owned()),
        },
        FieldKind::One(choices) => chosen(choices, line).map(Value::from),
        FieldKind::Many(choices) if line == "none" && chosen(choices, line).is_err() => {
            Ok(Value::Array(Vec::new()))
        }
        FieldKind::Many(choices) => {
            let parts = line.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| chosen(choices, part).map(Value::from)).collect()
        }
    }
}

/// The value of a choice that is named by its value, its number or its title, in this order.
fn chosen<'a>(choices: &'a [Choice], words: &str) -> Result<&'a str, String> {
    let by_number = || choices.get(words.parse::<usize>().ok()?.checked_sub(1)?);
    let mut titled = choices.iter().filter(|choice| choice.title.eq_ignore_ascii_case(words));
    let by_title = || titled.next();
    let found = choices.iter().find(|choice| choice.value == words).or_else(by_number);
    let found = found.or_else(by_title).map(|choice| choice.value.as_str());
    let what = || format!("{:?} is none of the choices", sanitise::line(words, 60));
    found.ok_or_else(what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_core::raw::Raw;
    use toolcrib_engine::Form;

    use super::*;

    fn field(schema: Value, required: bool) -> Field {
        let required = if required { json!(["f"]) } else { json!([]) };
        let schema = json!({"type": "object", "properties": {"f": schema}, "required": required});
        Form::read(&Raw::of(&schema), &Limits::default()).unwrap().fields.remove(0)
    }

    #[test]
    fn a_line_is_read_as_the_field_takes_it() {
        let check = |schema: Value, required: bool, line: &str, expect: Typed| {
            let typed = typed(&field(schema.clone(), required), line, &Limits::default());
            assert_eq!(typed, expect, "{schema} {line}");
        };
        let value = Typed::Value;
        let misfit = |why: &str| Typed::Misfit(why.to_owned());
        let text = json!({"type": "string", "minLength": 2});
        check(text.clone(), true, "  Ada \n", value(json!("Ada")));
        check(text.clone(), true, "", misfit("it is required"));
        check(text, false, "", Typed::LeftOut);
        check(json!({"type": "string"}), true, "\"\"", value(json!("")));
        let number = json!({"type": "integer", "maximum": 9, "default": 3});
        check(number.clone(), true, "", value(json!(3)));
        check(number.clone(), false, "-", Typed::LeftOut);
        check(number.clone(), true, "seven", misfit("that is no number"));
        check(number, true, "12", misfit("is out of range: expected integer at most 9, got 12"));
        check(json!({"type": "boolean", "default": true}), true, "No", value(json!(false)));
        let titled = json!({"type": "string", "oneOf": [
            {"const": "2", "title": "Green"}, {"const": "red", "title": "Red"}]});
        check(titled.clone(), true, "2", value(json!("2")));
        check(titled.clone(), true, "1", value(json!("2")));
        check(titled.clone(), true, "RED", value(json!("red")));
        check(titled, true, "blue", misfit("\"blue\" is none of the choices"));
        let many = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}});
        check(many.clone(), true, "3, a", value(json!(["c", "a"])));
        check(many.clone(), true, "none", value(json!([])));
        check(many, true, "a,z", misfit("\"z\" is none of the choices"));
    }

    #[test]
    fn a_default_that_does_not_fit_is_not_taken() {
        let odd = field(json!({"type": "integer", "maximum": 9, "default": 30}), true);
        assert!(matches!(typed(&odd, "", &Limits::default()), Typed::Misfit(_)));
    }

    #[test]
    fn all_a_server_says_of_a_field_is_shown_and_steers_nothing() {
        let schema = json!({"type": "array", "title": "Colours\u{1b}[8m", "description": "which\nones",
            "maxItems": 2, "default": ["r"], "items": {"anyOf": [
                {"const": "r", "title": "Red"}, {"const": "g", "title": "g"}]}});
        let lines = introduction(&field(schema, false)).join("\n");
        let expect = "\
Colours\\u{1b}[8m (f): any of these, with commas, at most 2 of them, optional
  which ones
  1) Red (r)
  2) g
  an empty line takes [\"r\"], a - leaves it out";
        assert_eq!(lines, expect);
    }
}
