//! Renders a document as text for a person: wrapped at the width of the terminal, with colour where it has
//! it.
//!
//! Only headings, states and the words `error` and `warning` are coloured. Lines with a command to copy are
//! never wrapped. The data may come from an agent, so every piece of text is sanitised before it is wrapped
//! or coloured.

mod sections;

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use delegator_domain::terminal::{self, escape_line_breaks};
use delegator_engine::Variables;
use textwrap::core::display_width;

use crate::error::suggestion::Suggestion;
use crate::output::call_syntax::CallSyntax;
use crate::output::documents::document::{Block, Document};
use crate::output::documents::local_time::with_local_times;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Longer lines are wrapped; `None` if the text does not go to a terminal.
    pub columns: Option<usize>,
    pub is_colored: bool,
    /// The variables with the reader's time zone; without them times stay in UTC.
    pub zone: Option<&'static Variables>,
}

pub(super) const HEADING: Style = Style::new().bold();

impl TextStyle {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        if self.is_colored && !text.is_empty() && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Without colours, and not wrapped; times stay in the time zone of the reader.
    pub fn plain(self) -> TextStyle {
        TextStyle { zone: self.zone, ..TextStyle::default() }
    }

    pub(super) fn localize(self, text: &str) -> Cow<'_, str> {
        self.zone.map_or(Cow::Borrowed(text), |zone| with_local_times(text, zone))
    }

    pub fn wrap(self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.wrap_indented(line, 0)).collect();
        lines.join("\n")
    }

    /// Wraps one line; its continuation lines have at least this indent.
    pub fn wrap_indented(self, line: &str, indent: usize) -> String {
        let text = line.trim_start_matches(' ');
        let start = line.len() - text.len();
        self.wrap_after(&" ".repeat(start), text, indent.max(start + marker_width(text)))
    }

    /// Wraps `text` behind `start`; continuation lines have this indent. Long words such as paths stay whole,
    /// so that they can be copied.
    pub(super) fn wrap_after(self, start: &str, text: &str, indent: usize) -> String {
        let line = format!("{start}{text}");
        match self.columns {
            Some(columns) if display_width(&line) > columns => {
                let indent = " ".repeat(indent.min(columns / 2));
                let options =
                    wrap_options(columns).break_words(false).initial_indent(start).subsequent_indent(&indent);
                textwrap::wrap(text, options).join("\n")
            }
            _ => line,
        }
    }

    /// The sentence, wrapped; its command stays on one line, so that it can be copied.
    pub(super) fn sentence(self, suggestion: &Suggestion) -> String {
        let sentence = CallSyntax::Commands.sentence(suggestion);
        let sentence = self.localize(&sentence);
        let sentence = terminal::sanitize(&sentence);
        let command = suggestion.call.as_ref().and_then(|call| CallSyntax::Commands.render(call));
        let fixed = match command.map(|command| terminal::sanitize(&command).into_owned()) {
            Some(command) => sentence.replace(&command, &command.replace(' ', &FIXED_SPACE.to_string())),
            None => sentence.into_owned(),
        };
        self.wrap(&fixed).replace(FIXED_SPACE, " ")
    }
}

/// Takes the place of a space within a command while its sentence is wrapped.
const FIXED_SPACE: char = '\u{e000}';

/// Words end at spaces only: a task id contains hyphens.
pub(super) fn wrap_options<'a>(columns: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(columns).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// The width of `- ` or `12. ` at the beginning of a list item.
fn marker_width(text: &str) -> usize {
    let marker = text.split_inclusive(' ').next().unwrap_or_default();
    let is_number = |word: &str| word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    match marker.trim_end() {
        "-" | "*" | "•" | "+" => marker.len(),
        word if word.strip_suffix('.').is_some_and(is_number) => marker.len(),
        _ => 0,
    }
}

/// The colour of a word that is a state or the result of a check.
pub(super) fn state_style(word: &str) -> Style {
    let color = match word {
        "completed" | "ok" | "passed" => AnsiColor::Green,
        "failed" | "verify_failed" | "timeout" | "error" | "problem" => AnsiColor::Red,
        "cancelled" | "warning" => AnsiColor::Yellow,
        "working" => AnsiColor::Cyan,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(color.into()))
}

