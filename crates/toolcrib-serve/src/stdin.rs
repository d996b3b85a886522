//! Standard input as a stream that never keeps a runtime from ending.
//!
//! The usual asynchronous standard input reads in a blocking task, and a runtime waits for those;
//! a server that was told to stop would hang until its client writes something.

use std::{
    io::{self, Read as _},
    thread,
};

use tokio::{
    io::{AsyncRead, AsyncWriteExt as _},
    runtime::Handle,
};

/// How many bytes are read ahead.
const AHEAD: usize = 64 << 10;

/// Standard input, read by a thread of its own from now on. Call it once, inside a runtime.
pub fn stdin() -> impl AsyncRead + Unpin + Send + 'static {
    let (mut feed, reader) = tokio::io::duplex(AHEAD);
    let runtime = Handle::current();
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut buffer = vec![0_u8; AHEAD];
        loop {
            match stdin.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Dropping the feed is the end of the stream.
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    if runtime.block_on(feed.write_all(&buffer[..count])).is_err() {
                        return;
                    }
                }
            }
        }
    });
    reader
}
