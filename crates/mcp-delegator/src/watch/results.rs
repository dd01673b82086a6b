//! What the result of a command, a change of a task, and what was read in the background change on the
//! screen. Pure.

use delegator_domain::task::TaskId;

use crate::watch::lines::{Look, TextLine};
use crate::watch::loader::{Loaded, Request};
use crate::watch::log::Log;
use crate::watch::runner::CallResult;
use crate::watch::state::{DialogKind, Effect, State, Step, View};

/// A result with more lines is shown whole.
const MAX_MESSAGE_LINES: usize = 3;

pub fn called(state: &mut State, step: Step, result: CallResult) {
    state.running.pop_front();
    let Step { call, target, then } = step;
    let (text, look, next) = match (result, then) {
        (CallResult::NeedsConsent { reason, call: confirmed }, _) => {
            (reason, Look::Note, Some((format!("{}: go on?", call.path.join(" ")), confirmed)))
        }
        (CallResult::Done(text), then) => (text, Look::Plain, then),
        (CallResult::Failed(text), _) => (text, Look::Bad, None),
    };
    let lines = TextLine::all(look, &text);
    match next {
        Some((question, call)) => {
            let name = target.as_deref().map(|id| state.name(id));
            let step = Step { call, target, then: None };
            let lines = name.into_iter().chain(lines).collect();
            state.open_dialog(lines, DialogKind::Confirm { question, step });
        }
        None => show_result(state, lines, look),
    }
    reload(state);
}

fn show_result(state: &mut State, lines: Vec<TextLine>, look: Look) {
    let first = lines.first().map_or("Done.", |line| line.text.as_str());
    state.message = Some(TextLine::new(if look == Look::Plain { Look::Good } else { look }, first));
    let shown = lines.iter().filter(|line| !line.text.trim().is_empty()).count();
    if shown > MAX_MESSAGE_LINES || (look == Look::Bad && shown > 1) {
        state.open_dialog(lines, DialogKind::Text);
    }
}

/// These tasks have changed: what is shown of them is to be read again. What lies below is read when it is shown, so
/// that it does not count as read before.
pub fn reload_if_shown(state: &mut State, changed: &[TaskId]) {
    let is_changed = |id: &str| changed.iter().any(|changed| changed.as_str() == id);
    let is_shown = match state.views.last() {
        Some(View::Task(view)) => is_changed(view.id.as_str()),
        Some(View::Group { id, .. }) => {
            let tasks = state.board.members(id.as_str()).unwrap_or_default();
            tasks.iter().any(|task| is_changed(&task.id))
        }
        None => false,
    };
    if is_shown {
        reload(state);
    }
}

/// What is open is to be read again.
pub fn reload(state: &mut State) {
    let requests = match state.views.last() {
        Some(View::Task(view)) => {
            let line = state.board.line(view.id.as_str());
            let has_ended = line.is_some_and(|line| line.member.end.is_some());
            // The diff of a running task is read when a key asks for it.
            let diff = (has_ended && view.diff.is_some()).then(|| Request::Diff(view.id.clone()));
            std::iter::once(Request::Task(view.id.clone())).chain(diff).collect()
        }
        Some(View::Group { id, .. }) => vec![Request::Group(id.clone())],
        None => Vec::new(),
    };
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
                let mut diff = diff.clone();
                if let (Ok(new), Some(Ok(old))) = (&mut diff, &view.diff) {
                    new.continue_at(old);
                }
                view.diff = Some(diff);
            }
            (View::Group { id, data, .. }, Loaded::Group(group, read)) if id == group => {
                *data = Some(read.clone());
            }
            _ => {}
        }
    }
}
