//! The schemas of one tool: looked over when it is listed, compiled on first use, then judging its
//! arguments and results.
//!
//! A schema beyond the bounds refuses every value; one that cannot be compiled even when mended
//! judges nothing but that arguments are an object. Nothing is ever fetched.

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::{
    arguments::ArgumentErrors,
    bounds::{self, Cost},
    describe,
    explain::explain,
    external::{NeverFetched, REFUSED, refuse},
    pattern::{Patterns, options},
    plain,
    repair::{Role, repair},
    result,
};
use crate::{
    finding::{Finding, Tier},
    limits::Limits,
    raw::Raw,
    sanitise,
    surface::{Hints, Tool},
};

/// Most judgements of single values (subschemas × values) whose faults are all collected.
const EXPLAINED: usize = 250_000;

/// A tool with its schemas. Compiled once, on first use; shared by all who call it.
#[derive(Debug)]
pub struct ToolCheck {
    raw: Raw,
    input: Schema,
    output: Option<Schema>,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct Schema {
    /// As sent; `None` takes any object.
    text: Option<Raw>,
    role: Role,
    /// Why it is not used at all.
    unusable: Option<String>,
    compiled: OnceLock<Option<Compiled>>,
    limits: Limits,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    /// What the validator was made from, for messages.
    document: Value,
    cost: Cost,
}

/// Looks over the tools of a list; `known` gives the check of a tool that has not changed.
pub fn look_over<'a>(
    tools: impl Iterator<Item = &'a Tool>,
    limits: &Limits,
    mut known: impl FnMut(&Tool) -> Option<Arc<ToolCheck>>,
) -> Vec<(&'a str, Arc<ToolCheck>)> {
    let mut patterns = Patterns::for_listing();
    tools
        .map(|tool| {
            let check = known(tool)
                .unwrap_or_else(|| Arc::new(ToolCheck::new(tool, limits, &mut patterns)));
            (tool.name.as_str(), check)
        })
        .collect()
}

/// Holds an object against a schema that belongs to no tool. Both are bounded first; a schema that
/// cannot be used fits nothing.
///
/// # Errors
/// It does not fit.
pub fn fits(schema: &Raw, value: &Raw, limits: &Limits) -> Result<(), ArgumentErrors> {
    let (mut patterns, mut findings) = (Patterns::for_listing(), Vec::new());
    let text = Some(schema.clone());
    Schema::look_over(text, Role::Input, "", limits, &mut patterns, &mut findings).judge(value)
}

impl ToolCheck {
    fn new(tool: &Tool, limits: &Limits, patterns: &mut Patterns) -> Self {
        let mut findings = Vec::new();
        let subject = format!("tool {}", sanitise::line(&tool.name, 128));
        let mut schema = |text: &Option<Raw>, role| {
            Schema::look_over(text.clone(), role, &subject, limits, patterns, &mut findings)
        };
        let input = schema(&tool.input_schema, Role::Input);
        let output = tool.output_schema.as_ref().map(|_| schema(&tool.output_schema, Role::Output));
        Self { raw: tool.raw.clone(), input, output, findings }
    }

    /// The check of schemas that belong to no listed tool: those a server publishes itself, or of
    /// a form it shows.
    pub fn of_schemas(name: &str, input: Raw, output: Option<Raw>, limits: &Limits) -> Self {
        let tool = Tool {
            raw: input.clone(),
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: Some(input),
            output_schema: output,
            hints: Hints::default(),
        };
        Self::new(&tool, limits, &mut Patterns::for_listing())
    }

    /// True when the tool is still defined as it was looked over.
    pub fn is_for(&self, tool: &Tool) -> bool {
        self.raw == tool.raw
    }

    /// What was odd about its schemas.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// True when everything that is within the bounds also compiled.
    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        [Some(&self.input), self.output.as_ref()].into_iter().flatten().all(|schema| {
            schema.unusable.is_some() || schema.compiled.get_or_init(|| schema.compile()).is_some()
        })
    }

    /// Holds arguments against the input schema; absent arguments count as `{}`.
    ///
    /// # Errors
    /// They do not fit, or the schema cannot be used to tell.
    pub fn arguments(&self, given: Option<&Raw>) -> Result<(), ArgumentErrors> {
        let Some(given) = given else { return self.input.judge(&Raw::empty_object()) };
        if !given.is_object() {
            let hint = match given.get().bytes().next() {
                Some(b'"') => "send the JSON object itself, not a string that holds it",
                Some(b'n') => "leave `arguments` out, or send {}",
                _ => "",
            };
            let got = sanitise::line(given.get(), 60);
            return Err(ArgumentErrors::whole("is no object", "an object", got, hint));
        }
        self.input.judge(given)
    }

    /// Holds a result's structured content against the output schema. A result that reports an
    /// error is not judged, nor is one of a tool without an output schema.
    ///
    /// # Errors
    /// It does not fit, is missing, or the schema cannot be used to tell.
    pub fn result(&self, result: &Raw) -> Result<(), ArgumentErrors> {
        if self.output.is_none() || result::is_error(result) {
            return Ok(());
        }
        self.content(result::structured(result).as_ref())
    }

    /// Holds the structured content of a result that reports no error against the output schema.
    ///
    /// # Errors
    /// As [`ToolCheck::result`].
    pub fn content(&self, content: Option<&Raw>) -> Result<(), ArgumentErrors> {
        let Some(output) = &self.output else { return Ok(()) };
        match content {
            None => {
                let problem = "lacks structuredContent, which the tool's outputSchema promises";
                Err(ArgumentErrors::whole(problem, "", "", ""))
            }
            Some(content) => output.judge(content),
        }
    }
}

