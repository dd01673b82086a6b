//! Lays out a table so that no line is wider than the terminal.
//!
//! Columns are ordered by importance. The first one, with the ids, keeps its width. If the others do not fit
//! even at their smallest width, the last are left out; then the widest ones shrink, and their cells are
//! wrapped.

use delegator_domain::terminal::{self, escape_line_breaks};
use textwrap::core::display_width;

use super::text::{HEADING, TextStyle, state_style, wrap_options};

const GAP: usize = 2;
/// Columns do not shrink below this.
const MIN_WIDTH: usize = 10;

pub(super) fn render(columns: &[&str], rows: &[Vec<String>], style: TextStyle) -> String {
    let cells = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|cell| escape_line_breaks(terminal::sanitize(cell).trim_end())).collect()
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
    let wrapped: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |lines: &Vec<String>, at: usize| lines.get(at).cloned().unwrap_or_default();
    let cells = |at: usize| wrapped.iter().map(|lines| cell(lines, at)).collect::<Vec<_>>();
    (0..height).map(|at| line(&cells(at), widths)).collect()
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

fn wrap(cell: &str, width: usize) -> Vec<String> {
    textwrap::wrap(cell, wrap_options(width.max(1))).into_iter().map(String::from).collect()
}

fn line(cells: &[String], widths: &[usize]) -> String {
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

    fn style(columns: usize) -> TextStyle {
        TextStyle { columns: Some(columns), is_colored: false }
    }

    #[test]
    fn cells_are_wrapped_before_columns_are_left_out() {
        let rows = vec![vec!["T-1".to_owned(), "Fix the failing test".to_owned(), "/a/directory".to_owned()]];
        let columns = ["ended", "task", "directory"];
        let expected =
            "ENDED  TASK          DIRECTORY\nT-1    Fix the       /a/directory\n       failing test";
        assert_eq!(render(&columns, &rows, style(33)), expected);
        assert_eq!(render(&columns, &rows, style(24)), "ENDED  TASK\nT-1    Fix the failing\n       test");
        let all = "ENDED  TASK                  DIRECTORY\nT-1    Fix the failing test  /a/directory";
        assert_eq!(render(&columns, &rows, TextStyle::default()), all);
    }

    #[test]
    fn states_are_coloured() {
        let rows = vec![vec!["T-1".to_owned(), "failed".to_owned(), "x".to_owned()]];
        let colored = TextStyle { columns: None, is_colored: true };
        let table = render(&["ended", "state", "task"], &rows, colored);
        assert!(table.ends_with("T-1    \u{1b}[31mfailed\u{1b}[0m  x"), "{table:?}");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in prop::collection::vec(prop::collection::vec("[a-z\u{4efb} ]{0,60}", 6), 1..5),
            columns in 20usize..120,
        ) {
            let table = render(&["id", "b", "c", "d", "e", "f"], &rows, style(columns));
            for line in table.lines() {
                prop_assert!(display_width(line) <= columns, "{}\n{}", line, table);
            }
        }
    }
}
