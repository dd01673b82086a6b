//! The attempts of a group side by side.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::output::data::group::{AttemptData, GroupData};
use crate::watch::describe::{fact, state_look};
use crate::watch::lines::{Look, TextLine, Top, clean_line};
use crate::watch::state::State;
use crate::watch::view::draw_text;

pub fn draw(frame: &mut Frame<'_>, area: Rect, (data, chosen): (&GroupData, usize), state: &State) {
    let reason = TextLine::all(Look::Plain, &recommendation(data));
    let top = area.height.min(2);
    draw_text(frame, Rect { height: top, ..area }, (&reason, Top::At(0)), state);
    let count = u16::try_from(data.attempts.len()).unwrap_or(1).max(1);
    let width = area.width / count;
    for (at, attempt) in (0..count).zip(&data.attempts) {
        let (x, y) = (area.x + at * width, area.y + top);
        let column = Rect { x, y, width: width.saturating_sub(1), height: area.height - top };
        let lines = attempt_lines(attempt, data, usize::from(at) == chosen, state);
        draw_text(frame, column, (&lines, Top::At(0)), state);
    }
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
