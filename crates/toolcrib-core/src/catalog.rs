//! Names: one canonical and one portable name for every item of every server, kept in a table and
//! never parsed back apart.
//!
//! The canonical name is `server.item`. The portable one fits what model APIs accept,
//! `[a-zA-Z0-9_-]{1,64}`: `server__item` where that is already so and cannot be read two ways, else
//! a cut and sanitised form with a hash of both parts. Which of the two it is depends on the pair
//! alone, so that a name never changes because another server came or went.

use std::{collections::HashMap, fmt::Write as _};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{sanitise, surface::ListKind};

/// Longest portable name, in characters.
pub const PORTABLE_MAX: usize = 64;
/// Hash characters of a portable name that needs them: 32 bits beside the readable part.
const HASH_CHARS: usize = 8;
/// Most names an error lists.
const LISTED: usize = 10;
/// Most suggestions an error makes.
const SUGGESTED: usize = 3;

/// One named item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The server it belongs to.
    pub server: String,
    /// Tools or prompts; each kind has its own names.
    pub kind: ListKind,
    /// The server's own name of it.
    pub item: String,
    /// `server.item`
    pub canonical: String,
    /// The name for model APIs.
    pub portable: String,
}

/// The table of names.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Sorted by server, kind and item.
    entries: Vec<Named>,
    tools: Index,
    prompts: Index,
}

#[derive(Debug, Clone, Default)]
struct Index {
    /// Canonical and portable names.
    full: HashMap<String, usize>,
    /// Items by the server's own name.
    short: HashMap<String, Vec<usize>>,
    /// Canonical names of several items: only where a server's name holds a dot.
    clashing: HashMap<String, Vec<usize>>,
}

/// A name that leads to no single item.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing has this name.
    #[error("nothing is called {name}{}", suggested(.near))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Names that come near.
        near: Vec<String>,
    },
    /// Several servers have an item of this short name.
    #[error("{name} is ambiguous: {}{}", full.join(", "), and_more(*.more))]
    Ambiguous {
        /// The name asked for.
        name: String,
        /// The full names, some of them.
        full: Vec<String>,
        /// How many more there are.
        more: usize,
    },
}

impl NameError {
    /// Nothing has this name, and nothing comes near.
    pub fn unknown(name: &str) -> Self {
        Self::Unknown { name: sanitise::line(name, 128), near: Vec::new() }
    }
}

