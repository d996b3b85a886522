//! Lints over what one server shows: names that cannot be told apart or seen, definitions that
//! contradict each other, shapes that models stumble over.
//!
//! A lint reports; the few that make an item unusable say so in [`Linted::refused`].

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use serde::Deserialize;
use serde_json::value::RawValue;
use unicode_security::confusable_detection::skeleton;

use super::headers;
use crate::{
    finding::{Finding, Tier},
    limits::Limits,
    raw::Raw,
    sanitise,
    surface::{Item, ListKind, Listing, Surface, Tool},
};

/// What the lints found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linted {
    /// The observations.
    pub findings: Vec<Finding>,
    /// Items that are not to be used, by kind and key, with why.
    pub refused: BTreeMap<(ListKind, String), String>,
}

/// Most names one finding lists.
const LISTED: usize = 5;

/// Looks over a surface. `over_http` switches on the rules that bind clients on HTTP only.
pub fn lint(surface: &Surface, over_http: bool, limits: &Limits) -> Linted {
    let mut linted = Linted::default();
    linted.visible(&surface.tools);
    linted.visible(&surface.resources);
    linted.visible(&surface.templates);
    linted.visible(&surface.prompts);
    linted.distinct(&surface.tools, limits.schema_values);
    linted.distinct(&surface.prompts, limits.schema_values);
    linted.distinct(&surface.resources, limits.schema_values);
    let tools: Vec<&Tool> = surface.tools.items.iter().collect();
    linted.names(&tools);
    linted.descriptions(&tools);
    linted.shapes(&tools, limits);
    if over_http {
        linted.headers(&tools, limits);
    }
    linted
}

impl Linted {
    fn refuse(&mut self, rule: &'static str, kind: ListKind, key: &str, why: String) {
        let subject = format!("{} {}", kind.noun(), sanitise::line(key, 128));
        self.findings.push(Finding::new(rule, Tier::Hard, subject, why.clone()));
        self.refused.insert((kind, key.to_owned()), why);
    }

    /// Keys with characters that steer a terminal or hide text are refused.
    fn visible<T: Item>(&mut self, listing: &Listing<T>) {
        for item in listing.items.iter() {
            if item.key().chars().any(sanitise::is_hidden) {
                let why = "its name holds control or hidden characters".to_owned();
                self.refuse("names/hidden-characters", T::KIND, item.key(), why);
            }
        }
    }

    /// Two definitions under one key: neither can be meant. The same one twice is one.
    fn distinct<T: Item>(&mut self, listing: &Listing<T>, most: usize) {
        let mut first: HashMap<&str, &Raw> = HashMap::with_capacity(listing.items.len());
        let (mut twice, mut repeated) = (Vec::new(), Vec::new());
        for item in listing.items.iter() {
            match first.entry(item.key()) {
                Entry::Vacant(slot) => {
                    slot.insert(item.raw());
                }
                Entry::Occupied(_) if twice.last() == Some(&item.key()) => {}
                Entry::Occupied(slot) if says_the_same(slot.get(), item.raw(), most) => {
                    repeated.push(item.key());
                }
                Entry::Occupied(_) => twice.push(item.key()),
            }
        }
        twice.sort_unstable();
        twice.dedup();
        repeated.sort_unstable();
        repeated.dedup();
        repeated.retain(|key| twice.binary_search(key).is_err());
        if !repeated.is_empty() {
            let message = format!("listed more than once, kept once: {}", listed(&repeated));
            let subject = T::KIND.method();
            self.findings.push(Finding::new("names/repeated", Tier::Soft, subject, message));
        }
        for key in twice {
            let why = format!("the server lists two different {}s under this name", T::KIND.noun());
            self.refuse("names/duplicate", T::KIND, key, why);
        }
    }

