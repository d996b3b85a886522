//! Server names that fit into every tool name, made from whatever people called their servers.
//!
//! A name of 1 to 64 of `[A-Za-z0-9_-]` stays as it is. From any other a fitting one is derived,
//! with a hash of the original where it would be cut or meet another name, so that it does not
//! depend on the order of the entries.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use toolcrib_core::catalog::is_server_name;

const LONGEST: usize = 64;
/// Bytes of the hash that stand behind a name, in hexadecimal.
const HASH_BYTES: usize = 4;

/// A fitting name for one that is not, as far as one name alone can tell.
pub(crate) fn suggestion(name: &str) -> String {
    let base = base(name);
    match base.len() {
        1..=LONGEST => base,
        _ => with_suffix(&base, &hash(name)),
    }
}

/// One fitting name for each of `names` (which are all different), in their order and all
/// different.
pub(crate) fn fit(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> =
        names.iter().filter(|name| is_server_name(name)).map(|&name| name.to_owned()).collect();
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for name in names.iter().filter(|name| !is_server_name(name)) {
        *wanted.entry(base(name)).or_default() += 1;
    }
    let mut fit_one = |name: &str| {
        if is_server_name(name) {
            return name.to_owned();
        }
        let base = base(name);
        let plain = (1..=LONGEST).contains(&base.len()) && wanted.get(&base) == Some(&1);
        if plain && taken.insert(base.clone()) {
            return base;
        }
        let mut fitted = with_suffix(&base, &hash(name));
        let mut round = 2;
        // Ends: each round tries another name, and only as many are taken as there are servers.
        while !taken.insert(fitted.clone()) {
            fitted = with_suffix(&base, &format!("{}-{round}", hash(name)));
            round += 1;
        }
        fitted
    };
    names.iter().map(|name| fit_one(name)).collect()
}

fn fits(c: char) -> bool {
    is_server_name(c.encode_utf8(&mut [0; 4]))
}

/// The name with each run of other characters as one `-`.
fn base(name: &str) -> String {
    let parts: Vec<_> = name.split(|c: char| !fits(c)).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

fn with_suffix(base: &str, suffix: &str) -> String {
    let kept = base.len().min(LONGEST - suffix.len() - 1);
    match base[..kept].trim_end_matches('-') {
        "" => format!("server-{suffix}"),
        base => format!("{base}-{suffix}"),
    }
}

fn hash(name: &str) -> String {
    hex(&Sha256::digest(name)[..HASH_BYTES])
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_or_made_to_fit() {
        let check = |name: &str, expect: &str| {
            assert_eq!(fit(&[name]), [expect], "{name}");
            assert_eq!(suggestion(name), expect, "{name}");
            assert!(is_server_name(expect), "{expect}");
        };
        check("git_hub-1", "git_hub-1");
        check("My Server", "My-Server");
        check("github.com/x", "github-com-x");
        check("@scope/pkg", "scope-pkg");
        check("日本語", "server-77710aed");
        check("", "server-e3b0c442");
        check(&"a".repeat(65), &format!("{}-635361c4", "a".repeat(55)));
    }

    #[test]
    fn names_that_would_meet_get_their_own_hash_whatever_the_order() {
        let names = ["a b", "a.b", "a-b", "c d"];
        let fitted = fit(&names);
        insta::assert_debug_snapshot!(fitted, @r#"
        [
            "a-b-c8687a08",
            "a-b-2e7336dc",
            "a-b",
            "c-d",
        ]
        "#);
        let mut reversed: Vec<_> = names.to_vec();
        reversed.reverse();
        let mut again = fit(&reversed);
        again.reverse();
        assert_eq!(again, fitted);
    }
}
