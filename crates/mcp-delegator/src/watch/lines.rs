//! Text for the screen: made safe, wrapped, and the part of it that fits. Pure.
//!
//! A line keeps a name for its look; only `view` knows the colour. Every text that an agent, a file or a user
//! wrote becomes a [`TextLine`] through [`clean`].

use delegator_domain::terminal;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

/// Columns of a line before it is wrapped: six rows of 40 columns.
pub const MAX_COLUMNS: usize = 240;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    #[default]
    Plain,
    Heading,
    Dim,
    Active,
    Good,
    Bad,
    Note,
    Added,
    Deleted,
    Hunk,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLine {
    pub look: Look,
    pub text: String,
}

impl TextLine {
    pub fn new(look: Look, text: impl Into<String>) -> TextLine {
        TextLine { look, text: text.into() }
    }

    /// The lines of an untrusted text.
    pub fn all(look: Look, text: &str) -> Vec<TextLine> {
        clean(text).lines().flat_map(|line| TextLine::new(look, line).pieces()).collect()
    }

    /// Scrolling moves by whole lines, so each must fit the smallest screen.
    pub fn pieces(self) -> Vec<TextLine> {
        wrapped(&self, MAX_COLUMNS)
    }
}

/// The text without sequences that control the terminal; its only control character is the line break.
pub fn clean(text: &str) -> String {
    terminal::sanitize(text).replace('\t', "    ")
}

/// The same on one line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// At most this many columns; an ellipsis stands for the rest.
pub fn fitted(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |letter: &char| {
        let remaining = left.checked_sub(display_width(letter.encode_utf8(&mut [0; 4])));
        left = remaining.unwrap_or(left);
        remaining.is_some()
    };
    let start: String = text.chars().take_while(fits).collect();
    if columns == 0 { start } else { format!("{start}…") }
}

/// Exactly this many columns.
pub fn padded(text: &str, columns: usize) -> String {
    let text = fitted(text, columns);
    let missing = columns.saturating_sub(display_width(&text));
    text + &" ".repeat(missing)
}

/// The line in pieces of at most this many columns. Its indentation and its spaces stay.
pub fn wrapped(line: &TextLine, columns: usize) -> Vec<TextLine> {
    if display_width(&line.text) <= columns {
        return vec![line.clone()];
    }
    let options = Options::new(columns.max(1))
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(true);
    let pieces = textwrap::wrap(&line.text, options);
    pieces.into_iter().map(|piece| TextLine::new(line.look, piece)).collect()
}

/// The first line that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    At(usize),
    /// So that the last line is at the bottom, also when lines are added.
    End,
}

/// Columns and rows.
pub type Size = (usize, usize);

impl Top {
    pub fn line(self, lines: &[TextLine], size: Size) -> usize {
        let last = last_top(lines, size);
        if let Top::At(line) = self { line.min(last) } else { last }
    }

    /// Moved by so many lines, but not beyond the beginning and the end.
    pub fn moved(self, by: isize, lines: &[TextLine], size: Size) -> Top {
        let line = self.line(lines, size).saturating_add_signed(by);
        if by > 0 && line >= last_top(lines, size) { Top::End } else { Top::At(line) }
    }
}

/// The first line if the last one is at the bottom. Looks only at the lines that are shown then.
fn last_top(lines: &[TextLine], (columns, rows): Size) -> usize {
    let mut left = rows;
    let fits = |line: &&TextLine| {
        let remaining = left.checked_sub(wrapped(line, columns).len());
        left = remaining.unwrap_or(left);
        remaining.is_some()
    };
    let shown = lines.iter().rev().take_while(fits).count();
    (lines.len() - shown).min(lines.len().saturating_sub(1))
}

/// The lines from `top` on that fit, wrapped.
pub fn window(lines: &[TextLine], top: Top, (columns, rows): Size) -> Vec<TextLine> {
    let first = top.line(lines, (columns, rows));
    let shown = lines.iter().skip(first).take(rows);
    shown.flat_map(|line| wrapped(line, columns)).take(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<TextLine> {
        texts.iter().map(|text| TextLine::new(Look::Plain, *text)).collect()
    }

    fn shown(texts: &[&str], top: Top, columns: usize, rows: usize) -> Vec<String> {
        window(&lines(texts), top, (columns, rows)).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_end_stays_at_the_bottom() {
        let texts = ["one", "two two", "three"];
        assert_eq!(shown(&texts, Top::At(0), 5, 3), ["one", "two", "two"]);
        assert_eq!(shown(&texts, Top::End, 5, 3), ["two", "two", "three"]);
        assert_eq!(shown(&texts, Top::At(9), 5, 3), ["two", "two", "three"]);
        assert_eq!(shown(&[], Top::End, 5, 3), [""; 0]);
        assert_eq!(shown(&["long long long"], Top::End, 4, 2), ["long", "long"], "its beginning");
    }

    #[test]
    fn a_long_line_can_be_read_to_its_end() {
        let text = "word ".repeat(500) + "end";
        let lines = TextLine::all(Look::Plain, &text);
        let shown = window(&lines, Top::End, (40, 7));
        assert!(shown.last().is_some_and(|line| line.text.ends_with("end")), "{shown:?}");
    }

    #[test]
    fn moving_stops_at_both_ends() {
        let texts = lines(&["a", "b", "c", "d"]);
        let moved = |top: Top, by| top.moved(by, &texts, (10, 2));
        assert_eq!(moved(Top::At(0), -1), Top::At(0));
        assert_eq!(moved(Top::At(0), 1), Top::At(1));
        assert_eq!(moved(Top::At(1), 5), Top::End);
        assert_eq!(moved(Top::End, -1), Top::At(1));
    }

    #[test]
    fn text_has_the_columns_that_it_is_given() {
        for (text, columns, expected) in [
            ("abc", 5, "abc  "),
            ("abcdef", 5, "abcd…"),
            ("日本語", 5, "日本…"),
            ("日本", 3, "日…"),
            ("x", 0, ""),
        ] {
            assert_eq!(padded(text, columns), expected, "{text}");
        }
        let wide = wrapped(&TextLine::new(Look::Plain, "日本語日本語"), 5);
        assert!(wide.iter().all(|piece| display_width(&piece.text) <= 5), "{wide:?}");
    }

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(clean_line("a\u{1b}[2Jb\u{202e}c\td\r\ne"), "abc    d e");
    }
}
