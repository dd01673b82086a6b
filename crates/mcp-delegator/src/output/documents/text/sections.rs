//! Lays out lines about tasks for a person: never wrapped, in sections with a heading.
//!
//! The columns of a section are aligned. If they do not fit the terminal, the least important ones are left
//! out, then state and title are shortened.

use delegator_domain::terminal::{escape_line_breaks, sanitize};
use textwrap::core::display_width;

use crate::output::documents::document::{LineCells, LineSection, SectionLine};
use crate::output::documents::text::{GAP, HEADING, TextStyle, state_style};

/// On a narrower terminal ids are shown without the part that all have in common.
const NARROW: usize = 80;
/// The widths to which titles are shortened, there and elsewhere, before columns are left out.
const MIN_TITLE: [usize; 2] = [10, 18];
const MIN_STATE: usize = 22;

const ID: usize = 0;
const STATE: usize = 3;
const TITLE: usize = 6;
/// Columns that may be left out, the first one first: directory, labels, cost, lines, agent.
const OPTIONAL: [usize; 5] = [8, 7, 5, 4, 2];

type Widths = [usize; 9];

pub(super) fn text(sections: &[LineSection], style: TextStyle) -> String {
    let text = |section: &LineSection| {
        format!("{}\n{}", style.paint(HEADING, section.heading), section_text(&section.lines, style))
    };
    sections.iter().map(text).collect::<Vec<_>>().join("\n\n")
}

fn section_text(lines: &[SectionLine], style: TextStyle) -> String {
    let limit = style.columns.unwrap_or(usize::MAX);
    let shown: Vec<SectionLine> = lines.iter().map(|line| one_line(line, limit)).collect();
    let widths = fit(natural_widths(&shown), limit);
    let text = |line: &SectionLine| match line {
        SectionLine::Task(cells, color_of) => table_line(cells, color_of, &widths, style),
        SectionLine::Whole(text) => clip(text, limit),
    };
    shown.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn one_line(line: &SectionLine, limit: usize) -> SectionLine {
    let clean = |text: &str| escape_line_breaks(sanitize(text).trim_end()).replace('\t', " ");
    match line {
        SectionLine::Whole(text) => SectionLine::Whole(clean(text)),
        SectionLine::Task(cells, color_of) => {
            let mut cells = cells.each_ref().map(|cell| clean(cell));
            for at in [ID, STATE].into_iter().filter(|_| limit < NARROW) {
                cells[at] = cells[at].replace("T-local-", "").replace("T-cloud-", "");
            }
            SectionLine::Task(cells, color_of)
        }
    }
}

fn natural_widths(lines: &[SectionLine]) -> Widths {
    let mut widths = Widths::default();
    for line in lines {
        let SectionLine::Task(cells, _) = line else { continue };
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(display_width(cell));
        }
    }
    widths
}

/// The widths of the columns; 0 for one that is left out.
fn fit(natural: Widths, limit: usize) -> Widths {
    let total = |widths: &Widths| {
        let shown = widths.iter().filter(|width| **width > 0);
        shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    let mut widths = natural;
    widths[STATE] = natural[STATE].min(MIN_STATE);
    widths[TITLE] = natural[TITLE].min(MIN_TITLE[usize::from(limit >= NARROW)]);
    for column in OPTIONAL {
        if total(&widths) > limit {
            widths[column] = 0;
        }
    }
    for column in [STATE, TITLE] {
        let over = total(&widths).saturating_sub(limit);
        widths[column] = widths[column].saturating_sub(over).max(widths[column].min(1));
        let free = limit.saturating_sub(total(&widths));
        widths[column] = natural[column].min(widths[column].saturating_add(free));
    }
    widths
}

fn table_line(cells: &LineCells, color_of: &str, widths: &Widths, style: TextStyle) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0) {
        let shown = clip(cell, *width);
        let padding = " ".repeat(width - display_width(&shown) + GAP);
        let shown = if at == STATE { style.paint(state_style(color_of), &shown) } else { shown };
        line.push_str(&shown);
        line.push_str(&padding);
    }
    line.trim_end().to_owned()
}

/// The beginning of a text that is too long, with a mark.
fn clip(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut clipped = String::new();
    for letter in text.chars() {
        clipped.push(letter);
        if display_width(&clipped) >= width {
            clipped.pop();
            break;
        }
    }
    clipped + "…"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(cells: [&str; 9]) -> SectionLine {
        SectionLine::Task(cells.map(str::to_owned), "completed")
    }

    fn shown(lines: Vec<SectionLine>, columns: Option<usize>) -> String {
        text(&[LineSection { heading: "Recent", lines }], TextStyle { columns, ..TextStyle::default() })
    }

    #[test]
    fn columns_are_left_out_before_texts_are_shortened() {
        let lines = || {
            vec![
                task([
                    "T-local-0000000001",
                    "5m",
                    "claude",
                    "verify failed",
                    "+12 −3",
                    "$0.12",
                    "Fix the login page of the shop",
                    "team=web",
                    "/home/me/shop",
                ]),
                SectionLine::Whole(
                    "G-local-0000000000  group of 2, 1 of 2 ended  Fix the login page".to_owned(),
                ),
                task(["  T-local-0000000002", "12m", "codex", "verified", "+2 −0", "", "", "", ""]),
            ]
        };
        let expected = "Recent\n\
            0000000001    5m   claude  verify failed  +12 −3  Fix the l…\n\
            G-local-0000000000  group of 2, 1 of 2 ended  Fix the login…\n  \
            0000000002  12m  codex   verified       +2 −0";
        assert_eq!(shown(lines(), Some(60)), expected);
        let wide = shown(lines(), None);
        for text in
            ["  $0.12  Fix the login page of the shop  team=web  /home/me/shop\n", "T-local-0000000002"]
        {
            assert!(wide.contains(text), "{wide}");
        }
    }

    proptest! {
        #[test]
        fn every_task_has_one_line_that_fits(
            cells in prop::collection::vec(prop::array::uniform9("[a-z\u{4efb}\n ]{0,60}"), 1..5),
            columns in 40usize..120,
        ) {
            let lines: Vec<SectionLine> = cells
                .into_iter()
                .map(|mut cells| {
                    cells[ID] = "T-local-0123456789".to_owned();
                    cells[1] = "12m".to_owned();
                    SectionLine::Task(cells, "")
                })
                .collect();
            let count = lines.len();
            let text = shown(lines, Some(columns));
            prop_assert_eq!(text.lines().count(), count + 1);
            for line in text.lines() {
                prop_assert!(display_width(line) <= columns, "{}\n{}", line, text);
            }
        }
    }
}
