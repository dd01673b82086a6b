//! Draws the state: pure functions from it to a frame, one module for each view.
//!
//! Colours are the sixteen of the terminal, so that they fit a light and a dark background, and each of them
//! only repeats what words or signs say.

pub mod dialog;
pub mod group;
pub mod layout;
pub mod list;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::watch::lines::{Look, TextLine, Top, clean_line, fitted, padded, window};
use crate::watch::state::{State, View};
use crate::watch::task_view::{Tab, TaskView, loaded_lines};

pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let areas = layout::areas(state);
    let (header, keys) = match state.views.last() {
        None => {
            list::draw(frame, &areas, state);
            (list::header(state), "? help  q quit  Enter open  / filter  a answer  m message  A apply  n new")
        }
        Some(View::Task(view)) => {
            draw_text(frame, areas.body, (&state.task_lines(view), view.top), state);
            (
                task_header(view, state),
                "Esc back  ? help  Tab next  a answer  m message  d diff  A apply  r again",
            )
        }
        Some(View::Group { id, data, chosen, top }) => {
            match data {
                Some(Ok(data)) => group::draw(frame, areas.body, (data, *chosen, *top), state),
                missing => {
                    let lines = loaded_lines(missing, |_| Vec::new());
                    draw_text(frame, areas.body, (&lines, Top::At(0)), state);
                }
            }
            (format!(" group {id}"), "Esc back  ← → choose  Enter open  d diff  A apply")
        }
    };
    let header = padded(&header, state.columns.into());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    lines(frame, areas.header, vec![Line::from(Span::styled(header, reversed))]);
    if let Some(open) = state.dialogs.front() {
        dialog::draw(frame, areas.dialog, open, state);
    }
    let footer = footer(state, state.dialogs.front().map_or(keys, dialog::keys));
    text_lines(frame, areas.footer, vec![footer], state);
}

/// The tabs, then the task in one line.
fn task_header(view: &TaskView, state: &State) -> String {
    let name = |tab: &Tab| if *tab == view.tab { format!("[{}]", tab.name()) } else { tab.name().to_owned() };
    let tabs = Tab::ALL.iter().map(name).collect::<Vec<_>>().join(" ");
    let line = state.board.line(view.id.as_str());
    let about = line.map(|line| format!("  {} {}  {}", state.age(line), line.state, line.title));
    format!(" {tabs}{}  {}", clean_line(&about.unwrap_or_default()), view.id)
}

/// What runs or happened last, else the keys.
fn footer(state: &State, keys: &str) -> TextLine {
    let line = match (state.running.front(), &state.message, &state.board.overall.problem) {
        (Some(running), _, _) => TextLine::new(Look::Active, format!("{running} …")),
        (None, Some(message), _) => message.clone(),
        (None, None, Some(problem)) => {
            TextLine::new(Look::Bad, clean_line(&format!("the tasks could not be read: {problem}")))
        }
        (None, None, None) => TextLine::new(Look::Dim, keys),
    };
    TextLine::new(line.look, fitted(&line.text, state.columns.into()))
}

fn style(look: Look, is_colored: bool) -> Style {
    let plain = Style::new();
    let colored = |color: Color| if is_colored { plain.fg(color) } else { plain };
    match look {
        Look::Plain => plain,
        Look::Heading => plain.add_modifier(Modifier::BOLD),
        Look::Dim => plain.add_modifier(Modifier::DIM),
        Look::Active | Look::Hunk => colored(Color::Cyan),
        Look::Good | Look::Added => colored(Color::Green),
        Look::Bad | Look::Deleted => colored(Color::Red),
        Look::Note => colored(Color::Yellow).add_modifier(Modifier::BOLD),
    }
}

fn line(text: TextLine, is_colored: bool) -> Line<'static> {
    Line::from(Span::styled(text.text, style(text.look, is_colored)))
}

fn lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

fn text_lines(frame: &mut Frame<'_>, area: Rect, texts: Vec<TextLine>, state: &State) {
    lines(frame, area, texts.into_iter().map(|text| line(text, state.is_colored)).collect());
}

fn draw_text(frame: &mut Frame<'_>, area: Rect, (lines, top): (&[TextLine], Top), state: &State) {
    text_lines(frame, area, window(lines, top, (area.width.into(), area.height.into())), state);
}
