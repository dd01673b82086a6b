//! Writes the agent's standard input without blocking.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

use rustix::fs::{OFlags, fcntl_setfl};

pub(crate) struct StdinWriter {
    pipe: Option<ChildStdin>,
    bytes: Vec<u8>,
    written: usize,
}

impl StdinWriter {
    pub(crate) fn new(pipe: Option<ChildStdin>, bytes: Vec<u8>) -> std::io::Result<StdinWriter> {
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok(StdinWriter { pipe, bytes, written: 0 })
    }

    /// The pipe to poll; `None` once everything was written or the reader closed it.
    pub(crate) fn pending_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.as_fd())
    }

    pub(crate) fn is_delivered(&self) -> bool {
        self.pipe.is_none() && self.written == self.bytes.len()
    }

    /// Writes as much as the pipe takes. Closes it after the last byte, or if the agent has closed its end.
    pub(crate) fn write_some(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            if self.written == self.bytes.len() {
                self.close();
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

    /// Closes the pipe and frees the buffer.
    fn close(&mut self) {
        self.pipe = None;
        let is_all = self.written == self.bytes.len();
        self.bytes = Vec::new();
        self.written = usize::from(!is_all);
    }
}
