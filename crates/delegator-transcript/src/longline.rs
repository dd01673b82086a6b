//! Collects the fields that decide what an over-long line means, without storing the line.
//!
//! Codex writes the output of a command before its exit code and status, so neither the head nor a fixed
//! offset of a huge line contains them. The scanner sees every byte once and stores only short fields: those
//! at the top level and those of the one object below it (`item`, `msg`, `payload`). It tracks strings and
//! brackets exactly, so text inside the huge string is never taken for a field. It does not check whether the
//! line is valid JSON.

use crate::json::Text;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedObject {
    pub kind: Option<String>,
    /// `id`, the first one if there are several
    pub id: Option<String>,
    pub call_id: Option<String>,
    pub status: Option<String>,
    pub exit_code: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedLine {
    pub outer: ScannedObject,
    /// Fields of the object in `item`, `msg` or `payload`.
    pub inner: ScannedObject,
    pub length: u64,
    /// Byte range of the longest string in the line, without its quotes.
    pub longest_string: Option<(u64, u64)>,
}

/// What is known of an over-long line besides its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRemains<'a> {
    pub(crate) tail: &'a str,
    pub(crate) facts: &'a ScannedLine,
}

impl<'a> LineRemains<'a> {
    /// The end of the longest string, as far as it is available.
    pub(crate) fn end_of_longest_string(&self) -> Option<Text<'a>> {
        let (_, to) = self.facts.longest_string?;
        let behind = usize::try_from(self.facts.length.saturating_sub(to)).ok()?;
        let end = self.tail.len().checked_sub(behind)?;
        Some(Text::cut_json_tail(self.tail.get(..end)?, 0))
    }
}

/// Stands for the middle of a text that was not stored.
pub(crate) fn omission_mark(bytes: u64) -> String {
    format!("... {bytes} bytes omitted ...")
}

/// Bounds on the names and values that are stored.
const MAX_KEY_BYTES: usize = 16;
const MAX_VALUE_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Outside,
    InString,
    Escaped,
}

#[derive(Debug, Default)]
pub(crate) struct LongLineScanner {
    facts: ScannedLine,
    state: ScanState,
    depth: u64,
    /// The open objects or arrays at depth 1 and 2.
    levels: [Level; 2],
    /// The string or literal being read, up to the bound.
    token: Vec<u8>,
    token_overflowed: bool,
    string_start: u64,
    offset: u64,
}

#[derive(Debug, Default)]
struct Level {
    is_object: bool,
    expects_key: bool,
    key: Vec<u8>,
}

