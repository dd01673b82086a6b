//! The attempts of a group side by side.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::output::data::group::{AttemptData, GroupData};
use crate::watch::describe::{fact, state_look};
use crate::watch::lines::{Look, Size, TextLine, Top, clean_line, wrapped};
use crate::watch::state::State;
use crate::watch::view::{draw_text, layout};

/// Fewer attempts are shown at once if there is no room for that.
const MIN_COLUMNS: u16 = 20;

/// The number of columns of text side by side, and the area of the first.
fn columns(area: Rect, data: &GroupData) -> (u16, Rect) {
    let attempts = u16::try_from(data.attempts.len()).unwrap_or(u16::MAX).max(1);
    let count = (area.width / MIN_COLUMNS).clamp(1, attempts);
    let reason = area.height.min(2);
    (count, Rect { y: area.y + reason, width: area.width / count, height: area.height - reason, ..area })
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, (data, chosen, top): (&GroupData, usize, Top), state: &State) {
    let reason = TextLine::all(Look::Plain, &recommendation(data));
    let (count, column) = columns(area, data);
    let above = Rect { height: column.y - area.y, ..area };
    draw_text(frame, above, (&reason, Top::At(0)), state);
    let first = (chosen + 1).saturating_sub(count.into());
    for (at, attempt) in (0..count).zip(data.attempts.iter().enumerate().skip(first)) {
        let x = column.x + at * column.width;
        let column = Rect { x, width: column.width.saturating_sub(1), ..column };
        let lines = attempt_lines(attempt.1, data, attempt.0 == chosen, state);
        draw_text(frame, column, (&lines, top), state);
    }
}

/// What is scrolled: the others end before it.
pub fn longest_column(data: &GroupData, chosen: usize, state: &State) -> (Vec<TextLine>, Size) {
    let (_, column) = columns(layout::areas(state).body, data);
    let size = (usize::from(column.width.saturating_sub(1)), usize::from(column.height));
    let lines =
        (0..).zip(&data.attempts).map(|(at, attempt)| attempt_lines(attempt, data, at == chosen, state));
    let rows = |lines: &Vec<TextLine>| lines.iter().map(|line| wrapped(line, size.0).len()).sum::<usize>();
    (lines.max_by_key(rows).unwrap_or_default(), size)
}

fn recommendation(data: &GroupData) -> String {
    match (&data.recommended_attempt, &data.recommendation_reason) {
        (Some(number), Some(reason)) => format!("Recommended: attempt {number}, because {reason}."),
        (None, Some(reason)) => format!("No attempt is recommended: {reason}."),
        (_, None) => "The attempts are compared when all have ended.".to_owned(),
    }
}

fn attempt_lines(attempt: &AttemptData, data: &GroupData, is_chosen: bool, state: &State) -> Vec<TextLine> {
    let marker = if is_chosen { "> " } else { "  " };
    let mark = if data.recommended_attempt == Some(attempt.attempt) { " *" } else { "" };
    let model = attempt.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let line = state.board.line(&attempt.task_id);
    let words = line.map_or(attempt.end, |line| line.state.as_str());
    let look = line.map_or(Look::Plain, |line| state_look(line.color_of));
    let mut lines = vec![
        TextLine::new(Look::Heading, format!("{marker}attempt {}{mark}", attempt.attempt)),
        TextLine::new(Look::Plain, clean_line(&format!("{}{model}", attempt.agent))),
        TextLine::new(look, clean_line(words)),
    ];
    if let Some(result) = &attempt.result {
        let tests = result.passed_test_count.zip(result.failed_test_count);
        let changed = result.lines_added.zip(result.lines_deleted);
        let facts = [
            ("check", result.verification.map(|check| check.replace('_', " "))),
            ("tests", tests.map(|(passed, failed)| format!("{passed} passed, {failed} failed"))),
            ("files", result.file_count.map(|files| files.to_string())),
            ("lines", changed.map(|(added, deleted)| format!("+{added} −{deleted}"))),
            ("time", Some(format!("{} s", result.duration_seconds))),
            ("tokens", result.used_tokens.map(|tokens| tokens.to_string())),
        ];
        lines.extend(facts.iter().map(|(name, value)| fact(name, value.as_deref().unwrap_or("-"))));
        lines.push(TextLine::default());
        lines.extend(TextLine::all(Look::Plain, &result.summary));
    }
    lines.extend([TextLine::default(), TextLine::new(Look::Dim, attempt.task_id.as_str())]);
    lines
}
