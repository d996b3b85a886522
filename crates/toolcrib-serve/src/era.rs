//! Which eras an endpoint serves.

use std::str::FromStr;

use thiserror::Error;
use toolcrib_core::version::{Era, Version};

/// Which eras an endpoint serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraSupport {
    /// 2026-07-28 only.
    Modern,
    /// 2025-11-25 and older only.
    Legacy,
    /// Both, told apart message by message.
    #[default]
    Dual,
}

/// The text names no era.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no era; use modern, legacy or dual")]
pub struct UnknownEra(String);

impl EraSupport {
    /// True when `era` is served.
    pub const fn serves(self, era: Era) -> bool {
        match era {
            Era::Modern => !matches!(self, Self::Legacy),
            Era::Legacy => !matches!(self, Self::Modern),
        }
    }
}

impl FromStr for EraSupport {
    type Err = UnknownEra;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "modern" => Ok(Self::Modern),
            "legacy" => Ok(Self::Legacy),
            "dual" => Ok(Self::Dual),
            other => Err(UnknownEra(other.to_owned())),
        }
    }
}

/// The revisions of the modern era, as `server/discover` and refusals name them.
pub(crate) fn modern_versions() -> Vec<&'static str> {
    Version::ALL
        .into_iter()
        .filter(|version| version.era() == Era::Modern)
        .map(Version::as_str)
        .collect()
}
