//! Turns a schema as it was sent into one that compiles, on a copy.
//!
//! Every dialect becomes 2020-12; only keywords that judge values are kept; each local reference
//! becomes `#` or `#/$defs/N`, and only what is referred to is carried along. Whatever had to be
//! mended is a finding with the place it was mended at. The schema as sent is never changed, and
//! nothing outside it is looked at.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Number, Value, json};

use super::{
    external::{REFUSED, harden},
    keywords::{Dialect, Shape, is_annotation, push_token, shape},
    pattern::Patterns,
    refs::{References, Target},
};
use crate::{
    finding::{Finding, Tier},
    sanitise,
};

/// Most findings about one schema; further ones are counted.
const FINDINGS: usize = 20;
/// Most ignored keywords named.
const UNKNOWN_KEYWORDS: usize = 8;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// What a schema judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Arguments: always an object.
    Input,
    /// A structured result: any value.
    Output,
}

impl Role {
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::Input => "inputSchema",
            Self::Output => "outputSchema",
        }
    }
}

/// A schema made ready to compile.
pub(super) struct Repaired {
    /// 2020-12, references as `#` or `#/$defs/N`; `None` when references blow it up too far.
    pub(super) document: Option<Value>,
    pub(super) findings: Vec<Finding>,
}

/// Repairs a schema whose depth has been checked. `text_bytes` is its length as sent.
pub(super) fn repair(
    root: &Value,
    role: Role,
    subject: &str,
    text_bytes: usize,
    patterns: &mut Patterns,
) -> Repaired {
    let mut walk = Walk {
        root,
        dialect: Dialect::Draft202012,
        references: None,
        numbers: HashMap::new(),
        pending: VecDeque::new(),
        path: format!("/{}", role.member()),
        prefix: role.member().len() + 1,
        subject,
        findings: Vec::new(),
        unsaid: 0,
        unknown: BTreeSet::new(),
        patterns,
        // Each reference target is written once more than it stands in the document.
        budget: 4 * text_bytes + 10_000,
        has_external: false,
    };
    walk.read_dialect();
    let mut document = walk.schema(root);
    if role == Role::Input {
        walk.admit_objects(&mut document);
    }
    walk.carry_targets(&mut document);
    if walk.has_external {
        harden(&mut document);
    }
    walk.sum_up();
    let fits = walk.budget > 0;
    Repaired { document: fits.then_some(document), findings: walk.findings }
}

struct Walk<'a, 'p> {
    root: &'a Value,
    dialect: Dialect,
    /// Read when the first reference is met.
    references: Option<References<'a>>,
    /// The number of each reference target, by its pointer.
    numbers: HashMap<String, usize>,
    /// Targets still to be written.
    pending: VecDeque<String>,
    /// JSON Pointer of the current place inside the tool.
    path: String,
    /// How much of `path` stands before the schema.
    prefix: usize,
    subject: &'p str,
    findings: Vec<Finding>,
    unsaid: usize,
    unknown: BTreeSet<&'a str>,
    patterns: &'p mut Patterns,
    /// How much more may be written; zero when it ran out.
    budget: usize,
    has_external: bool,
}