    fn names(&mut self, tools: &[&Tool]) {
        let mut lower: HashMap<String, Vec<&str>> = HashMap::new();
        let mut skeletons: HashMap<String, Vec<&str>> = HashMap::new();
        for tool in tools {
            let name = tool.name.as_str();
            if !is_tool_name(name) {
                let subject = format!("tool {}", sanitise::line(name, 128));
                let message = "its name is not 1 to 128 of A-Z a-z 0-9 _ . -; it is served under a portable one";
                self.findings.push(Finding::new("names/charset", Tier::Soft, subject, message));
            }
            lower.entry(name.to_lowercase()).or_default().push(name);
            if !name.is_ascii() {
                skeletons.entry(skeleton(name).collect()).or_default().push(name);
            }
        }
        for tool in tools.iter().filter(|tool| tool.name.is_ascii()) {
            // ASCII names only matter beside a look-alike that is not.
            let own: String = skeleton(&tool.name).collect();
            if let Some(alike) = skeletons.get_mut(&own) {
                alike.push(&tool.name);
            }
        }
        self.groups("names/case-twins", Tier::Info, "differ in case only", lower.into_values());
        self.groups("names/look-alike", Tier::Soft, "look alike", skeletons.into_values());
    }

    fn groups<'a>(
        &mut self,
        rule: &'static str,
        tier: Tier,
        how: &str,
        groups: impl Iterator<Item = Vec<&'a str>>,
    ) {
        let mut groups: Vec<_> = groups
            .map(|mut group| {
                group.sort_unstable();
                group.dedup();
                group
            })
            .filter(|group| group.len() > 1)
            .collect();
        groups.sort_unstable();
        for group in groups {
            let message = format!("these names {how}: {}", listed(&group));
            self.findings.push(Finding::new(rule, tier, "tools/list", message));
        }
    }

    fn descriptions(&mut self, tools: &[&Tool]) {
        let mut same: HashMap<&str, Vec<&str>> = HashMap::new();
        for tool in tools {
            let Some(description) = tool.description.as_deref() else { continue };
            if description.chars().any(|c| sanitise::is_hidden(c) && !"\n\r\t".contains(c)) {
                let subject = format!("tool {}", sanitise::line(&tool.name, 128));
                let message = "its description holds control or hidden characters";
                let rule = "text/hidden-characters";
                self.findings.push(Finding::new(rule, Tier::Soft, subject, message));
            }
            if !description.trim().is_empty() {
                same.entry(description.trim()).or_default().push(&tool.name);
            }
        }
        let groups = same.into_values();
        self.groups("text/shared-description", Tier::Info, "share one description", groups);
    }

    fn shapes(&mut self, tools: &[&Tool], limits: &Limits) {
        let (mut optional, mut nested) = (Vec::new(), Vec::new());
        for tool in tools {
            match shape(tool, limits.schema_values) {
                Shape::AllOptional => optional.push(tool.name.as_str()),
                Shape::OneObject => nested.push(tool.name.as_str()),
                Shape::Other => {}
            }
        }
        let mut note = |rule, tools: &[&str], what: &str| {
            if !tools.is_empty() {
                let message = format!("{what}: {}", listed(tools));
                self.findings.push(Finding::new(rule, Tier::Info, "tools/list", message));
            }
        };
        note("schema/all-optional", &optional, "these tools take arguments and require none");
        note("schema/one-object", &nested, "these tools take everything inside one object");
    }

    fn headers(&mut self, tools: &[&Tool], limits: &Limits) {
        for tool in tools {
            let Some(schema) = &tool.input_schema else { continue };
            if let Err(why) = headers::mirrored(schema, limits) {
                self.refuse("schema/header-annotation", ListKind::Tools, &tool.name, why);
            }
        }
    }
}

/// True when two definitions differ in spelling at most: white space, the order of members.
fn says_the_same(one: &Raw, other: &Raw, most: usize) -> bool {
    let read = |raw: &Raw| raw.tree(most).ok();
    // Reading is worth it for texts of like length only; it also keeps the whole linear.
    let (short, long) =
        (one.get().len().min(other.get().len()), one.get().len().max(other.get().len()));
    one == other || (long / 2 <= short && read(one).is_some_and(|one| Some(one) == read(other)))
}

