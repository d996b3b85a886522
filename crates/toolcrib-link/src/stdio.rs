//! A server behind the standard streams of a child process.
//!
//! Lines come in, lines go out. What a line means is not looked at beyond being JSON-RPC at all.
//! Three tasks serve a pipe: one reads, one writes, one keeps the process; a server that does not
//! read stalls only the writer, one that floods waits for the session.

use std::{fmt, path::PathBuf, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    task::{JoinHandle, unconstrained},
    time::{Instant, timeout, timeout_at},
};
use toolcrib_core::{
    limits::Limits,
    rpc::{
        Decoded,
        lines::{Line, LineCodec, LineTooLong},
    },
    target::Command,
};

use crate::{
    channel::{Closed, Inbound, Inbox, SendError},
    process::{Order, Process, SpawnError},
    stderr::StderrTail,
    trace::{Direction, Trace},
};

/// How many lines may wait for a server that does not read.
const OUTBOX: usize = 16;

/// Most bytes taken from the pipe at once.
const READ_BYTES: usize = 64 << 10;

/// How long, once the process is to end, lines that already wait may still be written.
const FLUSH_WAIT: Duration = Duration::from_millis(200);

/// How long a process may take to end after it closed its output, before it is told to.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// How long output is still awaited once the process has ended: somebody else may hold the pipe
/// open for ever. What is there already is read in any case, up to [`DRAIN_BYTES`].
const DRAIN_WAIT: Duration = Duration::from_millis(200);

/// The most a pipe can hold, so all that a process can have left in it.
const DRAIN_BYTES: usize = 1 << 20;

/// How long standard error is awaited once the process has ended.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// A running server. Dropping it kills the process with everything it started.
pub struct Pipe {
    process: Process,
    stderr: StderrTail,
    outbox: mpsc::Sender<String>,
    trace: Option<Trace>,
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Pipe {
    /// Starts `command`, which is run as it is, never through a shell. Everything it says goes to
    /// `inbox`, ending with exactly one [`Inbound::Closed`] unless the inbox is dropped before. Its
    /// standard error goes to `log_file`, too, when one is given, and `trace` sees every line.
    ///
    /// # Errors
    /// The process cannot be started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        command: &Command,
        limits: &Limits,
        log_file: Option<PathBuf>,
        inbox: Inbox,
        trace: Option<Trace>,
    ) -> Result<Self, SpawnError> {
        let (process, streams) = Process::start(command)?;
        let (stderr, stderr_task) =
            StderrTail::drain(streams.stderr, limits.stderr_bytes, log_file, process.pid());
        let (outbox, lines) = mpsc::channel(OUTBOX);
        tokio::spawn(write(streams.stdin, lines, process.clone()));
        let reader = Reader {
            stdout: streams.stdout,
            codec: LineCodec::new(limits.message_bytes),
            inbox,
            trace: trace.clone(),
            process: process.clone(),
        };
        tokio::spawn(reader.run(stderr_task));
        Ok(Self { process, stderr, outbox, trace })
    }

    /// Sends one message. Waits while the server does not read what was sent before; the caller
    /// brings the timeout, and giving up sends either the whole message or nothing.
    ///
    /// # Errors
    /// The process is gone, told to leave, or has closed its standard input.
    pub async fn send(&self, line: String) -> Result<(), SendError> {
        let slot = self.outbox.reserve().await.map_err(|_| SendError::Closed)?;
        // In JSON, line breaks are only ever layout; on this wire they would end the message.
        let line = if line.contains(['\n', '\r']) { line.replace(['\n', '\r'], " ") } else { line };
        if let Some(trace) = &self.trace {
            trace(Direction::Out, &line);
        }
        slot.send(line);
        Ok(())
    }

    /// The last part of what the server wrote to its standard error.
    pub const fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// The process id.
    pub const fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends the process and everything it started, within
    /// [`STOP_WITHIN`](crate::process::STOP_WITHIN), and says how it ended: "exit code 0",
    /// "signal 9 (SIGKILL)". May be called again and from several places; giving up waiting does
    /// not stop the ending.
    pub async fn shutdown(&self) -> String {
        self.process.order(Order::Stop);
        self.process.wait_gone().await
    }

