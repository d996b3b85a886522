//! What a child wrote to its standard error: always drained, the last part kept, and on request
//! written to a small log file.
//!
//! Standard error is diagnosis, never protocol. Nothing here can slow the child down or fail it:
//! a full log queue or a broken disk loses log lines, not the server.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
};
use toolcrib_core::sanitise;

/// A log file this long is moved to `NAME.1`, replacing the one before.
pub const LOG_BYTES: u64 = 1 << 20;

/// Most bytes taken from the pipe at once.
const READ_BYTES: usize = 64 << 10;

/// How many chunks may wait for the log file; further ones are left out of it.
const LOG_QUEUE: usize = 32;

/// The last part of a child's standard error. Clones share it, and it outlives the child.
#[derive(Debug, Clone)]
pub struct StderrTail {
    ring: Arc<Mutex<Ring>>,
}

#[derive(Debug)]
struct Ring {
    kept: VecDeque<u8>,
    capacity: usize,
    total: u64,
}

impl StderrTail {
    fn new(capacity: usize) -> Self {
        Self { ring: Arc::new(Mutex::new(Ring { kept: VecDeque::new(), capacity, total: 0 })) }
    }

    /// Drains `stderr` until its end, keeping the last `capacity` bytes. With `log`, everything is
    /// also appended there, sanitised, after a line that names `pid`. The task ends when every
    /// writer has closed its end and the log is written.
    pub(crate) fn drain(
        stderr: impl AsyncRead + Send + Unpin + 'static,
        capacity: usize,
        log: Option<PathBuf>,
        pid: u32,
    ) -> (Self, JoinHandle<()>) {
        let tail = Self::new(capacity);
        let task = tokio::spawn(drain(stderr, tail.clone(), log, pid));
        (tail, task)
    }

    /// The kept part as text, safe to show. Undecodable bytes are replaced.
    pub fn tail(&self) -> String {
        sanitise::block(&self.lock().text())
    }

    /// The last `count` lines of [`tail`](Self::tail) that are not blank.
    pub fn last_lines(&self, count: usize) -> String {
        let tail = self.tail();
        let lines: Vec<_> = tail.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// How many bytes the child has written in all.
    pub fn total_bytes(&self) -> u64 {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.capacity)..];
        let excess = (self.kept.len() + bytes.len()).saturating_sub(self.capacity);
        self.kept.drain(..excess);
        self.kept.extend(bytes);
    }

    fn text(&self) -> String {
        let cut = self.total > self.kept.len() as u64;
        // A cut may fall inside a character; its remaining bytes say nothing.
        let rest = if cut {
            self.kept.iter().take(3).take_while(|b| is_continuation(**b)).count()
        } else {
            0
        };
        let bytes: Vec<u8> = self.kept.iter().skip(rest).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    tail: StderrTail,
    log: Option<PathBuf>,
    pid: u32,
) {
    let mut log = log.map(|path| {
        let (chunks, queue) = mpsc::channel(LOG_QUEUE);
        (chunks, tokio::spawn(keep_log(path, pid, queue)))
    });
    let mut buffer = vec![0; READ_BYTES];
    let mut left_out = 0;
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().push(&buffer[..read]);
        if let Some((chunks, _)) = &mut log {
            let chunk = Chunk { bytes: buffer[..read].to_vec(), left_out };
            left_out = if chunks.try_send(chunk).is_ok() { 0 } else { left_out + read };
        }
    }
    if let Some((chunks, task)) = log {
        drop(chunks);
        let _ = task.await;
    }
}

/// A piece of standard error on its way to the log file.
struct Chunk {
    bytes: Vec<u8>,
    /// How many bytes before it were left out because the file was too slow.
    left_out: usize,
}

async fn keep_log(path: PathBuf, pid: u32, mut queue: mpsc::Receiver<Chunk>) {
    let mut text = Decoder::default();
    let mut log = match LogFile::open(path.clone()).await {
        Ok(log) => log,
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "no log file for standard error");
            return;
        }
    };
    let mut line = format!("--- process {pid} ---\n");
    loop {
        if let Err(error) = log.append(&line).await {
            tracing::debug!(path = %path.display(), %error, "log file of standard error given up");
            return;
        }
        let Some(chunk) = queue.recv().await else { break };
        line = text.decode(&chunk.bytes);
        if chunk.left_out > 0 {
            line.insert_str(0, &format!("\n--- {} bytes left out ---\n", chunk.left_out));
        }
    }
}

