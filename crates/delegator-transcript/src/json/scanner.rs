//! A position in one line of JSON. Values are passed over and checked, never parsed; a property test checks that exactly
//! what `serde_json` accepts is accepted.
//!
//! Nesting never recurses: open brackets are bits in a [`Nesting`] stack. A text that ends inside a value is
//! [`Ending::Truncated`], not [`Ending::Invalid`], so that the head of an over-long line can still be read.

use super::Ending;
use super::nesting::Nesting;

type Scan<T> = Result<T, Ending>;

/// Whether the text is one JSON value and nothing else.
pub(crate) fn is_json(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip().and_then(|()| scanner.end()).is_ok()
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pos: usize,
    /// Whether the line has any byte below 0x20. Only then are strings searched for them.
    has_controls: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // A fold without early exit is vectorised, which is cheaper than checking every string.
        let has_controls =
            text.as_bytes().chunks(64).any(|c| c.iter().fold(false, |any, b| any | (*b < 0x20)));
        Self { text, pos: 0, has_controls }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Everything from the next token on.
    pub(super) fn rest(&mut self) -> &'a str {
        self.peek();
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// Number of bytes that were not passed yet.
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

    /// Nothing but white space is left.
    pub(super) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(Ending::Invalid) }
    }

    /// A key, still escaped, and its colon.
    #[inline]
    pub(super) fn key(&mut self) -> Scan<&'a str> {
        let key = self.string()?;
        self.take(b':')?;
        Ok(key)
    }

    /// The inside of a string.
    #[inline]
    fn string(&mut self) -> Scan<&'a str> {
        self.take(b'"')?;
        let start = self.pos;
        let found = self.find_string_end(start);
        let inside = self.text.get(start..found.unwrap_or(self.text.len())).ok_or(Ending::Invalid)?;
        if self.has_controls && inside.bytes().any(|byte| byte < 0x20) {
            return Err(Ending::Invalid);
        }
        self.pos = found? + 1;
        Ok(inside)
    }

    #[inline]
    fn find_string_end(&self, start: usize) -> Scan<usize> {
        let bytes = self.bytes();
        let mut at = start;
        loop {
            at = next_quote_or_backslash(bytes, at).ok_or(Ending::Truncated)?;
            if bytes[at] == b'"' {
                return Ok(at);
            }
            match bytes.get(at + 1) {
                Some(b'n' | b't' | b'"' | b'\\' | b'r' | b'/' | b'b' | b'f') => at += 2,
                Some(b'u') => {
                    let digits = bytes.get(at + 2..).unwrap_or_default();
                    match digits.iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count() {
                        4 => at += 6,
                        count if count == digits.len() => return Err(Ending::Truncated),
                        _ => return Err(Ending::Invalid),
                    }
                }
                Some(_) => return Err(Ending::Invalid),
                None => return Err(Ending::Truncated),
            }
        }
    }

    /// Passes over one value, checking its grammar.
    #[inline]
    pub(super) fn skip(&mut self) -> Scan<()> {
        match self.peek().ok_or(Ending::Truncated)? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.skip_nested(),
            _ => self.skip_scalar(),
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
        let mut open = Nesting::default();
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
    fn close(&mut self, open: &mut Nesting) -> Scan<bool> {
        while let Some(in_object) = open.innermost_is_object() {
            match self.peek().ok_or(Ending::Truncated)? {
                b',' => {
                    self.pos += 1;
                    if in_object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                b'}' if in_object => open.pop(),
                b']' if !in_object => open.pop(),
                _ => return Err(Ending::Invalid),
            }
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

    /// One digit or more.
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

/// Where the next `"` or `\\` is. Keys and ids are short, and text of commands has an escape every few words, so the
/// first bytes are looked at here, eight at a time; a call into memchr pays off only beyond.
#[inline]
fn next_quote_or_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    const LOW: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = LOW << 7;
    // Sets the high bit of every zero byte; bytes above the first zero may be set wrongly, the first never is.
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let mut at = from;
    for chunk in bytes.get(from..)?.chunks_exact(8).take(8) {
        let word = u64::from_le_bytes(chunk.try_into().ok()?);
        let found = zeros(word ^ (LOW * b'"' as u64)) | zeros(word ^ (LOW * b'\\' as u64));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + memchr::memchr2(b'"', b'\\', &bytes[at..])?)
}
