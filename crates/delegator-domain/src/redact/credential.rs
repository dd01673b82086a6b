//! A recognised credential: its kind and its position.

use super::tail::TokenTail;
use super::text::Class;
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
