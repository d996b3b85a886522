//! The schema of an elicited form: a flat object of plain fields (specification,
//! client/elicitation; choices in all their shapes by SEP-1330, defaults by SEP-1034).
//!
//! A field of another shape makes the whole form unusable, since half a form cannot be answered.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    check::{arguments::ArgumentErrors, fits},
    limits::Limits,
    raw::Raw,
    sanitise,
};

/// Most fields of one form.
const FIELDS: usize = 64;
/// Most choices of one field.
const CHOICES: usize = 256;

/// A form that a person is asked to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The schema as sent.
    pub schema: Raw,
    /// Its fields, in the server's order.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The member of the answer.
    pub name: String,
    /// Its title; untrusted.
    pub title: Option<String>,
    /// Its description; untrusted.
    pub description: Option<String>,
    /// Must be given.
    pub required: bool,
    /// What it takes.
    pub kind: FieldKind,
    /// What the server proposes. Never taken without being shown.
    pub default: Option<Value>,
    /// Its schema.
    pub schema: Value,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// Text, perhaps of a `format` (`email`, `uri`, `date`, `date-time`).
    Text {
        /// The format, when the schema names one.
        format: Option<String>,
    },
    /// A number.
    Number {
        /// Without a fraction.
        whole: bool,
    },
    /// Yes or no.
    Flag,
    /// One of these.
    One(Vec<Choice>),
    /// Any number of these, within the bounds of the schema.
    Many(Vec<Choice>),
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is shown; the value where the server gives no title.
    pub title: String,
}

/// Why a schema is no form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormError {
    /// It is not the schema of an object with properties, or too large.
    #[error("the form cannot be read: {0}")]
    Unreadable(String),
    /// A field is none of the shapes a form may have.
    #[error("the form's field {field} has a shape that forms do not have")]
    Shape {
        /// The field, sanitised.
        field: String,
    },
}

impl Form {
    /// Reads a `requestedSchema`.
    ///
    /// # Errors
    /// It is none, or holds a field that is none.
    pub fn read(schema: &Raw, limits: &Limits) -> Result<Self, FormError> {
        let unreadable = |why: &str| FormError::Unreadable(why.to_owned());
        if schema.depth() > limits.json_depth {
            return Err(unreadable("it nests too deep"));
        }
        let tree = schema
            .tree(limits.schema_values)
            .map_err(|error| unreadable(&sanitise::line(&error.to_string(), 120)))?;
        let Some(properties) = tree["properties"].as_object() else {
            return Err(unreadable("it has no properties"));
        };
        if properties.len() > FIELDS {
            return Err(unreadable(&format!("it has more than {FIELDS} fields")));
        }
        let required: Vec<&str> = texts(&tree["required"]).unwrap_or_default();
        let fields = properties.iter().map(|(name, schema)| {
            let kind =
                kind(schema).ok_or_else(|| FormError::Shape { field: sanitise::line(name, 80) })?;
            let text = |key: &str| schema[key].as_str().map(str::to_owned);
            Ok(Field {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                required: required.contains(&name.as_str()),
                kind,
                default: schema.get("default").filter(|default| !default.is_null()).cloned(),
                schema: schema.clone(),
            })
        });
        Ok(Self { schema: schema.clone(), fields: fields.collect::<Result<_, FormError>>()? })
    }

    /// Holds a whole answer against the schema.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(
        &self,
        content: &Map<String, Value>,
        limits: &Limits,
    ) -> Result<(), ArgumentErrors> {
        fits(&self.schema, &Raw::of(content), limits)?;
        for field in &self.fields {
            if let Some(value) = content.get(&field.name) {
                field.check_format(value)?;
            }
        }
        Ok(())
    }
}

