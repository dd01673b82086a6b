//! Makes untrusted text safe to print on a terminal and to embed in Markdown.
//!
//! Agent output may move the cursor, change the window title, hide text or reverse its direction.
//! [`sanitize`] does not distinguish harmless sequences from harmful ones; it removes all: escape sequences
//! as ECMA-48 delimits them, other control characters, and the invisible characters that reorder or hide
//! text. Line ends become `\n`. A control string without its terminator ends with its line, so that it cannot
//! hide the rest of a log.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// The text without control sequences; its only control characters are `\n` and `\t`.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' => {
                chars.next_if_eq(&'\n');
                safe.push('\n');
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            char if is_unsafe(char) => {}
            char => safe.push(char),
        }
    }
    Cow::Owned(safe)
}

/// The text with a number, such as `⟨U+202E⟩`, in place of each character that hides or reorders others: a person who
/// decides by a text must see what a program reads. Nothing is removed; line ends become `\n`.
pub fn reveal(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let revealed =
        |char| if is_hidden(char) { format!("⟨U+{:04X}⟩", u32::from(char)) } else { char.into() };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(revealed).collect())
}

/// Whether the character is invisible, or changes how its neighbours look. The two selectors that choose between text
/// and emoji are not counted, because emojis contain them.
pub fn is_hidden(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t'))
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// The text on one line: line breaks are escaped, so that a file name cannot look like a further line.
pub fn escape_line_breaks(text: &str) -> String {
    text.replace('\r', "\\r").replace('\n', "\\n")
}

/// A Markdown code block; its fence is longer than any run of backticks inside.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

pub fn inline_code(text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text) + 1);
    let text = text.replace(['\n', '\r'], " ");
    // Backticks must not touch the fence. Markdown strips one space at both ends, so spaces there are
    // doubled.
    let needs_padding = text.is_empty() || text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let pad = if needs_padding { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn longest_backticks(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or(0)
}

fn is_unsafe(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t'))
        || matches!(char,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Skips the rest of an escape sequence, after ESC.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
    }
}

/// Skips parameters, intermediates and one final character; any other character is not part of the sequence.
fn skip_csi(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|char| matches!(char, '0'..='?')).is_some() {}
    while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
    chars.next_if(|char| matches!(char, '@'..='~'));
}

/// Skips a control string up to BEL, ST or the end of the line.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(char) = chars.next_if(|char| !matches!(char, '\n' | '\r')) {
        match char {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                // `ESC \` ends the string; any other escape cancels it and starts a sequence of its own.
                if chars.next_if_eq(&'\\').is_none() {
                    skip_escape(chars);
                }
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed() {
        for (text, safe) in [
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq#0\x1b\\a\x1b_b\x1b\\c\x1b^d\x1b\\e\x1bXf\x1b\\g", "aceg"),
            ("\x1b]0;never ended\nnext", "\nnext"),
            ("\u{9b}31mred\u{9d}title\u{9c}x", "redx"),
            ("\x1b(Bx\x1b7y\x1bcz", "xyz"),
            ("a\r\nb\rc\td\n", "a\nb\nc\td\n"),
            ("a\x7f\x08\x00b\u{85}", "ab"),
            ("x\u{202e}y\u{2066}z\u{200f}\u{61c}\u{e0041}", "xyz"),
            ("\x1b", ""),
            ("\x1b[12", ""),
            ("\x1b[\n1", "\n1"),
            ("\x1b]0;a\x1b[31mb", "b"),
        ] {
            assert_eq!(sanitize(text), safe, "{text:?}");
        }
        assert!(matches!(sanitize("plain\ttext é 😀\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn hidden_characters_are_revealed_and_nothing_is_removed() {
        for (text, revealed) in [
            ("ls \x1b]; rm -r x #\x07 -la", "ls ⟨U+001B⟩]; rm -r x #⟨U+0007⟩ -la"),
            ("a\r\nb\rc\td\n", "a\nb⟨U+000D⟩c\td\n"),
            ("x\u{202e}y\u{61c}\u{2028}\u{e0041}", "x⟨U+202E⟩y⟨U+061C⟩⟨U+2028⟩⟨U+E0041⟩"),
        ] {
            assert_eq!(reveal(text), revealed, "{text:?}");
        }
        assert!(matches!(reveal("plain\ttext é ❤\u{fe0f}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn line_breaks_are_escaped() {
        assert_eq!(escape_line_breaks("a\nb\r\nc\td"), "a\\nb\\r\\nc\td");
    }

    #[test]
    fn fences_are_longer_than_backtick_runs_inside() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("```\nx\n```\n"), "````\n```\nx\n```\n````");
        assert_eq!(fenced(""), "```\n```");
        assert_eq!(inline_code("a"), "`a`");
        assert_eq!(inline_code("`a``"), "``` `a`` ```");
        assert_eq!(inline_code("a\nb"), "`a b`");
        assert_eq!(inline_code(""), "` `".replace(' ', "  "));
    }
}
