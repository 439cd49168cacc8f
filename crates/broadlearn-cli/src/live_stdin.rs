//! Standard input that ends when the user interrupts: a stream may have no other end.

use crate::context::interrupted;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Reads stdin in a thread of its own, so that a wait for bytes can be given up.
pub(crate) struct LiveStdin {
    chunks: Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    used: usize,
}

impl LiveStdin {
    pub(crate) fn open() -> Self {
        // A few chunks ahead and no more: a fast producer must not fill the memory.
        let (send, chunks) = sync_channel(4);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
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
        Self { chunks, rest: Vec::new(), used: 0 }
    }
}

impl Read for LiveStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.rest.len() {
            if interrupted() {
                return Ok(0);
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
        Ok(count)
    }
}
