//! Protocol revisions and the two eras they belong to (specification, basic/versioning).

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a session talks: by per-request metadata, or by an `initialize` handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2026-07-28: every request carries its `_meta`; no handshake, no session.
    Modern,
    /// 2025-11-25 and older: `initialize`, then a session.
    Legacy,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        })
    }
}

/// Which era a target is spoken to in, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraPolicy {
    /// Ask with `server/discover`, fall back to `initialize`.
    #[default]
    Auto,
    /// `server/discover` only.
    Modern,
    /// `initialize` only.
    Legacy,
}

/// A published revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

impl Version {
    /// All revisions Toolcrib speaks, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];
    /// The revision offered in `server/discover`.
    pub const MODERN: Self = Self::V2026_07_28;
    /// The revision offered in `initialize`.
    pub const LEGACY: Self = Self::V2025_11_25;

    /// The revision's string on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision with this exact string, if it is one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// The era the revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// The newest of `offered` that we speak in `era`.
    pub fn best<S: AsRef<str>>(era: Era, offered: &[S]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .filter(|version| version.era() == era)
            .find(|version| offered.iter().any(|text| text.as_ref() == version.as_str()))
    }

    /// The newest legacy revision named anywhere inside `text`, for servers that explain a refusal
    /// in prose only.
    pub fn named_in(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .filter(|version| version.era() == Era::Legacy)
            .find(|version| text.contains(version.as_str()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_common_version_is_the_newest_of_the_era() {
        let offered = ["2025-06-18", "2026-07-28", "2025-11-25", "2031-01-01"];
        assert_eq!(Version::best(Era::Legacy, &offered), Some(Version::V2025_11_25));
        assert_eq!(Version::best(Era::Modern, &offered), Some(Version::V2026_07_28));
        assert_eq!(Version::best(Era::Modern, &["2025-06-18"]), None);
    }

    #[test]
    fn prose_gives_its_newest_legacy_version() {
        let text = "accepted are 2025-06-18, 2025-03-26 and 2026-07-28";
        assert_eq!(Version::named_in(text), Some(Version::V2025_06_18));
        assert_eq!(Version::named_in("no version here"), None);
    }
}
