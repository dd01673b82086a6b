//! Locates the keys of a JSON object of objects in its text.
//!
//! The JSON parser discards positions, and of two equal keys it discards one. This module scans text that is known
//! to be valid JSON and records the keys of the first two levels; it ignores values.

/// A key of the first or second level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPosition {
    /// The key of the first level, followed by that of the second level, if any.
    pub(crate) path: Vec<String>,
    /// Byte offset of the key.
    pub(crate) at: usize,
}

/// All keys of the first two levels, in the order of the text.
pub(crate) fn key_positions(text: &str) -> Vec<KeyPosition> {
    let mut positions = Vec::new();
    let (mut depth, mut brackets, mut at) = (0usize, Vec::<u8>::new(), 0);
    let mut parent: Option<String> = None;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                brackets.push(*byte);
                depth += 1;
            }
            b'}' | b']' => {
                brackets.pop();
                depth = depth.saturating_sub(1);
            }
            b'"' => {
                let end = end_of_string(bytes, at);
                let is_key = brackets.last() == Some(&b'{') && next_is_colon(bytes, end);
                if let (true, Ok(key)) = (is_key, serde_json::from_str::<String>(&text[at..end])) {
                    match (depth, &parent) {
                        (1, _) => {
                            positions.push(KeyPosition { path: vec![key.clone()], at });
                            parent = Some(key);
                        }
                        (2, Some(above)) => {
                            positions.push(KeyPosition { path: vec![above.clone(), key], at })
                        }
                        _ => {}
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    positions
}

/// Offset after the closing quotation mark.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn next_is_colon(bytes: &[u8], from: usize) -> bool {
    bytes[from..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}
