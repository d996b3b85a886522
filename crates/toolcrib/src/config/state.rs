//! Where Toolcrib keeps what: configuration, state, logs and cache.
//!
//! `TOOLCRIB_HOME` moves all of it under one folder. Otherwise the folders are those the system
//! has for such things (on Linux `$XDG_CONFIG_HOME/toolcrib`, `$XDG_STATE_HOME/toolcrib` and
//! `$XDG_CACHE_HOME/toolcrib`). Nothing is created here.

use std::{ffi::OsString, path::PathBuf};

use directories::ProjectDirs;
use thiserror::Error;

/// The variable that moves everything.
pub(crate) const HOME_VARIABLE: &str = "TOOLCRIB_HOME";

/// There is no place for files.
#[derive(Debug, Error)]
#[error("no home directory is known; set TOOLCRIB_HOME to a folder for Toolcrib's files")]
pub(crate) struct NoHome;

/// The folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dirs {
    config: PathBuf,
    state: PathBuf,
    cache: PathBuf,
}

impl Dirs {
    /// The folders of this user and environment.
    ///
    /// # Errors
    /// Neither `TOOLCRIB_HOME` nor a home directory is known.
    pub(crate) fn find() -> Result<Self, NoHome> {
        match std::env::var_os(HOME_VARIABLE) {
            Some(home) if !home.is_empty() => Ok(Self::under(&home)),
            _ => Self::of_system().ok_or(NoHome),
        }
    }

    /// Everything under one folder; a relative one starts at the working directory.
    pub(crate) fn under(home: &OsString) -> Self {
        let home = std::path::absolute(home).unwrap_or_else(|_| PathBuf::from(home));
        Self { state: home.join("state"), cache: home.join("cache"), config: home }
    }

    fn of_system() -> Option<Self> {
        let dirs = ProjectDirs::from("", "", "toolcrib")?;
        Some(Self {
            config: dirs.config_dir().to_owned(),
            state: dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned(),
            cache: dirs.cache_dir().to_owned(),
        })
    }

    /// The user's configuration.
    pub(crate) fn user_config(&self) -> PathBuf {
        self.config.join("toolcrib.toml")
    }

    /// Which configurations of working directories may start commands.
    pub(crate) fn consent_file(&self) -> PathBuf {
        self.state.join("consent.json")
    }

    /// Which era each target was last seen to speak.
    pub(crate) fn era_cache(&self) -> PathBuf {
        self.cache.join("eras.json")
    }

    /// What servers wrote on their standard error.
    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_folder_holds_everything_when_asked() {
        let dirs = Dirs::under(&"/h".into());
        let paths = [dirs.user_config(), dirs.consent_file(), dirs.era_cache(), dirs.logs()];
        let expect =
            ["/h/toolcrib.toml", "/h/state/consent.json", "/h/cache/eras.json", "/h/state/logs"];
        assert_eq!(paths, expect.map(PathBuf::from));
        assert!(Dirs::under(&"h".into()).logs().is_absolute());
    }
}
