//! Pages of the documentation that `help` shows, for users who have only the program.

use std::iter::Peekable;
use std::str::Lines;

use crate::output::documents::document::{Block, Document};
use crate::output::documents::text::TextStyle;

/// Pages by the word after `help`, which may also be the name of a command.
pub(super) const PAGES: [(&str, &str); 4] = [
    ("agents", include_str!("../../../../../docs/agents.md")),
    ("config", include_str!("../../../../../docs/configuration.md")),
    ("errors", include_str!("../../../../../docs/errors.md")),
    ("output", include_str!("../../../../../docs/answers.md")),
];

pub(super) fn find(words: &[String]) -> Option<&'static str> {
    let [word] = words else { return None };
    PAGES.iter().find(|(name, _)| name == word).map(|(_, page)| *page)
}

/// The Markdown of a page as text for people.
pub(super) fn render(page: &'static str, style: TextStyle) -> String {
    let mut sections = vec![Document::default()];
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            sections.push(Document::titled(without_links(line.trim_start_matches(['#', ' ']))));
        } else if let (Some(block), Some(section)) = (block(line, &mut lines), sections.last_mut()) {
            section.blocks.push(block);
        }
    }
    let texts = sections.iter().map(|section| section.to_text(style));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The block that begins with this line; `None` for an empty line.
fn block(first: &'static str, lines: &mut Peekable<Lines<'static>>) -> Option<Block> {
    if first.starts_with("```") {
        let code: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        return Some(Block::Verbatim(code.join("\n")));
    }
    if first.starts_with('|') {
        let mut rows: Vec<Vec<&'static str>> = Vec::new();
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            rows.push(cells(row));
        }
        // The first row is the line below the header.
        let rows = rows.into_iter().skip(1).map(|row| row.into_iter().map(without_links).collect());
        return Some(Block::Table { columns: cells(first), rows: rows.collect() });
    }
    if first.is_empty() {
        return None;
    }
    let mut text = first.to_owned();
    let continues = |line: &&str| {
        !line.is_empty() && !["- ", "|", "#", "```"].iter().any(|start| line.starts_with(start))
    };
    while let Some(line) = lines.next_if(continues) {
        text = format!("{text} {}", line.trim_start());
    }
    Some(Block::Text(without_links(&text)))
}

/// The cells of a table row. A `\|` is part of its cell.
fn cells(row: &'static str) -> Vec<&'static str> {
    let row = row.trim_matches('|');
    let (mut cells, mut start) = (Vec::new(), 0);
    for (at, _) in row.match_indices('|').filter(|(at, _)| !row[..*at].ends_with('\\')) {
        cells.push(row[start..at].trim());
        start = at + 1;
    }
    cells.push(row[start..].trim());
    cells
}

/// The text with `[words](address)` replaced by the words.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once("](").map(|(words, after)| (words, after.split_once(')'))) {
            Some((words, Some((_, after)))) if !words.contains('[') => {
                plain.push_str(words);
                rest = after;
            }
            _ => {
                plain.push('[');
                rest = link;
            }
        }
    }
    (plain + rest).replace("\\|", "|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_text() {
        let page = "# Title\n\nSee [the list](list.md) of\ntasks [1].\n- one\n- two\n  lines\n\n## Table\n\n\
                    | a | b |\n|---|---|\n| `x\\|y` | [z](z.md) |\n\n```sh\nls -l\n```\n";
        let text = render(page, TextStyle::default());
        for part in ["Title", "See the list of tasks [1].", "- one", "- two lines", "`x|y`", "z", "ls -l"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("z.md") && !text.contains("---") && !text.contains("```"), "{text}");
    }

    #[test]
    fn every_page_is_found_by_its_word() {
        for (name, page) in PAGES {
            assert_eq!(find(&[name.to_owned()]), Some(page));
            assert!(render(page, TextStyle::default()).len() > 1_000, "{name}");
        }
        assert_eq!(find(&["config".to_owned(), "show".to_owned()]), None);
    }
}
