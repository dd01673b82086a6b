//! The lines of a changed file, unified or side by side.

use delegator_domain::terminal::is_hidden;
use maud::{Markup, html};

use crate::mcp::pages::word_diff::{Part, compare};
use crate::output::data::diff::HunkData;

/// Lines of one block. Browsers skip blocks that are not on the screen.
const BLOCK_LINES: usize = 60;

/// A longer run of changed lines is another text, and not compared word by word.
const MAX_COMPARED: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Unified,
    Split,
}

/// A line with its numbers before and after.
struct Line<'a> {
    sign: char,
    old: Option<u64>,
    new: Option<u64>,
    parts: Vec<Part<'a>>,
}

pub(super) fn hunks(hunks: &[HunkData], layout: Layout) -> Markup {
    html! {
        @for hunk in hunks {
            div class="hunk" {
                p class="range" {
                    "@@ −" (hunk.old_start) "," (hunk.old_lines) " +" (hunk.new_start) "," (hunk.new_lines) " @@ " (visible(&hunk.header))
                }
                @let lines = numbered(hunk);
                @match layout {
                    Layout::Unified => @for block in lines.chunks(BLOCK_LINES) {
                        div .block .long[block.len() == BLOCK_LINES] { @for line in block { (unified(line)) } }
                    },
                    Layout::Split => @for block in beside(&lines).chunks(BLOCK_LINES) {
                        div .block .split .long[block.len() == BLOCK_LINES] { @for (old, new) in block { (half(*old, 'o')) (half(*new, 'n')) } }
                    },
                }
            }
        }
    }
}

/// The lines of a hunk. Deleted lines directly before as many added ones are compared word by word.
fn numbered(hunk: &HunkData) -> Vec<Line<'_>> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let mut lines: Vec<Line<'_>> = Vec::with_capacity(hunk.lines.len());
    for text in &hunk.lines {
        let sign = text.chars().next().unwrap_or(' ');
        let content = text.get(sign.len_utf8()..).unwrap_or_default();
        let is_remark = sign == '\\';
        let line = Line {
            sign,
            old: (matches!(sign, ' ' | '-')).then_some(old),
            new: (matches!(sign, ' ' | '+')).then_some(new),
            parts: vec![(if is_remark { text } else { content }, false)],
        };
        old += u64::from(line.old.is_some());
        new += u64::from(line.new.is_some());
        lines.push(line);
    }
    mark_words(&mut lines);
    lines
}

fn run_of(lines: &[Line<'_>], begin: usize, sign: char) -> usize {
    lines[begin..].iter().take_while(|line| line.sign == sign).count()
}

fn mark_words(lines: &mut [Line<'_>]) {
    let mut at = 0;
    while at < lines.len() {
        let deleted = run_of(lines, at, '-');
        let added = run_of(lines, at + deleted, '+');
        if deleted == added && deleted <= MAX_COMPARED {
            for pair in 0..deleted {
                let (old, new) = (lines[at + pair].parts[0].0, lines[at + deleted + pair].parts[0].0);
                if let Some((old, new)) = compare(old, new) {
                    lines[at + pair].parts = old;
                    lines[at + deleted + pair].parts = new;
                }
            }
        }
        at += (deleted + added).max(1);
    }
}

/// Old and new lines in rows; what was deleted stands beside what was added in its place.
fn beside<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<(Option<&'b Line<'a>>, Option<&'b Line<'a>>)> {
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let deleted = run_of(lines, at, '-');
        let added = run_of(lines, at + deleted, '+');
        for pair in 0..deleted.max(added) {
            let old = lines.get(at + pair).filter(|_| pair < deleted);
            let new = lines.get(at + deleted + pair).filter(|_| pair < added);
            rows.push((old, new));
        }
        at += deleted + added;
        if deleted + added == 0 {
            rows.push((Some(&lines[at]), Some(&lines[at])));
            at += 1;
        }
    }
    rows
}

fn class(line: &Line<'_>) -> &'static str {
    match line.sign {
        '+' => "l add",
        '-' => "l del",
        '\\' => "l remark",
        _ => "l",
    }
}

fn number(number: Option<u64>) -> Markup {
    html! { span class="n" { @if let Some(number) = number { (number) } } }
}

fn code(line: &Line<'_>) -> Markup {
    html! {
        code {
            @for (text, is_changed) in &line.parts {
                @if *is_changed { b { (visible(text)) } } @else { (visible(text)) }
            }
        }
    }
}

fn unified(line: &Line<'_>) -> Markup {
    html! {
        div class=(class(line)) data-old=[line.old] data-new=[line.new] {
            (number(line.old)) (number(line.new)) span class="s" { (line.sign) } (code(line))
        }
    }
}

/// One side of a row; `side` is the number that it shows.
fn half(line: Option<&Line<'_>>, side: char) -> Markup {
    let Some(line) = line else { return html! { div class="l none" {} } };
    let shown = if side == 'o' { line.old } else { line.new };
    html! {
        div class=(class(line)) data-old=[line.old] data-new=[line.new] {
            (number(shown)) span class="s" { (line.sign) } (code(line))
        }
    }
}

/// Characters that hide or reorder others are shown by their number: a reviewer must see what a compiler reads.
pub(super) fn visible(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(is_hidden) {
            @match part.chars().next_back().filter(|last| is_hidden(*last)) {
                None => (part),
                Some(last) => {
                    (part.strip_suffix(last).unwrap_or(part))
                    span class="hidden-character" { (format!("U+{:04X}", u32::from(last))) }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(lines: &[&str]) -> HunkData {
        HunkData {
            old_start: 10,
            old_lines: 0,
            new_start: 20,
            new_lines: 0,
            header: String::new(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn each_line_has_its_numbers() {
        let hunk = hunk(&[" a", "-b", "+c", "+d", "\\ No newline at end of file", " e"]);
        let numbers: Vec<_> = numbered(&hunk).iter().map(|line| (line.sign, line.old, line.new)).collect();
        let expected = [
            (' ', Some(10), Some(20)),
            ('-', Some(11), None),
            ('+', None, Some(21)),
            ('+', None, Some(22)),
            ('\\', None, None),
            (' ', Some(12), Some(23)),
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn deleted_lines_stand_beside_those_that_replace_them() {
        let hunk = hunk(&[" a", "-b", "-c", "+d", " e", "+f"]);
        let lines = numbered(&hunk);
        let text = |line: Option<&Line<'_>>| line.map_or("·", |line| line.parts[0].0).to_owned();
        let rows: Vec<String> = beside(&lines).into_iter().map(|(old, new)| text(old) + &text(new)).collect();
        assert_eq!(rows, ["aa", "bd", "c·", "ee", "·f"]);
    }

    #[test]
    fn characters_that_hide_others_are_shown() {
        let shown = visible("a\u{202e}b<i>\u{1b}[0m").into_string();
        let hidden = |number| format!("<span class=\"hidden-character\">{number}</span>");
        assert_eq!(shown, format!("a{}b&lt;i&gt;{}[0m", hidden("U+202E"), hidden("U+001B")));
    }
}
