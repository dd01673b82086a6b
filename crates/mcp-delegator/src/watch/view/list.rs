//! The list of tasks in their sections, and what is selected beside or below it.

use delegator_domain::attention::Section;
use ratatui::Frame;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::output::data::task_line::TaskLine;
use crate::output::documents::status_screen::heading;
use crate::watch::board::{Key, Row};
use crate::watch::describe::state_look;
use crate::watch::lines::{Look, TextLine, Top, clean_line, fitted, padded};
use crate::watch::state::State;
use crate::watch::view::layout::Areas;
use crate::watch::view::{draw_text, line, lines, style, text_lines};

/// From this width on a row names the agent, and the lines that were changed.
const MIN_COLUMNS_FOR_AGENT: usize = 70;

/// How many tasks each section has, but the last.
pub fn header(state: &State) -> String {
    let counts = state.board.sections.entries.iter().filter_map(|(section, entries)| match section {
        Section::NeedsYou if entries.len() == 1 => Some("1 needs you".to_owned()),
        Section::NeedsYou => Some(format!("{} need you", entries.len())),
        Section::FinishedUnread => Some(format!("{} unread", entries.len())),
        Section::Finished => None,
        Section::Working | Section::Waiting => {
            Some(format!("{} {}", entries.len(), heading(*section).to_lowercase()))
        }
    });
    let counts: Vec<String> = counts.collect();
    let counts = if counts.is_empty() { "nothing to do".to_owned() } else { counts.join(", ") };
    let paused = if state.board.overall.is_queue_paused { "  queue paused" } else { "" };
    let filter = if state.filter.is_empty() { String::new() } else { format!("  /{}", state.filter) };
    format!(" {counts}{paused}{filter}")
}

pub fn draw(frame: &mut Frame<'_>, areas: &Areas, state: &State) {
    let rows = state.rows();
    if rows.is_empty() {
        let text = match state.filter.as_str() {
            "" => "No tasks. n submits one.",
            _ => "No task has these words. Esc shows all.",
        };
        return text_lines(frame, areas.list, vec![TextLine::new(Look::Dim, text)], state);
    }
    let width = usize::from(areas.list.width);
    let shown = rows.iter().skip(state.first_row).take(areas.list.height.into());
    lines(frame, areas.list, shown.map(|row| row_line(row, width, state)).collect());
    if let Some(peek) = areas.peek {
        draw_text(frame, peek, (&description(state), Top::At(0)), state);
    }
}

fn description(state: &State) -> Vec<TextLine> {
    match &state.selected {
        Some(Key::Task(id)) => state.description(id),
        Some(Key::Submission(id)) => {
            let of_task = |line: &TaskLine| {
                let text = format!("{}  {}  {}", line.agent, line.state, line.title);
                TextLine::new(state_look(line.color_of), clean_line(&text))
            };
            let tasks = state.board.members(id).unwrap_or_default().iter().map(of_task);
            let asking = state.open_question().map(|(task, _)| state.description(&task));
            let heading = TextLine::new(Look::Heading, id.as_str());
            let below = asking.into_iter().flat_map(|lines| [vec![TextLine::default()], lines].concat());
            std::iter::once(heading).chain(tasks).chain(below).collect()
        }
        None => Vec::new(),
    }
}

fn row_line(row: &Row<'_>, width: usize, state: &State) -> Line<'static> {
    let mut spans = match row {
        Row::Heading(section, count) => {
            let text = fitted(&format!("{} ({count})", heading(*section)), width);
            return line(TextLine::new(Look::Heading, text), state.is_colored);
        }
        Row::Submission { id, state: words, tasks } => {
            let title = tasks.first().map(|task| clean_line(&task.title)).unwrap_or_default();
            vec![Span::raw(padded(&format!("{words}  {title}  {id}"), width.saturating_sub(2)))]
        }
        Row::Task { line, is_member } => task_spans(line, *is_member, width.saturating_sub(2), state),
    };
    let is_selected = row.key() == state.selected;
    spans.insert(0, Span::raw(if is_selected { "> " } else { "  " }));
    let line = Line::from(spans);
    if is_selected { line.patch_style(Modifier::REVERSED) } else { line }
}

/// Age, agent, state, changed lines, title.
fn task_spans(task: &TaskLine, is_member: bool, width: usize, state: &State) -> Vec<Span<'static>> {
    let cell = |text: &str, columns: usize| padded(&clean_line(text), columns) + " ";
    let is_wide = width >= MIN_COLUMNS_FOR_AGENT;
    let indent = if is_member { "  " } else { "" };
    let age = format!("{indent}{:>3} ", state.age(task));
    let agent = if is_wide { cell(&task.agent, 9) } else { String::new() };
    let changed = task.lines.map(|lines| format!("+{} −{}", lines.added, lines.deleted)).unwrap_or_default();
    let changed = if is_wide { cell(&changed, 10) } else { String::new() };
    let left = width.saturating_sub(age.len() + if is_wide { 21 } else { 0 });
    let of_state = left * 11 / 20;
    let words = cell(&task.state, of_state.saturating_sub(1));
    let title = padded(&clean_line(&task.title), left.saturating_sub(of_state));
    let look = style(state_look(task.color_of), state.is_colored);
    vec![Span::raw(age + &agent), Span::styled(words, look), Span::raw(changed + &title)]
}
