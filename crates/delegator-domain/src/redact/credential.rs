//! A recognised credential: its kind and its position, and how the rest of it is dropped when its marker is
//! written.
//!
//! A token is recognised after a minimum length and may be of any length, so the rest is dropped character by
//! character with a state of fixed size. A private key is dropped line by line up to its `-----END …-----`.
//! If that is missing, the first character that cannot be part of a key ends it: a quote, a space inside a
//! line, in JSON a raw line break, and elsewhere a line break before a line that cannot be part of a key, so
//! that this line stays intact. Line numbers (`12→`, `12<tab>`) and indentation count as part of the key,
//! because agents print files that way.

use super::text::{Class, Lookahead, MAX_BACKSLASHES, Text};
use crate::named_enum::named_enum;

named_enum! {
    /// The kind of a masked secret. Its name is the marker that replaces the secret.
    pub(super) enum SecretKind {
        Env = "[REDACTED:env]",
        OpenAi = "[REDACTED:openai]",
        Anthropic = "[REDACTED:anthropic]",
        GitHub = "[REDACTED:github]",
        Aws = "[REDACTED:aws]",
        Google = "[REDACTED:google]",
        Slack = "[REDACTED:slack]",
        Npm = "[REDACTED:npm]",
        PyPi = "[REDACTED:pypi]",
        Jwt = "[REDACTED:jwt]",
        Pem = "[REDACTED:pem]",
        Url = "[REDACTED:url]",
        Authorization = "[REDACTED:authorization]",
    }
}

/// Position of a recognised credential, in bytes from the anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct CredentialSpan {
    /// Where the credential starts; the text before it, such as the name of a header, is not masked.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: SecretKind,
    /// How the credential continues after `end`.
    pub(super) tail: Option<TokenTail>,
}

impl CredentialSpan {
    pub(super) fn whole(end: usize, kind: SecretKind, class: Class) -> Self {
        Self { start: 0, end, kind, tail: Some(TokenTail::Token(class)) }
    }

    pub(super) fn dotted(self) -> Self {
        Self { tail: Some(TokenTail::Token(Class::Dotted)), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenTail {
    Token(Class),
    Pem(Pem),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pem {
    /// Whether raw line breaks belong to the key (plain text) or end it (JSON).
    multiline: bool,
    /// Whether a space may follow: after a line break, blank, `:` or `,`.
    gap: bool,
    dashes: u8,
    in_end_line: bool,
}

impl Pem {
    pub(super) fn new(multiline: bool) -> Self {
        Self { multiline, gap: true, dashes: 0, in_end_line: false }
    }
}

impl TokenTail {
    /// Length of the next character to drop; 0 when the token has ended.
    pub(super) fn step(&mut self, text: &Text<'_>) -> Lookahead<usize> {
        match self {
            Self::Token(class) => text.unit(0, *class),
            Self::Pem(pem) => pem.step(text),
        }
    }
}

impl Pem {
    fn step(&mut self, text: &Text<'_>) -> Lookahead<usize> {
        let Some(byte) = text.byte(0)? else { return Ok(0) };
        if self.in_end_line {
            return Ok(self.end_line(byte));
        }
        let length = match byte {
            b'\\' => escape_length(text)?,
            0xe2 if text.starts_with(0, "→".as_bytes())? => 3,
            b'\n' | b'\r' => usize::from(self.multiline && key_continues(text)?),
            b' ' => usize::from(self.gap),
            b'\t' | b'+' | b'/' | b'=' | b':' | b',' | b'-' => 1,
            _ => usize::from(byte.is_ascii_alphanumeric()),
        };
        if length > 0 {
            self.in_end_line = byte == b'E' && self.dashes >= 5;
            self.gap = matches!(byte, b'\n' | b'\r' | b'\t' | b' ' | b':' | b',' | b'\\' | 0xe2);
            self.dashes = if byte == b'-' { self.dashes.saturating_add(1) } else { 0 };
        }
        Ok(length)
    }

    fn end_line(&mut self, byte: u8) -> usize {
        // Five dashes end the line; the text after them is not part of the key.
        if self.dashes == 5 {
            return 0;
        }
        self.dashes = if byte == b'-' { self.dashes + 1 } else { 0 };
        usize::from(byte == b'-' || byte == b' ' || byte.is_ascii_uppercase() || byte.is_ascii_digit())
    }
}

/// Maximum white space between two lines of a key.
const MAX_BLANK: usize = 64;

/// Whether the key can continue after this line break.
fn key_continues(text: &Text<'_>) -> Lookahead<bool> {
    for at in 1..=MAX_BLANK {
        match text.byte(at)? {
            Some(b' ' | b'\t' | b'\n' | b'\r') => {}
            Some(b'+' | b'/' | b'=' | b'-') => return Ok(true),
            Some(byte) => return Ok(byte.is_ascii_alphanumeric()),
            None => return Ok(false),
        }
    }
    Ok(false)
}

/// Length of a line break, tab or slash as JSON escapes it, at any nesting depth; 0 for anything else.
fn escape_length(text: &Text<'_>) -> Lookahead<usize> {
    let run = text.backslashes(0)?;
    if run > MAX_BACKSLASHES {
        return Ok(0);
    }
    let known = matches!(text.byte(run)?, Some(b'n' | b'r' | b't' | b'/'));
    Ok(if known { run + 1 } else { 0 })
}