impl Schema {
    /// Everything that can be said of a schema without compiling it.
    fn look_over(
        text: Option<Raw>,
        role: Role,
        subject: &str,
        limits: &Limits,
        patterns: &mut Patterns,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut schema =
            Self { text, role, unusable: None, compiled: OnceLock::new(), limits: limits.clone() };
        let odd = |tier, rule, message: String| {
            Finding::new(rule, tier, subject, message).at(format!("/{}", role.member()))
        };
        let shape = schema.text.as_ref().map(|text| text.get().as_bytes()[0]);
        let is_read = matches!(shape, Some(b'{')) || role == Role::Output;
        if !is_read {
            // Arguments are an object in any case, so nothing but an object can say more.
            let what = if shape.is_none() { "is missing" } else { "is no object" };
            let message = format!("its {} {what}; any object is taken", role.member());
            findings.push(odd(Tier::Soft, "schema/repaired", message));
            schema.text = None;
            return schema;
        }
        let is_plain = |text: &Raw| plain::is_plain(text, role == Role::Input);
        if schema.text.as_ref().is_some_and(is_plain) {
            return schema;
        }
        if let Err(why) = schema.read(subject, patterns, findings) {
            let consequence = match role {
                Role::Input => "calls are refused",
                Role::Output => "no result fits",
            };
            let message = format!("its {} is not used and {consequence}: {why}", role.member());
            findings.push(odd(Tier::Hard, "schema/unusable", message));
            schema.unusable = Some(why);
        }
        schema
    }

    /// Reads, mends and measures the schema, or says why it is not used.
    fn read(
        &self,
        subject: &str,
        patterns: &mut Patterns,
        findings: &mut Vec<Finding>,
    ) -> Result<(Value, Cost), String> {
        let Some(text) = &self.text else {
            let cost = Cost { expanded: 1, value_depth: self.limits.json_depth };
            return Ok((json!({}), cost));
        };
        // First of all, so that nothing that recurses ever sees a deeper value.
        if text.depth() > self.limits.json_depth {
            return Err(format!("it nests more than {} levels deep", self.limits.json_depth));
        }
        let root = text.tree(self.limits.schema_values).map_err(|error| error.to_string())?;
        let repaired = repair(&root, self.role, subject, text.get().len(), patterns);
        findings.extend(repaired.findings);
        let document = repaired
            .document
            .ok_or_else(|| "its references repeat large parts of it too often".to_owned())?;
        let cost = bounds::measure(&document, &self.limits).map_err(|why| why.to_string())?;
        Ok((document, cost))
    }

    fn compile(&self) -> Option<Compiled> {
        let mut patterns = Patterns::for_compiling();
        // What was mended has been told when the tool was looked over.
        let (document, cost) = self.read("", &mut patterns, &mut Vec::new()).ok()?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_retriever(NeverFetched)
            .with_pattern_options(options())
            .with_keyword(REFUSED, refuse)
            .should_validate_formats(false)
            .build(&document)
            .ok()?;
        Some(Compiled { validator, document, cost })
    }

    fn judge(&self, given: &Raw) -> Result<(), ArgumentErrors> {
        if let Some(why) = &self.unusable {
            let problem =
                format!("cannot be judged: the tool's {} is not used: {why}", self.role.member());
            return Err(ArgumentErrors::whole(problem, "", "", ""));
        }
        let compiled = self.compiled.get_or_init(|| self.compile()).as_ref();
        let most = compiled.map_or(self.limits.json_depth, |compiled| compiled.cost.value_depth);
        if nests_deeper(given, most) {
            let expected = format!("at most {most} levels");
            return Err(ArgumentErrors::whole("nests too deep", expected, "", ""));
        }
        let value = given.tree(self.limits.judged_values).map_err(|error| {
            let problem = format!("cannot be judged: {}", sanitise::line(&error.to_string(), 120));
            ArgumentErrors::whole(problem, "", "", "")
        })?;
        if members(&value) < given.members_written() {
            // Whoever reads the text next may keep another one than we judged.
            let expected = "each member once";
            return Err(ArgumentErrors::whole("gives a member twice", expected, "", ""));
        }
        match compiled {
            Some(compiled) => compiled.judge(&value),
            None => Ok(()),
        }
    }
}

impl Compiled {
    fn judge(&self, value: &Value) -> Result<(), ArgumentErrors> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if parts(value).saturating_mul(self.cost.expanded) > EXPLAINED {
            let expected = describe::schema(&self.document, &self.document);
            let problem = "does not fit, and is too large to say where";
            return Err(ArgumentErrors::whole(problem, expected, "", ""));
        }
        Err(explain(self.validator.iter_errors(value), &self.document))
    }
}

/// True when a value nests more than `most` deep. Few values hold as many brackets as may nest, and
/// counting them is much faster than following them.
fn nests_deeper(value: &Raw, most: usize) -> bool {
    let opening = value.get().bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    opening > most && value.depth() > most
}

/// How many members the objects in a value have.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(members).sum(),
        Value::Object(all) => all.len() + all.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

/// How many values a value holds, itself included.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(parts).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}
