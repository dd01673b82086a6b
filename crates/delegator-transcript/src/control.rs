//! Control sequences of terminals, which agents' programs print for colours, titles and links.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
/// The one-character form of `ESC [`.
const SEQUENCE: char = '\u{9b}';

/// The text without control sequences, each gone as a whole. Other control characters stay.
pub(crate) fn without_sequences(text: &str) -> Cow<'_, str> {
    if !text.contains([ESCAPE, SEQUENCE]) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(character) = chars.next() {
        match character {
            ESCAPE => skip_escape(&mut chars),
            SEQUENCE => skip_parameters(&mut chars),
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

/// What follows an ESC.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_parameters(chars);
        }
        // Titles, links, images: up to a BEL or `ESC \`, or to the end of the line where that was lost.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = chars.next_if(|c| *c != '\n') {
                match character {
                    '\u{7}' | '\u{9c}' => return,
                    ESCAPE => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        _ => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

/// `31;1m`: parameters and the character that ends them.
fn skip_parameters(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_as_a_whole_and_the_text_between_them_stays() {
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
            assert_eq!(without_sequences(text), plain, "{text:?}");
        }
    }
}