fn suggested(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

/// True for names a server may be given: letters, digits, `_` and `-`, at most 64. Without dots
/// the canonical name has one reading.
pub fn is_server_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

impl Names {
    /// Names every item. Items of the same server, kind and name get one entry.
    pub fn build<'a>(items: impl Iterator<Item = (&'a str, ListKind, &'a str)>) -> Self {
        let mut items: Vec<_> = items.collect();
        items.sort_unstable();
        items.dedup();
        let mut names = Self::default();
        for (server, kind, item) in items {
            names.add(server, kind, item);
        }
        names
    }

    fn add(&mut self, server: &str, kind: ListKind, item: &str) {
        let at = self.entries.len();
        let index = if kind == ListKind::Prompts { &mut self.prompts } else { &mut self.tools };
        let mut portable = portable(server, item, HASH_CHARS);
        // Two hashes alike, or a name made to look like a hashed one: a longer hash tells them
        // apart. Items come sorted, so the order of servers decides nothing.
        let mut chars = HASH_CHARS;
        while index.full.contains_key(&portable) && chars < PORTABLE_MAX {
            chars += HASH_CHARS;
            portable = hashed(server, item, chars);
        }
        let canonical = format!("{server}.{item}");
        index.full.entry(portable.clone()).or_insert(at);
        // Portable names have no dot, so only another canonical name can have this look.
        if let Some(other) = index.full.insert(canonical.clone(), at) {
            let clash = index.clashing.entry(canonical.clone()).or_insert_with(|| vec![other]);
            clash.push(at);
        }
        index.short.entry(item.to_owned()).or_default().push(at);
        let (server, item) = (server.to_owned(), item.to_owned());
        self.entries.push(Named { server, kind, item, canonical, portable });
    }

    /// All entries, sorted by server, kind and item.
    pub fn iter(&self) -> impl Iterator<Item = &Named> {
        self.entries.iter()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Finds an item by canonical, portable or short name, case-sensitively.
    ///
    /// # Errors
    /// Nothing, or more than one thing, has this name.
    pub fn resolve(&self, kind: ListKind, name: &str) -> Result<&Named, NameError> {
        let index = if kind == ListKind::Prompts { &self.prompts } else { &self.tools };
        if let Some(all) = index.clashing.get(name) {
            return Err(self.ambiguous(name, all, |named| &named.portable));
        }
        if let Some(at) = index.full.get(name) {
            return Ok(&self.entries[*at]);
        }
        match index.short.get(name).map(Vec::as_slice) {
            Some([at]) => Ok(&self.entries[*at]),
            Some(all) => Err(self.ambiguous(name, all, |named| &named.canonical)),
            None => Err(NameError::Unknown {
                name: sanitise::line(name, 128),
                near: self.near(kind, name),
            }),
        }
    }

    fn ambiguous(&self, name: &str, all: &[usize], full: impl Fn(&Named) -> &str) -> NameError {
        let shown = |at: &usize| sanitise::line(full(&self.entries[*at]), 128);
        NameError::Ambiguous {
            name: sanitise::line(name, 128),
            full: all.iter().take(LISTED).map(shown).collect(),
            more: all.len().saturating_sub(LISTED),
        }
    }

    /// The names that come nearest, best first.
    fn near(&self, kind: ListKind, name: &str) -> Vec<String> {
        // Longer texts are no slip of the pen, and comparing them costs.
        if name.len() > 256 {
            return Vec::new();
        }
        let wanted = name.to_lowercase();
        let mut scored: Vec<_> = self
            .entries
            .iter()
            .filter(|named| named.kind == kind && named.canonical.len() <= 256)
            .filter_map(|named| {
                let score = likeness(&wanted, &named.canonical)
                    .max(likeness(&wanted, &named.item))
                    .max(likeness(&wanted, &named.portable));
                (score > 0.8).then_some((score, named))
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.canonical.cmp(&b.1.canonical)));
        scored.truncate(SUGGESTED);
        scored.iter().map(|(_, named)| sanitise::line(&named.canonical, 128)).collect()
    }
}

fn likeness(wanted: &str, name: &str) -> f64 {
    // Lengths that differ by more than half cannot score high enough.
    let (short, long) = (wanted.len().min(name.len()), wanted.len().max(name.len()));
    if short * 2 < long {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(wanted, &name.to_lowercase())
        .max(strsim::jaro_winkler(wanted, &name.to_lowercase()) - 0.08)
}

/// The portable name of a pair.
fn portable(server: &str, item: &str, hash_chars: usize) -> String {
    let plain = format!("{server}__{item}");
    if is_plain(server, item) { plain } else { hashed(server, item, hash_chars) }
}

/// True when `server__item` is fit for model APIs and cannot be read as another pair: its first
/// `__` is then the one between the two parts, and it does not end as a hashed name does.
fn is_plain(server: &str, item: &str) -> bool {
    let fit = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    fit(server)
        && fit(item)
        && server.len() + 2 + item.len() <= PORTABLE_MAX
        && !server.contains("__")
        && !server.ends_with('_')
        && !item.starts_with('_')
        && !looks_hashed(item)
}

/// True for an item that ends in `_` and as many hexadecimal digits as a hash has. Left plain, it
/// could be another pair's hashed name, and which of the two kept it would depend on company.
fn looks_hashed(item: &str) -> bool {
    item.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == HASH_CHARS && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// `server__item`, sanitised and cut, with a hash of both parts at its end.
fn hashed(server: &str, item: &str, hash_chars: usize) -> String {
    let mut hash = Sha256::new();
    for part in [server, item] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut suffix = String::with_capacity(PORTABLE_MAX);
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(suffix, "{byte:02x}");
    }
    let keep = (PORTABLE_MAX - 1).min(hash_chars);
    suffix.truncate(keep);
    let readable = |text: &str| -> String {
        let fit = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
        text.chars().map(fit).collect()
    };
    let mut name = format!("{}__{}", readable(server), readable(item));
    name.truncate(PORTABLE_MAX - 1 - keep);
    format!("{name}_{suffix}")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn names(items: &[(&str, &str)]) -> Names {
        Names::build(items.iter().map(|(server, item)| (*server, ListKind::Tools, *item)))
    }

    #[test]
    fn plain_pairs_keep_plain_names() {
        let check = |server: &str, item: &str, expect: &str| {
            assert_eq!(portable(server, item, HASH_CHARS), expect, "{server} {item}");
        };
        check("files", "read_file", "files__read_file");
        check("files", "read-file", "files__read-file");
        check("a", "b__c", "a__b__c");
        check("a__b", "c", "a__b__c_92c52c85");
        check("shop", "_order", "shop___order_01cfdf92");
        check("x", "admin.tools.list", "x__admin_tools_list_ebb3d1b3");
    }

    #[test]
    fn a_name_resolves_in_each_of_its_forms() {
        let names = names(&[("files", "read"), ("docs", "read"), ("docs", "find.all")]);
        let check = |name: &str, expect: &str| {
            let named = names.resolve(ListKind::Tools, name).unwrap();
            assert_eq!(named.canonical, expect, "{name}");
        };
        check("files.read", "files.read");
        check("files__read", "files.read");
        check("find.all", "docs.find.all");
        check("docs.find.all", "docs.find.all");
        let error = names.resolve(ListKind::Tools, "read").unwrap_err();
        assert_eq!(error.to_string(), "read is ambiguous: docs.read, files.read");
        let error = names.resolve(ListKind::Prompts, "files.read").unwrap_err();
        assert_eq!(error.to_string(), "nothing is called files.read");
    }

    #[test]
    fn case_counts_and_near_names_are_suggested() {
        let names = names(&[("linear", "getUser"), ("linear", "GetUser")]);
        let check = |name: &str, item: &str| {
            assert_eq!(names.resolve(ListKind::Tools, name).unwrap().item, item);
        };
        check("getUser", "getUser");
        check("linear.GetUser", "GetUser");
        let error = names.resolve(ListKind::Tools, "getuser").unwrap_err();
        let expect = "nothing is called getuser; did you mean linear.GetUser or linear.getUser?";
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn a_name_made_to_look_like_a_hashed_one_takes_nothing_away() {
        let victim = portable("s", "_x", HASH_CHARS);
        let item = victim.strip_prefix("s__").unwrap().to_owned();
        let names = names(&[("s", "_x"), ("s", &item)]);
        let portable: HashSet<_> = names.iter().map(|named| &named.portable).collect();
        assert_eq!(portable.len(), 2);
        for named in names.iter() {
            let found = names.resolve(ListKind::Tools, &named.portable).unwrap();
            assert_eq!(found.item, named.item);
        }
    }

    #[test]
    fn a_canonical_name_of_two_items_is_no_name_of_either() {
        let names = names(&[("a.b", "c"), ("a", "b.c")]);
        let error = names.resolve(ListKind::Tools, "a.b.c").unwrap_err();
        let expect = "a.b.c is ambiguous: a__b_c_1f16c63f, a_b__c_016f3ec9";
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn company_changes_no_name() {
        let victim = portable("a__b", "c", HASH_CHARS);
        let item = victim.strip_prefix("a__").unwrap();
        let names = names(&[("a", item), ("a__b", "c")]);
        let found = names.resolve(ListKind::Tools, &victim).unwrap();
        assert_eq!((found.server.as_str(), found.item.as_str()), ("a__b", "c"));
    }

    /// c34, c35, c36 and c94: names that collapse, are illegal, differ in case, or run together.
    #[test]
    fn odd_names_stay_apart_and_lead_to_their_own() {
        let check = |pairs: &[(&str, &str)]| {
            let names = names(pairs);
            let portable: BTreeSet<_> = names.iter().map(|named| named.portable.as_str()).collect();
            assert_eq!(portable.len(), pairs.len());
            for (server, item) in pairs {
                let full = format!("{server}.{item}");
                let named = names.resolve(ListKind::Tools, &full).unwrap();
                assert_eq!((named.server.as_str(), named.item.as_str()), (*server, *item));
                assert_eq!(names.resolve(ListKind::Tools, &named.portable).unwrap(), named);
                let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                assert!(named.portable.len() <= 64 && named.portable.bytes().all(legal));
            }
        };
        check(&[("s", "open-doc"), ("s", "open_doc"), ("s", "open.doc")]);
        check(&[
            ("s", "admin.tools.list"),
            ("s", "user-profile/update"),
            ("s", "Mower Status"),
            ("s", "天气查询"),
            ("s", "🚀"),
        ]);
        check(&[("Linear", "getUser"), ("Linear", "GetUser"), ("linear", "getUser")]);
        check(&[("shop_", "order"), ("shop", "_order"), ("a__b", "c"), ("a", "b__c")]);
    }

    #[test]
    fn server_names_have_no_dots() {
        for good in ["a", "my-server_1", &"x".repeat(64)] {
            assert!(is_server_name(good), "{good}");
        }
        for bad in ["", "a.b", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_server_name(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn names_are_distinct_fit_and_independent_of_company(
            pairs in prop::collection::btree_set(("[a-c_-]{1,4}", "[a-c_. /é-]{0,70}"), 1..30),
        ) {
            let pairs: BTreeSet<(String, String)> = pairs;
            let all = Names::build(
                pairs.iter().map(|(server, item)| (server.as_str(), ListKind::Tools, item.as_str())),
            );
            prop_assert_eq!(all.len(), pairs.len());
            let mut seen = HashSet::new();
            for named in all.iter() {
                prop_assert!(named.portable.len() <= PORTABLE_MAX);
                prop_assert!(named.portable.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                prop_assert!(seen.insert(named.portable.clone()), "{} twice", named.portable);
                let alone = portable(&named.server, &named.item, HASH_CHARS);
                prop_assert_eq!(&alone, &named.portable);
                let found = all.resolve(ListKind::Tools, &named.canonical).unwrap();
                prop_assert_eq!(found, named);
            }
        }
    }
}
