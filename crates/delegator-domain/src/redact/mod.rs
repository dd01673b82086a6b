//! Removes credentials from logs and responses.
//!
//! A [`Redactor`] knows the secret values of one environment and the formats of common credentials, and replaces
//! both by `[REDACTED:<kind>]`. It is built once, is cheap to clone, and creates streams that process bytes as they
//! arrive.
//!
//! * `names` decides which variables hold secrets, `values` which of their values are masked.
//! * `needle` recognises a value in any escaping; `formats` and `web` recognise credential formats.
//! * `index` finds candidate positions, `context` tracks the preceding text, `text` reads ahead.
//! * `stream` combines them; `tail` drops the rest of tokens of any length.
//! * `digests` finds values that are not known any more.
//!
//! JSON stays JSON: in a JSON line a match never starts inside an escape, never includes an unescaped quote, and
//! never stands outside a string. `context` defines which lines are JSON.

mod context;
mod credential_formats;
mod digests;
mod index;
mod names;
mod needle;
mod secret_values;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod text;
mod url_and_header;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use digests::SecretDigests;
use index::Index;
pub use names::{is_listed, is_secret_name};
use secret_values::MaskRule;
pub use stream::RedactStream;

use crate::named_enum::named_enum;

named_enum! {
    /// The kind of a masked secret. Its name is the marker that replaces the secret.
    enum SecretKind {
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

/// Masks secrets in text. Clones share their tables.
#[derive(Clone)]
pub struct Redactor {
    index: Arc<Index>,
}

/// Never shows a value.
impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.index.needles().len();
        formatter.debug_struct("Redactor").field("forms", &forms).finish_non_exhaustive()
    }
}

impl Redactor {
    pub fn builder() -> RedactorBuilder {
        RedactorBuilder::default()
    }

    /// Builds the table that the first use would build otherwise.
    pub fn prepare(&self) {
        self.index.finder();
    }

    /// A stream for a text that arrives in chunks.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(Arc::clone(&self.index))
    }

    /// The text with its secrets masked; borrowed when there are none.
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.index.next_candidate(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut stream = self.stream();
        stream.push(text.as_bytes(), &mut out);
        stream.finish(&mut out);
        if out == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        // Matches start and end between characters, so the bytes are valid UTF-8.
        Cow::Owned(
            String::from_utf8(out)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    pub fn contains_secret(&self, text: &str) -> bool {
        matches!(self.redact_str(text), Cow::Owned(_))
    }
}

/// Collects the values that a [`Redactor`] masks in addition to the known formats.
///
/// A value is masked only if it looks secret: at least 8 characters, and no path, socket, plain URL, git or SHA-256
/// digest, UUID, flag or small number. A value whose variable the user listed ([`Self::extra_names`],
/// [`Self::named_secret`]) is masked whatever it looks like, from 4 characters on.
#[derive(Default)]
pub struct RedactorBuilder {
    variables: Vec<(String, String)>,
    extra_names: Vec<String>,
    secrets: Vec<(String, MaskRule)>,
}

/// Never shows a value.
impl fmt::Debug for RedactorBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedactorBuilder")
            .field("variables", &self.variables.len())
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

impl RedactorBuilder {
    /// Masks the values of variables whose name indicates a secret.
    #[must_use]
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Additional names that indicate a secret; may be called before or after [`Self::environment`].
    #[must_use]
    pub fn extra_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.extra_names.extend(names.into_iter().map(Into::into));
        self
    }

    /// Masks this value if it looks secret.
    #[must_use]
    pub fn secret(mut self, value: impl Into<String>) -> Self {
        self.secrets.push((value.into(), MaskRule::IfSecretLooking));
        self
    }

    /// Masks this value whatever it looks like, from 4 characters on.
    #[must_use]
    pub fn named_secret(mut self, value: impl Into<String>) -> Self {
        self.secrets.push((value.into(), MaskRule::Always));
        self
    }

    pub fn build(self) -> Redactor {
        let mut needles = BTreeSet::new();
        for (name, value) in &self.variables {
            if is_listed(name, &self.extra_names) {
                secret_values::needles(value, MaskRule::Always, &mut needles);
            } else if is_secret_name::<&str>(name, &[]) {
                secret_values::needles(value, MaskRule::IfSecretLooking, &mut needles);
            }
        }
        for (value, rule) in &self.secrets {
            secret_values::needles(value, *rule, &mut needles);
        }
        Redactor { index: shared_index(needles) }
    }
}

/// The index of the last redactor if it masks the same values: a server builds a redactor for each task, almost always from
/// the same environment.
fn shared_index(needles: BTreeSet<String>) -> Arc<Index> {
    static LAST: Mutex<Option<Arc<Index>>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some(index) if index.has_needles(&needles) => Arc::clone(index),
        _ => Arc::clone(last.insert(Arc::new(Index::new(needles)))),
    }
}
