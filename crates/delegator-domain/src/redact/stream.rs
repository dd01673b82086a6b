//! The scanner: combines all matchers over a byte stream.
//!
//! `position` divides the buffer: bytes before it have been written or dropped (a few are retained for
//! looking back), bytes after it are undecided. The scanner repeats: find the next candidate, write or drop
//! all bytes before it, and let the matchers decide about it. If they need bytes that have not arrived, or if
//! the end of the buffer could be the start of an anchor, the scan stops there and the bytes are held.
//! Decisions use only the text, never the end of the buffer, so the output does not depend on how the input
//! was split. The number of held bytes is bounded by the longest value and the longest distance a format
//! matcher reads.
//!
//! A decision *covers* bytes: a marker replaces them. Scanning continues inside the covered part, so that
//! nothing remains of two overlapping secrets; they share one marker. A token may continue after a covered
//! part ([`TokenTail`]). A credential that starts some distance after its anchor (in a URL or header) is
//! *planned* until the scanner reaches it.

use std::fmt;
use std::sync::Arc;

use super::context::{LOOK_BEHIND, LineTracker, is_boundary, is_inside_escape};
use super::credential::{CredentialSpan, SecretKind, TokenTail};
use super::index::{Candidates, Index};
use super::needle;
use super::text::{Lookahead, NeedMore, Text};

/// Larger chunks are scanned in parts of this size, so that the buffer stays in the cache.
const SCAN_BYTES: usize = 64 * 1024;

/// Bytes that cannot be part of a secret are written at once; the others follow later.
pub struct RedactStream {
    index: Arc<Index>,
    buffer: Vec<u8>,
    position: usize,
    /// Bytes before this index are dropped; may be ahead of `position`.
    covered: usize,
    tail: Option<TokenTail>,
    planned: Option<CredentialSpan>,
    line: LineTracker,
    /// Number of backslashes directly before the buffer.
    earlier_backslashes: usize,
    is_final: bool,
}

impl fmt::Debug for RedactStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.buffer.len() - self.position;
        formatter.debug_struct("RedactStream").field("held", &held).finish_non_exhaustive()
    }
}

impl RedactStream {
    pub(super) fn new(index: Arc<Index>) -> Self {
        Self {
            line: LineTracker::new(index.has_bare()),
            index,
            buffer: Vec::new(),
            position: 0,
            covered: 0,
            tail: None,
            planned: None,
            earlier_backslashes: 0,
            is_final: false,
        }
    }

