//! One entry put into TOML, with `toml_edit`: comments and order stay.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// The text with the entry; whether it is right is for the caller to see.
pub(super) fn put(text: &str, path: &[&str], value: &Json) -> Result<String, String> {
    // The editor writes its own line ends, so a file has to have one kind of them.
    let windows = text.contains("\r\n");
    let plain = text.replace("\r\n", "\n");
    if windows && plain.matches('\n').count() != text.matches("\r\n").count() {
        return Err(
            "mixes line ends of Windows and of Unix; let an editor settle on one".to_owned()
        );
    }
    let mut document: DocumentMut = plain.parse().map_err(|_| "is not valid TOML".to_owned())?;
    let Some((name, sections)) = path.split_last() else { return Err("no entry is named".into()) };
    let mut table = document.as_table_mut() as &mut dyn toml_edit::TableLike;
    for section in sections {
        table = table
            .entry(section)
            .or_insert_with(|| {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            })
            .as_table_like_mut()
            .ok_or_else(|| format!("`{section}` is not a table; mend it or remove it first"))?;
    }
    let mut entry = Table::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        entry.insert(key, Item::Value(toml_value(value)));
    }
    if let Some(Item::Table(old)) = table.get(name) {
        *entry.decor_mut() = old.decor().clone();
        entry.set_position(old.position());
    }
    table.insert(name, Item::Table(entry));
    let text = document.to_string();
    Ok(if windows { text.replace('\n', "\r\n") } else { text })
}

fn toml_value(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(""),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => Value::from(number.as_i64().unwrap_or_default()),
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::Array(items.iter().map(toml_value).collect::<Array>()),
        Json::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.as_str(), toml_value(value)));
            Value::InlineTable(members.collect::<InlineTable>())
        }
    }
}
