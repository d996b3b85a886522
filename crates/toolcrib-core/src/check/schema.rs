//! The schemas of one tool: looked over when it is listed, compiled on first use, then judging its
//! arguments and results.

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::{
    arguments::{ArgumentErrors, describe},
    bounds,
    external::{NeverFetched, REFUSED, refuse},
    pattern::{Patterns, options},
    repair::{Role, repair},
};
use crate::{
    finding::{Finding, Tier},
    limits::Limits,
    raw::Raw,
    sanitise,
    surface::Tool,
};

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
    text: Raw,
    role: Role,
    /// Why it is not used at all.
    unusable: Option<String>,
    compiled: OnceLock<Compiled>,
    limits: Limits,
}

#[derive(Debug)]
struct Compiled {
    /// `None`: it does not compile even when mended; only the outermost shape is judged.
    validator: Option<Validator>,
    value_depth: usize,
}

/// Looks over the tools of a list; `known` gives the check of a tool that has not changed.
pub fn look_over<'a>(
    tools: impl Iterator<Item = &'a Tool>,
    limits: &Limits,
    mut known: impl FnMut(&Tool) -> Option<std::sync::Arc<ToolCheck>>,
) -> Vec<(&'a str, std::sync::Arc<ToolCheck>)> {
    let mut patterns = Patterns::for_listing();
    tools
        .map(|tool| {
            let check = known(tool)
                .unwrap_or_else(|| std::sync::Arc::new(ToolCheck::new(tool, limits, &mut patterns)));
            (tool.name.as_str(), check)
        })
        .collect()
}

impl ToolCheck {
    fn new(tool: &Tool, limits: &Limits, patterns: &mut Patterns) -> Self {
        let mut findings = Vec::new();
        let subject = format!("tool {}", sanitise::line(&tool.name, 128));
        let text = tool.input_schema.clone().unwrap_or_else(|| {
            let message = "it has no inputSchema; any object is taken";
            findings.push(
                Finding::new("schema/missing", Tier::Soft, subject.clone(), message)
                    .at("/inputSchema"),
            );
            Raw::of(&json!({"type": "object"}))
        });
        let mut schema = |text: Raw, role| Schema::new(text, role, &subject, limits, patterns, &mut findings);
        let input = schema(text, Role::Input);
        let output = tool.output_schema.clone().map(|text| schema(text, Role::Output));
        Self { raw: tool.raw.clone(), input, output, findings }
    }

    /// True when the tool is still defined as it was looked over.
    pub fn is_for(&self, tool: &Tool) -> bool {
        self.raw == tool.raw
    }

    /// What was odd about its schemas.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Holds arguments against the input schema; absent arguments count as `{}`.
    ///
    /// # Errors
    /// They do not fit, or the schema cannot be used to tell.
    pub fn arguments(&self, given: Option<&Raw>) -> Result<(), ArgumentErrors> {
        let value = match given {
            None => json!({}),
            Some(given) if given.depth() > self.input.limits.json_depth => {
                let depth = self.input.limits.json_depth;
                return Err(ArgumentErrors::one(format!("they nest deeper than {depth} levels")));
            }
            Some(given) => {
                given.read::<Value>().map_err(|error| ArgumentErrors::one(error.to_string()))?
            }
        };
        if !value.is_object() {
            return Err(ArgumentErrors::one(format!(
                "expected an object, got {}",
                sanitise::line(&value.to_string(), 60)
            )));
        }
        self.input.judge(&value)
    }

    /// Holds a result's structured content against the output schema. A result that reports an
    /// error is not judged.
    ///
    /// # Errors
    /// It does not fit, is missing, or the schema cannot be used to tell.
    pub fn result(&self, result: &Raw) -> Result<(), ArgumentErrors> {
        let Some(output) = &self.output else { return Ok(()) };
        if super::result::is_error(result) {
            return Ok(());
        }
        match super::result::structured(result) {
            None => Err(ArgumentErrors::one("structuredContent is missing".to_owned())),
            Some(content) if content.depth() > output.limits.json_depth => {
                Err(ArgumentErrors::one("structuredContent nests too deep".to_owned()))
            }
            Some(content) => {
                let content = content
                    .read::<Value>()
                    .map_err(|error| ArgumentErrors::one(error.to_string()))?;
                output.judge(&content)
            }
        }
    }
}

impl Schema {
    fn new(
        text: Raw,
        role: Role,
        subject: &str,
        limits: &Limits,
        patterns: &mut Patterns,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut unusable = None;
        if text.depth() > limits.json_depth {
            unusable = Some(format!("it nests deeper than {} levels", limits.json_depth));
        } else if let Ok(root) = text.read::<Value>() {
            let repaired = repair(&root, role, subject, text.get().len(), patterns);
            findings.extend(repaired.findings);
            unusable = match &repaired.document {
                None => Some("its references blow it up too far".to_owned()),
                Some(document) => bounds::measure(document, limits).err().map(|why| why.to_string()),
            };
        }
        if let Some(why) = &unusable {
            let message = format!("its {} is not used: {why}", role.member());
            let finding = Finding::new("schema/unusable", Tier::Hard, subject, message);
            findings.push(finding.at(format!("/{}", role.member())));
        }
        Self { text, role, unusable, compiled: OnceLock::new(), limits: limits.clone() }
    }

    fn judge(&self, value: &Value) -> Result<(), ArgumentErrors> {
        if let Some(why) = &self.unusable {
            let message = format!("its {} is not used: {why}", self.role.member());
            return Err(ArgumentErrors::one(message));
        }
        let compiled = self.compiled.get_or_init(|| self.compile());
        let Some(validator) = &compiled.validator else { return Ok(()) };
        let depth = crate::raw::depth(&value.to_string());
        if depth > compiled.value_depth {
            let most = compiled.value_depth;
            return Err(ArgumentErrors::one(format!("nests deeper than {most} levels")));
        }
        if validator.is_valid(value) {
            return Ok(());
        }
        Err(describe(validator.iter_errors(value)))
    }

    fn compile(&self) -> Compiled {
        let nothing = Compiled { validator: None, value_depth: 0 };
        let Ok(root) = self.text.read::<Value>() else { return nothing };
        let mut patterns = Patterns::for_compiling();
        let repaired = repair(&root, self.role, "", self.text.get().len(), &mut patterns);
        let Some(document) = repaired.document else { return nothing };
        let Ok(cost) = bounds::measure(&document, &self.limits) else { return nothing };
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_retriever(NeverFetched)
            .with_pattern_options(options())
            .with_keyword(REFUSED, refuse)
            .should_validate_formats(false)
            .build(&document)
            .ok();
        Compiled { validator, value_depth: cost.value_depth }
    }
}
