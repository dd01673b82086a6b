//! The screens in `docs/images`, as SVG. `scripts/screenshots` writes them.

use std::fmt::Write;

use delegator_testkit::generated::assert_up_to_date;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

use super::screens::{drawn, group, opened};
use super::*;
use crate::watch::keys::Action;
use crate::watch::loader::Loaded;
use crate::watch::results::loaded;
use crate::watch::task_view::Tab;
use crate::watch::update::update;

const SIZE: (u16, u16) = (100, 26);
/// Pixels of a character.
const WIDTH: u16 = 8;
const HEIGHT: u16 = 17;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d5d8de";

fn color(cell: &Cell) -> &'static str {
    match cell.fg {
        Color::Red => "#f07178",
        Color::Green => "#9ccc65",
        Color::Yellow => "#f5c16c",
        Color::Cyan => "#5cc8d7",
        _ if cell.modifier.contains(Modifier::DIM) => "#868c98",
        _ => FOREGROUND,
    }
}

/// Cells that look the same are one text up to a gap; its length is given, because not every font has the same widths.
fn svg(state: &mut State) -> String {
    let (columns, rows) = SIZE;
    let backend = drawn(state, SIZE);
    let (width, height) = ((columns + 2) * WIDTH, (rows + 1) * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        let cells: Vec<&Cell> =
            (0..columns).filter_map(|column| backend.buffer().cell((column, row))).collect();
        let mut column = 0;
        let continues = |one: &&Cell, next: &&Cell| {
            one.style() == next.style()
                && (one.modifier.contains(Modifier::REVERSED) || one.symbol() != " " || next.symbol() != " ")
        };
        for run in cells.chunk_by(continues) {
            let text: String = run.iter().map(|cell| cell.symbol()).collect();
            let length = u16::try_from(run.len()).unwrap() * WIDTH;
            let (x, y) = ((column + 1) * WIDTH, row * HEIGHT + HEIGHT / 2);
            column += u16::try_from(run.len()).unwrap();
            let is_reversed = run[0].modifier.contains(Modifier::REVERSED);
            let fill = if is_reversed { BACKGROUND } else { color(run[0]) };
            if is_reversed {
                let rect = format!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"{HEIGHT}\" fill=\"{FOREGROUND}\"/>"
                );
                writeln!(svg, "{rect}").unwrap();
            }
            if text.trim().is_empty() {
                continue;
            }
            let weight = if run[0].modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let y = y + HEIGHT * 3 / 4;
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\"{weight} textLength=\"{length}\" xml:space=\"preserve\">{text}</text>"
            )
            .unwrap();
        }
    }
    svg + "</svg>\n"
}

#[test]
fn screenshots() {
    let mut asking = state();
    update(&mut asking, Action::Answer);
    let mut compared = state();
    select(&mut compared, 5);
    update(&mut compared, Action::Group);
    loaded(&mut compared, &Loaded::Group(group_id(), Ok(group())));
    let images = [
        ("list", state()),
        ("answer", asking),
        ("timeline", opened(Tab::Timeline)),
        ("diff", opened(Tab::Diff)),
        ("group", compared),
    ];
    for (name, mut state) in images {
        assert_up_to_date(&format!("docs/images/watch-{name}.svg"), &svg(&mut state));
    }
}
