//! One output stream of a program: reads what is available and stores a bounded part of it.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// The program writes to `/dev/null`.
    Nothing,
    /// All of it. More bytes than this end the program.
    AtMost(usize),
    /// The first bytes. The rest is read and dropped.
    Beginning(usize),
    /// As many bytes of the beginning and of the end, with a note between them.
    BothEnds(usize),
}

/// A pipe holds at most 1 MiB. Reading more at once could take for ever, if a process writes as fast.
const MAX_READS: usize = 64;
const CHUNK: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Output {
    /// `None` at the end of the stream.
    pub(crate) pipe: Option<PipeReader>,
    max_head: usize,
    max_tail: usize,
    is_omission_permitted: bool,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: usize,
}

impl Output {
    /// The stream, and the end of it that the program gets.
    pub(crate) fn new(capture: Capture) -> io::Result<(Output, Option<PipeWriter>)> {
        let (max_head, max_tail) = match capture {
            Capture::Nothing => return Ok((Output::default(), None)),
            Capture::AtMost(bytes) | Capture::Beginning(bytes) => (bytes, 0),
            Capture::BothEnds(bytes) => (bytes, bytes),
        };
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let is_omission_permitted = !matches!(capture, Capture::AtMost(_));
        let output =
            Output { pipe: Some(reader), max_head, max_tail, is_omission_permitted, ..Output::default() };
        Ok((output, Some(writer)))
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.omitted > 0 && !self.is_omission_permitted
    }

    pub(crate) fn read_available(&mut self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        for _ in 0..MAX_READS {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.add(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(self.max_head.saturating_sub(self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.max_tail);
        self.tail.drain(..excess);
        self.omitted += excess;
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.head);
        if self.omitted > 0 && self.max_tail > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes omitted]\n", self.omitted).as_bytes());
        }
        bytes.extend(self.tail.drain(..));
        bytes
    }
}
