//! Writing JSON piece by piece: what was read as text or raw goes out as it came in.

use serde::Serialize;

use super::text::Text;

/// Appends `text` as a JSON string literal.
pub(crate) fn string(out: &mut Vec<u8>, text: &Text<'_>) {
    match text {
        Text::Json(raw, _) => {
            out.push(b'"');
            out.extend_from_slice(raw.as_bytes());
            out.push(b'"');
        }
        Text::Plain(text) => plain_string(out, text),
    }
}

pub(crate) fn plain_string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory does not fail.
    serde_json::to_writer(out, text).unwrap_or_default();
}

/// Appends a JSON object with the fields that `write` writes.
pub(crate) fn object(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    write(&mut Object { out, empty: true });
    out.push(b'}');
}

/// A line of this `type` with the further fields that `write` writes, without a line end.
pub(crate) fn line(kind: &str, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, |line| {
        line.plain("type", kind);
        write(line);
    });
    out
}

/// A JSON object with the fields that `write` writes, as text.
pub(crate) fn object_text(write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, write);
    String::from_utf8(out).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        plain_string(self.out, key);
        self.out.push(b':');
    }

    pub(crate) fn text(&mut self, key: &str, text: &Text<'_>) {
        self.key(key);
        string(self.out, text);
    }

    pub(crate) fn plain(&mut self, key: &str, text: &str) {
        self.key(key);
        plain_string(self.out, text);
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn value(&mut self, key: &str, value: &impl Serialize) {
        // Writing to memory fails only for a map whose keys are not text, and there is none.
        self.with(key, |out| serde_json::to_writer(out, value).unwrap_or_default());
    }

    pub(crate) fn with(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        write(self.out);
    }

    pub(crate) fn object(&mut self, key: &str, write: impl FnOnce(&mut Object<'_>)) {
        self.with(key, |out| object(out, write));
    }
}

/// Appends a JSON array of whatever `write` appends for each element.
pub(crate) fn array<T>(out: &mut Vec<u8>, elements: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, element);
    }
    out.push(b']');
}
