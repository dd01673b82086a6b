//! Recognises credentials by their position: the password in a URL, and the value of an `Authorization`
//! header.

use super::credential::{CredentialSpan, SecretKind, TokenTail};
use super::text::{Class, Lookahead, MAX_BACKSLASHES, Text};

/// `authorization` is matched in any case, the others as written.
pub(super) const AUTHORIZATION: &[u8] = b"authorization";

const MAX_USER: usize = 256;
const MAX_PASSWORD: usize = 1024;
const MAX_BLANKS: usize = 16;
/// Schemes after which even a short word is a credential.
const SCHEMES: &[&[u8]] = &[b"bearer", b"basic", b"token", b"apikey", b"negotiate"];
const MIN_AFTER_SCHEME: usize = 8;
const MIN_ALONE: usize = 16;

/// The password in `://user:password@host`, from the colon on.
///
/// A password may itself contain `@`; the last one with a host behind it counts.
pub(super) fn url(text: &Text<'_>, previous: Option<u8>) -> Lookahead<Option<CredentialSpan>> {
    if !previous.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let mut at = 1;
    for _ in 0..2 {
        let run = text.backslashes(at)?;
        if run > MAX_BACKSLASHES || text.byte(at + run)? != Some(b'/') {
            return Ok(None);
        }
        at += run + 1;
    }
    let user = |byte: u8| byte.is_ascii_alphanumeric() || b"._~%!$&()*+,;=-".contains(&byte);
    at += text.run(at, MAX_USER, user)?;
    if text.byte(at)? != Some(b':') {
        return Ok(None);
    }
    let start = at + 1;
    let limit = start + MAX_PASSWORD;
    let mut end = None;
    at = start;
    while at < limit {
        at += text.run(at, limit - at, is_password_byte)?;
        if text.byte(at)? != Some(b'@') {
            break;
        }
        at += 1;
        if text.byte(at)?.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"[$_%".contains(&byte)) {
            end = Some(at - 1);
        }
    }
    let Some(end) = end.filter(|&end| end > start) else { return Ok(None) };
    let password = &text.bytes[start..end];
    // An already masked password stays unchanged.
    let masked = password.windows(10).any(|window| window == b"[REDACTED:");
    let found = CredentialSpan { start, end, kind: SecretKind::Url, tail: None };
    Ok((!masked && !is_placeholder(password)).then_some(found))
}

/// Whether the password is a placeholder of a script: `%s`, `$TOKEN` or `${token}`. Masking it would hide
/// nothing and break the script.
fn is_placeholder(password: &[u8]) -> bool {
    let braced = |rest: &'_ [u8]| {
        let name = rest.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
        name.is_some_and(|name| {
            !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    };
    // Without braces only the usual capitals count as a variable: `$ecret1` is a password.
    let bare = |rest: &[u8]| {
        rest.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_')
            && rest.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
    };
    password == b"%s" || password.strip_prefix(b"$").is_some_and(|rest| braced(rest) || bare(rest))
}

fn is_password_byte(byte: u8) -> bool {
    (byte.is_ascii_graphic() || !byte.is_ascii()) && !b"@\"'`\\/<>?#".contains(&byte)
}

/// The credential after `Authorization`, in a header line, an assignment, or a pair in (escaped) JSON.
pub(super) fn authorization(text: &Text<'_>) -> Lookahead<Option<CredentialSpan>> {
    if !text.starts_with_ignoring_case(0, AUTHORIZATION)? {
        return Ok(None);
    }
    let name_end = AUTHORIZATION.len();
    let mut at = quote(text, name_end)?;
    let quoted = at > name_end;
    at = blanks(text, at)?;
    match text.byte(at)? {
        Some(b':' | b'=') => at += 1,
        Some(b',') if quoted => at += 1,
        _ => return Ok(None),
    }
    at = blanks(text, at)?;
    at += usize::from(text.byte(at)? == Some(b'['));
    credential(text, quote(text, at)?)
}

/// `Scheme credential`, or a credential without a scheme if it is long enough.
fn credential(text: &Text<'_>, at: usize) -> Lookahead<Option<CredentialSpan>> {
    let found = |start, end| CredentialSpan {
        start,
        end,
        kind: SecretKind::Authorization,
        tail: Some(TokenTail::Token(Class::Header)),
    };
    let word = text.run(at, 25, |byte| byte.is_ascii_alphanumeric() || byte == b'-')?;
    let value = blanks(text, at + word)?;
    let is_scheme = (1..MIN_ALONE).contains(&word) || text.starts_with_ignoring_case(at, b"AWS4-")?;
    if is_scheme && value > at + word {
        let scheme = &text.bytes[at..at + word];
        let known = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let minimum = if known { MIN_AFTER_SCHEME } else { MIN_ALONE };
        return Ok(text.take(value, Class::Bearer, minimum)?.map(|end| found(value, end)));
    }
    if matches!(text.byte(at)?, Some(b'/' | b'.')) {
        return Ok(None);
    }
    Ok(text.take(at, Class::Bearer, MIN_ALONE)?.map(|end| found(at, end)))
}

fn blanks(text: &Text<'_>, at: usize) -> Lookahead<usize> {
    Ok(at + text.run(at, MAX_BLANKS, |byte| byte == b' ' || byte == b'\t')?)
}

/// The position after a quote, escaped or not, if there is one.
fn quote(text: &Text<'_>, at: usize) -> Lookahead<usize> {
    let run = text.backslashes(at)?;
    let quoted = run <= MAX_BACKSLASHES && matches!(text.byte(at + run)?, Some(b'"' | b'\''));
    Ok(if quoted { at + run + 1 } else { at })
}
