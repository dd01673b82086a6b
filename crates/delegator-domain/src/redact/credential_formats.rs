//! Recognises credentials by their format.
//!
//! Every format has an anchor, a literal by which the automaton finds it, and a matcher that reads on from
//! there. Minimum lengths are well below those of real tokens but above anything that occurs in prose, CSS
//! classes or package names. A matcher decides from the text alone, so splitting the stream elsewhere cannot
//! change its result. Each matcher reads a bounded distance.

use super::credential::{CredentialSpan, Pem, SecretKind, TokenTail};
use super::text::{Class, Lookahead, Text};
use super::url_and_header::{self, AUTHORIZATION};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenFormat {
    Sk,
    GitHub,
    GitHubServer,
    GitHubPat,
    Aws,
    GoogleKey,
    GoogleAccess,
    GoogleClient,
    Slack,
    SlackApp,
    Npm,
    PyPi,
    Jwt,
    Pem,
    Url,
    Authorization,
}

pub(super) const ANCHORS: &[(&[u8], TokenFormat)] = &[
    (b"sk-", TokenFormat::Sk),
    (b"ghp_", TokenFormat::GitHub),
    (b"gho_", TokenFormat::GitHub),
    (b"ghu_", TokenFormat::GitHub),
    (b"ghr_", TokenFormat::GitHub),
    (b"ghs_", TokenFormat::GitHubServer),
    (b"github_pat_", TokenFormat::GitHubPat),
    (b"AKIA", TokenFormat::Aws),
    (b"ASIA", TokenFormat::Aws),
    (b"AIza", TokenFormat::GoogleKey),
    (b"ya29.", TokenFormat::GoogleAccess),
    (b"GOCSPX-", TokenFormat::GoogleClient),
    (b"xox", TokenFormat::Slack),
    (b"xapp-", TokenFormat::SlackApp),
    (b"npm_", TokenFormat::Npm),
    (b"pypi-", TokenFormat::PyPi),
    (b"eyJ", TokenFormat::Jwt),
    (b"-----BEGIN ", TokenFormat::Pem),
    (b"://", TokenFormat::Url),
    (b":\\/", TokenFormat::Url),
    (b":\\\\/", TokenFormat::Url),
    (b":\\\\\\/", TokenFormat::Url),
    (AUTHORIZATION, TokenFormat::Authorization),
];

/// Maximum length of the header or payload of a JWT.
const JWT_PART: usize = 4096;

/// Prefixes after `sk-` of keys whose random part may contain dashes.
const SK_PREFIXES: &[&[u8]] = &[b"proj-", b"svcacct-", b"admin-", b"None-", b"or-v1-"];

impl TokenFormat {
    /// Whether the anchor must be at the start of a word.
    pub(super) fn needs_boundary(self) -> bool {
        !matches!(self, Self::Pem | Self::Url | Self::Authorization)
    }

    /// Matches from the anchor on; `previous` is the byte before it.
    pub(super) fn find(
        self,
        text: &Text<'_>,
        previous: Option<u8>,
        json: bool,
    ) -> Lookahead<Option<CredentialSpan>> {
        match self {
            Self::Sk => sk(text),
            Self::GitHub => token(text, b"gh?_", Class::Word, 20, SecretKind::GitHub),
            Self::GitHubServer => {
                Ok(token(text, b"ghs_", Class::Word, 20, SecretKind::GitHub)?.map(|found| found.dotted()))
            }
            Self::GitHubPat => token(text, b"github_pat_", Class::Word, 20, SecretKind::GitHub),
            Self::Aws => aws(text),
            Self::GoogleKey => token(text, b"AIza", Class::Dash, 30, SecretKind::Google),
            Self::GoogleAccess => {
                Ok(token(text, b"ya29.", Class::Dash, 20, SecretKind::Google)?.map(|found| found.dotted()))
            }
            Self::GoogleClient => token(text, b"GOCSPX-", Class::Dash, 20, SecretKind::Google),
            Self::Slack => token(text, b"xox?-", Class::Dash, 10, SecretKind::Slack),
            Self::SlackApp => token(text, b"xapp-", Class::Dash, 10, SecretKind::Slack),
            Self::Npm => token(text, b"npm_", Class::Alnum, 30, SecretKind::Npm),
            Self::PyPi => pypi(text),
            Self::Jwt => jwt(text, previous),
            Self::Pem => pem(text, json),
            Self::Url => url_and_header::url(text, previous),
            Self::Authorization => url_and_header::authorization(text),
        }
    }
}

