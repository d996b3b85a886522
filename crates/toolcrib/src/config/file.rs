//! Bounded reading and atomic replacing of small files.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Longest file that is read. The settings of some editors are megabytes.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// The bytes of a file; `None` when there is none.
///
/// # Errors
/// It cannot be read, or is longer than [`MAX_BYTES`].
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let what = format!("longer than {} MiB", MAX_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(Some(bytes))
}

/// The bytes of a file that may be anybody's; `None` when there is none. A pipe that lies about
/// would block us for ever.
///
/// # Errors
/// As [`read`], or it is something else than a file.
pub(crate) fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::other("it is a folder")),
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => read(path),
    }
}

/// True when an error says that there is no such file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Keeps other processes from changing files in the folder of `path`, or of what it links to, until
/// it is dropped. The folder is made when it is missing.
///
/// # Errors
/// The folder cannot be made or locked.
pub(crate) fn lock_folder(path: &Path) -> io::Result<File> {
    let path = target_of(path)?;
    let folder = folder(&path);
    fs::create_dir_all(folder)?;
    let lock = File::open(folder)?;
    lock.lock()?;
    Ok(lock)
}

/// Replaces a file as a whole: readers see the old bytes or the new ones. Permissions stay; a new
/// file is for its owner only. A symbolic link stays, and what it points to is replaced. Hold
/// [`lock_folder`] meanwhile.
///
/// # Errors
/// The folder does not let us write.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = target_of(path)?;
    let permissions = match fs::metadata(&path) {
        Ok(metadata) => metadata.permissions(),
        Err(error) if is_missing(&error) => Permissions::from_mode(0o600),
        Err(error) => return Err(error),
    };
    put(&path, bytes, permissions)
}

/// Writes a file beside its place and then moves it there, so that it is never there in part.
///
/// # Errors
/// The folder does not let us write.
pub(crate) fn put(path: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Always the same name: what a process that died left behind goes with the next one.
    let temporary = folder(path).join(format!(".{name}.toolcrib.tmp"));
    let written =
        write_new(&temporary, bytes, permissions).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<()> {
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match open() {
        // Left behind by a process that died.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            open()?
        }
        opened => opened?,
    };
    file.write_all(bytes)?;
    file.set_permissions(permissions)?;
    file.sync_all()
}

fn target_of(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        // A link that leads nowhere yet: what it names is made, the link stays.
        Err(error) if is_missing(&error) => Ok(match fs::read_link(path) {
            Ok(named) => folder(path).join(named),
            Err(_) => path.to_owned(),
        }),
        found => found,
    }
}

/// The folder of a file; the working directory for a bare name.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("f"), dir.path().join("link"));
        replace(&file, b"one").unwrap();
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!((mode(), fs::read(&file).unwrap()), (0o640, b"two".to_vec()));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn reading_is_bounded_and_missing_is_not_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&dir.path().join("none")).unwrap(), None);
        let long = dir.path().join("long");
        File::create(&long).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(read(&long).unwrap_err().to_string(), "longer than 16 MiB");
    }
}