impl Field {
    /// Holds one value against this field's schema and format.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(&self, value: &Value, limits: &Limits) -> Result<(), ArgumentErrors> {
        let schema = json!({"type": "object", "properties": {&*self.name: self.schema}});
        fits(&Raw::of(&schema), &Raw::of(&json!({&*self.name: value})), limits)?;
        self.check_format(value)
    }

    fn check_format(&self, value: &Value) -> Result<(), ArgumentErrors> {
        let FieldKind::Text { format: Some(format) } = &self.kind else { return Ok(()) };
        let Some(text) = value.as_str() else { return Ok(()) };
        let (fits, example) = match format.as_str() {
            "email" => (is_email(text), "an e-mail address like name@example.com"),
            "uri" => {
                (iri_string::types::UriStr::new(text).is_ok(), "a URI like https://example.com")
            }
            "date" => (is_date(text), "a date like 2026-07-28"),
            "date-time" => (is_date_time(text), "a time like 2026-07-28T09:30:00Z"),
            // A format that we do not know judges nothing.
            _ => (true, ""),
        };
        if fits {
            return Ok(());
        }
        let got = sanitise::line(text, 60);
        let path = format!("/{}", sanitise::line(&self.name, 80));
        Err(ArgumentErrors::at(path, "has the wrong format", example, format!("{got:?}")))
    }
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// The kind of field a schema describes; `None` for none.
fn kind(schema: &Value) -> Option<FieldKind> {
    match schema["type"].as_str()? {
        "string" => match one_of(schema, "oneOf")? {
            Some(choices) => Some(FieldKind::One(choices)),
            None => Some(FieldKind::Text { format: schema["format"].as_str().map(str::to_owned) }),
        },
        "number" => Some(FieldKind::Number { whole: false }),
        "integer" => Some(FieldKind::Number { whole: true }),
        "boolean" => Some(FieldKind::Flag),
        "array" => one_of(schema.get("items")?, "anyOf")?.map(FieldKind::Many),
        _ => None,
    }
}

/// The choices a schema names: by `enum`, with `enumNames` beside it, or titled by `titled` or the
/// other of the two words. `Some(None)` when it names none, `None` when they are no choices.
#[expect(clippy::option_option, reason = "no choices and unusable ones are told apart")]
fn one_of(schema: &Value, titled: &str) -> Option<Option<Vec<Choice>>> {
    let other = if titled == "oneOf" { "anyOf" } else { "oneOf" };
    let choices = if let Some(list) = schema.get("enum") {
        let values = texts(list)?;
        let names = texts(&schema["enumNames"]).unwrap_or_default();
        let title = |at: usize, value: &str| names.get(at).map_or(value, |name| *name).to_owned();
        let titled = values.iter().enumerate();
        titled
            .map(|(at, value)| Choice { value: (*value).to_owned(), title: title(at, value) })
            .collect()
    } else if let Some(list) = schema.get(titled).or_else(|| schema.get(other)) {
        let choice = |choice: &Value| {
            let value = choice["const"].as_str()?.to_owned();
            let title = choice["title"].as_str().map_or_else(|| value.clone(), str::to_owned);
            Some(Choice { value, title })
        };
        list.as_array()?.iter().map(choice).collect::<Option<Vec<_>>>()?
    } else {
        return Some(None);
    };
    (1..=CHOICES).contains(&choices.len()).then_some(Some(choices))
}

fn is_email(text: &str) -> bool {
    let fine = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace());
    text.rsplit_once('@').is_some_and(|(name, host)| fine(name) && fine(host))
}

