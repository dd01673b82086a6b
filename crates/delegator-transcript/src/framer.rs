//! From bytes in any splits to lines, in bounded memory.
//!
//! A line ends at `\n` and nowhere else: U+2028 and a lone `\r` are text. A line that arrives within one read is
//! handed on where it lies; only what crosses reads is copied. A line of up to [`LineLimits::whole`] bytes is
//! delivered whole. Of a longer one the head and the tail are kept and a [`LongLineScanner`] reads on in the middle,
//! so the few facts that decide what the line means are known though it never was in memory. The line after it is a
//! line like any other.
//!
//! What comes out depends on the bytes alone, never on how they were split.

use std::borrow::Cow;

use crate::longline::{LongLineFacts, LongLineScanner};

/// How much of a line is kept.
#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Lines up to this many bytes are kept whole.
    pub whole: usize,
    /// Of a longer line, this much of its beginning.
    pub head: usize,
    /// Of a longer line, this much of its end.
    pub tail: usize,
}

impl LineLimits {
    /// What the program uses: 8 MiB whole, else 1 MiB and 64 KiB.
    pub const STANDARD: Self = Self { whole: 8 << 20, head: 1 << 20, tail: 64 << 10 };
}

impl Default for LineLimits {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// One line of a stream, without its line end (and without the byte order mark a stream may begin with).
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Bytes of the line, also when not all of them are here.
    pub length: u64,
    /// False for a last line that no `\n` follows.
    pub terminated: bool,
    /// What is here of it.
    pub body: LineBody<'a>,
}

/// The bytes of a line.
#[derive(Clone, Copy, Debug)]
pub enum LineBody<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was too long.
    Truncated {
        /// Its first bytes.
        head: &'a [u8],
        /// Its last bytes.
        tail: &'a [u8],
        /// What was read of it in passing.
        facts: &'a LongLineFacts,
    },
}

/// The text of a line; what is not UTF-8 in it became U+FFFD.
#[derive(Clone, Debug)]
pub enum LineText<'a> {
    /// All of it.
    Whole(Cow<'a, str>),
    /// Head and tail of an over-long line.
    Truncated {
        /// Its beginning.
        head: Cow<'a, str>,
        /// Its end.
        tail: Cow<'a, str>,
        /// What was read of it in passing.
        facts: &'a LongLineFacts,
    },
}

impl<'a> Line<'a> {
    /// The line as text.
    pub fn text(&self) -> LineText<'a> {
        match self.body {
            LineBody::Whole(bytes) => LineText::Whole(lossy(bytes)),
            LineBody::Truncated { head, tail, facts } => {
                LineText::Truncated { head: lossy(head), tail: lossy(tail), facts }
            }
        }
    }

    /// Whether only head and tail are here.
    pub fn is_truncated(&self) -> bool {
        matches!(self.body, LineBody::Truncated { .. })
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// A line too long to keep, while it passes.
#[derive(Debug)]
struct LongLine {
    scanner: LongLineScanner,
    length: u64,
    /// At least the last [`LineLimits::tail`] bytes, at most twice that.
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

/// Splits a byte stream into lines.
#[derive(Debug)]
pub struct Framer {
    limits: LineLimits,
    /// The beginning of a line whose end has not come yet; of a long line, its head.
    pending: Vec<u8>,
    long: Option<LongLine>,
    lines: u64,
    bytes: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(LineLimits::STANDARD)
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// A buffer that grew beyond this for one big line is given back after it.
const MAX_RETAINED_CAPACITY: usize = 256 << 10;

impl Framer {
    /// A framer at the beginning of a stream. Head and tail are fitted into `whole` if they exceed it.
    pub fn new(limits: LineLimits) -> Self {
        let head = limits.head.min(limits.whole);
        let tail = limits.tail.clamp(1, limits.whole.saturating_sub(head).max(1));
        Self {
            limits: LineLimits { whole: limits.whole.max(head + tail), head, tail },
            pending: Vec::new(),
            long: None,
            lines: 0,
            bytes: 0,
        }
    }

    /// Lines delivered so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes taken in so far, line ends included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the bytes so far end inside a line.
    pub fn is_mid_line(&self) -> bool {
        self.long.is_some() || !self.pending.is_empty()
    }

    /// Takes the next bytes of the stream and hands each line they complete to `sink`.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Line<'_>)) {
        self.bytes += bytes.len() as u64;
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

    /// The stream is over: a last line without a line end is delivered too.
    pub fn finish(&mut self, mut sink: impl FnMut(Line<'_>)) {
        if self.is_mid_line() {
            self.deliver_buffered(false, &mut sink);
        }
    }

    /// Adds to the line that has begun.
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

    /// Numbers a line and takes off what is not part of it.
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
        // Only `\r\n` is a line end: a `\r` before the end of the stream is text.
        if let Some(rest) = end.strip_suffix(b"\r").filter(|_| terminated) {
            *end = rest;
            line.length -= 1;
        }
        line
    }
}

#[cfg(test)]
mod tests;