/// A line that begins with `error:` or `warning:`.
pub(super) fn labelled(style: TextStyle, label: &str, text: &str) -> String {
    let line = style.wrap_after(&format!("{label}: "), &style.localize(text), 2);
    match line.strip_prefix(label) {
        Some(rest) => format!("{}{rest}", style.paint(state_style(label).bold(), label)),
        None => line,
    }
}

impl Document {
    pub fn to_text(&self, style: TextStyle) -> String {
        let title =
            self.title.iter().map(|title| heading(&escape_line_breaks(&terminal::sanitize(title)), style));
        let blocks = self.blocks.iter().map(|block| text_block(block, style));
        let parts: Vec<String> = title.chain(blocks).filter(|text| !text.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// The title in bold, and its last word in the colour of its state.
fn heading(title: &str, style: TextStyle) -> String {
    let title = style.wrap(title);
    match title.rsplit_once(' ') {
        Some((start, word)) if state_style(word) != Style::new() => {
            format!("{} {}", style.paint(HEADING, start), style.paint(state_style(word).bold(), word))
        }
        _ => style.paint(HEADING, &title),
    }
}

fn text_block(block: &Block, style: TextStyle) -> String {
    match block {
        Block::Text(text) => style.wrap(terminal::sanitize(&style.localize(text)).trim_end()),
        Block::Verbatim(text) | Block::FinalMessage(text) => style.wrap(terminal::sanitize(text).trim_end()),
        Block::Facts(facts) => text_facts(facts, style),
        Block::Table { columns, rows } => table_text(columns, rows, style),
        // A person reads on with a larger limit or with `logs`.
        Block::Next(call) if call.input.keys().any(|name| name.ends_with("cursor")) => String::new(),
        Block::Next(call) => {
            let call = CallSyntax::Commands.render(call);
            call.map(|call| format!("Next: {}", terminal::sanitize(&call))).unwrap_or_default()
        }
        Block::Advice(suggestion) | Block::ForPeople(suggestion) => style.sentence(suggestion),
        Block::Sections(sections) => sections::text(sections, style),
        Block::ForModels(..) => String::new(),
    }
}

/// Facts that only programs and models use: a person names a task by its id.
const FOR_PROGRAMS: [&str; 4] = ["thread", "runs in", "failure", "revert"];

fn text_facts(facts: &[(String, String)], style: TextStyle) -> String {
    // The summary of a failed task quotes its error.
    let summary = facts.iter().find(|(name, _)| name == "summary").map_or("", |(_, value)| value);
    let is_shown = |(name, value): &&(String, String)| {
        !FOR_PROGRAMS.contains(&name.as_str()) && (name != "error" || !summary.contains(value.as_str()))
    };
    let shown = facts.iter().filter(is_shown);
    let width = shown.clone().map(|(name, _)| display_width(name)).max().unwrap_or(0);
    let line = |(name, value): &(String, String)| {
        let start = format!("{name:<width$}  ");
        let value = style.localize(value);
        style.wrap_after(&start, &escape_line_breaks(terminal::sanitize(&value).trim_end()), width + 2)
    };
    let lines: Vec<String> = shown.map(line).collect();
    lines.join("\n")
}

pub(super) const GAP: usize = 2;
const MIN_WIDTH: usize = 10;

/// Lays out a table so that no line is wider than the terminal. Columns are ordered by importance. The first
/// one, with the ids, keeps its width. If the others do not fit even at their smallest width, the last are
/// left out; then the widest ones shrink, and their cells are wrapped.
fn table_text(columns: &[&str], rows: &[Vec<String>], style: TextStyle) -> String {
    let cells = |row: &Vec<String>| -> Vec<String> {
        let cells = row.iter().map(|cell| style.localize(cell));
        cells.map(|cell| escape_line_breaks(terminal::sanitize(&cell).trim_end())).collect()
    };
    let header: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let widest = |at: usize| rows.iter().chain([&header]).map(|row| display_width(&row[at])).max();
    let natural: Vec<usize> = (0..columns.len()).filter_map(widest).collect();
    let widths = match style.columns {
        Some(limit) => fit(&natural, limit),
        None => natural,
    };
    let header = row_lines(&header, &widths).into_iter().map(|line| style.paint(HEADING, &line));
    let rows = rows.iter().flat_map(|row| row_lines(row, &widths));
    let rows = rows.map(|line| paint_state(&line, columns, &widths, style));
    header.chain(rows).collect::<Vec<_>>().join("\n")
}

/// The lines of a row: as many as its highest cell.
fn row_lines(row: &[String], widths: &[usize]) -> Vec<String> {
    let wrapped: Vec<Vec<String>> =
        row.iter().zip(widths).map(|(cell, width)| wrap_cell(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |lines: &Vec<String>, at: usize| lines.get(at).cloned().unwrap_or_default();
    let cells = |at: usize| wrapped.iter().map(|lines| cell(lines, at)).collect::<Vec<_>>();
    (0..height).map(|at| table_line(&cells(at), widths)).collect()
}

/// The widths of the columns that fit, the first ones.
fn fit(natural: &[usize], limit: usize) -> Vec<usize> {
    let smallest = |(at, width): (usize, &usize)| if at == 0 { *width } else { (*width).min(MIN_WIDTH) };
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let mut min: Vec<usize> = natural.iter().enumerate().map(smallest).collect();
    while min.len() > 1 && total(&min) > limit {
        min.pop();
    }
    let mut widths = natural[..min.len()].to_vec();
    while total(&widths) > limit {
        let shrinkable = (0..widths.len()).filter(|at| widths[*at] > min[*at]);
        let Some(widest) = shrinkable.rev().max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
    }
    if let [only] = widths.as_mut_slice() {
        *only = (*only).min(limit);
    }
    widths
}

fn wrap_cell(cell: &str, width: usize) -> Vec<String> {
    textwrap::wrap(cell, wrap_options(width.max(1))).into_iter().map(String::from).collect()
}

fn table_line(cells: &[String], widths: &[usize]) -> String {
    let pad = |(cell, width): (&String, &usize)| {
        let padding = width.saturating_sub(display_width(cell));
        format!("{cell}{}", " ".repeat(padding))
    };
    let cells: Vec<String> = cells.iter().zip(widths).map(pad).collect();
    cells.join(&" ".repeat(GAP)).trim_end().to_owned()
}

/// Colours the cell of the column with states. It is one word of ASCII, and so are the ids before it.
fn paint_state(line: &str, columns: &[&str], widths: &[usize], style: TextStyle) -> String {
    let Some(at) = columns
        .iter()
        .position(|column| ["state", "status"].contains(column))
        .filter(|at| *at < widths.len())
    else {
        return line.to_owned();
    };
    let start: usize = widths[..at].iter().map(|width| width + GAP).sum();
    match line.get(start..).map(|rest| rest.split(' ').next().unwrap_or_default()) {
        Some(word) if style.is_colored => {
            let (before, after) = (&line[..start], &line[start + word.len()..]);
            format!("{before}{}{after}", style.paint(state_style(word), word))
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::suggestion::NextCall;

    const NARROW: TextStyle = TextStyle { columns: Some(20), is_colored: false, zone: None };

    fn text(block: Block, style: TextStyle) -> String {
        Document::default().block(block).to_text(style)
    }

    #[test]
    fn lines_are_wrapped_at_the_width_of_the_terminal() {
        let prose = "one two three four five six";
        assert_eq!(text(Block::Text(prose.into()), NARROW), "one two three four\nfive six");
        assert_eq!(text(Block::Text(prose.into()), TextStyle::default()), prose);
        let list = "- one two three four five\n  indented text of a list";
        let expected = "- one two three four\n  five\n  indented text of a\n  list";
        assert_eq!(text(Block::Verbatim(list.into()), NARROW), expected);
        let wide = "\u{4efb}\u{52a1} ".repeat(6);
        for line in text(Block::Text(wide), NARROW).lines() {
            assert!(display_width(line) <= 20, "{line}");
        }
    }

    #[test]
    fn values_of_facts_stay_in_their_column() {
        let facts = vec![("summary".to_owned(), "a b c d e f g h i".to_owned()), ("n".into(), "1".into())];
        assert_eq!(text(Block::Facts(facts), NARROW), "summary  a b c d e f\n         g h i\nn        1");
    }

    #[test]
    fn commands_and_paths_stay_on_one_line() {
        let next = NextCall::new(&["local", "wait"]).with("task_id", "T-local-0123456789");
        let line = text(Block::Next(next), NARROW);
        assert_eq!(line.lines().count(), 1, "{line}");
        let path = "/a/very/long/path/of/a/project";
        assert!(text(Block::Text(format!("see {path}")), NARROW).lines().any(|line| line == path));
    }

    #[test]
    fn only_headings_and_states_are_coloured() {
        let colored = TextStyle { is_colored: true, ..TextStyle::default() };
        let document = Document::titled("Task T-1 failed")
            .text("failed")
            .block(Block::Facts(vec![("state".into(), "failed".into())]));
        let text = document.to_text(colored);
        let red = "\u{1b}[1m\u{1b}[31mfailed\u{1b}[0m";
        assert_eq!(text, format!("\u{1b}[1mTask T-1\u{1b}[0m {red}\n\nfailed\n\nstate  failed"));
        assert!(!document.to_text(TextStyle::default()).contains('\u{1b}'));
    }

    #[test]
    fn times_are_local_except_in_the_words_of_an_agent() {
        let zone: &Variables = Box::leak(Box::new(vec![("TZ".into(), "EST5".into())]));
        let time = "2026-11-19T14:05:00.000Z";
        let document = Document::default()
            .text(format!("until {time}"))
            .block(Block::facts([("retry at", Some(time.to_owned()))]))
            .table(&["expires"], vec![vec![time.to_owned()]])
            .block(Block::Advice(format!("Try again at {time}.").into()))
            .quote("agent:", time);
        let shown = document.to_text(TextStyle { zone: Some(zone), ..TextStyle::default() });
        assert_eq!(
            (shown.matches("2026-11-19 09:05").count(), shown.matches(time).count()),
            (4, 1),
            "{shown}"
        );
        let markdown = document.to_markdown(CallSyntax::Commands);
        assert_eq!(markdown.matches(time).count(), 5, "{markdown}");
    }

    #[test]
    fn people_do_not_get_the_facts_of_programs() {
        let facts = vec![("thread".to_owned(), "0199".to_owned()), ("seconds".to_owned(), "3".to_owned())];
        let document = Document::default().block(Block::Facts(facts));
        assert_eq!(document.to_text(TextStyle::default()), "seconds  3");
        assert!(document.to_markdown(CallSyntax::Commands).contains("thread: 0199"));
    }

    fn style(columns: usize) -> TextStyle {
        TextStyle { columns: Some(columns), ..TextStyle::default() }
    }

    #[test]
    fn cells_are_wrapped_before_columns_are_left_out() {
        let rows = vec![vec!["T-1".to_owned(), "Fix the failing test".to_owned(), "/a/directory".to_owned()]];
        let columns = ["ended", "task", "directory"];
        let expected =
            "ENDED  TASK          DIRECTORY\nT-1    Fix the       /a/directory\n       failing test";
        assert_eq!(table_text(&columns, &rows, style(33)), expected);
        assert_eq!(
            table_text(&columns, &rows, style(24)),
            "ENDED  TASK\nT-1    Fix the failing\n       test"
        );
        let all = "ENDED  TASK                  DIRECTORY\nT-1    Fix the failing test  /a/directory";
        assert_eq!(table_text(&columns, &rows, TextStyle::default()), all);
    }

    #[test]
    fn states_are_coloured() {
        let rows = vec![vec!["T-1".to_owned(), "failed".to_owned(), "x".to_owned()]];
        let colored = TextStyle { is_colored: true, ..TextStyle::default() };
        let table = table_text(&["ended", "state", "task"], &rows, colored);
        assert!(table.ends_with("T-1    \u{1b}[31mfailed\u{1b}[0m  x"), "{table:?}");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in prop::collection::vec(prop::collection::vec("[a-z\u{4efb} ]{0,60}", 6), 1..5),
            columns in 20usize..120,
        ) {
            let table = table_text(&["id", "b", "c", "d", "e", "f"], &rows, style(columns));
            for line in table.lines() {
                prop_assert!(display_width(line) <= columns, "{}\n{}", line, table);
            }
        }
    }
}
