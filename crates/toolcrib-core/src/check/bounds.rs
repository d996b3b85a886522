//! What judging by a schema may cost, worked out before it is compiled.
//!
//! A reference that comes back to itself without having consumed any of the value judges nothing
//! and never ends; one that doubles at each step takes forever. Both are seen here in time linear
//! in the schema, and refused. Recursion through properties and items is what schemas are for: it
//! is let through, and where it multiplies, the depth of the values it may judge is bounded.

use std::collections::HashMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::keywords::{Dialect, Shape, shape};
use crate::limits::Limits;

/// Most schemas that may judge one place of a value on top of each other by nesting.
const IN_PLACE_DEPTH: usize = 64;
/// Deepest nesting of schemas with references followed, each place once.
const EXPANDED_DEPTH: usize = 256;
/// Most judgements one place of a value may take.
const JUDGEMENTS: u64 = 100_000;
/// Most nested judgements one value may take: a bound on the stack.
const NESTED_JUDGEMENTS: usize = 1_024;

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum BoundError {
    #[error("its subschemas number more than {0} once references are followed")]
    TooManySubschemas(usize),
    #[error("a reference in it leads back to itself without looking at any part of the value")]
    NoProgress,
    #[error("its schemas nest more than {0} deep once references are followed")]
    TooDeep(usize),
}

/// What a schema costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Subschemas with references followed, recursion counted once.
    pub(super) expanded: usize,
    /// Deepest value that may be judged.
    pub(super) value_depth: usize,
}

/// Measures a repaired document.
pub(super) fn measure(document: &Value, limits: &Limits) -> Result<Cost, BoundError> {
    let graph = Graph::read(document, limits.schema_refs)?;
    let in_place = graph.order(|node, next| {
        next.extend(graph.nodes[node].in_place.iter().copied());
    });
    if in_place.cyclic {
        return Err(BoundError::NoProgress);
    }
    let every = graph.order(|node, next| {
        next.extend(graph.nodes[node].in_place.iter().copied());
        next.extend(graph.nodes[node].parts.iter().map(|(_, part)| *part));
    });
    let (expanded, depth) = graph.size(&every);
    if expanded > limits.schema_refs {
        return Err(BoundError::TooManySubschemas(limits.schema_refs));
    }
    let stack = graph.in_place_depth(&in_place);
    if stack > IN_PLACE_DEPTH {
        return Err(BoundError::TooDeep(IN_PLACE_DEPTH));
    }
    if depth > EXPANDED_DEPTH {
        return Err(BoundError::TooDeep(EXPANDED_DEPTH));
    }
    let value_depth = if every.cyclic {
        graph.affordable_depth(&in_place, limits.json_depth).min(NESTED_JUDGEMENTS / stack.max(1))
    } else {
        limits.json_depth
    };
    Ok(Cost { expanded, value_depth })
}

/// Which part of a value a schema looks at next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part<'a> {
    Property(&'a str),
    AnyProperty,
    Item,
}

#[derive(Default)]
struct Node<'a> {
    /// Schemas that judge the same place.
    in_place: Vec<usize>,
    /// Schemas that judge a part of it.
    parts: Vec<(Part<'a>, usize)>,
}

struct Graph<'a> {
    nodes: Vec<Node<'a>>,
}

/// Nodes in an order where each comes after those it leads to, back edges apart.
struct Order {
    nodes: Vec<usize>,
    cyclic: bool,
}

impl<'a> Graph<'a> {
    fn read(document: &'a Value, most: usize) -> Result<Self, BoundError> {
        let mut reader = Reader {
            graph: Self { nodes: Vec::new() },
            named: HashMap::new(),
            references: Vec::new(),
            most,
        };
        reader.schema(document)?;
        if let Some(Value::Object(definitions)) = document.get("$defs") {
            for (name, schema) in definitions {
                let node = reader.schema(schema)?;
                reader.named.insert(format!("#/$defs/{name}"), node);
            }
        }
        for (node, reference) in &reader.references {
            // Node 0 is the root. Repair leaves no reference without a target.
            let target = reader.named.get(*reference).copied().unwrap_or(0);
            reader.graph.nodes[*node].in_place.push(target);
        }
        Ok(reader.graph)
    }

    /// Depth-first order from every node, without recursion: no schema can exhaust the stack here.
    fn order(&self, edges: impl Fn(usize, &mut Vec<usize>)) -> Order {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut state = vec![State::New; self.nodes.len()];
        let mut order = Order { nodes: Vec::with_capacity(self.nodes.len()), cyclic: false };
        for start in 0..self.nodes.len() {
            if state[start] != State::New {
                continue;
            }
            let mut next = Vec::new();
            edges(start, &mut next);
            state[start] = State::Open;
            let mut stack = vec![(start, next)];
            while let Some((node, next)) = stack.last_mut() {
                let Some(to) = next.pop() else {
                    state[*node] = State::Done;
                    order.nodes.push(*node);
                    stack.pop();
                    continue;
                };
                match state[to] {
                    State::Open => order.cyclic = true,
                    State::Done => {}
                    State::New => {
                        state[to] = State::Open;
                        let mut next = Vec::new();
                        edges(to, &mut next);
                        stack.push((to, next));
                    }
                }
            }
        }
        order
    }

