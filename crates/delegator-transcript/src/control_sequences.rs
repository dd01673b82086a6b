//! Removes terminal control sequences (colours, titles, links) from text that agents' commands printed.
//! Parsers and one-line messages work on the stripped text. Other control characters are left alone.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
/// Control Sequence Introducer: the one-character form of `ESC [`.
const CSI: char = '\u{9b}';

pub(crate) fn strip_control_sequences(text: &str) -> Cow<'_, str> {
    let Some(first) = next_sequence(text) else { return Cow::Borrowed(text) };
    let mut plain = String::with_capacity(text.len());
    let (mut rest, mut next) = (text, Some(first));
    while let Some(at) = next {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at..];
        rest = match sequence.strip_prefix(CSI) {
            Some(parameters) => after_parameters(parameters),
            None => after_escape(&sequence[1..]),
        };
        next = next_sequence(rest);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Finds the next sequence. In UTF-8 the one-character form (U+009B) is the two bytes C2 9B.
fn next_sequence(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(0x1b, 0xc2, bytes).find(|at| bytes[*at] == 0x1b || bytes.get(at + 1) == Some(&0x9b))
}

/// Skips the body of an escape sequence; `text` starts after the ESC.
fn after_escape(text: &str) -> &str {
    match text.chars().next() {
        Some('[') => after_parameters(&text[1..]),
        // Titles, links, images: terminated by BEL or `ESC \`; without a terminator, by the end of the line.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let end = text.find(['\n', '\u{7}', '\u{9c}', ESCAPE]).unwrap_or(text.len());
            let rest = &text[end..];
            match rest.strip_prefix(ESCAPE) {
                Some(rest) => rest.strip_prefix('\\').unwrap_or(rest),
                None => rest.strip_prefix(['\u{7}', '\u{9c}']).unwrap_or(rest),
            }
        }
        _ => {
            let rest = text.trim_start_matches(|c: char| (' '..='/').contains(&c));
            rest.strip_prefix(|c: char| ('0'..='~').contains(&c)).unwrap_or(rest)
        }
    }
}

/// Skips `31;1m`: the parameters and the final character.
fn after_parameters(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| (' '..='?').contains(&c));
    rest.strip_prefix(|c: char| ('@'..='~').contains(&c)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed_whole_and_other_text_remains() {
        for (text, plain) in [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}[38;5;196;1mb\u{1b}[Kc", "abc"),
            ("\u{9b}1mx", "x"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bx\u{1b}=y\u{1b}", "xy"),
            ("\u{1b}]lost\nnext", "\nnext"),
            ("\u{1b}[31\u{e9}", "\u{e9}"),
        ] {
            assert_eq!(strip_control_sequences(text), plain, "{text:?}");
        }
    }
}
