//! Credentials that are recognised by their form.
//!
//! Every format has an anchor, a literal by which the automaton finds it, and a matcher that reads on from
//! there until it is sure. Minimum lengths are well below those of real tokens but above anything that occurs
//! in prose, CSS classes or package names. A matcher answers from the text alone, so cutting the stream
//! elsewhere cannot change the answer; each reads a bounded distance before it decides.

use super::text::{Answer, Class, Text};
use super::web;
use super::{Kind, swallow::Pem, swallow::Swallow};

/// A recognised credential, in bytes from the anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Text before the credential that stays, such as the name of a header.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// How the credential goes on.
    pub(super) rest: Option<Swallow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
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

/// `authorization` is matched in any case, the others as written.
pub(super) const AUTHORIZATION: &[u8] = b"authorization";

pub(super) const ANCHORS: &[(&[u8], Shape)] = &[
    (b"sk-", Shape::Sk),
    (b"ghp_", Shape::GitHub),
    (b"gho_", Shape::GitHub),
    (b"ghu_", Shape::GitHub),
    (b"ghr_", Shape::GitHub),
    (b"ghs_", Shape::GitHubServer),
    (b"github_pat_", Shape::GitHubPat),
    (b"AKIA", Shape::Aws),
    (b"ASIA", Shape::Aws),
    (b"AIza", Shape::GoogleKey),
    (b"ya29.", Shape::GoogleAccess),
    (b"GOCSPX-", Shape::GoogleClient),
    (b"xox", Shape::Slack),
    (b"xapp-", Shape::SlackApp),
    (b"npm_", Shape::Npm),
    (b"pypi-", Shape::PyPi),
    (b"eyJ", Shape::Jwt),
    (b"-----BEGIN ", Shape::Pem),
    (b"://", Shape::Url),
    (b":\\/", Shape::Url),
    (b":\\\\/", Shape::Url),
    (b":\\\\\\/", Shape::Url),
    (AUTHORIZATION, Shape::Authorization),
];

/// The longest header or payload of a JWT that is waited for.
const JWT_PART: usize = 4096;

/// What follows `sk-` in keys whose random part may contain dashes.
const SK_FAMILIES: &[&[u8]] = &[b"proj-", b"svcacct-", b"admin-", b"None-", b"or-v1-"];

impl Shape {
    /// Whether the anchor must not continue a word.
    pub(super) fn needs_boundary(self) -> bool {
        !matches!(self, Self::Pem | Self::Url | Self::Authorization)
    }

    /// Reads from the anchor on; `previous` is the byte before it.
    pub(super) fn find(self, text: &Text<'_>, previous: Option<u8>, json: bool) -> Answer<Option<Found>> {
        match self {
            Self::Sk => sk(text),
            Self::GitHub => token(text, b"gh?_", Class::Word, 20, Kind::GitHub),
            Self::GitHubServer => {
                Ok(token(text, b"ghs_", Class::Word, 20, Kind::GitHub)?.map(|found| found.dotted()))
            }
            Self::GitHubPat => token(text, b"github_pat_", Class::Word, 20, Kind::GitHub),
            Self::Aws => aws(text),
            Self::GoogleKey => token(text, b"AIza", Class::Dash, 30, Kind::Google),
            Self::GoogleAccess => {
                Ok(token(text, b"ya29.", Class::Dash, 20, Kind::Google)?.map(|found| found.dotted()))
            }
            Self::GoogleClient => token(text, b"GOCSPX-", Class::Dash, 20, Kind::Google),
            Self::Slack => token(text, b"xox?-", Class::Dash, 10, Kind::Slack),
            Self::SlackApp => token(text, b"xapp-", Class::Dash, 10, Kind::Slack),
            Self::Npm => token(text, b"npm_", Class::Alnum, 30, Kind::Npm),
            Self::PyPi => pypi(text),
            Self::Jwt => jwt(text, previous),
            Self::Pem => pem(text, json),
            Self::Url => web::url(text, previous),
            Self::Authorization => web::authorization(text),
        }
    }
}

impl Found {
    fn whole(end: usize, kind: Kind, class: Class) -> Self {
        Self { start: 0, end, kind, rest: Some(Swallow::Token(class)) }
    }

    fn dotted(self) -> Self {
        Self { rest: Some(Swallow::Token(Class::Dotted)), ..self }
    }
}

/// `prefix`, where `?` stands for a lower-case letter, and at least `minimum` characters of `class`.
fn token(text: &Text<'_>, prefix: &[u8], class: Class, minimum: usize, kind: Kind) -> Answer<Option<Found>> {
    for (at, &wanted) in prefix.iter().enumerate() {
        match text.byte(at)? {
            Some(byte) if byte == wanted || (wanted == b'?' && byte.is_ascii_lowercase()) => {}
            _ => return Ok(None),
        }
    }
    Ok(text.take(prefix.len(), class, minimum)?.map(|end| Found::whole(end, kind, class)))
}

fn sk(text: &Text<'_>) -> Answer<Option<Found>> {
    if !text.starts_with(0, b"sk-")? {
        return Ok(None);
    }
    if text.starts_with(3, b"ant-")? {
        return token(text, b"sk-ant-", Class::Dash, 16, Kind::Anthropic);
    }
    for family in SK_FAMILIES {
        if text.starts_with(3, family)? {
            let end = text.take(3 + family.len(), Class::Dash, 16)?;
            return Ok(end.map(|end| Found::whole(end, Kind::OpenAi, Class::Dash)));
        }
    }
    // Without a known family a dash soon after means a CSS class or a slug.
    let end = text.take(3, Class::Alnum, 20)?;
    Ok(end.map(|end| Found::whole(end, Kind::OpenAi, Class::Dash)))
}

/// Exactly sixteen characters: a longer run of capitals is something else.
fn aws(text: &Text<'_>) -> Answer<Option<Found>> {
    if !text.starts_with(0, b"AKIA")? && !text.starts_with(0, b"ASIA")? {
        return Ok(None);
    }
    let Some(end) = text.take(4, Class::UpperDigit, 16)? else { return Ok(None) };
    let longer = text.byte(end)?.is_some_and(|byte| byte.is_ascii_alphanumeric());
    Ok((!longer).then_some(Found { start: 0, end, kind: Kind::Aws, rest: None }))
}

/// Tokens start with a serialised macaroon, `AgE…`; anything else must be too long and unbroken for a package.
fn pypi(text: &Text<'_>) -> Answer<Option<Found>> {
    if text.starts_with(0, b"pypi-AgE")? {
        return token(text, b"pypi-", Class::Dash, 16, Kind::PyPi);
    }
    let found = token(text, b"pypi-", Class::Word, 24, Kind::PyPi)?;
    Ok(found.map(|found| Found { rest: Some(Swallow::Token(Class::Dash)), ..found }))
}

/// Two parts that are both JSON objects are enough; an encrypted second part needs a third.
fn jwt(text: &Text<'_>, previous: Option<u8>) -> Answer<Option<Found>> {
    let dash = |byte| Class::Dash.contains(byte);
    if !text.starts_with(0, b"eyJ")? {
        return Ok(None);
    }
    // Inside a run of token characters the same bytes would be read again and again.
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
    Ok(end.map(|end| Found::whole(end, Kind::Jwt, Class::Dotted)))
}

fn pem(text: &Text<'_>, json: bool) -> Answer<Option<Found>> {
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
    let rest = Some(Swallow::Pem(Pem::new(!json)));
    Ok(private.then_some(Found { start: 0, end: end + 5, kind: Kind::Pem, rest }))
}
