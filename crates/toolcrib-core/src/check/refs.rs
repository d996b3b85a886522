//! Where a reference inside a schema points. Only the document itself is looked at: a reference
//! that leads anywhere else is named as such and nothing is ever fetched.

use std::collections::HashMap;

use iri_string::types::{IriAbsoluteStr, IriReferenceStr};
use serde_json::Value;

use super::keywords::{Dialect, each_subschema, push_token};
use crate::template::percent_decoded;

/// The URI of a document that gives itself none.
const NAMELESS: &str = "json-schema:///";

/// What a reference points at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// This place of the document, as a JSON Pointer.
    Here(String),
    /// The document, but a place in it that does not exist.
    Dangling,
    /// Another document.
    Outside,
}

/// The identifiers of one schema document.
pub(super) struct References<'a> {
    root: &'a Value,
    dialect: Dialect,
    /// The URI of each resource, by the pointer of its root.
    resources: HashMap<String, String>,
    /// The pointer of each resource, by its URI.
    pointers: HashMap<String, String>,
    /// The pointer of each anchor, by the pointer of its resource and its name.
    anchors: HashMap<(String, String), String>,
}

impl<'a> References<'a> {
    /// Reads the identifiers of a document.
    pub(super) fn index(root: &'a Value, dialect: Dialect) -> Self {
        let mut index = Self {
            root,
            dialect,
            resources: HashMap::from([(String::new(), NAMELESS.to_owned())]),
            pointers: HashMap::from([(NAMELESS.to_owned(), String::new())]),
            anchors: HashMap::new(),
        };
        index.read(root, "", "");
        index
    }

    fn read(&mut self, value: &Value, at: &str, resource: &str) {
        let Value::Object(schema) = value else { return };
        let mut resource = resource.to_owned();
        let id = schema.get(self.dialect.id()).and_then(Value::as_str);
        // Where `$ref` stands alone, an identifier beside it does not count either.
        let id = id.filter(|_| !(self.dialect.ref_stands_alone() && schema.contains_key("$ref")));
        if let Some(id) = id {
            let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !uri.is_empty() {
                let base = self.resources.get(&resource).map_or(NAMELESS, String::as_str);
                let uri = absolute(base, uri).unwrap_or_else(|| uri.to_owned());
                at.clone_into(&mut resource);
                self.resources.insert(resource.clone(), uri.clone());
                self.pointers.entry(uri).or_insert_with(|| resource.clone());
            }
            if !fragment.is_empty() {
                self.anchor(&resource, fragment, at);
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                self.anchor(&resource, name, at);
            }
        }
        each_subschema(schema, |keyword, key, value| {
            let mut pointer = at.to_owned();
            push_token(&mut pointer, keyword);
            if let Some(key) = key {
                push_token(&mut pointer, &key);
            }
            self.read(value, &pointer, &resource);
        });
    }

    fn anchor(&mut self, resource: &str, name: &str, at: &str) {
        let key = (resource.to_owned(), name.to_owned());
        self.anchors.entry(key).or_insert_with(|| at.to_owned());
    }

    /// The pointer of the innermost resource that holds the place `at`.
    fn resource_of<'p>(&self, mut at: &'p str) -> &'p str {
        while !self.resources.contains_key(at) {
            at = at.rsplit_once('/').map_or("", |(before, _)| before);
        }
        at
    }

    /// Resolves a `$ref` or `$dynamicRef` that stands at `at`.
    pub(super) fn resolve(&self, at: &str, reference: &str) -> Target {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let home = self.resource_of(at);
        let resource = if uri.is_empty() {
            home
        } else {
            let base = self.resources.get(home).map_or(NAMELESS, String::as_str);
            match absolute(base, uri).and_then(|uri| self.pointers.get(&uri)) {
                Some(pointer) => pointer,
                None => return Target::Outside,
            }
        };
        let Some(fragment) = percent_decoded(fragment) else { return Target::Dangling };
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            format!("{resource}{fragment}")
        } else {
            match self.anchors.get(&(resource.to_owned(), fragment)) {
                Some(pointer) => pointer.clone(),
                None => return Target::Dangling,
            }
        };
        if self.root.pointer(&pointer).is_some() { Target::Here(pointer) } else { Target::Dangling }
    }

    /// Resolves a `$recursiveRef`: the root of its resource, or of the document where both say that
    /// they may be extended.
    pub(super) fn resolve_recursive(&self, at: &str) -> Target {
        let home = self.resource_of(at);
        let opens = |pointer: &str| {
            self.root.pointer(pointer).and_then(|schema| schema.get("$recursiveAnchor"))
                == Some(&Value::Bool(true))
        };
        let target = if opens(home) && opens("") { "" } else { home };
        Target::Here(target.to_owned())
    }
}

fn absolute(base: &str, uri: &str) -> Option<String> {
    let base = IriAbsoluteStr::new(base).ok()?;
    let reference = IriReferenceStr::new(uri).ok()?;
    Some(reference.resolve_against(base).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_resolve_inside_the_document_only() {
        let root = json!({
            "$id": "https://a.test/s/root.json",
            "$defs": {
                "n": { "$anchor": "num" },
                "a/b": {},
                "own": { "$id": "own.json", "$defs": { "x": {} }, "properties": { "p": {} } },
            },
        });
        let index = References::index(&root, Dialect::Draft202012);
        let here = |pointer: &str| Target::Here(pointer.to_owned());
        let check = |at: &str, reference: &str, expect: Target| {
            assert_eq!(index.resolve(at, reference), expect, "{reference} at {at}");
        };
        check("", "#", here(""));
        check("", "", here(""));
        check("/properties/x", "#/$defs/n", here("/$defs/n"));
        check("", "#num", here("/$defs/n"));
        check("", "#/$defs/a~1b", here("/$defs/a~1b"));
        check("", "#/%24defs/n", here("/$defs/n"));
        check("", "root.json#/$defs/n", here("/$defs/n"));
        check("", "https://a.test/s/own.json#/$defs/x", here("/$defs/own/$defs/x"));
        check("/$defs/own/properties/p", "#/$defs/x", here("/$defs/own/$defs/x"));
        check("/$defs/own/properties/p", "#/$defs/n", Target::Dangling);
        check("", "#/$defs/none", Target::Dangling);
        check("", "#none", Target::Dangling);
        for outside in [
            "http://169.254.169.254/x",
            "file:///etc/passwd",
            "//host/x",
            "other.json",
            "/etc/passwd",
            "https://a.test/s/",
            "not a uri",
            "urn:x",
        ] {
            check("", outside, Target::Outside);
        }
    }
}
