//! Text that may still be JSON-escaped.
//!
//! Most strings of a stream are never used. A [`Text`] is therefore a borrowed slice of the line with its
//! escapes, which are resolved only on demand. Truncation works on the escaped form and never ends inside an
//! escape or a character.

use std::borrow::Cow;

/// How the text of an object ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// JSON so far, but the text ended inside a value.
    Truncated,
    Invalid,
}

/// A string of an event: borrowed from the line and still escaped, or our own.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// The inside of a JSON string literal as it stands in the line, checked, and the length of the resolved
    /// text.
    Json(&'a str, usize),
    Plain(Cow<'a, str>),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Plain(Cow::Borrowed(""))
    }
}

impl<'a> Text<'a> {
    /// The inside of a checked string literal whose escapes have not been counted.
    pub(crate) fn json(raw: &'a str) -> Self {
        Self::Json(raw, unescape(raw).len())
    }

    /// The beginning of a string literal whose end is missing; a half escape at the end is dropped.
    pub(super) fn cut_json(raw: &'a str) -> Self {
        Self::json(raw.get(..head_end(raw, raw.len())).unwrap_or_default())
    }

    /// The end of a string literal whose beginning is missing. `at` may be in the middle of an escape.
    pub(crate) fn cut_json_tail(raw: &'a str, at: usize) -> Self {
        Self::json(raw.get(tail_start(raw, at)..).unwrap_or_default())
    }

    pub fn owned(text: impl Into<String>) -> Self {
        Self::Plain(Cow::Owned(text.into()))
    }

    pub fn plain(text: &'a str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }

    /// The texts with a separator between them; a single text stays as it is.
    pub(crate) fn joined(texts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        match <[Self; 1]>::try_from(texts.into_iter().collect::<Vec<_>>()) {
            Ok([text]) => text,
            Err(texts) => Self::owned(texts.iter().map(Text::resolve).collect::<Vec<_>>().join(separator)),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Json(_, len) => *len,
            Self::Plain(text) => text.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stored().0.is_empty()
    }

    /// The resolved text; borrowed when nothing had to be resolved.
    pub fn resolve(&self) -> Cow<'_, str> {
        match self {
            Self::Json(raw, len) if *len < raw.len() => Cow::Owned(unescape(raw)),
            Self::Json(raw, _) => Cow::Borrowed(raw),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }

    pub fn into_owned(self) -> Text<'static> {
        Text::Plain(Cow::Owned(self.resolve().into_owned()))
    }

    /// The text if no escapes need to be resolved: sufficient for keys and type names.
    #[inline]
    pub(crate) fn simple(&self) -> Option<&str> {
        match self {
            // Every escape is longer than its meaning.
            Self::Json(raw, len) => (*len == raw.len()).then_some(*raw),
            Self::Plain(text) => Some(text),
        }
    }

    /// The text as the inside of a JSON string literal where it already is one, and whether it is.
    pub(crate) fn stored(&self) -> (&str, bool) {
        match self {
            Self::Json(raw, _) => (raw, true),
            Self::Plain(text) => (text, false),
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.resolve() == other.resolve()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.resolve() == other
    }
}

/// `inProgress` as `in_progress`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Reads `\uXXXX`, or a pair of them, at `at`: how long it is and which character it means. Half a surrogate
/// pair is grammatical JSON without meaning and becomes U+FFFD.
fn unicode_escape(bytes: &[u8], at: usize) -> Result<(usize, char), Ending> {
    let first = hex4(bytes, at + 2)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((6, character));
    }
    let is_high = (0xD800..0xDC00).contains(&first);
    let next_is_escape = bytes.get(at + 6..at + 8) == Some(br"\u");
    if is_high
        && next_is_escape
        && let Ok(second @ 0xDC00..0xE000) = hex4(bytes, at + 8)
    {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Ok((12, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)));
    }
    Ok((6, char::REPLACEMENT_CHARACTER))
}

fn hex4(bytes: &[u8], at: usize) -> Result<u32, Ending> {
    let mut code = 0;
    for index in at..at + 4 {
        let digit =
            char::from(*bytes.get(index).ok_or(Ending::Truncated)?).to_digit(16).ok_or(Ending::Invalid)?;
        code = code << 4 | digit;
    }
    Ok(code)
}

/// Resolves the escapes of a checked literal. A broken escape (only possible at a cut) ends the text.
pub(crate) fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(step) = memchr::memchr(b'\\', &raw.as_bytes()[at..]) {
        text.push_str(raw.get(at..at + step).unwrap_or_default());
        at += step;
        let Ok((length, character)) = escape(raw.as_bytes(), at) else { return text };
        text.push(character);
        at += length;
    }
    text.push_str(raw.get(at..).unwrap_or_default());
    text
}

/// The escape at `at`: its length and its meaning.
#[inline(always)]
pub(super) fn escape(bytes: &[u8], at: usize) -> Result<(usize, char), Ending> {
    Ok(match bytes.get(at + 1).ok_or(Ending::Truncated)? {
        b'n' => (2, '\n'),
        b't' => (2, '\t'),
        b'r' => (2, '\r'),
        b'b' => (2, '\u{8}'),
        b'f' => (2, '\u{c}'),
        b'u' => unicode_escape(bytes, at)?,
        byte @ (b'"' | b'\\' | b'/') => (2, char::from(*byte)),
        _ => return Err(Ending::Invalid),
    })
}

/// The largest place at or before `at` where an escaped text can be ended.
pub(crate) fn head_end(raw: &str, at: usize) -> usize {
    let at = raw.floor_char_boundary(at);
    match escape_across(raw.as_bytes(), at) {
        Some((start, _)) => start,
        None => at,
    }
}

/// The smallest place at or after `at` where an escaped text can begin.
pub(crate) fn tail_start(raw: &str, at: usize) -> usize {
    let at = raw.ceil_char_boundary(at);
    match escape_across(raw.as_bytes(), at) {
        Some((_, end)) => end.min(raw.len()),
        None => at,
    }
}

/// The escape that begins before `at` and ends after it, if there is one.
fn escape_across(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    (at.saturating_sub(11)..at).find_map(|start| {
        let slashes = bytes.get(..=start)?.iter().rev().take_while(|b| **b == b'\\').count();
        // An even run is a row of escaped backslashes: the one at `start` is then the second of its pair.
        if slashes % 2 == 0 {
            return None;
        }
        let length = match escape(bytes, start) {
            Ok((length, _)) => length,
            Err(Ending::Truncated) => bytes.len() - start + 1,
            Err(_) => 2,
        };
        (start + length > at).then_some((start, start + length))
    })
}