/// `2026-07-28`
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut number = |digits: usize| {
        let part = parts.next()?;
        let fine = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        fine.then(|| part.parse::<u32>().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(4), number(2), number(2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

/// RFC 3339: `2026-07-28T09:30:00Z`, with a fraction or an offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let two = |text: &str, most: u32| {
        text.len() == 2 && text.parse::<u32>().is_ok_and(|number| number <= most)
    };
    let zone_at = time.find(['Z', 'z', '+', '-']);
    let Some((time, zone)) = zone_at.map(|at| time.split_at(at)) else { return false };
    let (time, fraction) = time.split_once('.').map_or((time, None), |(t, f)| (t, Some(f)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let clock: Vec<&str> = time.split(':').collect();
    let offset = zone.get(1..).unwrap_or_default();
    let zone_fits = match offset.split_once(':') {
        None => matches!(zone, "Z" | "z"),
        Some((hours, minutes)) => two(hours, 23) && two(minutes, 59),
    };
    let [hours, minutes, seconds] = clock[..] else { return false };
    is_date(date)
        && two(hours, 23)
        && two(minutes, 59)
        && two(seconds, 60)
        && fraction.is_none_or(digits)
        && zone_fits
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, proptest};

    use super::*;

    fn form(properties: Value) -> Result<Form, FormError> {
        let schema = json!({"type": "object", "properties": properties, "required": ["f"]});
        Form::read(&Raw::of(&schema), &Limits::default())
    }

    #[test]
    fn every_shape_of_choice_is_read() {
        let check = |schema: Value, many: bool, titles: &[&str]| {
            let form = form(json!({"f": schema})).unwrap();
            let (choices, is_many) = match &form.fields[0].kind {
                FieldKind::One(choices) => (choices, false),
                FieldKind::Many(choices) => (choices, true),
                other => panic!("{other:?}"),
            };
            let shown: Vec<_> = choices.iter().map(|choice| choice.title.as_str()).collect();
            let sent: Vec<_> = choices.iter().map(|choice| choice.value.as_str()).collect();
            assert_eq!((is_many, &*shown, &*sent), (many, titles, &["a", "b"][..]));
        };
        let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
        check(json!({"type": "string", "enum": ["a", "b"]}), false, &["a", "b"]);
        let named = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]});
        check(named, false, &["A", "B"]);
        check(json!({"type": "string", "oneOf": titled}), false, &["A", "B"]);
        let many = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}});
        check(many, true, &["a", "b"]);
        check(json!({"type": "array", "items": {"anyOf": titled}}), true, &["A", "B"]);
    }

    #[test]
    fn a_shape_that_forms_do_not_have_is_named() {
        let check = |schema: Value| {
            let error = form(json!({"f\u{1b}": schema})).unwrap_err();
            assert_eq!(error, FormError::Shape { field: "f\\u{1b}".to_owned() });
        };
        check(json!({"type": "object", "properties": {}}));
        check(json!({"type": "array", "items": {"type": "number"}}));
        check(json!({"type": "string", "enum": []}));
        check(json!({"type": "string", "enum": [1]}));
        check(json!({"type": "string", "oneOf": [{"title": "no value"}]}));
        check(json!({}));
    }

    #[test]
    fn values_are_held_against_schema_and_format() {
        let check = |schema: Value, value: Value, expect: bool| {
            let form = form(json!({"f": schema})).unwrap();
            let field = form.fields[0].check(&value, &Limits::default());
            assert_eq!(field.is_ok(), expect, "{schema} {value}: {field:?}");
            let content = Map::from_iter([("f".to_owned(), value)]);
            assert_eq!(form.check(&content, &Limits::default()).is_ok(), expect);
        };
        let text = |format: &str| json!({"type": "string", "format": format});
        check(json!({"type": "string", "minLength": 2}), json!("a"), false);
        check(json!({"type": "integer", "maximum": 9}), json!(9), true);
        check(json!({"type": "integer", "maximum": 9}), json!(9.5), false);
        check(json!({"type": "boolean"}), json!("yes"), false);
        check(json!({"type": "string", "enum": ["a"]}), json!("b"), false);
        check(text("email"), json!("a@b.example"), true);
        check(text("email"), json!("a b@c"), false);
        check(text("uri"), json!("https://a.example/x"), true);
        check(text("uri"), json!("a b"), false);
        check(text("date"), json!("2028-02-29"), true);
        check(text("date"), json!("2026-02-29"), false);
        check(text("date-time"), json!("2026-07-28T09:30:00.5+02:00"), true);
        check(text("date-time"), json!("2026-07-28 09:30"), false);
        check(text("color"), json!("anything"), true);
        let many = json!({"type": "array", "maxItems": 1, "items": {"enum": ["a", "b"]}});
        check(many.clone(), json!(["b"]), true);
        check(many, json!(["a", "b"]), false);
    }

    #[test]
    fn a_missing_field_is_named() {
        let form = form(json!({"f": {"type": "string"}})).unwrap();
        let error = form.check(&Map::new(), &Limits::default()).unwrap_err();
        assert_eq!(error.errors[0].path, "/f");
        assert!(form.fields[0].required);
    }

    proptest! {
        /// Whatever a schema holds, reading it ends, and what is read keeps its bounds.
        #[test]
        fn any_schema_is_read_or_refused(text in r#"[{}\[\]":,a-z0-9 ]{0,60}"#) {
            let schema = format!(r#"{{"properties":{{"f":{{"type":"string","enum":[{text}]}}}}}}"#);
            if let Ok(schema) = Raw::parse(schema)
                && let Ok(form) = Form::read(&schema, &Limits::default())
            {
                prop_assert_eq!(form.fields.len(), 1);
            }
        }

        /// A date that is taken names a day that there is.
        #[test]
        fn dates_have_real_days(year in 1_u32..9999, month in 0_u32..14, day in 0_u32..33) {
            let taken = is_date(&format!("{year:04}-{month:02}-{day:02}"));
            prop_assert!(!taken || (1..=12).contains(&month) && (1..=31).contains(&day));
            prop_assert!(taken || !(1..=12).contains(&month) || !(1..=28).contains(&day));
        }
    }
}