impl<'a> Walk<'a, '_> {
    fn note(&mut self, rule: &'static str, tier: Tier, message: String) {
        if self.findings.len() < FINDINGS
            || tier == Tier::Hard && self.findings.len() < 2 * FINDINGS
        {
            let finding = Finding::new(rule, tier, self.subject, message).at(self.path.clone());
            self.findings.push(finding);
        } else {
            self.unsaid += 1;
        }
    }

    fn mended(&mut self, message: impl Into<String>) {
        self.note("schema/repaired", Tier::Soft, message.into());
    }

    fn at<T>(&mut self, token: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        push_token(&mut self.path, token);
        let outcome = act(self);
        self.path.truncate(length);
        outcome
    }

    fn spend(&mut self, amount: usize) {
        self.budget = self.budget.saturating_sub(amount);
    }

    fn read_dialect(&mut self) {
        let Some(declared) = self.root.get("$schema") else { return };
        match declared.as_str().map(|uri| (uri, Dialect::named(uri))) {
            Some((_, Some(dialect))) => self.dialect = dialect,
            Some((uri, None)) => {
                let uri = sanitise::line(uri, 80);
                let message = format!("the dialect `{uri}` is unknown; read as 2020-12");
                self.at("$schema", |walk| walk.note("schema/dialect", Tier::Soft, message));
            }
            None => {
                let message = "`$schema` is no string; read as 2020-12";
                self.at("$schema", |walk| walk.mended(message));
            }
        }
    }

    /// Arguments are always an object, so a root type that excludes objects judges nothing.
    fn admit_objects(&mut self, document: &mut Value) {
        let Value::Object(schema) = document else {
            if *document == Value::Bool(false) {
                self.mended("`false` would refuse every call; any object is taken");
                *document = json!({});
            }
            return;
        };
        let admits = match schema.get("type") {
            None => true,
            Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
            Some(name) => name == "object",
        };
        if !admits {
            schema.remove("type");
            self.at("type", |walk| {
                walk.mended("arguments are always an object; this type was dropped");
            });
        }
    }

    /// Writes every reference target, and what those refer to in turn.
    fn carry_targets(&mut self, document: &mut Value) {
        let mut carried = Map::new();
        while let Some(pointer) = self.pending.pop_front() {
            if self.budget == 0 {
                return;
            }
            let Some(target) = self.root.pointer(&pointer) else { continue };
            let number = self.numbers[&pointer];
            self.path.truncate(self.prefix);
            self.path.push_str(&pointer);
            let schema = self.schema(target);
            carried.insert(number.to_string(), schema);
        }
        self.path.truncate(self.prefix);
        if let (Value::Object(schema), false) = (document, carried.is_empty()) {
            schema.insert("$defs".to_owned(), Value::Object(carried));
        }
    }

    fn sum_up(&mut self) {
        if !self.unknown.is_empty() {
            let named: Vec<String> = self
                .unknown
                .iter()
                .take(UNKNOWN_KEYWORDS)
                .map(|name| format!("`{}`", sanitise::line(name, 40)))
                .collect();
            let more = self.unknown.len().saturating_sub(UNKNOWN_KEYWORDS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!("keywords without effect: {}{more}", named.join(", "));
            let finding = Finding::new("schema/unknown-keyword", Tier::Info, self.subject, message);
            self.findings.push(finding.at(self.path.clone()));
        }
        if self.unsaid > 0 {
            let message = format!("{} more places of this schema were mended", self.unsaid);
            let finding = Finding::new("schema/repaired", Tier::Soft, self.subject, message);
            self.findings.push(finding.at(self.path.clone()));
        }
    }

    fn schema(&mut self, value: &'a Value) -> Value {
        self.spend(1);
        if self.budget == 0 {
            return Value::Bool(true);
        }
        match value {
            Value::Bool(_) => value.clone(),
            Value::Object(schema) => self.object(schema),
            Value::Array(list) if list.is_empty() => {
                self.mended("an empty list was read as an empty schema");
                json!({})
            }
            _ => {
                self.mended("this is no schema; any value is taken");
                json!({})
            }
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>) -> Value {
        let mut out = Map::new();
        if self.dialect.ref_stands_alone()
            && let Some(Value::String(reference)) = schema.get("$ref")
        {
            self.reference("$ref", reference, &mut out);
            return Value::Object(out);
        }
        for (keyword, value) in schema {
            match shape(keyword, self.dialect) {
                None if is_annotation(keyword) => {}
                None => {
                    self.unknown.insert(keyword);
                }
                Some(shape) if value.is_null() && shape != Shape::Constant => {
                    self.at(keyword, |walk| walk.mended(format!("`{keyword}: null` was dropped")));
                }
                Some(Shape::Reference) => match value {
                    Value::String(reference) => self.reference(keyword, reference, &mut out),
                    _ => self.at(keyword, |walk| walk.wrong(keyword, "a string")),
                },
                Some(shape) => self.at(keyword, |walk| {
                    walk.keyword(shape, keyword, value, schema, &mut out);
                }),
            }
        }
        Value::Object(out)
    }

    fn wrong(&mut self, keyword: &str, expected: &str) {
        self.mended(format!("`{keyword}` must be {expected}; it was dropped"));
    }

    fn keyword(
        &mut self,
        shape: Shape,
        keyword: &str,
        value: &'a Value,
        schema: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
        let written = match shape {
            Shape::Types => self.types(value),
            Shape::Values | Shape::Constant => self.values(shape, value),
            Shape::Number | Shape::Divisor | Shape::Exclusive | Shape::Count => {
                self.number(shape, keyword, value, schema)
            }
            Shape::Flag => match value {
                Value::Bool(_) => Some(value.clone()),
                _ => {
                    self.wrong(keyword, "true or false");
                    None
                }
            },
            Shape::Pattern => self.pattern(value),
            Shape::Names => self.names(keyword, value),
            Shape::Schema => match value {
                Value::Object(_) | Value::Bool(_) => Some(self.schema(value)),
                Value::Array(list) if list.is_empty() => Some(self.schema(value)),
                _ => {
                    self.wrong(keyword, "a schema");
                    None
                }
            },
            Shape::Schemas => return self.schemas(keyword, value, out),
            Shape::Properties => self.properties(keyword, value),
            Shape::Patterns => return self.pattern_properties(value, schema, out),
            Shape::Items => return self.items(value, out),
            Shape::Rest => {
                let follows_list = schema.get("items").is_some_and(Value::is_array);
                if follows_list {
                    let rest = self.schema(value);
                    out.insert("items".to_owned(), rest);
                }
                return;
            }
            Shape::Dependencies => return self.dependencies(value, out),
            Shape::DependentNames => self.dependent_names(value),
            Shape::Reference => None,
        };
        // A dropped pattern may have taken `additionalProperties` with it already.
        if let Some(written) = written
            && !(keyword == "additionalProperties" && loses_patterns(schema, self.patterns))
        {
            out.insert(keyword.to_owned(), written);
        }
    }

    fn types(&mut self, value: &Value) -> Option<Value> {
        let one = |walk: &mut Self, value: &Value| -> Option<Value> {
            let name = match value {
                Value::String(name) => name.as_str(),
                Value::Null => "null",
                _ => return None,
            };
            if TYPES.contains(&name) {
                return Some(json!(name));
            }
            let lower = name.to_ascii_lowercase();
            TYPES.contains(&lower.as_str()).then(|| {
                walk.mended(format!(
                    "the type `{}` was read as `{lower}`",
                    sanitise::line(name, 40)
                ));
                json!(lower)
            })
        };
        let read = match value {
            Value::Array(list) if !list.is_empty() => {
                let mut names: Vec<Value> = Vec::new();
                for value in list {
                    let name = one(self, value);
                    match name {
                        Some(name) if names.contains(&name) => {}
                        Some(name) => names.push(name),
                        None => return self.unknown_type(value),
                    }
                }
                Some(Value::Array(names))
            }
            value => one(self, value),
        };
        read.or_else(|| self.unknown_type(value))
    }

    fn unknown_type(&mut self, value: &Value) -> Option<Value> {
        let shown = value.as_str().map_or_else(
            || "`type` names no type".to_owned(),
            |name| format!("there is no type `{}`", sanitise::line(name, 40)),
        );
        self.mended(format!("{shown}; any type is taken"));
        None
    }

    fn values(&mut self, shape: Shape, value: &Value) -> Option<Value> {
        match value {
            Value::Array(list) if shape == Shape::Values && list.is_empty() => {
                self.mended("`enum` without a value allows nothing; it was dropped");
                return None;
            }
            Value::Array(_) => {}
            _ if shape == Shape::Values => {
                self.wrong("enum", "a list");
                return None;
            }
            _ => {}
        }
        self.spend(weight(value));
        (self.budget > 0).then(|| value.clone())
    }

    fn number(
        &mut self,
        shape: Shape,
        keyword: &str,
        value: &Value,
        schema: &Map<String, Value>,
    ) -> Option<Value> {
        match (shape, value) {
            (Shape::Number, Value::Number(_)) => {
                let sharper =
                    if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                let replaced = schema.get(sharper) == Some(&Value::Bool(true));
                return (!replaced).then(|| value.clone());
            }
            (Shape::Exclusive, Value::Number(_)) => return Some(value.clone()),
            (Shape::Exclusive, Value::Bool(sharp)) => {
                if self.dialect != Dialect::Draft4 {
                    self.mended(format!("`{keyword}` was read as draft-04 wrote it"));
                }
                let plain = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
                let limit = schema.get(plain).filter(|limit| limit.is_number());
                return limit.filter(|_| *sharp).cloned();
            }
            (Shape::Divisor, Value::Number(number))
                if number.as_f64().is_some_and(|number| number > 0.0) =>
            {
                return Some(value.clone());
            }
            (Shape::Count, Value::Number(number)) => {
                if let Some(count) = whole(number) {
                    return Some(json!(count));
                }
            }
            _ => {}
        }
        let expected = match shape {
            Shape::Count => "a whole number, zero or more",
            Shape::Divisor => "a number above zero",
            _ => "a number",
        };
        self.wrong(keyword, expected);
        None
    }

    fn pattern(&mut self, value: &Value) -> Option<Value> {
        let Value::String(pattern) = value else {
            self.wrong("pattern", "a string");
            return None;
        };
        if self.patterns.compiles(pattern) {
            return Some(value.clone());
        }
        self.skipped_pattern(pattern);
        None
    }

    fn skipped_pattern(&mut self, pattern: &str) {
        let shown = sanitise::line(pattern, 60);
        let message = format!("the pattern `{shown}` cannot be used and is not checked");
        self.note("schema/pattern", Tier::Soft, message);
    }

    fn names(&mut self, keyword: &str, value: &Value) -> Option<Value> {
        match value {
            Value::Array(list) => {
                let mut names: Vec<&Value> = Vec::new();
                let mut seen = BTreeSet::new();
                for value in list {
                    if value.as_str().is_some_and(|name| seen.insert(name)) {
                        names.push(value);
                    }
                }
                if list.iter().any(|value| !value.is_string()) {
                    self.mended(format!("`{keyword}` holds more than names; the rest was dropped"));
                }
                self.spend(list.len());
                Some(json!(names))
            }
            Value::Bool(_) => {
                self.mended(format!(
                    "`{keyword}` on a property itself has no effect; the object above lists its names"
                ));
                None
            }
            _ => {
                self.wrong(keyword, "a list of names");
                None
            }
        }
    }

    fn schemas(&mut self, keyword: &str, value: &'a Value, out: &mut Map<String, Value>) {
        match value {
            Value::Array(list) if !list.is_empty() => {
                for (index, value) in list.iter().enumerate() {
                    let schema = self.at(&index.to_string(), |walk| walk.schema(value));
                    push_schema(out, keyword, schema);
                }
            }
            _ => self.wrong(keyword, "a list of schemas"),
        }
    }

    fn properties(&mut self, keyword: &str, value: &'a Value) -> Option<Value> {
        match value {
            Value::Object(named) => {
                let mut out = Map::new();
                for (name, value) in named {
                    let schema = self.at(name, |walk| walk.schema(value));
                    out.insert(name.clone(), schema);
                }
                Some(Value::Object(out))
            }
            Value::Array(list) if list.is_empty() => {
                self.mended(format!("`{keyword}: []` was read as {{}}"));
                Some(json!({}))
            }
            _ => {
                self.wrong(keyword, "an object");
                None
            }
        }
    }

    fn pattern_properties(
        &mut self,
        value: &'a Value,
        schema: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
        let Some(Value::Object(mut written)) = self.properties("patternProperties", value) else {
            return;
        };
        let unusable: Vec<String> =
            written.keys().filter(|name| !self.patterns.compiles(name)).cloned().collect();
        for pattern in unusable {
            written.remove(&pattern);
            self.at(&pattern, |walk| walk.skipped_pattern(&pattern));
        }
        if loses_patterns(schema, self.patterns) {
            // Names such a pattern would have allowed must not count as unexpected.
            out.remove("additionalProperties");
        }
        out.insert("patternProperties".to_owned(), Value::Object(written));
    }

    fn items(&mut self, value: &'a Value, out: &mut Map<String, Value>) {
        match value {
            Value::Object(_) | Value::Bool(_) => {
                let items = self.schema(value);
                out.insert("items".to_owned(), items);
            }
            Value::Array(list) if list.is_empty() => {
                self.mended("`items: []` was dropped");
            }
            Value::Array(list) => {
                if self.dialect == Dialect::Draft202012 {
                    self.mended("a list under `items` was read as `prefixItems`");
                }
                for (index, value) in list.iter().enumerate() {
                    let schema = self.at(&index.to_string(), |walk| walk.schema(value));
                    push_schema(out, "prefixItems", schema);
                }
            }
            _ => self.wrong("items", "a schema"),
        }
    }

    fn dependencies(&mut self, value: &'a Value, out: &mut Map<String, Value>) {
        let Value::Object(named) = value else {
            return self.wrong("dependencies", "an object");
        };
        for (name, value) in named {
            let (keyword, written) = self.at(name, |walk| match value {
                Value::Array(_) => ("dependentRequired", walk.names("dependencies", value)),
                _ => ("dependentSchemas", Some(walk.schema(value))),
            });
            let slot = out.entry(keyword).or_insert_with(|| json!({}));
            if let (Value::Object(slot), Some(written)) = (slot, written) {
                slot.insert(name.clone(), written);
            }
        }
    }

    fn dependent_names(&mut self, value: &Value) -> Option<Value> {
        let Value::Object(named) = value else {
            self.wrong("dependentRequired", "an object");
            return None;
        };
        let mut out = Map::new();
        for (name, value) in named {
            if let Some(names) = self.at(name, |walk| walk.names("dependentRequired", value)) {
                out.insert(name.clone(), names);
            }
        }
        Some(Value::Object(out))
    }

    fn reference(&mut self, keyword: &str, reference: &str, out: &mut Map<String, Value>) {
        let at = self.path[self.prefix..].to_owned();
        let (root, dialect) = (self.root, self.dialect);
        let references = self.references.get_or_insert_with(|| References::index(root, dialect));
        let target = match keyword {
            "$recursiveRef" => references.resolve_recursive(&at),
            _ => references.resolve(&at, reference),
        };
        match target {
            Target::Here(pointer) => {
                let written = json!(self.numbered(pointer));
                if out.contains_key("$ref") {
                    push_schema(out, "allOf", json!({ "$ref": written }));
                } else {
                    out.insert("$ref".to_owned(), written);
                }
            }
            Target::Dangling => {
                let shown = sanitise::line(reference, 80);
                let message =
                    format!("`{shown}` points at nothing in this schema; any value is taken here");
                self.at(keyword, |walk| walk.note("schema/dangling-ref", Tier::Soft, message));
            }
            Target::Outside => {
                let shown = sanitise::line(reference, 80);
                let message = format!(
                    "`{shown}` refers to an external document, which is never fetched; values \
                     that reach it are refused"
                );
                self.at(keyword, |walk| walk.note("schema/external-ref", Tier::Hard, message));
                out.insert(REFUSED.to_owned(), json!(shown));
                self.has_external = true;
            }
        }
    }

    /// The reference by which a target is known in the repaired document.
    fn numbered(&mut self, pointer: String) -> String {
        if pointer.is_empty() {
            return "#".to_owned();
        }
        let next = self.numbers.len();
        let number = *self.numbers.entry(pointer.clone()).or_insert_with(|| {
            self.pending.push_back(pointer);
            next
        });
        format!("#/$defs/{number}")
    }
}

/// Adds a schema to the list under `keyword`.
fn push_schema(out: &mut Map<String, Value>, keyword: &str, schema: Value) {
    let slot = out.entry(keyword).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = slot {
        list.push(schema);
    }
}

/// True when a pattern of `patternProperties` had to be dropped.
fn loses_patterns(schema: &Map<String, Value>, patterns: &mut Patterns) -> bool {
    schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .is_some_and(|named| named.keys().any(|pattern| !patterns.compiles(pattern)))
}

fn whole(number: &Number) -> Option<u64> {
    /// The largest whole number every f64 below it tells apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, not negative and below 2^53"
        )]
        (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64)
    })
}

/// How much writing a value costs: its parts, and its text.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(list) => 1 + list.iter().map(weight).sum::<usize>(),
        Value::Object(named) => {
            1 + named.iter().map(|(name, value)| 1 + name.len() + weight(value)).sum::<usize>()
        }
        _ => 1,
    }
}
