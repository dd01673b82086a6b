//! What the result of a command, a change of a task, and what was read in the background change on the
//! screen. Pure.

use delegator_domain::task::TaskId;

use crate::watch::lines::{Look, TextLine};
use crate::watch::loader::{Loaded, Request};
use crate::watch::log::Log;
use crate::watch::runner::CallResult;
use crate::watch::state::{Asked, Effect, State, Step, View};

/// A result with more lines is shown whole.
const MAX_MESSAGE_LINES: usize = 3;

pub fn called(state: &mut State, step: Step, result: CallResult) {
    state.running = None;
    let (text, look, asked) = match (result, step.then) {
        (CallResult::NeedsConsent { reason, call }, _) => {
            (reason, Look::Note, Some((format!("{}: go on?", step.call.path.join(" ")), call)))
        }
        (CallResult::Done(text), then) => (text, Look::Plain, then),
        (CallResult::Failed(text), _) => (text, Look::Bad, None),
    };
    let lines = TextLine::all(look, &text);
    match asked {
        Some((question, call)) => state.open_dialog(lines, Asked::Confirm { question, call }),
        None => show_result(state, lines, look),
    }
    // What is open may be another one now.
    let id = |view: &View| if let View::Task(view) = view { Some(view.id.clone()) } else { None };
    let open: Vec<TaskId> = state.views.iter().filter_map(id).collect();
    open.iter().for_each(|id| reload_task(state, id));
}

fn show_result(state: &mut State, lines: Vec<TextLine>, look: Look) {
    let first = lines.first().map_or("Done.", |line| line.text.as_str());
    state.message = Some(TextLine::new(if look == Look::Plain { Look::Good } else { look }, first));
    let shown = lines.iter().filter(|line| !line.text.trim().is_empty()).count();
    if shown > MAX_MESSAGE_LINES || (look == Look::Bad && shown > 1) {
        state.open_dialog(lines, Asked::Nothing);
    }
}

/// This task has changed: what is shown of it is to be read again.
pub fn reload_task(state: &mut State, id: &TaskId) {
    let mut requests = Vec::new();
    let State { board, views, .. } = state;
    let has_ended = board.line(id.as_str()).is_some_and(|line| line.member.end.is_some());
    for view in views {
        match view {
            View::Task(view) if view.id == *id => {
                requests.push(Request::Task(id.clone()));
                // That of a running task is read when a key asks for it.
                requests.extend((has_ended && view.diff.is_some()).then(|| Request::Diff(id.clone())));
            }
            View::Group { id: group, .. } => {
                let tasks = board.whole(group.as_str()).unwrap_or_default();
                let is_member = tasks.iter().any(|task| task.id == id.as_str());
                requests.extend(is_member.then(|| Request::Group(group.clone())));
            }
            _ => {}
        }
    }
    state.effects.extend(requests.into_iter().map(Effect::Load));
}

/// Shows what was read wherever it is open.
pub fn loaded(state: &mut State, loaded: &Loaded) {
    for view in &mut state.views {
        match (view, loaded) {
            (View::Task(view), Loaded::Overview(id, text)) if view.id == *id => {
                view.overview = Some(text.clone());
            }
            (View::Task(view), Loaded::Log { task, entries, is_restarted }) if view.id == *task => {
                if *is_restarted {
                    view.log = Log::default();
                }
                entries.iter().for_each(|entry| view.log.push(entry.clone(), state.now_ms));
            }
            (View::Task(view), Loaded::Diff(id, diff)) if view.id == *id => {
                view.diff = Some(diff.clone());
            }
            (View::Group { id, data, .. }, Loaded::Group(group, read)) if id == group => {
                *data = Some(read.clone());
            }
            _ => {}
        }
    }
}
