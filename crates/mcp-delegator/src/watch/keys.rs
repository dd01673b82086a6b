//! What a key, a click or pasted text means: one action, which depends on what is open. Pure.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use crate::watch::board::Key;
use crate::watch::lines::{Look, TextLine};
use crate::watch::state::{DialogKind, State, View};
use crate::watch::task_view::Tab;
use crate::watch::view::layout;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Quit,
    Back,
    Open,
    /// Lines down, or up if it is negative.
    Move(isize),
    /// Pages.
    Page(isize),
    Select(Key),
    /// To the left or the right: a tab, an attempt.
    Beside(isize),
    Tab(Tab),
    ToggleAll,
    File(isize),
    Filter,
    Help,
    Answer,
    Message,
    Diff,
    Apply,
    Discard,
    Undo,
    Cancel,
    Again,
    NewTask,
    Group,
    Type(String),
    Erase,
    EraseAll,
    /// What is typed, or yes.
    Submit,
    Refuse,
}

/// Beyond the first and the last line.
const FAR: isize = isize::MAX / 2;
/// Lines that one step of the wheel scrolls.
const WHEEL: isize = 3;

/// The letters, and what the help says about them.
const LETTERS: &[(char, Action, &str)] = &[
    ('/', Action::Filter, "filter by words"),
    ('a', Action::Answer, "answer the question"),
    ('m', Action::Message, "send a message to the agent"),
    ('d', Action::Diff, "diff"),
    ('[', Action::File(-1), "in a diff: the file before"),
    (']', Action::File(1), "in a diff: the next file"),
    ('z', Action::ToggleAll, "in a diff: collapse or expand all files"),
    ('A', Action::Apply, "apply the changes, after a check"),
    ('D', Action::Discard, "discard the worktree"),
    ('u', Action::Undo, "undo what was changed, after a check"),
    ('c', Action::Cancel, "cancel"),
    ('r', Action::Again, "continue with another text, or retry"),
    ('n', Action::NewTask, "new task in this directory"),
    ('g', Action::Group, "the attempts of the group side by side"),
    ('?', Action::Help, "this help"),
];

const OTHER_KEYS: [(&str, &str); 5] = [
    ("↑ ↓ Home", "move; also PgUp, PgDn, End, the mouse"),
    ("Enter", "open; in a diff: collapse or expand"),
    ("Esc", "back"),
    ("Tab 1 to 4", "overview, timeline, output, diff"),
    ("q Ctrl-C", "quit; while you type only Ctrl-C"),
];

/// Every key, and what it does.
pub fn help() -> Vec<TextLine> {
    let letters = LETTERS.iter().map(|(letter, _, what)| (letter.to_string(), *what));
    let others = OTHER_KEYS.iter().map(|(keys, what)| ((*keys).to_owned(), *what));
    let line = |(keys, what): (String, &str)| TextLine::new(Look::Plain, format!("{keys:<11}{what}"));
    let end = TextLine::new(Look::Dim, "Tasks continue when the screen is closed.");
    others.chain(letters).map(line).chain([end]).collect()
}

pub fn action(state: &State, event: &Event) -> Option<Action> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(state, *key),
        Event::Mouse(mouse) => of_mouse(state, *mouse),
        Event::Paste(text) => state.is_typing().then(|| Action::Type(text.clone())),
        _ => None,
    }
}

fn of_key(state: &State, KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<Action> {
    let with_control = modifiers.contains(KeyModifiers::CONTROL);
    let dialog = state.dialogs.front().map(|dialog| &dialog.kind);
    match (code, dialog) {
        (KeyCode::Char('c'), _) if with_control => Some(Action::Quit),
        (KeyCode::Char('u'), Some(DialogKind::Input { .. })) if with_control => Some(Action::EraseAll),
        (KeyCode::Char(_), _) if with_control => None,
        (KeyCode::Char(letter), Some(DialogKind::Input { .. })) => Some(Action::Type(letter.to_string())),
        (KeyCode::Backspace, Some(DialogKind::Input { .. })) => Some(Action::Erase),
        (KeyCode::Enter, Some(DialogKind::Input { .. })) => Some(Action::Submit),
        (KeyCode::Esc, Some(DialogKind::Input { .. })) => Some(Action::Back),
        (KeyCode::Char('q'), _) => Some(Action::Quit),
        (KeyCode::Char('y' | 'Y'), Some(DialogKind::Confirm { .. })) => Some(Action::Submit),
        (KeyCode::Char('n' | 'N') | KeyCode::Esc, Some(DialogKind::Confirm { .. })) => Some(Action::Refuse),
        (KeyCode::Esc | KeyCode::Enter, Some(DialogKind::Text)) => Some(Action::Back),
        (code, None | Some(DialogKind::Text)) => moving(code).or_else(|| in_view(state, code)),
        (code, Some(_)) => moving(code),
    }
}

fn moving(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Down | KeyCode::Char('j') => Some(Action::Move(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(Action::Move(-1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(Action::Page(1)),
        KeyCode::PageUp => Some(Action::Page(-1)),
        KeyCode::Home => Some(Action::Move(-FAR)),
        KeyCode::End => Some(Action::Move(FAR)),
        _ => None,
    }
}

fn in_view(state: &State, code: KeyCode) -> Option<Action> {
    let is_open = !state.views.is_empty();
    match code {
        KeyCode::Enter => Some(Action::Open),
        KeyCode::Esc | KeyCode::Backspace => Some(Action::Back),
        KeyCode::Left | KeyCode::BackTab if is_open => Some(Action::Beside(-1)),
        KeyCode::Right | KeyCode::Tab if is_open => Some(Action::Beside(1)),
        KeyCode::Char(digit @ '1'..='4') if matches!(state.views.last(), Some(View::Task(_))) => {
            let tabs = ('1'..='4').zip(Tab::ALL);
            tabs.into_iter().find(|(own, _)| *own == digit).map(|(_, tab)| Action::Tab(tab))
        }
        KeyCode::Char(letter) => {
            let found = LETTERS.iter().find(|(own, ..)| *own == letter);
            found.map(|(_, action, _)| action.clone())
        }
        _ => None,
    }
}

fn of_mouse(state: &State, mouse: MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::ScrollDown => Some(Action::Move(WHEEL)),
        MouseEventKind::ScrollUp => Some(Action::Move(-WHEEL)),
        MouseEventKind::Down(MouseButton::Left) if state.dialogs.is_empty() && state.views.is_empty() => {
            let area = layout::areas(state).list;
            let at = area.contains((mouse.column, mouse.row).into()).then(|| mouse.row - area.y)?;
            let key = state.rows().get(state.first_row + usize::from(at))?.key()?;
            Some(if state.selected.as_ref() == Some(&key) { Action::Open } else { Action::Select(key) })
        }
        _ => None,
    }
}