/// True for a tool name as the specification wants it (server/tools, tool names).
pub fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<_> = names.iter().take(LISTED).map(|name| sanitise::line(name, 60)).collect();
    let rest = names.len().saturating_sub(LISTED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

enum Shape {
    AllOptional,
    OneObject,
    Other,
}

/// Reads just the two members that matter, one level deep; nothing of a schema too large to use.
fn shape(tool: &Tool, most: usize) -> Shape {
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow, default)]
        properties: HashMap<String, &'a RawValue>,
        #[serde(borrow, default)]
        required: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Property<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<&'a RawValue>,
    }
    let Some(schema) = tool.input_schema.as_ref().filter(|schema| schema.is_object()) else {
        return Shape::Other;
    };
    if schema.holds_more(most) {
        return Shape::Other;
    }
    let Ok(root) = schema.view::<Root<'_>>() else { return Shape::Other };
    let one_object = root.properties.len() == 1
        && root.properties.values().all(|property| {
            serde_json::from_str::<Property<'_>>(property.get())
                .is_ok_and(|property| property.kind.is_some_and(|kind| kind.get() == "\"object\""))
        });
    if one_object {
        return Shape::OneObject;
    }
    let required =
        root.required.and_then(|raw| serde_json::from_str::<Vec<String>>(raw.get()).ok());
    if !root.properties.is_empty() && required.unwrap_or_default().is_empty() {
        Shape::AllOptional
    } else {
        Shape::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        raw::Raw,
        surface::{Capabilities, Negotiated},
        version::Era,
    };

    fn linted(tools: &[&str], over_http: bool) -> Linted {
        let mut surface = Surface::new(Negotiated {
            era: Era::Modern,
            version: String::new(),
            how: Vec::new(),
            server: None,
            capabilities: Capabilities::default(),
            instructions: None,
            findings: Vec::new(),
        });
        surface.tools.items = tools
            .iter()
            .map(|text| Tool::read(Raw::parse(*text).unwrap(), &mut Vec::new()).unwrap())
            .collect::<Vec<_>>()
            .into();
        lint(&surface, over_http, &Limits::default())
    }

    fn rules(tools: &[&str]) -> Vec<String> {
        linted(tools, false).findings.into_iter().map(|finding| finding.rule.into_owned()).collect()
    }

    #[test]
    fn each_lint_fires_on_its_own_fault_only() {
        let check = |tools: &[&str], expect: &[&str]| assert_eq!(rules(tools), expect, "{tools:?}");
        let plain = r#"{"name":"read","description":"Read","inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}"#;
        check(&[plain], &[]);
        check(&[plain, r#"{"name":"Read"}"#], &["names/case-twins"]);
        check(&[plain, "{\"name\":\"re\u{430}d\"}"], &["names/charset", "names/look-alike"]);
        check(&[r#"{"name":"a b"}"#], &["names/charset"]);
        check(&[plain, r#"{"name":"other","description":"Read"}"#], &["text/shared-description"]);
        check(&[plain, r#"{"name":"read","description":"Else"}"#], &["names/duplicate"]);
        check(&[r#"{"name":"a","b":1}"#, r#"{ "b":1,"name":"a" }"#], &["names/repeated"]);
        check(
            &[r#"{"name":"x","inputSchema":{"properties":{"a":{"type":"string"}}}}"#],
            &["schema/all-optional"],
        );
        check(
            &[
                r#"{"name":"x","inputSchema":{"properties":{"a":{"type":"object"}},"required":["a"]}}"#,
            ],
            &["schema/one-object"],
        );
        check(&["{\"name\":\"x\",\"description\":\"a\\u202eb\"}"], &["text/hidden-characters"]);
    }

    #[test]
    fn what_cannot_be_told_apart_or_seen_is_refused() {
        let escape = "{\"name\":\"a\\u001b[8mb\"}";
        let refused = linted(&[escape, r#"{"name":"ok"}"#], false).refused;
        let keys: Vec<_> = refused.keys().map(|(_, key)| key.as_str()).collect();
        assert_eq!(keys, ["a\u{1b}[8mb"]);
        let twice = [r#"{"name":"read","title":"A"}"#, r#"{"name":"read","title":"B"}"#];
        assert_eq!(linted(&twice, false).refused.len(), 1);
    }

    #[test]
    fn header_annotations_bind_http_only() {
        let bad = r#"{"name":"x","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}},"required":["a"]}}"#;
        assert!(linted(&[bad], false).refused.is_empty());
        assert_eq!(linted(&[bad], true).refused.len(), 1);
    }
}