    /// Subschemas and nesting from the root, references followed, each cycle entered once.
    fn size(&self, order: &Order) -> (usize, usize) {
        // Zero marks a node still open when its successor was counted: a way back.
        let mut count = vec![0_usize; self.nodes.len()];
        let mut depth = vec![0_usize; self.nodes.len()];
        for &node in &order.nodes {
            let Node { in_place, parts } = &self.nodes[node];
            let (mut total, mut deepest) = (1_usize, 0);
            for &to in in_place.iter().chain(parts.iter().map(|(_, to)| to)) {
                total = total.saturating_add(count[to].max(1));
                deepest = deepest.max(depth[to]);
            }
            count[node] = total;
            depth[node] = deepest + 1;
        }
        (count[0], depth[0])
    }

    fn in_place_depth(&self, order: &Order) -> usize {
        let mut depth = vec![0_usize; self.nodes.len()];
        for &node in &order.nodes {
            let below = self.nodes[node].in_place.iter().map(|&to| depth[to]).max();
            depth[node] = below.unwrap_or(0) + 1;
        }
        depth.into_iter().max().unwrap_or(0)
    }

    /// The deepest value (up to `most`) no place of which can take more than [`JUDGEMENTS`].
    ///
    /// `visits[n]` is the most judgements `n` can cause at one place `depth` levels below. One more
    /// level: everything that judges the same place passes its visits on, property by property.
    fn affordable_depth(&self, in_place: &Order, most: usize) -> usize {
        let mut visits: Vec<u64> = vec![0; self.nodes.len()];
        for &node in &in_place.nodes {
            let below: u64 =
                self.nodes[node].in_place.iter().map(|&to| visits[to]).fold(0, u64::saturating_add);
            visits[node] = below.saturating_add(1);
        }
        for depth in 0..most {
            let mut through: Vec<HashMap<Part<'a>, u64>> = vec![HashMap::new(); self.nodes.len()];
            let mut next = vec![0_u64; self.nodes.len()];
            for &node in &in_place.nodes {
                let mut sums: HashMap<Part<'a>, u64> = HashMap::new();
                for &to in &self.nodes[node].in_place {
                    for (part, sum) in &through[to] {
                        let slot = sums.entry(*part).or_default();
                        *slot = slot.saturating_add(*sum);
                    }
                }
                for (part, to) in &self.nodes[node].parts {
                    let slot = sums.entry(*part).or_default();
                    *slot = slot.saturating_add(visits[*to]);
                }
                let any = sums.get(&Part::AnyProperty).copied().unwrap_or(0);
                next[node] = sums
                    .iter()
                    .map(|(part, sum)| match part {
                        Part::Property(_) => sum.saturating_add(any),
                        Part::AnyProperty | Part::Item => *sum,
                    })
                    .max()
                    .unwrap_or(0);
                through[node] = sums;
            }
            if next[0] > JUDGEMENTS {
                return depth;
            }
            if next == visits {
                return most;
            }
            visits = next;
        }
        most
    }
}

struct Reader<'a> {
    graph: Graph<'a>,
    named: HashMap<String, usize>,
    references: Vec<(usize, &'a str)>,
    most: usize,
}

