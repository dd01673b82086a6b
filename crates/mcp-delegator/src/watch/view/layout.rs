//! Where each part of the screen is. Pure.

use ratatui::layout::Rect;

use crate::watch::lines::Size;
use crate::watch::state::State;
use crate::watch::view::dialog;

/// From these sizes on, what is selected is shown below the list, or beside it.
const MIN_ROWS_BELOW: u16 = 16;
const MIN_COLUMNS_BESIDE: u16 = 100;

#[derive(Debug, Clone, Copy)]
pub struct Areas {
    pub header: Rect,
    pub body: Rect,
    pub list: Rect,
    pub peek: Option<Rect>,
    /// Without rows if there is no dialog.
    pub dialog: Rect,
    pub footer: Rect,
}

pub fn areas(state: &State) -> Areas {
    let (width, rows) = (state.columns, state.rows);
    let part = |y: u16, height: u16| Rect { x: 0, y, width, height: height.min(rows.saturating_sub(y)) };
    let inner = rows.saturating_sub(2);
    let dialog = state.dialogs.front().map_or(0, |open| dialog::rows(open, width)).min(inner);
    let body = part(1, inner - dialog);
    let (list, peek) = list_and_peek(body);
    let (header, footer) = (part(0, 1), part(rows.saturating_sub(1), 1));
    Areas { header, body, list, peek, dialog: part(1 + body.height, dialog), footer }
}

fn list_and_peek(body: Rect) -> (Rect, Option<Rect>) {
    if body.width >= MIN_COLUMNS_BESIDE {
        let width = body.width * 3 / 5;
        let peek = Rect { x: width + 1, width: body.width - width - 1, ..body };
        return (Rect { width, ..body }, Some(peek));
    }
    if body.height + 2 >= MIN_ROWS_BELOW {
        let height = body.height * 3 / 5;
        let peek = Rect { y: body.y + height + 1, height: body.height - height - 1, ..body };
        return (Rect { height, ..body }, Some(peek));
    }
    (body, None)
}

/// The size of the text that is scrolled.
pub fn text_size(state: &State) -> Size {
    let Areas { body, dialog: area, .. } = areas(state);
    let of_body = (body.width.into(), body.height.into());
    state.dialogs.front().map_or(of_body, |open| dialog::text_size(area, open))
}

/// Rows of a page; one row of the last page stays visible.
pub fn page(state: &State) -> isize {
    let is_list = state.views.is_empty() && state.dialogs.is_empty();
    let rows = if is_list { areas(state).list.height.into() } else { text_size(state).1 };
    isize::try_from(rows).unwrap_or(1).max(2) - 1
}

/// Scrolls the list so that the selected row is visible, with the heading above it.
pub fn scroll_into_view(state: &mut State) {
    let height = usize::from(areas(state).list.height);
    let rows = state.rows();
    let selected = state.selected_row(&rows).unwrap_or(0);
    let has_heading = selected > 0 && rows.get(selected - 1).is_some_and(|row| row.key().is_none());
    let lowest = (selected + 1).saturating_sub(height);
    let last = rows.len().saturating_sub(height);
    let first_row = state.first_row.min(selected - usize::from(has_heading));
    state.first_row = first_row.max(lowest).min(last.max(lowest));
}
