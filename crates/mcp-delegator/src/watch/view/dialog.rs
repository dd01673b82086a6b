//! What is asked, below the lines that it is about: a line in which something is typed, or whether to go on.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use textwrap::core::display_width;

use crate::watch::lines::{Look, Size, TextLine, clean_line, window, wrapped};
use crate::watch::state::{Dialog, DialogKind, Purpose, State};
use crate::watch::view::text_lines;

pub fn keys(dialog: &Dialog) -> &'static str {
    match dialog.kind {
        DialogKind::Input { purpose: Purpose::Filter, .. } => "Enter done  Esc show all",
        DialogKind::Input { .. } => "Enter send  Esc back  ↑ ↓ scroll",
        DialogKind::Confirm { .. } => "y yes  n no  ↑ ↓ scroll",
        DialogKind::Text => "Esc back  ↑ ↓ scroll",
    }
}

pub fn rows(dialog: &Dialog, columns: u16) -> u16 {
    let text: usize = dialog.lines.iter().map(|line| wrapped(line, columns.into()).len()).sum();
    u16::try_from(text).unwrap_or(u16::MAX).saturating_add(around(dialog))
}

/// A rule above the lines, and what is asked below.
fn around(dialog: &Dialog) -> u16 {
    if matches!(dialog.kind, DialogKind::Text) { 1 } else { 2 }
}

/// Columns and rows of the lines.
pub fn text_size(area: Rect, dialog: &Dialog) -> Size {
    (area.width.into(), area.height.saturating_sub(around(dialog)).into())
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, dialog: &Dialog, state: &State) {
    let columns = usize::from(area.width);
    let mut lines = vec![TextLine::new(Look::Dim, "─".repeat(columns))];
    lines.extend(window(&dialog.lines, dialog.top, text_size(area, dialog)));
    let y = area.y + u16::try_from(lines.len()).unwrap_or(0);
    lines.push(match &dialog.kind {
        DialogKind::Text => TextLine::default(),
        DialogKind::Confirm { question, .. } => {
            TextLine::new(Look::Note, format!("{} [y/n]", clean_line(question)))
        }
        DialogKind::Input { purpose, text } => {
            let label = match purpose {
                Purpose::Filter => "/",
                Purpose::Answer(..) => "answer> ",
                Purpose::Message(_) => "message> ",
                Purpose::Again(_) => "text> ",
                Purpose::NewTask => "task> ",
            };
            let typed = end_of(text, columns.saturating_sub(label.len() + 1));
            let line = format!("{label}{typed}");
            let x = u16::try_from(display_width(&line)).unwrap_or(0);
            frame.set_cursor_position(Position { x: x.min(area.width.saturating_sub(1)), y });
            TextLine::new(Look::Heading, line)
        }
    });
    text_lines(frame, area, lines, state);
}

/// The end of what is typed that fits.
fn end_of(text: &str, columns: usize) -> &str {
    let mut width = 0;
    let fits = |letter: &(usize, char)| {
        width += display_width(letter.1.encode_utf8(&mut [0; 4]));
        width <= columns
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}
