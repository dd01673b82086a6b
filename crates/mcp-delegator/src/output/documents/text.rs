//! How text for a person looks: wrapped at the width of the terminal, with colour where it has it.
//!
//! Only headings, states and the words `error` and `warning` are coloured. Lines with a command to copy are
//! never wrapped.

use anstyle::{AnsiColor, Style};
use delegator_domain::terminal;

use crate::error::suggestion::Suggestion;
use crate::output::call_syntax::CallSyntax;

/// How text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Longer lines are wrapped; `None` if the text does not go to a terminal.
    pub columns: Option<usize>,
    pub is_colored: bool,
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

    /// The text with lines no longer than the terminal is wide.
    pub fn wrap(self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.wrap_line(line)).collect();
        lines.join("\n")
    }

    /// Wraps one line; its continuation lines have at least this indent.
    pub fn wrap_indented(self, line: &str, indent: usize) -> String {
        let text = line.trim_start_matches(' ');
        let start = line.len() - text.len();
        self.wrap_after(&" ".repeat(start), text, indent.max(start + marker_width(text)))
    }

    /// Continuation lines are indented like the line, or like the text of a list item.
    fn wrap_line(self, line: &str) -> String {
        self.wrap_indented(line, 0)
    }

    /// Wraps `text` behind `start`; continuation lines have this indent. Long words such as paths stay whole,
    /// so that they can be copied.
    pub(super) fn wrap_after(self, start: &str, text: &str, indent: usize) -> String {
        let line = format!("{start}{text}");
        match self.columns {
            Some(columns) if textwrap::core::display_width(&line) > columns => {
                let indent = " ".repeat(indent.min(columns / 2));
                let options =
                    wrap_options(columns).break_words(false).initial_indent(start).subsequent_indent(&indent);
                textwrap::wrap(text, options).join("\n")
            }
            _ => line,
        }
    }
}

/// Takes the place of a space within a command while its sentence is wrapped.
const FIXED_SPACE: char = '\u{e000}';

impl TextStyle {
    /// The sentence, wrapped; its command stays on one line, so that it can be copied.
    pub(super) fn sentence(self, suggestion: &Suggestion) -> String {
        let sentence = CallSyntax::Commands.sentence(suggestion);
        let sentence = terminal::sanitize(&sentence);
        let command = suggestion.call.as_ref().and_then(|call| CallSyntax::Commands.render(call));
        let fixed = match command.map(|command| terminal::sanitize(&command).into_owned()) {
            Some(command) => sentence.replace(&command, &command.replace(' ', &FIXED_SPACE.to_string())),
            None => sentence.into_owned(),
        };
        self.wrap(&fixed).replace(FIXED_SPACE, " ")
    }
}

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
        "failed" | "timeout" | "error" | "problem" => AnsiColor::Red,
        "cancelled" | "warning" => AnsiColor::Yellow,
        "working" => AnsiColor::Cyan,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(color.into()))
}

/// A line that begins with `error:` or `warning:`.
pub(super) fn labelled(style: TextStyle, label: &str, text: &str) -> String {
    let line = style.wrap_after(&format!("{label}: "), text, 2);
    match line.strip_prefix(label) {
        Some(rest) => format!("{}{rest}", style.paint(state_style(label).bold(), label)),
        None => line,
    }
}