impl LongLineScanner {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                ScanState::Outside => {
                    self.structural_byte(bytes[at], at);
                    at += 1;
                }
                ScanState::Escaped => {
                    self.token_bytes(&bytes[at..=at]);
                    self.state = ScanState::InString;
                    at += 1;
                }
                ScanState::InString => {
                    let rest = &bytes[at..];
                    let step = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    self.token_bytes(&rest[..step]);
                    at += step;
                    match bytes.get(at) {
                        Some(b'"') => self.end_string(self.offset + at as u64),
                        Some(_) => {
                            self.token_bytes(b"\\");
                            self.state = ScanState::Escaped;
                        }
                        None => break,
                    }
                    at += 1;
                }
            }
        }
        self.offset += bytes.len() as u64;
    }

    /// Ends the line. `prefix_bytes` and `suffix_bytes` were scanned but are not part of it.
    pub(crate) fn finish(mut self, prefix_bytes: u64, suffix_bytes: u64) -> ScannedLine {
        self.end_literal();
        let shift = |at: u64| at.saturating_sub(prefix_bytes);
        self.facts.length = self.offset.saturating_sub(prefix_bytes + suffix_bytes);
        self.facts.longest_string = self.facts.longest_string.map(|(from, to)| (shift(from), shift(to)));
        self.facts
    }

    fn level(&mut self) -> Option<&mut Level> {
        let index = usize::try_from(self.depth).ok()?.checked_sub(1)?;
        self.levels.get_mut(index)
    }

    fn structural_byte(&mut self, byte: u8, at: usize) {
        match byte {
            b'"' => {
                self.state = ScanState::InString;
                self.token.clear();
                self.token_overflowed = false;
                self.string_start = self.offset + at as u64 + 1;
            }
            b'{' | b'[' => {
                self.depth += 1;
                if let Some(level) = self.level() {
                    *level = Level { is_object: byte == b'{', expects_key: byte == b'{', key: Vec::new() };
                }
            }
            b'}' | b']' => {
                self.end_literal();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => {
                self.end_literal();
                if let Some(level) = self.level() {
                    level.expects_key = level.is_object;
                }
            }
            b':' => self.token.clear(),
            b' ' | b'\t' | b'\r' => {}
            _ => self.token_bytes(&[byte]),
        }
    }

    fn token_bytes(&mut self, bytes: &[u8]) {
        if self.token.len() + bytes.len() > MAX_VALUE_BYTES {
            self.token_overflowed = true;
        } else if !self.token_overflowed {
            self.token.extend_from_slice(bytes);
        }
    }

    fn end_string(&mut self, end: u64) {
        self.state = ScanState::Outside;
        let (start, longest) = (self.string_start, self.facts.longest_string);
        if longest.is_none_or(|(from, to)| end - start > to - from) {
            self.facts.longest_string = Some((start, end));
        }
        let token = std::mem::take(&mut self.token);
        let usable = !self.token_overflowed;
        if let Some(level) = self.level() {
            if level.expects_key {
                level.expects_key = false;
                level.key.clear();
                if usable && token.len() <= MAX_KEY_BYTES {
                    level.key.extend_from_slice(&token);
                }
            } else if usable {
                self.store_string(&token);
            }
        }
        self.token = token;
        self.token.clear();
        self.token_overflowed = false;
    }

    /// The object that a field at the current depth belongs to, and the field's key.
    fn field(&mut self) -> Option<(&mut ScannedObject, &[u8])> {
        let [top, below] = &self.levels;
        match self.depth {
            1 if top.is_object => Some((&mut self.facts.outer, &top.key)),
            2 if below.is_object && matches!(top.key.as_slice(), b"item" | b"msg" | b"payload") => {
                Some((&mut self.facts.inner, &below.key))
            }
            _ => None,
        }
    }

    fn store_string(&mut self, value: &[u8]) {
        let Some((facts, key)) = self.field() else { return };
        let slot = match key {
            b"type" => &mut facts.kind,
            b"id" => &mut facts.id,
            b"call_id" => &mut facts.call_id,
            b"status" => &mut facts.status,
            _ => return,
        };
        // These values never contain escapes; one that does is unknown.
        if slot.is_none() && !value.contains(&b'\\') {
            *slot = std::str::from_utf8(value).ok().map(str::to_owned);
        }
    }

    fn end_literal(&mut self) {
        let token = std::mem::take(&mut self.token);
        if let Some((facts, b"exit_code")) = self.field() {
            let number = std::str::from_utf8(&token).ok().and_then(|digits| digits.parse().ok());
            facts.exit_code = facts.exit_code.or(number);
        }
        self.token = token;
        self.token.clear();
        self.token_overflowed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(line: &str, step: usize) -> ScannedLine {
        let mut scanner = LongLineScanner::default();
        line.as_bytes().chunks(step).for_each(|piece| scanner.push(piece));
        scanner.finish(0, 0)
    }

    #[test]
    fn fields_after_the_giant_string_are_found_and_text_inside_it_is_not_mistaken_for_them() {
        let fake = r#"\",\"status\":\"failed\",\"exit_code\":9,\"type\":\"x\"}"#;
        let line = format!(
            r#"{{"type":"item.completed","item":{{"id":"item_3","type":"command_execution","id":"again","command":"c","aggregated_output":"{}","exit_code": 0 ,"status":"completed"}}}}"#,
            fake.repeat(50)
        );
        for step in [1, 2, 3, 7, 64, 10_000] {
            let facts = scan(&line, step);
            assert_eq!(facts.outer.kind.as_deref(), Some("item.completed"));
            let expected = ScannedObject {
                kind: Some("command_execution".into()),
                id: Some("item_3".into()),
                call_id: None,
                status: Some("completed".into()),
                exit_code: Some(0),
            };
            assert_eq!(facts.inner, expected, "step {step}");
            let (from, to) = facts.longest_string.expect("a string");
            assert_eq!(&line[from as usize..to as usize], fake.repeat(50));
        }
    }

    #[test]
    fn other_objects_and_deeper_levels_do_not_count() {
        let facts =
            scan(r#"{"result":{"type":"a","id":"b"},"list":[{"type":"c"}],"item":{"x":{"status":"d"}}}"#, 5);
        assert_eq!(facts.outer, ScannedObject::default());
        assert_eq!(facts.inner, ScannedObject::default());
    }

    #[test]
    fn invalid_json_is_skipped() {
        for junk in
            ["", "}}}}]]", "{{{{{{", "\"", "\\\\\\", "{\"type\"\"id\":::,,,}", "\u{feff}{\"type\":\"t\"}"]
        {
            for step in [1, 4, 100] {
                scan(junk, step);
            }
        }
        assert_eq!(scan("\u{feff}{\"type\":\"t\"}", 1).outer.kind.as_deref(), Some("t"));
    }
}
