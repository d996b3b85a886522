//! The tree both file formats are read into: values with the offset they stand at.
//!
//! Members keep their order and duplicates, so that nothing is silently the last one. There is no
//! `Debug`: a tree holds secrets.

/// A value and where it stands, as byte offsets.
pub(crate) struct Node {
    /// Offset in the text.
    pub(crate) at: usize,
    /// Offset behind it. Exact for strings; a table may reach less far than its members.
    pub(crate) end: usize,
    /// The value.
    pub(crate) value: Value,
}

/// One value.
pub(crate) enum Value {
    /// JSON `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; its value only when it is a whole one that is not negative.
    Number(Option<u64>),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object or table.
    Map(Vec<Member>),
    /// A TOML date or time.
    Date,
}

/// One member of an object or table.
pub(crate) struct Member {
    /// Its key.
    pub(crate) key: String,
    /// Offset of the key.
    pub(crate) at: usize,
    /// Its value.
    pub(crate) node: Node,
}

impl Value {
    /// The members, when this is an object or table.
    pub(crate) fn members(&self) -> Option<&[Member]> {
        match self {
            Self::Map(members) => Some(members),
            _ => None,
        }
    }

    /// What kind of value it is, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
            Self::Date => "a date",
        }
    }
}
