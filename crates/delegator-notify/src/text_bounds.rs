//! Makes texts safe to send: redacted, then without control characters, then short.

use std::collections::BTreeMap;

use delegator_domain::redact::Redactor;
use delegator_domain::terminal;
use delegator_domain::text::shorten;

use crate::settings::NotifySettings;

pub(crate) const MAX_TITLE_CHARS: usize = 200;
pub(crate) const MAX_TEXT_CHARS: usize = 4_000;
const MAX_LABELS: usize = 32;

pub(crate) struct TextBounds(Redactor);

impl TextBounds {
    pub(crate) fn new(settings: &NotifySettings) -> TextBounds {
        TextBounds(settings.redactor())
    }

    pub(crate) fn apply(&self, text: &str, max_chars: usize) -> String {
        shorten(&terminal::sanitize(&self.0.redact_str(text)), max_chars)
    }

    pub(crate) fn labels(&self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let title = |text: &String| self.apply(text, MAX_TITLE_CHARS);
        labels.iter().take(MAX_LABELS).map(|(key, value)| (title(key), title(value))).collect()
    }
}
