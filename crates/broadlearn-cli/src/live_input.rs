//! Input that ends when the user interrupts: a stream may have no other end.

use crate::context::interrupted;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Reads in a thread of its own, so that a wait for bytes can be given up.
pub(crate) struct LiveInput {
    chunks: Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    used: usize,
    /// Whether the bytes so far end with a whole line.
    whole_line: bool,
}

impl LiveInput {
    pub(crate) fn new(mut input: impl Read + Send + 'static) -> Self {
        // A few chunks ahead and no more: a fast producer must not fill the memory.
        let (send, chunks) = sync_channel(4);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let chunk = match input.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer[..count].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = chunk.is_err();
                if send.send(chunk).is_err() || failed {
                    return;
                }
            }
        });
        Self { chunks, rest: Vec::new(), used: 0, whole_line: true }
    }
}

impl Read for LiveInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.rest.len() {
            if interrupted() {
                // Half a row must not be taken for a whole one.
                return match self.whole_line {
                    true => Ok(0),
                    false => Err(io::Error::other("interrupted within a row")),
                };
            }
            match self.chunks.recv_timeout(Duration::from_millis(50)) {
                Ok(chunk) => (self.rest, self.used) = (chunk?, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.rest.len() - self.used);
        buffer[..count].copy_from_slice(&self.rest[self.used..self.used + count]);
        self.used += count;
        if let Some(last) = buffer[..count].last() {
            self.whole_line = matches!(last, b'\n' | b'\r');
        }
        Ok(count)
    }
}
