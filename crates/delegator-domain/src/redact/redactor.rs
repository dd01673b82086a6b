//! Builds a redactor and masks a whole text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::index::Index;
use super::secret_values::{self, MaskRule, is_listed, is_secret_name};
use super::stream::RedactStream;

/// Masks secrets in text. Clones share their tables.
#[derive(Clone)]
pub struct Redactor {
    pub(super) index: Arc<Index>,
}

/// Never shows a value.
impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.index.needles.len();
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

    pub fn stream(&self) -> RedactStream {
        RedactStream::new(Arc::clone(&self.index))
    }

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
/// A value is masked only if it looks secret: at least 8 characters, and no path, socket, plain URL, git or
/// SHA-256 digest, UUID, flag or small number. A value whose variable the user listed ([`Self::extra_names`],
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

/// The index of the last redactor if it masks the same values: a server builds a redactor for each task,
/// almost always from the same environment.
fn shared_index(needles: BTreeSet<String>) -> Arc<Index> {
    static LAST: Mutex<Option<Arc<Index>>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some(index) if index.has_needles(&needles) => Arc::clone(index),
        _ => Arc::clone(last.insert(Arc::new(Index::new(needles)))),
    }
}
