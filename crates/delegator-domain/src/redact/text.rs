//! Reads ahead in a text of which only a part may have arrived.
//!
//! A matcher must decide the same however the text was split, so it never sees where the buffer ends: reading
//! past the end fails with [`NeedMore`], and the scanner runs the matcher again when more bytes have arrived.
//! Only in a finished stream does the end of the buffer count as the end of the text.

/// The decision depends on bytes that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeedMore;

pub(super) type Lookahead<T> = Result<T, NeedMore>;

/// More backslashes in a row are no escape that occurs in practice (five levels of JSON within JSON need 31).
pub(super) const MAX_BACKSLASHES: usize = 32;

/// The bytes from some position on; `is_final` when no more will arrive.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_final: bool,
}

/// Classes of bytes that tokens consist of. None contains a quote or a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Alnum,
    UpperDigit,
    /// Alphanumeric and `_`.
    Word,
    /// Alphanumeric, `_` and `-`.
    Dash,
    /// As `Dash`, and `.` between such characters: a full stop ends a sentence, not a token.
    Dotted,
    /// The characters of a bearer token in RFC 6750.
    Bearer,
    /// The characters that may follow in a header value that is known to be a credential.
    Header,
}

impl Class {
    pub(super) fn contains(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::UpperDigit => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Dash | Self::Dotted => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            Self::Bearer => byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte),
            Self::Header => byte.is_ascii_graphic() && !b"\"'`\\,;<>()[]{}".contains(&byte),
        }
    }
}

impl Text<'_> {
    /// The byte at `at`; `None` past the end of the whole text.
    pub(super) fn byte(&self, at: usize) -> Lookahead<Option<u8>> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None if self.is_final => Ok(None),
            None => Err(NeedMore),
        }
    }

    pub(super) fn starts_with(&self, at: usize, literal: &[u8]) -> Lookahead<bool> {
        self.compare(at, literal, |byte, wanted| byte == wanted)
    }

    pub(super) fn starts_with_ignoring_case(&self, at: usize, literal: &[u8]) -> Lookahead<bool> {
        self.compare(at, literal, |byte, wanted| byte.eq_ignore_ascii_case(&wanted))
    }

    fn compare(&self, at: usize, literal: &[u8], same: fn(u8, u8) -> bool) -> Lookahead<bool> {
        for (index, &wanted) in literal.iter().enumerate() {
            match self.byte(at + index)? {
                Some(byte) if same(byte, wanted) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Number of bytes from `at` on that satisfy `accept`, at most `max`.
    pub(super) fn run(&self, at: usize, max: usize, accept: impl Fn(u8) -> bool) -> Lookahead<usize> {
        let mut count = 0;
        while count < max && self.byte(at + count)?.is_some_and(&accept) {
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn backslashes(&self, at: usize) -> Lookahead<usize> {
        self.run(at, MAX_BACKSLASHES + 1, |byte| byte == b'\\')
    }

    /// Length of the character of `class` at `at`; 0 if there is none. JSON may write `/` as `\/`.
    pub(super) fn unit(&self, at: usize, class: Class) -> Lookahead<usize> {
        match self.byte(at)? {
            Some(b'\\') if class.contains(b'/') => {
                let run = self.backslashes(at)?;
                let slash = run <= MAX_BACKSLASHES && self.byte(at + run)? == Some(b'/');
                Ok(if slash { run + 1 } else { 0 })
            }
            Some(b'.') if class == Class::Dotted => {
                Ok(usize::from(self.byte(at + 1)?.is_some_and(|next| Class::Dash.contains(next))))
            }
            Some(byte) => Ok(usize::from(class.contains(byte))),
            None => Ok(0),
        }
    }

    /// The position after `count` characters of `class`, if there are that many.
    pub(super) fn take(&self, at: usize, class: Class, count: usize) -> Lookahead<Option<usize>> {
        let mut end = at;
        for _ in 0..count {
            match self.unit(end, class)? {
                0 => return Ok(None),
                length => end += length,
            }
        }
        Ok(Some(end))
    }

    /// The value of that many hexadecimal digits.
    pub(super) fn hex(&self, at: usize, digits: usize) -> Lookahead<Option<u32>> {
        let mut value = 0;
        for index in 0..digits {
            match self.byte(at + index)?.and_then(|byte| char::from(byte).to_digit(16)) {
                Some(digit) => value = value << 4 | digit,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }
}