    /// Scans the next bytes and appends all decided output to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        for piece in chunk.chunks(SCAN_BYTES) {
            self.buffer.extend_from_slice(piece);
            self.scan(out);
            self.discard_decided();
        }
    }

    /// Ends the text: appends the remaining output, and resets the stream for another text.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.is_final = true;
        self.scan(out);
        *self = Self::new(Arc::clone(&self.index));
    }

    fn scan(&mut self, out: &mut Vec<u8>) {
        let index = Arc::clone(&self.index);
        let end = self.buffer.len();
        let hold = if self.is_final { end } else { index.partial_anchor(&self.buffer, self.position) };
        let mut from = self.position;
        loop {
            let candidate = index.next_candidate(&self.buffer, from).filter(|&(at, _)| at < hold);
            let limit = candidate.map_or(hold, |(at, _)| at);
            if self.emit_until(limit, out).is_err() {
                return;
            }
            let Some((at, candidates)) = candidate else { return };
            self.start_planned(out);
            if self.match_candidates(candidates, out).is_err() {
                return;
            }
            from = at + 1;
        }
    }

    /// Writes or drops everything before `limit`.
    fn emit_until(&mut self, limit: usize, out: &mut Vec<u8>) -> Lookahead<()> {
        while self.position < limit {
            self.start_planned(out);
            let stop = self.planned.map_or(limit, |planned| planned.start.min(limit));
            if self.covered > self.position {
                self.move_to(self.covered.min(stop));
            } else if self.tail.is_some() {
                self.drop_tail(stop)?;
            } else {
                out.extend_from_slice(&self.buffer[self.position..stop]);
                self.move_to(stop);
            }
        }
        Ok(())
    }

    /// Covers the characters of the token that start before `stop`.
    fn drop_tail(&mut self, stop: usize) -> Lookahead<()> {
        let Some(mut tail) = self.tail.take() else { return Ok(()) };
        let mut at = self.position;
        let outcome = loop {
            if at >= stop {
                self.tail = Some(tail);
                break Ok(());
            }
            let text = Text { bytes: &self.buffer[at..], is_final: self.is_final };
            match tail.step(&text) {
                Ok(0) => break Ok(()),
                Ok(length) => at += length,
                Err(NeedMore) => {
                    self.tail = Some(tail);
                    break Err(NeedMore);
                }
            }
        };
        self.covered = at;
        self.move_to(at.min(stop));
        outcome
    }

    fn move_to(&mut self, position: usize) {
        self.line.advance(&self.buffer[self.position..position]);
        self.position = position;
    }

    fn match_candidates(&mut self, candidates: &Candidates, out: &mut Vec<u8>) -> Lookahead<()> {
        let (before, bytes) = self.buffer.split_at(self.position);
        let json = self.line.is_json(bytes[0]);
        if json && is_inside_escape(before, self.earlier_backslashes) {
            return Ok(());
        }
        let text = Text { bytes, is_final: self.is_final };
        let bare = self.line.is_bare(bytes[0]);
        let mut value_end = 0;
        for needle in candidates.needles.iter().map(|&index| &self.index.needles[index]) {
            if !(needle.bare && bare) {
                value_end = value_end.max(needle::matches(&needle.text, &text, json)?.unwrap_or(0));
            }
        }
        let mut found = None;
        // The text after a masked part starts a new word, whatever the part ended with.
        let at_boundary = is_boundary(before) || self.position <= self.covered;
        for format in &candidates.formats {
            if !format.needs_boundary() || at_boundary {
                found = found.or(format.find(&text, before.last().copied(), json)?);
            }
        }
        if value_end > 0 {
            self.cover(CredentialSpan { start: 0, end: value_end, kind: SecretKind::Env, tail: None }, out);
        }
        match found {
            Some(found) if found.start == 0 => self.cover(found, out),
            Some(found) => self.plan(found),
            None => {}
        }
        Ok(())
    }

    /// Covers a credential at the current position; inside a covered part no second marker is written.
    fn cover(&mut self, found: CredentialSpan, out: &mut Vec<u8>) {
        if self.covered <= self.position && self.tail.is_none() {
            out.extend_from_slice(found.kind.name().as_bytes());
        }
        self.covered = self.covered.max(self.position + found.end);
        // A key block extends further than a token found inside it.
        let in_block = matches!(self.tail, Some(TokenTail::Pem(_)));
        if !in_block || matches!(found.tail, Some(TokenTail::Pem(_))) {
            self.tail = found.tail.or(self.tail);
        }
    }

    fn plan(&mut self, found: CredentialSpan) {
        let (start, end) = (self.position + found.start, self.position + found.end);
        let planned = match self.planned {
            Some(earlier) => {
                CredentialSpan { start: earlier.start.min(start), end: earlier.end.max(end), ..earlier }
            }
            None => CredentialSpan { start, end, ..found },
        };
        self.planned = Some(planned);
    }

    fn start_planned(&mut self, out: &mut Vec<u8>) {
        if let Some(planned) = self.planned.take_if(|planned| planned.start <= self.position) {
            let end = planned.end - self.position;
            self.cover(CredentialSpan { start: 0, end, ..planned }, out);
        }
    }

    /// Drops decided bytes that are too far back to be inspected again.
    fn discard_decided(&mut self) {
        let count = self.position.saturating_sub(LOOK_BEHIND);
        let run = self.buffer[..count].iter().rev().take_while(|&&byte| byte == b'\\').count();
        self.earlier_backslashes = if run == count { run + self.earlier_backslashes } else { run };
        self.buffer.drain(..count);
        self.position -= count;
        self.covered = self.covered.saturating_sub(count);
        if let Some(planned) = &mut self.planned {
            planned.start -= count;
            planned.end -= count;
        }
    }
}
