//! Writes the agent's standard input without blocking.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

use rustix::fs::{OFlags, fcntl_setfl};

pub(crate) struct StdinWriter {
    pipe: Option<ChildStdin>,
    bytes: Vec<u8>,
    written: usize,
    closes_when_written: bool,
    is_refused: bool,
}

impl StdinWriter {
    pub(crate) fn new(pipe: Option<ChildStdin>) -> std::io::Result<StdinWriter> {
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok(StdinWriter { pipe, bytes: Vec::new(), written: 0, closes_when_written: false, is_refused: false })
    }

    /// Adds bytes to what is to be written. Ignored if the pipe is closed.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if self.pipe.is_none() {
            self.is_refused |= !bytes.is_empty();
        } else if self.bytes.is_empty() {
            self.bytes = bytes;
        } else {
            self.bytes.extend_from_slice(&bytes);
        }
    }

    /// Closes the pipe after the last byte.
    pub(crate) fn close_when_written(&mut self) {
        self.closes_when_written = true;
    }

    /// Closes the pipe now.
    pub(crate) fn close(&mut self) {
        self.is_refused |= self.waiting() > 0;
        self.pipe = None;
        self.bytes = Vec::new();
        self.written = 0;
    }

    /// The pipe to poll; `None` while there is nothing to write or to close.
    pub(crate) fn pending_fd(&self) -> Option<BorrowedFd<'_>> {
        let is_pending = self.waiting() > 0 || self.closes_when_written;
        self.pipe.as_ref().filter(|_| is_pending).map(|pipe| pipe.as_fd())
    }

    /// Number of bytes that the agent has not read yet.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Whether everything that was to be written, was.
    pub(crate) fn is_delivered(&self) -> bool {
        self.waiting() == 0 && !self.is_refused
    }

    /// Writes as much as the pipe takes. Closes it if the agent has closed its end.
    pub(crate) fn write_some(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            if self.written == self.bytes.len() {
                self.bytes = Vec::new();
                self.written = 0;
                if self.closes_when_written {
                    self.close();
                }
                return;
            }
            match pipe.write(&self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The agent closed its end: it does not want the rest.
                Err(_) => {
                    self.close();
                    return;
                }
            }
        }
    }
}
