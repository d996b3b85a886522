//! Trees of files: walked, compared, copied and made from JSON. Offsets never count.

use serde_json::Value as Json;

use crate::config::node::{Member, Node, Value};

/// The members a path leads to, each with the keys that `*` stood for.
pub(crate) fn at<'a>(root: &'a Node, path: &[&str]) -> Vec<(Option<&'a str>, &'a [Member])> {
    let Some(members) = root.value.members() else { return Vec::new() };
    let Some((first, rest)) = path.split_first() else { return vec![(None, members)] };
    let below = members.iter().filter(|member| *first == "*" || member.key == *first);
    below
        .flat_map(|member| {
            let star = (*first == "*").then_some(member.key.as_str());
            at(&member.node, rest).into_iter().map(move |(key, members)| (key.or(star), members))
        })
        .collect()
}

/// The texts of a list.
pub(crate) fn texts(node: &Node) -> Vec<&str> {
    let Value::List(items) = &node.value else { return Vec::new() };
    items
        .iter()
        .filter_map(|item| match &item.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// A copy in which `change` has seen every text.
///
/// # Errors
/// The first that `change` comes to.
pub(crate) fn mapped<E>(
    node: &Node,
    change: &mut impl FnMut(&str) -> Result<String, E>,
) -> Result<Node, E> {
    let value = match &node.value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(*value),
        Value::Number(value) => Value::Number(*value),
        Value::Date => Value::Date,
        Value::Text(text) => Value::Text(change(text)?),
        Value::List(items) => {
            Value::List(items.iter().map(|item| mapped(item, change)).collect::<Result<_, _>>()?)
        }
        Value::Map(members) => {
            let member = |member: &Member| {
                let node = mapped(&member.node, change)?;
                Ok(Member { key: member.key.clone(), at: member.at, node })
            };
            Value::Map(members.iter().map(member).collect::<Result<_, E>>()?)
        }
    };
    Ok(Node { at: node.at, end: node.end, value })
}

/// The tree of a JSON value, standing nowhere.
pub(crate) fn of(json: &Json) -> Node {
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_u64()),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(of).collect()),
        Json::Object(members) => Value::Map(
            members
                .iter()
                .map(|(key, value)| Member { key: key.clone(), at: 0, node: of(value) })
                .collect(),
        ),
    };
    Node { at: 0, end: 0, value }
}

/// True when two trees say the same, in the same order.
pub(crate) fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) | (Value::Date, Value::Date) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => one == other,
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => same_members(one.iter(), other.iter()),
        _ => false,
    }
}

fn same_members<'a>(
    one: impl Iterator<Item = &'a Member>,
    mut other: impl Iterator<Item = &'a Member>,
) -> bool {
    let mut one = one;
    let paired = one.by_ref().all(|member| {
        other.next().is_some_and(|other| member.key == other.key && same(&member.node, &other.node))
    });
    paired && other.next().is_none()
}

/// True when `after` is `before` with `entry` at the end of the path and nothing else changed.
/// What the path goes through may have been missing or empty before.
pub(crate) fn differs_only(
    before: Option<&Node>,
    after: &Node,
    path: &[&str],
    entry: &Node,
) -> bool {
    let Some((key, rest)) = path.split_first() else { return same(after, entry) };
    let before = match before.map(|node| &node.value) {
        None | Some(Value::Null) => &[],
        Some(Value::Map(members)) => members.as_slice(),
        Some(_) => return false,
    };
    let Some(after) = after.value.members() else { return false };
    let not_it = |member: &&Member| member.key != *key;
    let same_others = same_members(before.iter().filter(not_it), after.iter().filter(not_it));
    let mut old = before.iter().filter(|member| member.key == *key);
    let mut new = after.iter().filter(|member| member.key == *key);
    match (new.next(), new.next(), old.next(), old.next()) {
        (Some(new), None, old, None) => {
            same_others && differs_only(old.map(|member| &member.node), &new.node, rest, entry)
        }
        _ => false,
    }
}
