//! A JSON reader for lines of which most values are skipped.
//!
//! An agent's line is one object of which only a few short fields are needed; a command's output may be a megabyte. So
//! [`Cursor`] walks the text once, returns strings as borrowed, still escaped [`Text`] and values as raw slices, and
//! checks the grammar of everything it skips. A property test checks that it accepts exactly what `serde_json` accepts.
//!
//! Nesting never recurses: open brackets are bits in a [`Nesting`] stack. A text that ends inside a value is
//! [`ScanError::Truncated`], not [`ScanError::Syntax`], so that the head of an over-long line can still be read.

mod nesting;
pub(crate) mod text;
pub(crate) mod unique;
pub(crate) mod write;

use nesting::Nesting;
pub use text::Text;

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// Not JSON.
    Syntax,
    /// JSON so far, but the text ended inside a value.
    Truncated,
}

pub(crate) type Scan<T> = Result<T, ScanError>;

/// A position in one line of JSON.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
    /// Whether the line has any byte below 0x20. Only then are strings searched for them.
    has_controls: bool,
    /// The string at which a truncated text ends.
    partial: Option<Text<'a>>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        // A fold without early exit is vectorised, which is cheaper than checking every string.
        let has_controls =
            text.as_bytes().chunks(64).any(|c| c.iter().fold(false, |any, b| any | (*b < 0x20)));
        Self { text, pos: 0, has_controls, partial: None }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The available part of the string at which a truncated text ends.
    pub(crate) fn take_partial(&mut self) -> Option<Text<'a>> {
        self.partial.take()
    }

    /// Everything from here on.
    pub(crate) fn rest(&mut self) -> &'a str {
        self.peek();
        self.text.get(self.pos..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.bytes();
        while let Some(byte) = bytes.get(self.pos) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.pos += 1;
        }
        None
    }

    fn take(&mut self, wanted: u8) -> Scan<()> {
        match self.peek() {
            Some(byte) if byte == wanted => {
                self.pos += 1;
                Ok(())
            }
            Some(_) => Err(ScanError::Syntax),
            None => Err(ScanError::Truncated),
        }
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(ScanError::Syntax) }
    }

    /// Reads an object, calling `field` with each key, the cursor standing before the value, which `field` consumes.
    #[inline]
    pub(crate) fn object(&mut self, mut field: impl FnMut(&mut Self, &Text<'a>) -> Scan<()>) -> Scan<()> {
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.pos += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.take(b':')?;
            field(self, &key)?;
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(_) => return Err(ScanError::Syntax),
                None => return Err(ScanError::Truncated),
            }
        }
    }

    /// Reads an array, calling `element` before each element, which it consumes.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.take(b'[')?;
        if self.peek() == Some(b']') {
            self.pos += 1;
            return Ok(());
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.pos += 1,
                Some(b']') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(_) => return Err(ScanError::Syntax),
                None => return Err(ScanError::Truncated),
            }
        }
    }

    /// A string that must be there.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<Text<'a>> {
        self.take(b'"')?;
        let start = self.pos;
        let (end, saved) = match self.find_string_end(start) {
            Ok(found) => found,
            Err(ScanError::Truncated) => {
                let raw = self.text.get(start..).unwrap_or_default();
                self.refuse_controls(raw)?;
                self.pos = self.text.len();
                self.partial = Some(Text::cut_json(raw));
                return Err(ScanError::Truncated);
            }
            Err(fault) => return Err(fault),
        };
        let raw = self.text.get(start..end).ok_or(ScanError::Syntax)?;
        self.refuse_controls(raw)?;
        self.pos = end + 1;
        Ok(Text::json(raw, raw.len() - saved))
    }

    fn refuse_controls(&self, raw: &str) -> Scan<()> {
        let refused = self.has_controls && raw.bytes().any(|byte| byte < 0x20);
        if refused { Err(ScanError::Syntax) } else { Ok(()) }
    }

    /// Finds the closing quote. Also returns how many bytes shorter the string is with its escapes resolved.
    #[inline]
    fn find_string_end(&self, start: usize) -> Scan<(usize, usize)> {
        let bytes = self.bytes();
        let mut at = start;
        let mut saved = 0;
        loop {
            at = next_quote_or_backslash(bytes, at).ok_or(ScanError::Truncated)?;
            if bytes[at] == b'"' {
                return Ok((at, saved));
            }
            match bytes.get(at + 1) {
                Some(b'n' | b't' | b'"' | b'\\' | b'r' | b'/' | b'b' | b'f') => {
                    saved += 1;
                    at += 2;
                }
                Some(b'u') => {
                    let (length, decoded) = text::unicode_escape(bytes, at)?;
                    saved += length - decoded.len_utf8();
                    at += length;
                }
                Some(_) => return Err(ScanError::Syntax),
                None => return Err(ScanError::Truncated),
            }
        }
    }

    /// A string, or nothing when the value is something else (an agent may write `null` for what is absent).
    #[inline]
    pub(crate) fn text(&mut self) -> Scan<Option<Text<'a>>> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// A whole number, or nothing. Beyond 64 bits it stays at the end of the range.
    pub(crate) fn integer(&mut self) -> Scan<Option<i64>> {
        let raw = self.raw()?;
        Ok(raw.parse::<i64>().ok().or_else(|| {
            let looks_numeric = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            // `as` saturates, which is what is wanted of 1e999.
            looks_numeric.then(|| raw.parse::<f64>().ok().map(|n| n as i64)).flatten()
        }))
    }

    pub(crate) fn boolean(&mut self) -> Scan<Option<bool>> {
        Ok(match self.raw()? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    /// Any value, as it stands in the line.
    pub(crate) fn raw(&mut self) -> Scan<&'a str> {
        self.peek().ok_or(ScanError::Truncated)?;
        let start = self.pos;
        self.skip()?;
        self.text.get(start..self.pos).ok_or(ScanError::Syntax)
    }

    /// Any value but `null`, as it stands in the line.
    pub(crate) fn raw_unless_null(&mut self) -> Scan<Option<&'a str>> {
        Ok(Some(self.raw()?).filter(|raw| *raw != "null"))
    }

    /// Passes over one value, checking its grammar.
    pub(crate) fn skip(&mut self) -> Scan<()> {
        let mut open = Nesting::default();
        loop {
            match self.peek().ok_or(ScanError::Truncated)? {
                b'{' => {
                    self.pos += 1;
                    if self.peek() == Some(b'}') {
                        self.pos += 1;
                    } else {
                        open.push_object();
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.pos += 1;
                    if self.peek() == Some(b']') {
                        self.pos += 1;
                    } else {
                        open.push_array();
                        continue;
                    }
                }
                b'"' => {
                    self.string()?;
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => return Err(ScanError::Syntax),
            }
            if !self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value: closes brackets and moves to the next value; returns false if none follows.
    fn close(&mut self, open: &mut Nesting) -> Scan<bool> {
        while let Some(in_object) = open.innermost_is_object() {
            match self.peek().ok_or(ScanError::Truncated)? {
                b',' => {
                    self.pos += 1;
                    if in_object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                b'}' if in_object => open.pop(),
                b']' if !in_object => open.pop(),
                _ => return Err(ScanError::Syntax),
            }
            self.pos += 1;
        }
        Ok(false)
    }

    fn key(&mut self) -> Scan<()> {
        self.string()?;
        self.take(b':')
    }

    fn literal(&mut self, word: &str) -> Scan<()> {
        let rest = &self.bytes()[self.pos..];
        if rest.starts_with(word.as_bytes()) {
            self.pos += word.len();
            Ok(())
        } else if word.as_bytes().starts_with(rest) {
            Err(ScanError::Truncated)
        } else {
            Err(ScanError::Syntax)
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
            (0, true) => Err(ScanError::Truncated),
            (0, false) => Err(ScanError::Syntax),
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

/// Whether the text is one JSON value and nothing else.
pub(crate) fn is_json(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip().and_then(|()| cursor.end()).is_ok()
}

#[cfg(test)]
mod tests;
