//! Renders a document as Markdown. Data is escaped, so that it cannot add markup.

use delegator_domain::terminal;

use crate::output::call_syntax::CallSyntax;
use crate::output::documents::document::{Block, Document, MARKDOWN_SPECIAL};

impl Document {
    pub fn to_markdown(&self, syntax: CallSyntax<'_>) -> String {
        let mut parts: Vec<String> = self.title.iter().map(|title| format!("# {}", inline(title))).collect();
        parts.extend(
            self.blocks.iter().map(|block| markdown_block(block, syntax)).filter(|text| !text.is_empty()),
        );
        parts.join("\n\n")
    }
}

/// A command that asks, so no program can use it; a fact beside it names the one for programs.
const FOR_PEOPLE: &str = "undo";

fn markdown_block(block: &Block, syntax: CallSyntax<'_>) -> String {
    match block {
        Block::Next(call) => {
            let next = |call: String| format!("Next: {}", terminal::inline_code(&terminal::sanitize(&call)));
            syntax.render(call).map(next).unwrap_or_default()
        }
        Block::Advice(suggestion) => escape_line(&terminal::sanitize(&syntax.sentence(suggestion))),
        Block::ForPeople(_) | Block::Sections(_) => String::new(),
        Block::ForModels(label, text) => format!("{}\n\n{}", escape_line(label), fenced(text)),
        Block::Text(text) => {
            let lines: Vec<String> = terminal::sanitize(text).lines().map(escape_line).collect();
            lines.join("\n")
        }
        Block::Verbatim(text) | Block::FinalMessage(text) => fenced(text),
        Block::Facts(facts) => {
            let shown = facts.iter().filter(|(name, _)| name != FOR_PEOPLE);
            let lines: Vec<String> = shown.map(|(name, value)| fact(name, value)).collect();
            lines.join("\n")
        }
        Block::Table { columns, rows } => {
            let mut lines =
                vec![format!("| {} |", columns.join(" | ")), format!("|{}", "---|".repeat(columns.len()))];
            for row in rows {
                let cells: Vec<String> = row.iter().map(|cell| inline(cell)).collect();
                lines.push(format!("| {} |", cells.join(" | ")));
            }
            lines.join("\n")
        }
    }
}

/// A fact; a value of several lines goes into a fenced block.
fn fact(name: &str, value: &str) -> String {
    if value.trim_end().contains(['\n', '\r']) {
        let block: Vec<String> = fenced(value).lines().map(|line| format!("  {line}")).collect();
        format!("- {}:\n\n{}\n", inline(name), block.join("\n"))
    } else {
        format!("- {}: {}", inline(name), inline(value))
    }
}

// Text is sanitised before it is escaped or fenced, never after: removing a character could join two
// backticks, or detach a backslash from the character it escapes.

fn fenced(text: &str) -> String {
    terminal::fenced(&terminal::sanitize(text))
}

pub(super) fn inline(text: &str) -> String {
    escape_markdown(&terminal::sanitize(text).replace('\n', " "))
}

/// Escapes a whole line, so that its beginning does not make it a heading, list, quote or fence.
fn escape_line(text: &str) -> String {
    let begin = text.trim_start();
    let digits = begin.len() - begin.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let indent = &text[..text.len() - begin.len()];
    let (number, rest) = begin.split_at(digits);
    match rest.chars().next() {
        Some('#' | '>' | '-' | '+' | '=' | '~' | '_' | '.' | ')') => {
            format!("{indent}{number}\\{}", escape_markdown(rest))
        }
        _ => escape_markdown(text),
    }
}

/// Escapes text so that it cannot open a table cell, code span, element or image.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if MARKDOWN_SPECIAL.contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
