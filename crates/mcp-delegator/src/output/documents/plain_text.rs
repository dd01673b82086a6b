//! Renders a document as text for a person.
//!
//! The data may come from an agent, so every piece of text is sanitised before it is wrapped or coloured.

use anstyle::Style;
use delegator_domain::terminal::{self, escape_line_breaks};

use crate::output::call_syntax::CallSyntax;
use crate::output::documents::document::{Block, Document};
use crate::output::documents::text::{HEADING, TextStyle, state_style};
use crate::output::documents::text_table;

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
        Block::Text(text) | Block::Verbatim(text) | Block::FinalMessage(text) => {
            style.wrap(terminal::sanitize(text).trim_end())
        }
        Block::Facts(facts) => text_facts(facts, style),
        Block::Table { columns, rows } => text_table::render(columns, rows, style),
        // A person reads on with a larger limit or with `logs`.
        Block::Next(call) if call.input.keys().any(|name| name.ends_with("cursor")) => String::new(),
        Block::Next(call) => {
            let call = CallSyntax::Commands.render(call);
            call.map(|call| format!("Next: {}", terminal::sanitize(&call))).unwrap_or_default()
        }
        Block::ForPeople(suggestion) => style.sentence(suggestion),
        Block::ForModels(..) => String::new(),
    }
}

/// Facts that only programs and models use: a person names a task by its id.
const FOR_PROGRAMS: [&str; 3] = ["thread", "runs in", "failure"];

fn text_facts(facts: &[(String, String)], style: TextStyle) -> String {
    // The summary of a failed task quotes its error.
    let summary = facts.iter().find(|(name, _)| name == "summary").map_or("", |(_, value)| value);
    let is_shown = |(name, value): &&(String, String)| {
        !FOR_PROGRAMS.contains(&name.as_str()) && (name != "error" || !summary.contains(value.as_str()))
    };
    let shown = facts.iter().filter(is_shown);
    let width = shown.clone().map(|(name, _)| textwrap::core::display_width(name)).max().unwrap_or(0);
    let line = |(name, value): &(String, String)| {
        let start = format!("{name:<width$}  ");
        style.wrap_after(&start, &escape_line_breaks(terminal::sanitize(value).trim_end()), width + 2)
    };
    let lines: Vec<String> = shown.map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::suggestion::NextCall;

    const NARROW: TextStyle = TextStyle { columns: Some(20), is_colored: false };

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
            assert!(textwrap::core::display_width(line) <= 20, "{line}");
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
        let colored = TextStyle { columns: None, is_colored: true };
        let document = Document::titled("Task T-1 failed")
            .text("failed")
            .block(Block::Facts(vec![("state".into(), "failed".into())]));
        let text = document.to_text(colored);
        let red = "\u{1b}[1m\u{1b}[31mfailed\u{1b}[0m";
        assert_eq!(text, format!("\u{1b}[1mTask T-1\u{1b}[0m {red}\n\nfailed\n\nstate  failed"));
        assert!(!document.to_text(TextStyle::default()).contains('\u{1b}'));
    }

    #[test]
    fn people_do_not_get_the_facts_of_programs() {
        let facts = vec![("thread".to_owned(), "0199".to_owned()), ("seconds".to_owned(), "3".to_owned())];
        let document = Document::default().block(Block::Facts(facts));
        assert_eq!(document.to_text(TextStyle::default()), "seconds  3");
        assert!(document.to_markdown(CallSyntax::Commands).contains("thread: 0199"));
    }
}
