//! Tables and short lines about items.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use toolcrib_core::{
    finding::{Finding, Tier},
    limits::Limits,
    sanitise,
    surface::{Prompt, Tool},
};

/// A borderless table that fits the terminal, or is not cut at all off one.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // Some terminals do not know their width and say zero.
    if !table.is_tty() || table.width().is_none_or(|width| width == 0) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header.iter().map(|title| title.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // Cells are padded; lines should not end in blanks.
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The first sentence or line of a description.
pub(crate) fn first_line(description: Option<&str>) -> String {
    let text = description.unwrap_or_default().trim();
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    sanitise::line(&text[..end], 100)
}

/// A tool's arguments: `a, b, [c]`, optional ones in brackets.
pub(crate) fn arguments(tool: &Tool) -> String {
    let schema: Option<Value> =
        tool.input_schema.as_ref().and_then(|raw| raw.tree(Limits::default().schema_values).ok());
    let Some(schema) = schema else { return String::new() };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return String::new() };
    let (mut first, mut then) = (Vec::new(), Vec::new());
    for name in properties.keys() {
        let shown = sanitise::line(name, 40);
        if required.contains(&name.as_str()) {
            first.push(shown);
        } else {
            then.push(format!("[{shown}]"));
        }
    }
    first.extend(then);
    cut(first, 8)
}

/// A prompt's arguments, likewise.
pub(crate) fn prompt_arguments(prompt: &Prompt) -> String {
    let names = prompt.arguments.iter().map(|argument| {
        let name = sanitise::line(&argument.name, 40);
        if argument.required { name } else { format!("[{name}]") }
    });
    cut(names.collect(), 8)
}

fn cut(mut names: Vec<String>, most: usize) -> String {
    let rest = names.len().saturating_sub(most);
    names.truncate(most);
    if rest > 0 {
        names.push(format!("+{rest}"));
    }
    names.join(", ")
}

/// One line per finding.
pub(crate) fn finding(finding: &Finding) -> String {
    let tier = match finding.tier {
        Tier::Hard => "hard",
        Tier::Soft => "soft",
        Tier::Info => "info",
    };
    let mut place = sanitise::line(&finding.subject, 80);
    if !finding.path.is_empty() {
        place = format!("{place} at {}", sanitise::line(&finding.path, 80));
    }
    let message = sanitise::line(&finding.message, 400);
    if place.is_empty() {
        format!("{tier}  {}  {message}", finding.rule)
    } else {
        format!("{tier}  {}  {place}: {message}", finding.rule)
    }
}