    /// Kills the process and everything it started; nothing is waited for.
    pub fn kill(&self) {
        self.process.kill_now();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes lines until the process is to end, then closes its standard input.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>, process: Process) {
    let mut current = Bytes::new();
    tokio::select! {
        () = process.wait_order(Order::Ended) => {}
        _ = pump(&mut stdin, &mut lines, &mut current) => return,
    }
    lines.close();
    if process.ordered() == Order::Stop {
        let _ = timeout(FLUSH_WAIT, pump(&mut stdin, &mut lines, &mut current)).await;
        process.wait_noted().await;
    }
}

/// `current` is what is left of the line being written, so that stopping loses no byte.
async fn pump(
    stdin: &mut ChildStdin,
    lines: &mut mpsc::Receiver<String>,
    current: &mut Bytes,
) -> std::io::Result<()> {
    loop {
        stdin.write_all_buf(current).await?;
        let Some(mut line) = lines.recv().await else { return Ok(()) };
        line.push('\n');
        *current = Bytes::from(line);
    }
}

struct Reader {
    stdout: ChildStdout,
    codec: LineCodec,
    inbox: Inbox,
    trace: Option<Trace>,
    process: Process,
}

/// Why reading ended.
enum End {
    /// Nothing more comes.
    Eof,
    /// A line is over the limit.
    TooLong(LineTooLong),
    /// Nobody listens any more.
    Unheard,
}

impl Reader {
    async fn run(mut self, mut stderr: JoinHandle<()>) {
        let end = self.read().await;
        let closed = match end {
            End::Eof => Some(self.why_ended().await),
            End::TooLong(LineTooLong { limit }) => Some(Closed::TooLong { limit }),
            End::Unheard => None,
        };
        self.process.order(Order::Stop);
        if self.process.ended().is_some() {
            // What it said last tells most about why it ended.
            settle(&mut stderr).await;
        }
        if let Some(closed) = closed {
            let _ = self.inbox.send(Inbound::Closed(closed)).await;
        }
        drop(self.inbox);
        drop(self.stdout);
        self.process.wait_gone().await;
        if !settle(&mut stderr).await {
            stderr.abort();
        }
    }

    async fn why_ended(&self) -> Closed {
        if self.process.ordered() >= Order::Stop {
            return Closed::ByUs;
        }
        let _ = timeout(EXIT_WAIT, self.process.wait_ended()).await;
        Closed::Exited { status: self.process.ended() }
    }

    async fn read(&mut self) -> End {
        let mut buffer = vec![0; READ_BYTES];
        let mut lines = Vec::new();
        let mut drain = None;
        loop {
            let read = self.next(&mut buffer, &mut drain).await;
            if read == 0 {
                break;
            }
            let pushed = self.codec.push(&buffer[..read], &mut lines);
            if pushed.is_err() {
                // At once: handing over what came before may have to wait.
                self.process.order(Order::Kill);
            }
            for line in lines.drain(..) {
                if !self.deliver(line).await {
                    return End::Unheard;
                }
            }
            if let Err(error) = pushed {
                return End::TooLong(error);
            }
        }
        if let Some(line) = self.codec.finish()
            && !self.deliver(line).await
        {
            return End::Unheard;
        }
        End::Eof
    }

    /// Reads once; 0 is the end. Cancelling a read loses nothing.
    async fn next(&mut self, buffer: &mut [u8], drain: &mut Option<Drain>) -> usize {
        if drain.is_none() && self.process.ended().is_none() {
            tokio::select! {
                biased;
                read = self.stdout.read(buffer) => return read.unwrap_or(0),
                () = self.process.wait_ended() => {}
            }
        }
        let drain = drain.get_or_insert_with(Drain::new);
        if drain.bytes == 0 {
            return 0;
        }
        // Unconstrained: being out of budget must not look like an empty pipe.
        let read = timeout_at(drain.until, unconstrained(self.stdout.read(buffer))).await;
        let read = read.map_or(0, |read| read.unwrap_or(0));
        drain.bytes = drain.bytes.saturating_sub(read);
        read
    }

    /// False when nobody listens.
    async fn deliver(&self, line: Line) -> bool {
        if let Some(trace) = &self.trace {
            trace(Direction::In, &line.text);
        }
        let inbound = match Decoded::read(&line.text) {
            Decoded::Noise(excerpt) => {
                for message in Decoded::salvage(&line.text) {
                    let inbound = Inbound::Message { origin: None, message };
                    if self.inbox.send(inbound).await.is_err() {
                        return false;
                    }
                }
                return self.inbox.send(Inbound::Noise(excerpt)).await.is_ok();
            }
            Decoded::Message(message) => Inbound::Message { origin: None, message },
            Decoded::Batch(messages, _) => Inbound::Batch { origin: None, messages },
        };
        if line.lossy && self.inbox.send(Inbound::Lossy).await.is_err() {
            return false;
        }
        self.inbox.send(inbound).await.is_ok()
    }
}

/// Waits a little for standard error to be drained; false when somebody still holds it open.
async fn settle(stderr: &mut JoinHandle<()>) -> bool {
    // A finished task must not be awaited twice.
    stderr.is_finished() || timeout(STDERR_WAIT, stderr).await.is_ok()
}

/// The rest that may be read once the process has ended.
struct Drain {
    until: Instant,
    bytes: usize,
}

impl Drain {
    fn new() -> Self {
        Self { until: Instant::now() + DRAIN_WAIT, bytes: DRAIN_BYTES }
    }
}
