//! A position in one line of JSON. Values are passed over and checked, never parsed; a property test checks
//! that exactly what `serde_json` accepts is accepted.
//!
//! Nesting never recurses: open brackets are a list. A text that ends inside a value is
//! [`Ending::Truncated`], not [`Ending::Invalid`], so that the head of an over-long line can still be read.

use smallvec::SmallVec;

use super::text::{Ending, escape};

type Scan<T> = Result<T, Ending>;
/// For each open bracket, innermost last, whether it is that of an object.
type OpenBrackets = SmallVec<[bool; 32]>;
/// How many bytes of a long string are checked at a time.
const BLOCK: usize = 64;

/// Whether the text is one JSON value and nothing else.
pub(crate) fn is_json(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip().and_then(|_| scanner.end()).is_ok()
}

/// The end of the checked string at `start`, behind its quote.
pub(super) fn string_end(text: &str, start: usize) -> usize {
    let mut scanner = Scanner { text, pos: start };
    scanner.string().map_or(text.len(), |_| scanner.pos)
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Everything from the next token on.
    pub(super) fn rest(&mut self) -> &'a str {
        self.peek();
        self.text.get(self.pos..).unwrap_or_default()
    }

    pub(super) fn remaining(&self) -> usize {
        self.text.len() - self.pos
    }

    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let bytes = self.bytes();
        while let Some(byte) = bytes.get(self.pos) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.pos += 1;
        }
        None
    }

    #[inline]
    pub(super) fn take(&mut self, wanted: u8) -> Scan<()> {
        match self.peek() {
            Some(byte) if byte == wanted => {
                self.pos += 1;
                Ok(())
            }
            Some(_) => Err(Ending::Invalid),
            None => Err(Ending::Truncated),
        }
    }

    pub(super) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(Ending::Invalid) }
    }

    /// A key, still escaped, and its colon.
    #[inline]
    pub(super) fn key(&mut self) -> Scan<&'a str> {
        self.peek();
        let start = self.pos + 1;
        self.string()?;
        let key = self.text.get(start..self.pos - 1).ok_or(Ending::Invalid)?;
        self.take(b':')?;
        Ok(key)
    }

    /// Passes over a string; returns how many bytes longer its escapes are than their meaning.
    #[inline]
    fn string(&mut self) -> Scan<usize> {
        self.take(b'"')?;
        let bytes = self.bytes();
        let mut surplus = 0;
        // Most strings are shorter than a block, and are found to end sooner byte by byte.
        let mut blocks_from = self.pos + BLOCK;
        loop {
            if self.pos >= blocks_from {
                surplus += self.skip_blocks();
                blocks_from = self.pos + BLOCK;
            }
            self.pos = next_special(bytes, self.pos).ok_or(Ending::Truncated)?;
            match bytes[self.pos] {
                b'"' => break,
                b'\\' => {
                    let (length, meaning) = escape(bytes, self.pos)?;
                    surplus += length - meaning.len_utf8();
                    self.pos += length;
                }
                _ => return Err(Ending::Invalid),
            }
        }
        self.pos += 1;
        Ok(surplus)
    }

    /// Passes over the blocks of a string that need no closer look; returns the surplus of their escapes.
    fn skip_blocks(&mut self) -> usize {
        let bytes = self.bytes();
        // The second backslash of a pair would be taken for the beginning of an escape.
        if bytes[self.pos - 1] == b'\\' {
            return 0;
        }
        let mut surplus = 0;
        while let Some(window) = bytes.get(self.pos - 1..).and_then(<[u8]>::first_chunk)
            && let Some(escapes) = count_simple_escapes(window)
        {
            surplus += escapes;
            self.pos += BLOCK;
        }
        // An escape across the end of the last block is read again: its second half may not be simple.
        if bytes[self.pos - 1] == b'\\' {
            self.pos -= 1;
            surplus -= 1;
        }
        surplus
    }

    /// Passes over one value, checking its grammar; returns what [`Scanner::string`] returns, 0 for other
    /// values.
    #[inline]
    pub(super) fn skip(&mut self) -> Scan<usize> {
        match self.peek().ok_or(Ending::Truncated)? {
            b'"' => self.string(),
            b'{' | b'[' => self.skip_nested().map(|()| 0),
            _ => self.skip_scalar().map(|()| 0),
        }
    }

    fn skip_scalar(&mut self) -> Scan<()> {
        match self.peek().ok_or(Ending::Truncated)? {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => Err(Ending::Invalid),
        }
    }

    fn skip_nested(&mut self) -> Scan<()> {
        let mut open = OpenBrackets::new();
        loop {
            match self.peek().ok_or(Ending::Truncated)? {
                bracket @ (b'{' | b'[') => {
                    self.pos += 1;
                    let is_object = bracket == b'{';
                    if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                        self.pos += 1;
                    } else {
                        open.push(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                _ => self.skip_scalar()?,
            }
            if !self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value: closes brackets and moves to the next value; returns false if none follows.
    fn close(&mut self, open: &mut OpenBrackets) -> Scan<bool> {
        while let Some(&in_object) = open.last() {
            match self.peek().ok_or(Ending::Truncated)? {
                b',' => {
                    self.pos += 1;
                    if in_object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                b'}' if in_object => {}
                b']' if !in_object => {}
                _ => return Err(Ending::Invalid),
            }
            open.pop();
            self.pos += 1;
        }
        Ok(false)
    }

    fn literal(&mut self, word: &str) -> Scan<()> {
        let rest = &self.bytes()[self.pos..];
        if rest.starts_with(word.as_bytes()) {
            self.pos += word.len();
            Ok(())
        } else if word.as_bytes().starts_with(rest) {
            Err(Ending::Truncated)
        } else {
            Err(Ending::Invalid)
        }
    }

    fn number(&mut self) -> Scan<()> {
        let bytes = self.bytes();
        if bytes.get(self.pos) == Some(&b'-') {
            self.pos += 1;
        }
        if bytes.get(self.pos) == Some(&b'0') {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(bytes.get(self.pos), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(bytes.get(self.pos), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let rest = &self.bytes()[self.pos..];
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.pos += count;
        match (count, rest.is_empty()) {
            (0, true) => Err(Ending::Truncated),
            (0, false) => Err(Ending::Invalid),
            _ => Ok(()),
        }
    }
}

/// The number of escapes in a block, whose first byte here is the one before it; `None` if the block needs a
/// closer look: the string ends in it, or something else is in it than text and the escapes `\"`, `\n`, `\t`
/// and `\r`.
///
/// Text of commands has an escape every few words at unpredictable distances, so a branch for each would
/// often be mispredicted. This loop has none, and compilers turn it into vector instructions.
#[inline]
fn count_simple_escapes(window: &[u8; BLOCK + 1]) -> Option<usize> {
    let (mut needs_look, mut escapes) = (0, 0);
    for (previous, byte) in window[..BLOCK].iter().zip(&window[1..]) {
        let is_escaped = u8::from(*previous == b'\\');
        let is_quote = u8::from(*byte == b'"');
        let is_simple =
            is_quote | u8::from(*byte == b'n') | u8::from(*byte == b't') | u8::from(*byte == b'r');
        needs_look |= (is_escaped & (is_simple ^ 1)) | ((is_escaped ^ 1) & is_quote) | u8::from(*byte < 0x20);
        escapes += u8::from(*byte == b'\\');
    }
    (needs_look == 0).then_some(usize::from(escapes))
}

/// Where the next byte is that ends a string, begins an escape or must not be in a string. Looks at eight
/// bytes at a time; a call into memchr rarely pays off.
#[inline]
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    const LOW: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = LOW << 7;
    // Sets the high bit of every byte below `limit`, and of other bytes only if `word` has it too or above
    // the first.
    let below = |word: u64, limit: u8| word.wrapping_sub(LOW * u64::from(limit));
    let rest = bytes.get(from..)?;
    let chunks = rest.chunks_exact(8);
    let tail = chunks.remainder();
    for (index, chunk) in chunks.enumerate() {
        let word = u64::from_le_bytes(chunk.try_into().ok()?);
        let quote = below(word ^ (LOW * u64::from(b'"')), 1);
        let backslash = below(word ^ (LOW * u64::from(b'\\')), 1);
        let found = (quote | backslash | below(word, 0x20)) & !word & HIGH;
        if found != 0 {
            return Some(from + index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    Some(bytes.len() - tail.len() + tail.iter().position(is_special)?)
}