impl<'a> Reader<'a> {
    /// Reads one schema; the document's depth has been checked.
    fn schema(&mut self, value: &'a Value) -> Result<usize, BoundError> {
        let node = self.graph.nodes.len();
        if node >= self.most {
            return Err(BoundError::TooManySubschemas(self.most));
        }
        self.graph.nodes.push(Node::default());
        let Value::Object(schema) = value else { return Ok(node) };
        for (keyword, value) in schema {
            self.keyword(node, keyword, value)?;
        }
        if schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems") {
            // Finding out what was evaluated judges everything in place once more.
            let again = self.graph.nodes[node].in_place.clone();
            self.graph.nodes[node].in_place.extend(again);
            let again: Vec<_> =
                self.references.iter().filter(|(from, _)| *from == node).copied().collect();
            self.references.extend(again);
        }
        Ok(node)
    }

    fn keyword(
        &mut self,
        node: usize,
        keyword: &'a str,
        value: &'a Value,
    ) -> Result<(), BoundError> {
        if let ("$ref", Value::String(reference)) = (keyword, value) {
            self.references.push((node, reference));
            return Ok(());
        }
        match (shape(keyword, Dialect::Draft202012), value) {
            (Some(Shape::Schemas), Value::Array(list)) => {
                for value in list {
                    let to = self.schema(value)?;
                    match keyword {
                        "prefixItems" => self.graph.nodes[node].parts.push((Part::Item, to)),
                        _ => self.graph.nodes[node].in_place.push(to),
                    }
                }
            }
            (Some(Shape::Properties | Shape::Patterns), Value::Object(named)) => {
                self.named(node, keyword, named)?;
            }
            (Some(Shape::Schema | Shape::Items), value) => {
                let to = self.schema(value)?;
                let part = match keyword {
                    "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                        Some(Part::AnyProperty)
                    }
                    "items" | "contains" | "unevaluatedItems" => Some(Part::Item),
                    _ => None,
                };
                match part {
                    Some(part) => self.graph.nodes[node].parts.push((part, to)),
                    None => self.graph.nodes[node].in_place.push(to),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn named(
        &mut self,
        node: usize,
        keyword: &str,
        named: &'a Map<String, Value>,
    ) -> Result<(), BoundError> {
        for (name, value) in named {
            let to = self.schema(value)?;
            match keyword {
                "properties" => self.graph.nodes[node].parts.push((Part::Property(name), to)),
                "patternProperties" => self.graph.nodes[node].parts.push((Part::AnyProperty, to)),
                _ => self.graph.nodes[node].in_place.push(to),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cost(document: &Value) -> Result<Cost, BoundError> {
        measure(document, &Limits::default())
    }

    /// `$defs` 0..n where each refers to the next in the way `link` says.
    fn chain(length: usize, link: impl Fn(&Value) -> Value) -> Value {
        let definitions: Map<String, Value> = (0..length)
            .map(|n| {
                let next = json!({ "$ref": format!("#/$defs/{}", n + 1) });
                (n.to_string(), link(&next))
            })
            .chain([(length.to_string(), json!({}))])
            .collect();
        json!({ "$ref": "#/$defs/0", "$defs": definitions })
    }

    #[test]
    fn doubling_references_are_caught() {
        let bomb = chain(29, |next| json!({ "allOf": [next, next] }));
        assert_eq!(cost(&bomb), Err(BoundError::TooManySubschemas(10_000)));
        let wide = chain(29, |next| json!({ "properties": { "a": next, "b": next } }));
        assert_eq!(cost(&wide), Err(BoundError::TooManySubschemas(10_000)));
        // Each `unevaluatedProperties` judges what is below it twice.
        let again = chain(16, |next| json!({ "allOf": [next], "unevaluatedProperties": false }));
        assert_eq!(cost(&again), Err(BoundError::TooManySubschemas(10_000)));
    }

    #[test]
    fn long_chains_are_caught() {
        let check = |length, link: fn(&Value) -> Value, expect| {
            assert_eq!(cost(&chain(length, link)), Err(BoundError::TooDeep(expect)));
        };
        check(4_000, Value::clone, 64);
        check(4_000, |next| json!({ "properties": { "a": next } }), 256);
    }

    #[test]
    fn references_without_progress_are_caught() {
        let check = |document: Value| assert_eq!(cost(&document), Err(BoundError::NoProgress));
        check(json!({ "$ref": "#" }));
        check(json!({ "allOf": [{ "$ref": "#" }] }));
        check(json!({ "not": { "$ref": "#" } }));
        check(json!({
            "properties": { "x": { "$ref": "#/$defs/0" } },
            "$defs": { "0": { "anyOf": [{ "$ref": "#/$defs/1" }] }, "1": { "$ref": "#/$defs/0" } },
        }));
        check(
            json!({ "$ref": "#/$defs/0", "$defs": { "0": { "dependentSchemas": { "a": { "$ref": "#" } } } } }),
        );
    }

    #[test]
    fn recursion_with_progress_is_fine() {
        let check = |document: Value, depth: usize| {
            assert_eq!(cost(&document).unwrap().value_depth, depth, "{document}");
        };
        check(json!({ "properties": { "kids": { "items": { "$ref": "#" } } } }), 64);
        check(json!({ "additionalProperties": { "$ref": "#" } }), 64);
        // Branches that recurse through properties of their own do not multiply.
        check(
            json!({ "anyOf": [
                { "properties": { "a": { "$ref": "#" } } },
                { "properties": { "b": { "$ref": "#" } } },
            ] }),
            64,
        );
        // Branches that recurse through the same one do: deep values are refused, not judged.
        let doubling = json!({ "anyOf": [
            { "properties": { "a": { "$ref": "#" } } },
            { "properties": { "a": { "$ref": "#" } } },
        ] });
        assert_eq!(cost(&doubling).unwrap().value_depth, 14);
    }
}
