//! Results of calls, reads and prompts, for a person.

use std::io;

use serde_json::Value;
use toolcrib_core::{raw::Raw, sanitise};

use super::out::Out;

/// Most values a result may hold to be shown block by block; a larger one is shown as it came.
const SHOWN: usize = 1_000_000;

/// Writes a tool's result: its text, a line for each other block, and the structured content when
/// there is no text.
pub(crate) fn tool_result(out: &mut Out, result: &Raw) -> io::Result<()> {
    let Ok(value) = result.tree(SHOWN) else { return out.line(sanitise::block(result.get())) };
    let mut shown = false;
    for block in value["content"].as_array().into_iter().flatten() {
        out.line(content_block(block))?;
        shown = true;
    }
    if !shown {
        let rest = value.get("structuredContent").unwrap_or(&value);
        out.line(pretty(rest))?;
    }
    Ok(())
}

/// Writes the contents of a resource.
pub(crate) fn resource(out: &mut Out, result: &Raw) -> io::Result<()> {
    let Ok(value) = result.tree(SHOWN) else { return out.line(sanitise::block(result.get())) };
    let Some(contents) = value["contents"].as_array() else { return out.line(pretty(&value)) };
    for content in contents {
        out.line(resource_content(content))?;
    }
    Ok(())
}

/// Writes the messages of a prompt.
pub(crate) fn prompt(out: &mut Out, result: &Raw) -> io::Result<()> {
    let Ok(value) = result.tree(SHOWN) else { return out.line(sanitise::block(result.get())) };
    let Some(messages) = value["messages"].as_array() else { return out.line(pretty(&value)) };
    for message in messages {
        let role = sanitise::line(message["role"].as_str().unwrap_or("?"), 40);
        out.heading(&format!("{role}:"))?;
        match &message["content"] {
            Value::Array(blocks) => {
                for block in blocks {
                    out.line(content_block(block))?;
                }
            }
            block => out.line(content_block(block))?,
        }
    }
    Ok(())
}

fn content_block(block: &Value) -> String {
    let size = |data: &Value| data.as_str().map_or(0, |data| data.len() / 4 * 3);
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "text" => sanitise::block(block["text"].as_str().unwrap_or_default()),
        "image" | "audio" => {
            let media = sanitise::line(block["mimeType"].as_str().unwrap_or("?"), 80);
            format!("[{kind} {media}, about {} bytes]", size(&block["data"]))
        }
        "resource_link" => {
            let uri = sanitise::line(block["uri"].as_str().unwrap_or("?"), 300);
            format!("[resource {uri}]")
        }
        "resource" => resource_content(&block["resource"]),
        _ => pretty(block),
    }
}

fn resource_content(content: &Value) -> String {
    if let Some(text) = content["text"].as_str() {
        return sanitise::block(text);
    }
    let uri = sanitise::line(content["uri"].as_str().unwrap_or("?"), 300);
    let media = sanitise::line(content["mimeType"].as_str().unwrap_or("?"), 80);
    let bytes = content["blob"].as_str().map_or(0, |blob| blob.len() / 4 * 3);
    format!("[{uri}: {media}, about {bytes} bytes]")
}

fn pretty(value: &Value) -> String {
    sanitise::block(&serde_json::to_string_pretty(value).unwrap_or_default())
}