/// A log file that never grows far beyond [`LOG_BYTES`].
struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LogFile {
    async fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).await?;
        }
        let file = append_to(&path).await?;
        let length = file.metadata().await?.len();
        Ok(Self { path, file, length })
    }

    async fn append(&mut self, text: &str) -> io::Result<()> {
        if self.length >= LOG_BYTES {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old).await?;
            self.file = append_to(&self.path).await?;
            self.length = 0;
        }
        self.file.write_all(text.as_bytes()).await?;
        self.file.flush().await?;
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Readable by its owner only: servers print secrets.
async fn append_to(path: &Path) -> io::Result<File> {
    // Opening a pipe waits for somebody to read it, for ever and beyond any timeout.
    if fs::metadata(path).await.is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).await
}

/// Turns chunks into safe text without breaking characters that span two of them.
#[derive(Default)]
struct Decoder {
    carried: Vec<u8>,
}

impl Decoder {
    fn decode(&mut self, bytes: &[u8]) -> String {
        self.carried.extend_from_slice(bytes);
        let rest = self.carried.split_off(self.carried.len() - unfinished(&self.carried));
        let whole = std::mem::replace(&mut self.carried, rest);
        sanitise::block(&String::from_utf8_lossy(&whole))
    }
}

/// How many bytes at the end may belong to something that continues: a character, or CR LF.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let needed = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            byte if is_continuation(*byte) => continue,
            _ => 0,
        };
        return if needed > back + 1 { back + 1 } else { 0 };
    }
    0
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(capacity: usize, chunks: &[&[u8]]) -> StderrTail {
        let tail = StderrTail::new(capacity);
        for chunk in chunks {
            tail.lock().push(chunk);
        }
        tail
    }

    #[test]
    fn the_last_bytes_are_kept_and_all_are_counted() {
        let check = |capacity: usize, chunks: &[&[u8]], expect: &str, total: u64| {
            let tail = tail_of(capacity, chunks);
            assert_eq!((tail.tail().as_str(), tail.total_bytes()), (expect, total));
        };
        check(4, &[b"abcdef"], "cdef", 6);
        check(4, &[b"ab", b"cd", b"e"], "bcde", 5);
        check(0, &[b"ab"], "", 2);
        check(3, &["xéy".as_bytes(), b"z"], "yz", 5);
        check(64, &[b"a\x1b[2J\xff\r\nb"], "a\\u{1b}[2J\u{fffd}\nb", 9);
    }

    #[test]
    fn last_lines_skip_blank_ones() {
        let check = |count: usize, expect: &str| {
            assert_eq!(tail_of(64, &[b"one\n\ntwo\nthree\n\n"]).last_lines(count), expect);
        };
        check(0, "");
        check(2, "two\nthree");
        check(9, "one\ntwo\nthree");
    }

    #[test]
    fn characters_survive_any_cut_between_chunks() {
        let text = "aé€🚀\r\nz";
        for size in 1..text.len() {
            let mut decoder = Decoder::default();
            let out: String =
                text.as_bytes().chunks(size).map(|chunk| decoder.decode(chunk)).collect();
            assert_eq!(out, "aé€🚀\nz", "chunks of {size}");
        }
    }

    #[tokio::test]
    async fn a_log_file_is_rotated_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/server.log");
        let line = vec![b'x'; LOG_BYTES as usize];
        for _ in 0..3 {
            let reader = io::Cursor::new(line.clone());
            let (tail, task) = StderrTail::drain(reader, 16, Some(path.clone()), 7);
            task.await.unwrap();
            assert_eq!(tail.total_bytes(), LOG_BYTES);
        }
        let size = |name: &str| std::fs::metadata(folder.path().join("logs").join(name)).unwrap();
        assert!(size("server.log").len() <= LOG_BYTES + READ_BYTES as u64);
        assert!(size("server.log.1").len() >= LOG_BYTES);
        assert_eq!(size("server.log").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path().join("logs")).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_disturbs_nothing() {
        let path = PathBuf::from("/dev/null/none/server.log");
        let (tail, task) = StderrTail::drain(&b"still here"[..], 64, Some(path), 7);
        task.await.unwrap();
        assert_eq!(tail.tail(), "still here");
    }
}