/// `prefix`, where `?` stands for a lower-case letter, and at least `minimum` characters of `class`.
fn token(
    text: &Text<'_>,
    prefix: &[u8],
    class: Class,
    minimum: usize,
    kind: SecretKind,
) -> Lookahead<Option<CredentialSpan>> {
    for (at, &wanted) in prefix.iter().enumerate() {
        match text.byte(at)? {
            Some(byte) if byte == wanted || (wanted == b'?' && byte.is_ascii_lowercase()) => {}
            _ => return Ok(None),
        }
    }
    Ok(text.take(prefix.len(), class, minimum)?.map(|end| CredentialSpan::whole(end, kind, class)))
}

fn sk(text: &Text<'_>) -> Lookahead<Option<CredentialSpan>> {
    if !text.starts_with(0, b"sk-")? {
        return Ok(None);
    }
    if text.starts_with(3, b"ant-")? {
        return token(text, b"sk-ant-", Class::Dash, 16, SecretKind::Anthropic);
    }
    for prefix in SK_PREFIXES {
        if text.starts_with(3, prefix)? {
            let end = text.take(3 + prefix.len(), Class::Dash, 16)?;
            return Ok(end.map(|end| CredentialSpan::whole(end, SecretKind::OpenAi, Class::Dash)));
        }
    }
    // Without a known prefix, an early dash means a CSS class or a slug.
    let end = text.take(3, Class::Alnum, 20)?;
    Ok(end.map(|end| CredentialSpan::whole(end, SecretKind::OpenAi, Class::Dash)))
}

/// Exactly sixteen characters: a longer run of capitals is something else.
fn aws(text: &Text<'_>) -> Lookahead<Option<CredentialSpan>> {
    if !text.starts_with(0, b"AKIA")? && !text.starts_with(0, b"ASIA")? {
        return Ok(None);
    }
    let Some(end) = text.take(4, Class::UpperDigit, 16)? else { return Ok(None) };
    let longer = text.byte(end)?.is_some_and(|byte| byte.is_ascii_alphanumeric());
    Ok((!longer).then_some(CredentialSpan { start: 0, end, kind: SecretKind::Aws, tail: None }))
}

/// Tokens start with a serialised macaroon, `AgE…`; any other text must be too long and unbroken for a
/// package name.
fn pypi(text: &Text<'_>) -> Lookahead<Option<CredentialSpan>> {
    if text.starts_with(0, b"pypi-AgE")? {
        return token(text, b"pypi-", Class::Dash, 16, SecretKind::PyPi);
    }
    let found = token(text, b"pypi-", Class::Word, 24, SecretKind::PyPi)?;
    Ok(found.map(|found| CredentialSpan { tail: Some(TokenTail::Token(Class::Dash)), ..found }))
}

/// Two parts that are both JSON objects are enough; an encrypted second part needs a third.
fn jwt(text: &Text<'_>, previous: Option<u8>) -> Lookahead<Option<CredentialSpan>> {
    let dash = |byte| Class::Dash.contains(byte);
    if !text.starts_with(0, b"eyJ")? {
        return Ok(None);
    }
    // Lower limit inside a run of token characters, where the same bytes would be read repeatedly.
    let longest = if previous.is_some_and(dash) { JWT_PART / 16 } else { JWT_PART };
    let header = text.run(0, longest, dash)?;
    if header < 12 || text.byte(header)? != Some(b'.') {
        return Ok(None);
    }
    let payload = header + 1;
    let end = if text.starts_with(payload, b"eyJ")? {
        text.take(payload, Class::Dash, 10)?
    } else {
        let length = text.run(payload, JWT_PART, dash)?;
        if length < 10 || text.byte(payload + length)? != Some(b'.') {
            return Ok(None);
        }
        text.take(payload + length + 1, Class::Dash, 10)?
    };
    Ok(end.map(|end| CredentialSpan::whole(end, SecretKind::Jwt, Class::Dotted)))
}

fn pem(text: &Text<'_>, json: bool) -> Lookahead<Option<CredentialSpan>> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    if !text.starts_with(0, BEGIN)? {
        return Ok(None);
    }
    let label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let end = BEGIN.len() + text.run(BEGIN.len(), 40, label)?;
    if !text.starts_with(end, b"-----")? {
        return Ok(None);
    }
    let label = &text.bytes[BEGIN.len()..end];
    let private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    let tail = Some(TokenTail::Pem(Pem::new(!json)));
    Ok(private.then_some(CredentialSpan { start: 0, end: end + 5, kind: SecretKind::Pem, tail }))
}
