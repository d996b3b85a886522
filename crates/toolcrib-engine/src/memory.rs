//! What is remembered of a target between runs: the era it spoke, so that the probe can be saved.
//!
//! A memory is a hint, never a verdict: it fades after a day, is dropped when the server's version
//! changes, and a handshake that fails under it is repeated without it.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib_core::{
    surface::Negotiated,
    target::{ServerConfig, Target},
    version::Era,
};

/// How long a remembered era counts.
const FADES_AFTER: Duration = Duration::from_secs(86_400);
/// Most targets remembered; the oldest go first.
const MOST: usize = 1_000;
/// How much of a server's version is remembered, in characters.
const VERSION_CHARS: usize = 200;
/// Longest file that is read: no memory of [`MOST`] targets is longer.
const MAX_BYTES: u64 = 4 << 20;

/// Remembered eras, kept in a file when a path is given.
#[derive(Debug, Default)]
pub struct Memory {
    path: Option<PathBuf>,
    eras: Mutex<HashMap<String, Remembered>>,
    /// Held while the file is written, so that looking up an era never waits for a disk.
    saving: Mutex<()>,
    /// True when the file is older than `eras`. Of many who want to save at once, few write.
    unsaved: AtomicBool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    era: Era,
    /// The version the server gave itself.
    version: String,
    /// Seconds since the epoch.
    at: u64,
}

impl Memory {
    /// Reads the memory at `path`; a missing or damaged file is an empty memory.
    pub fn at(path: Option<PathBuf>) -> Self {
        let eras = path.as_deref().map(read).unwrap_or_default();
        Self { path, eras: Mutex::new(eras), ..Self::default() }
    }

    /// The era of a target, unless it has faded.
    pub fn recall(&self, config: &ServerConfig, now: SystemTime) -> Option<Era> {
        let eras = self.lock();
        let known = eras.get(&key(config))?;
        let age = seconds(now).checked_sub(known.at)?;
        (age < FADES_AFTER.as_secs()).then_some(known.era)
    }

    /// Remembers what a handshake found; writes the file, so it may wait for a disk. A changed server version makes the next one probe again.
    pub fn learn(&self, config: &ServerConfig, negotiated: &Negotiated, now: SystemTime) {
        let key = key(config);
        let version = negotiated.server_label().map(|(_, version)| version).unwrap_or_default();
        let version = version.chars().take(VERSION_CHARS).collect::<String>();
        let mut eras = self.lock();
        let known = eras.get(&key);
        let changed = known.is_some_and(|known| known.version != version);
        if changed {
            eras.remove(&key);
        } else {
            // The day counts from the last probe, not from the last use.
            if known.is_some_and(|known| known.era == negotiated.era && is_fresh(known, now)) {
                return;
            }
            eras.insert(key, Remembered { era: negotiated.era, version, at: seconds(now) });
        }
        forget_oldest(&mut eras);
        drop(eras);
        self.save();
    }

    /// Forgets a target, after an era error; writes the file, so it may wait for a disk.
    pub fn forget(&self, config: &ServerConfig) {
        let mut eras = self.lock();
        let forgotten = eras.remove(&key(config)).is_some();
        drop(eras);
        if forgotten {
            self.save();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.eras.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) {
        let Some(path) = &self.path else { return };
        self.unsaved.store(true, Ordering::Release);
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.unsaved.swap(false, Ordering::AcqRel) {
            // Whoever wrote while we waited saved what we changed, too.
            return;
        }
        let eras = self.lock().clone();
        if let Err(error) = write(path, &eras) {
            tracing::debug!(path = %path.display(), %error, "eras not remembered");
        }
    }
}

fn forget_oldest(eras: &mut HashMap<String, Remembered>) {
    while eras.len() > MOST {
        let oldest = eras.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone());
        oldest.and_then(|key| eras.remove(&key));
    }
}

fn is_fresh(known: &Remembered, now: SystemTime) -> bool {
    seconds(now).checked_sub(known.at).is_some_and(|age| age < FADES_AFTER.as_secs())
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn read(path: &Path) -> HashMap<String, Remembered> {
    let bytes = || {
        // Opening anything else may wait for ever, and reading it may never end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    bytes().ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Writes beside the file and renames, so that a reader never sees half of it.
fn write(path: &Path, eras: &HashMap<String, Remembered>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    fs::write(&beside, serde_json::to_vec(eras)?)?;
    fs::rename(&beside, path)
}

/// A digest of what reaches the server, so that no secret is written down.
fn key(config: &ServerConfig) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    };
    match &config.target {
        Target::Command(command) => {
            add("command");
            add(&command.program);
            add(&command.cwd.as_ref().map(|path| path.display().to_string()).unwrap_or_default());
            command.args.iter().for_each(|arg| add(arg));
            for (name, value) in &command.env {
                add(name);
                add(value.expose());
            }
        }
        Target::Http(endpoint) => {
            add("http");
            add(&endpoint.url);
        }
    }
    hash.finalize().iter().take(16).fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use toolcrib_core::{raw::Raw, surface::Capabilities, target::Command};

    use super::*;

    fn config(program: &str) -> ServerConfig {
        let command = Command { program: program.to_owned(), ..Command::default() };
        ServerConfig::new("x", Target::Command(command))
    }

    fn negotiated(era: Era, version: &str) -> Negotiated {
        Negotiated {
            era,
            version: String::new(),
            how: Vec::new(),
            server: Some(Raw::of(&serde_json::json!({"name": "s", "version": version}))),
            capabilities: Capabilities::default(),
            instructions: None,
            findings: Vec::new(),
        }
    }

    #[test]
    fn an_era_is_remembered_for_a_day_and_across_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/eras.json");
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let memory = Memory::at(Some(path.clone()));
        memory.learn(&config("a"), &negotiated(Era::Legacy, "1"), now);
        let memory = Memory::at(Some(path.clone()));
        assert_eq!(memory.recall(&config("a"), now), Some(Era::Legacy));
        assert_eq!(memory.recall(&config("b"), now), None);
        let later = now + Duration::from_secs(86_399);
        memory.learn(&config("a"), &negotiated(Era::Legacy, "1"), later);
        assert_eq!(memory.recall(&config("a"), later), Some(Era::Legacy));
        assert_eq!(memory.recall(&config("a"), later + Duration::from_secs(1)), None);
        fs::write(&path, "{broken").unwrap();
        assert_eq!(Memory::at(Some(path)).recall(&config("a"), now), None);
    }

    #[test]
    fn a_new_server_version_is_probed_again() {
        let memory = Memory::at(None);
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        memory.learn(&config("a"), &negotiated(Era::Legacy, "1"), now);
        memory.learn(&config("a"), &negotiated(Era::Legacy, "2"), now);
        assert_eq!(memory.recall(&config("a"), now), None);
        memory.learn(&config("a"), &negotiated(Era::Modern, "2"), now);
        assert_eq!(memory.recall(&config("a"), now), Some(Era::Modern));
        memory.forget(&config("a"));
        assert_eq!(memory.recall(&config("a"), now), None);
    }
}
