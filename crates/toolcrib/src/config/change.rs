//! A change to a file that is worked out first, shown, and written only while the file is still
//! the one it was worked out from.
//!
//! Nothing here decides what to change, and nothing is written before [`Change::write`].

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{file, problem};

/// Most backups kept beside one file; who has as many is asked to tidy up.
const MAX_BACKUPS: u32 = 999;

/// A change that was not written. The file is as it was.
#[derive(Debug, Error)]
pub(crate) enum ChangeError {
    /// Somebody else wrote it in the meantime.
    #[error(
        "{} has changed since it was read; nothing was written, so run this again",
        problem::path(file)
    )]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// Its owner does not want it written.
    #[error("{} is read-only; nothing was written", problem::path(file))]
    ReadOnly {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be read or written.
    #[error("cannot change {}: {source}", problem::path(file))]
    Io {
        /// The file, or its backup.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A change to one file. There is no `Debug`: the texts may hold secrets.
pub(crate) struct Change {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its bytes when it was read; `None` when there was none.
    before: Option<Vec<u8>>,
    /// Its text when it was read, without a byte-order mark.
    pub(crate) old: String,
    /// Its text to be.
    pub(crate) new: String,
}

impl Change {
    /// A change of the bytes that were read, whose text is `old`, to `new`.
    pub(crate) fn new(
        file: &Path,
        before: Option<Vec<u8>>,
        old: impl Into<String>,
        new: impl Into<String>,
    ) -> Self {
        Self { file: file.to_owned(), before, old: old.into(), new: new.into() }
    }

    /// True when there is nothing to write.
    pub(crate) fn is_nothing(&self) -> bool {
        self.old == self.new
    }

    /// True when the file is made by this change.
    pub(crate) const fn makes_file(&self) -> bool {
        self.before.is_none()
    }

    /// Writes the new text in the encoding of the old one, as a whole or not at all. With `backup`
    /// the old bytes are kept beside the file first; says where.
    ///
    /// # Errors
    /// The file is not the one that was read, is read-only, or cannot be written.
    pub(crate) fn write(&self, backup: bool) -> Result<Option<PathBuf>, ChangeError> {
        let io = |source| ChangeError::Io { file: self.file.clone(), source };
        let _lock = file::lock_folder(&self.file).map_err(io)?;
        let now = file::read(&self.file).map_err(io)?;
        if now != self.before {
            return Err(ChangeError::Changed { file: self.file.clone() });
        }
        if fs::metadata(&self.file).is_ok_and(|metadata| metadata.permissions().readonly()) {
            return Err(ChangeError::ReadOnly { file: self.file.clone() });
        }
        let kept = match &now {
            Some(bytes) if backup => Some(keep(&self.file, bytes)?),
            _ => None,
        };
        let bytes = encoded_as(now.as_deref().unwrap_or_default(), &self.new);
        file::replace(&self.file, &bytes).map_err(io)?;
        Ok(kept)
    }
}

/// Keeps the bytes beside a file, under a name that nothing has.
fn keep(path: &Path, bytes: &[u8]) -> Result<PathBuf, ChangeError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1..=MAX_BACKUPS {
        let backup = path.with_file_name(format!("{name}.bak-{number}"));
        if !fs::symlink_metadata(&backup).is_err_and(|error| file::is_missing(&error)) {
            continue;
        }
        // It may hold what the file itself shows to fewer people.
        return fs::metadata(path)
            .and_then(|metadata| file::put(&backup, bytes, metadata.permissions()))
            .map(|()| backup.clone())
            .map_err(|source| ChangeError::Io { file: backup, source });
    }
    let source = io::Error::other(format!("there are {MAX_BACKUPS} backups already"));
    Err(ChangeError::Io { file: path.to_owned(), source })
}

/// The text in the encoding of the old bytes.
fn encoded_as(old: &[u8], text: &str) -> Vec<u8> {
    let units = |bytes: fn(u16) -> [u8; 2]| {
        let mark = std::iter::once(0xfeff);
        mark.chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    match old {
        [0xff, 0xfe, ..] => units(u16::to_le_bytes),
        [0xfe, 0xff, ..] => units(u16::to_be_bytes),
        [0xef, 0xbb, 0xbf, ..] => [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
        _ => text.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn world(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.json");
        fs::write(&file, bytes).unwrap();
        (dir, file)
    }

    fn change(file: &Path, new: &str) -> Change {
        Change::new(file, file::read(file).unwrap(), "old", new)
    }

    #[test]
    fn the_encoding_stays_and_each_state_is_kept_under_a_name_of_its_own() {
        let check = |before: &[u8], after: &[u8]| {
            let (_dir, file) = world(before);
            let first = change(&file, "{}").write(true).unwrap().unwrap();
            assert_eq!(fs::read(&file).unwrap(), after);
            let second = change(&file, "[]").write(true).unwrap().unwrap();
            assert!(first.ends_with("f.json.bak-1") && second.ends_with("f.json.bak-2"));
            assert_eq!(
                (fs::read(first).unwrap(), fs::read(second).unwrap()),
                (before.into(), after.into())
            );
        };
        check(b"old", b"{}");
        check(b"\xef\xbb\xbfold", b"\xef\xbb\xbf{}");
        check(b"\xff\xfeo\0", b"\xff\xfe{\0}\0");
        check(b"\xfe\xff\0o", b"\xfe\xff\0{\0}");
    }

    #[test]
    fn a_file_that_changed_in_between_or_is_read_only_is_left_alone() {
        let (dir, file) = world(b"old");
        let late = change(&file, "new");
        fs::write(&file, "other").unwrap();
        assert!(matches!(late.write(true), Err(ChangeError::Changed { .. })));
        let gone = change(&file, "new");
        fs::remove_file(&file).unwrap();
        assert!(matches!(gone.write(true), Err(ChangeError::Changed { .. })));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(change(&file, "new").write(true), Err(ChangeError::ReadOnly { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "and nothing is left beside it");
    }

    #[test]
    fn nothing_is_left_in_part() {
        let (dir, file) = world(b"old");
        // What processes left behind that died as they wrote.
        for left in [".f.json.toolcrib.tmp", ".f.json.bak-1.toolcrib.tmp"] {
            fs::write(dir.path().join(left), "half").unwrap();
        }
        let kept = change(&file, "new").write(true).unwrap().unwrap();
        assert_eq!(
            (fs::read(kept).unwrap(), fs::read(&file).unwrap()),
            (b"old".into(), b"new".into())
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "and both are gone");
        // A backup that cannot be written whole is not there at all, and the file is as it was.
        fs::create_dir(dir.path().join(".f.json.bak-2.toolcrib.tmp")).unwrap();
        assert!(matches!(change(&file, "newer").write(true), Err(ChangeError::Io { .. })));
        assert!(!dir.path().join("f.json.bak-2").exists());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn links_are_followed_also_where_they_lead_nowhere_yet() {
        let (dir, file) = world(b"old");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("f.json", &link).unwrap();
        let kept = change(&link, "new").write(true).unwrap().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o640);
        let nowhere = dir.path().join("nowhere");
        std::os::unix::fs::symlink("later.json", &nowhere).unwrap();
        assert_eq!(change(&nowhere, "new").write(true).unwrap(), None);
        assert_eq!(fs::read(dir.path().join("later.json")).unwrap(), b"new");
    }
}
