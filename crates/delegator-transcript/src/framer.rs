//! Splits a byte stream into lines, in bounded memory.
//!
//! A line ends only at `\n`: U+2028 and a lone `\r` are text. A line that arrives within one read is passed
//! on without a copy. Lines of up to [`LineLimits::whole`] bytes are delivered whole. The head and tail of a
//! longer line are stored, and a [`LongLineScanner`] collects the few fields in between that decide what the
//! line means.
//!
//! The lines depend on the bytes alone, never on how the bytes were split into reads.

use std::borrow::Cow;

use crate::longline::{LongLineScanner, ScannedLine};

#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Lines of at most this many bytes are stored whole.
    pub whole: usize,
    /// This many bytes at the beginning of a longer line.
    pub head: usize,
    /// This many bytes at the end of a longer line.
    pub tail: usize,
}

impl LineLimits {
    /// The limits that the program uses: 8 MiB whole, otherwise 1 MiB and 64 KiB.
    pub const STANDARD: Self = Self { whole: 8 << 20, head: 1 << 20, tail: 64 << 10 };
}

/// One line of a stream, without its line end and without the byte order mark of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    pub length: u64,
    /// False for a last line without `\n`.
    pub terminated: bool,
    pub body: LineBody<'a>,
}

/// The bytes of a line; of an over-long one, both ends and the fields collected from the whole line.
#[derive(Clone, Copy, Debug)]
pub enum LineBody<'a> {
    Whole(&'a [u8]),
    Truncated { head: &'a [u8], tail: &'a [u8], facts: &'a ScannedLine },
}

/// The text of a line; invalid UTF-8 is replaced by U+FFFD.
#[derive(Clone, Debug)]
pub enum LineText<'a> {
    Whole(Cow<'a, str>),
    Truncated { head: Cow<'a, str>, tail: Cow<'a, str>, facts: &'a ScannedLine },
}

impl<'a> Line<'a> {
    pub fn text(&self) -> LineText<'a> {
        match self.body {
            LineBody::Whole(bytes) => LineText::Whole(lossy(bytes)),
            LineBody::Truncated { head, tail, facts } => {
                LineText::Truncated { head: lossy(head), tail: lossy(tail), facts }
            }
        }
    }

    pub fn is_truncated(&self) -> bool {
        matches!(self.body, LineBody::Truncated { .. })
    }
}

/// Checks first: this is faster than `from_utf8_lossy` for valid text.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[derive(Debug)]
struct LongLine {
    scanner: LongLineScanner,
    length: u64,
    /// At least the last [`LineLimits::tail`] bytes, at most twice as many.
    tail: Vec<u8>,
}

impl LongLine {
    fn push(&mut self, bytes: &[u8], tail_limit: usize) {
        self.scanner.push(bytes);
        self.length += bytes.len() as u64;
        let from = bytes.len().saturating_sub(tail_limit);
        if self.tail.len() + bytes.len() - from > 2 * tail_limit {
            let excess = self.tail.len().saturating_sub(tail_limit);
            self.tail.drain(..excess);
        }
        self.tail.extend_from_slice(&bytes[from..]);
    }
}

#[derive(Debug)]
pub struct Framer {
    limits: LineLimits,
    /// The beginning of an incomplete line; of a long line, its head.
    pending: Vec<u8>,
    long: Option<LongLine>,
    lines: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(LineLimits::STANDARD)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// After a long line, a larger buffer is shrunk to this capacity.
const MAX_RETAINED_CAPACITY: usize = 256 << 10;

impl Framer {
    /// Creates a framer for a new stream. Head and tail are reduced if they exceed `whole`.
    pub fn new(limits: LineLimits) -> Self {
        let head = limits.head.min(limits.whole);
        let tail = limits.tail.clamp(1, limits.whole.saturating_sub(head).max(1));
        Self {
            limits: LineLimits { whole: limits.whole.max(head + tail), head, tail },
            pending: Vec::new(),
            long: None,
            lines: 0,
        }
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether the bytes received end inside a line.
    pub fn is_mid_line(&self) -> bool {
        self.long.is_some() || !self.pending.is_empty()
    }

    /// Processes the next bytes and passes each completed line to `sink`.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Line<'_>)) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let part = &bytes[from..end];
            from = end + 1;
            if self.is_mid_line() || part.len() > self.limits.whole {
                self.buffer(part);
                self.deliver_buffered(true, &mut sink);
            } else {
                let line = self.next_line(part.len() as u64, true, LineBody::Whole(part));
                sink(line);
            }
        }
        self.buffer(&bytes[from..]);
    }

    /// Ends the stream; a last line without a line end is delivered too.
    pub fn finish(&mut self, mut sink: impl FnMut(Line<'_>)) {
        if self.is_mid_line() {
            self.deliver_buffered(false, &mut sink);
        }
    }

    fn buffer(&mut self, part: &[u8]) {
        if let Some(long) = &mut self.long {
            long.push(part, self.limits.tail);
            return;
        }
        if self.pending.len() + part.len() <= self.limits.whole {
            self.pending.extend_from_slice(part);
            return;
        }
        let mut long = LongLine { scanner: LongLineScanner::default(), length: 0, tail: Vec::new() };
        long.push(&self.pending, self.limits.tail);
        long.push(part, self.limits.tail);
        let missing = self.limits.head.saturating_sub(self.pending.len()).min(part.len());
        self.pending.truncate(self.limits.head);
        self.pending.extend_from_slice(&part[..missing]);
        self.long = Some(long);
    }

    fn deliver_buffered(&mut self, terminated: bool, sink: &mut impl FnMut(Line<'_>)) {
        let mut buffered = std::mem::take(&mut self.pending);
        match self.long.take() {
            None => sink(self.next_line(buffered.len() as u64, terminated, LineBody::Whole(&buffered))),
            Some(long) => {
                let tail = &long.tail[long.tail.len().saturating_sub(self.limits.tail)..];
                let has_mark = self.lines == 0 && buffered.starts_with(BYTE_ORDER_MARK);
                let prefix_bytes = if has_mark { BYTE_ORDER_MARK.len() as u64 } else { 0 };
                let suffix_bytes = u64::from(terminated && tail.ends_with(b"\r"));
                let facts = long.scanner.finish(prefix_bytes, suffix_bytes);
                let body = LineBody::Truncated { head: &buffered, tail, facts: &facts };
                sink(self.next_line(long.length, terminated, body));
            }
        }
        buffered.clear();
        buffered.shrink_to(MAX_RETAINED_CAPACITY);
        self.pending = buffered;
    }

    /// Numbers a line and strips the byte order mark and the `\r` of its line end.
    fn next_line<'a>(&mut self, length: u64, terminated: bool, body: LineBody<'a>) -> Line<'a> {
        self.lines += 1;
        let mut line = Line { number: self.lines, length, terminated, body };
        if self.lines == 1 {
            let (LineBody::Whole(head) | LineBody::Truncated { head, .. }) = &mut line.body;
            if let Some(rest) = head.strip_prefix(BYTE_ORDER_MARK) {
                *head = rest;
                line.length -= BYTE_ORDER_MARK.len() as u64;
            }
        }
        let (LineBody::Whole(end) | LineBody::Truncated { tail: end, .. }) = &mut line.body;
        // Only `\r\n` is a line end: a `\r` at the end of the stream is text.
        if let Some(rest) = end.strip_suffix(b"\r").filter(|_| terminated) {
            *end = rest;
            line.length -= 1;
        }
        line
    }
}

#[cfg(test)]
mod tests;
