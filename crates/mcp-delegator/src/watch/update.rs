//! What an action changes on the screen, and what is to be done because of it. Pure: the event loop does it.

use delegator_domain::task::TaskId;

use crate::commands::local::question_prompt::{instruction, typed_answer};
use crate::error::suggestion::NextCall;
use crate::watch::board::Key;
use crate::watch::describe;
use crate::watch::keys::{Action, help};
use crate::watch::lines::{Look, TextLine, Top, clean_line};
use crate::watch::loader::Request;
use crate::watch::results::reload;
use crate::watch::state::{Dialog, DialogKind, Effect, Purpose, State, Step, View};
use crate::watch::task_view::{Tab, TaskView};
use crate::watch::view::{group, layout};

/// What is to be done is in the effects of the state afterwards.
pub fn update(state: &mut State, action: Action) {
    state.message = None;
    let is_text = matches!(state.dialogs.front(), Some(Dialog { kind: DialogKind::Text, .. }));
    if is_text && !matches!(action, Action::Move(_) | Action::Page(_) | Action::Back) {
        state.dialogs.pop_front();
    }
    match action {
        Action::Quit => state.effects.push(Effect::Quit),
        Action::Back => back(state),
        Action::Open => open(state),
        Action::Move(by) => scroll(state, by),
        Action::Page(pages) => scroll(state, pages * layout::page(state)),
        Action::Select(key) => state.selected = Some(key),
        Action::Beside(by) => beside(state, by),
        Action::Tab(tab) => show_tab(state, tab),
        Action::ToggleAll | Action::File(_) => in_diff(state, &action),
        Action::Help => state.open_dialog(help(), DialogKind::Text),
        Action::Filter | Action::Answer | Action::Message | Action::Again | Action::NewTask => {
            ask(state, &action)
        }
        Action::Diff => open_target(state, Tab::Diff),
        Action::Group => open_group(state),
        Action::Apply | Action::Discard | Action::Undo | Action::Cancel => command(state, &action),
        Action::Type(_) | Action::Erase | Action::EraseAll => edit(state, &action),
        Action::Submit => submit(state),
        Action::Refuse => {
            state.dialogs.pop_front();
            state.message = Some(TextLine::new(Look::Plain, "Nothing was done."));
        }
    }
}

fn back(state: &mut State) {
    match state.dialogs.pop_front().map(|dialog| dialog.kind) {
        Some(DialogKind::Input { purpose: Purpose::Filter, .. }) => state.set_filter(String::new()),
        Some(_) => {}
        None if state.views.pop().is_none() => state.set_filter(String::new()),
        None => reload(state),
    }
}

fn open(state: &mut State) {
    match (state.views.last(), &state.selected) {
        (Some(View::Task(_)), _) => in_diff(state, &Action::Open),
        (None, Some(Key::Submission(_))) if state.target_group().is_some() => open_group(state),
        (Some(View::Group { .. }) | None, _) => open_target(state, Tab::Overview),
    }
}

fn open_target(state: &mut State, tab: Tab) {
    let target = state.target_task();
    match (state.views.last_mut(), target) {
        (Some(View::Task(view)), _) => {
            // It is read again.
            let request = Request::Diff(view.id.clone());
            view.show(tab);
            state.effects.push(Effect::Load(request));
        }
        (_, Some(id)) => open_task(state, id, tab),
        (_, None) => open_group(state),
    }
}

pub fn open_task(state: &mut State, id: TaskId, tab: Tab) {
    state.views.push(View::Task(Box::new(TaskView::new(id.clone()))));
    state.effects.push(Effect::Load(Request::Open(id)));
    show_tab(state, tab);
}

fn open_group(state: &mut State) {
    match state.target_group() {
        Some(id) => {
            state.views.push(View::Group { id: id.clone(), data: None, chosen: 0, top: Top::At(0) });
            state.effects.push(Effect::Load(Request::Group(id)));
        }
        None => state.show_error("It belongs to no group of attempts."),
    }
}

fn show_tab(state: &mut State, tab: Tab) {
    let Some(View::Task(view)) = state.views.last_mut() else { return };
    view.show(tab);
    if tab == Tab::Diff && view.diff.is_none() {
        state.effects.push(Effect::Load(Request::Diff(view.id.clone())));
    }
}

fn beside(state: &mut State, by: isize) {
    match state.views.last_mut() {
        Some(View::Task(view)) => {
            let tab = view.tab.beside(by);
            show_tab(state, tab);
        }
        Some(View::Group { data: Some(Ok(data)), chosen, .. }) => {
            *chosen = chosen.saturating_add_signed(by).min(data.attempts.len().saturating_sub(1));
        }
        _ => {}
    }
}

fn scroll(state: &mut State, by: isize) {
    let size = layout::text_size(state);
    if let Some(dialog) = state.dialogs.front_mut() {
        dialog.top = dialog.top.moved(by, &dialog.lines, size);
        return;
    }
    let (lines, size) = match state.views.last() {
        Some(View::Task(view)) => (state.task_lines(view), size),
        Some(View::Group { data: Some(Ok(data)), chosen, .. }) => group::longest_column(data, *chosen, state),
        _ => (Vec::new(), size),
    };
    match state.views.last_mut() {
        None => select_row(state, by),
        Some(View::Task(view)) => {
            view.top = view.top.moved(by, &lines, size);
            let first = view.top.line(&lines, size);
            view.diff_pane().into_iter().for_each(|diff| diff.select_at(first));
        }
        Some(View::Group { top, .. }) => *top = top.moved(by, &lines, size),
    }
}

fn select_row(state: &mut State, by: isize) {
    let rows = state.rows();
    let at = state.selected_row(&rows).unwrap_or(0);
    let wanted = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
    // A heading cannot be selected.
    let forward = rows.iter().skip(wanted).find_map(|row| row.key());
    let backward = rows.iter().take(wanted + 1).rev().find_map(|row| row.key());
    let selected = if by < 0 { backward.or(forward) } else { forward.or(backward) };
    state.selected = selected.or_else(|| state.selected.clone());
}

fn in_diff(state: &mut State, action: &Action) {
    let Some(View::Task(view)) = state.views.last_mut() else { return };
    let Some(diff) = view.diff_pane() else { return };
    match action {
        Action::ToggleAll => diff.toggle_all(),
        Action::File(by) => diff.select(*by),
        _ => diff.toggle(),
    }
    let first = diff.selected().start;
    view.top = Top::At(first);
}

/// Opens the line for what an action needs.
fn ask(state: &mut State, action: &Action) {
    let note = |text: String| vec![TextLine::new(Look::Dim, text)];
    let (purpose, lines) = match (action, state.target()) {
        (Action::Filter, _) => (Purpose::Filter, Vec::new()),
        (Action::NewTask, _) => {
            (Purpose::NewTask, note(format!("A new task in {}", clean_line(&state.directory))))
        }
        (Action::Message, Some(task)) => {
            let name = state.name(&task);
            (Purpose::Message(task), vec![name])
        }
        (Action::Again, Some(task)) => {
            let text = "Continue its thread with this text. Without a text the same task is started again.";
            let lines = [vec![state.name(&task)], note(text.to_owned())].concat();
            (Purpose::Again(task), lines)
        }
        (Action::Answer, Some(_)) => {
            let Some((task, open)) = state.open_question() else {
                return state.show_error("There is no open question.");
            };
            // Of a group or a chain, that of one of its tasks.
            let is_member = state.target().is_some_and(|target| target != task);
            let mut lines: Vec<TextLine> = is_member.then(|| state.name(&task)).into_iter().collect();
            lines.extend(describe::question(open, state.now_ms));
            lines.extend(note(instruction(&open.question)));
            (Purpose::Answer(task, Box::new(open.clone())), lines)
        }
        _ => return,
    };
    let text = if purpose == Purpose::Filter { state.filter.clone() } else { String::new() };
    state.open_dialog(lines, DialogKind::Input { purpose, text });
}

fn edit(state: &mut State, action: &Action) {
    let Some(Dialog { kind: DialogKind::Input { purpose, text }, .. }) = state.dialogs.front_mut() else {
        return;
    };
    match action {
        // One line: a pasted text submits nothing.
        Action::Type(typed) => text.push_str(&clean_line(typed)),
        Action::Erase => drop(text.pop()),
        _ => text.clear(),
    }
    if *purpose == Purpose::Filter {
        let filter = text.clone();
        state.set_filter(filter);
    }
}

fn submit(state: &mut State) {
    let step = match state.dialogs.front().map(|dialog| &dialog.kind) {
        Some(DialogKind::Confirm { step, .. }) => Some(step.clone()),
        Some(DialogKind::Input { purpose: Purpose::Filter, .. } | DialogKind::Text) | None => None,
        Some(DialogKind::Input { purpose, text }) => match call_of(purpose, text.trim()) {
            Some(call) => Some(Step { call, target: purpose.task().map(str::to_owned), then: None }),
            None if text.trim().is_empty() => return,
            None => return state.show_error("This is none of the answers."),
        },
    };
    state.dialogs.pop_front();
    state.effects.extend(step.map(Effect::Call));
}

fn call_of(purpose: &Purpose, text: &str) -> Option<NextCall> {
    Some(match purpose {
        Purpose::Again(task) if text.is_empty() => NextCall::for_task(&["retry"], task),
        _ if text.is_empty() => return None,
        Purpose::Filter => return None,
        Purpose::Answer(task, stored) => {
            let answer = typed_answer(&stored.question, text)?;
            let call = NextCall::for_task(&["answer"], task).with("question", stored.question.number.0);
            match (answer.option, answer.text) {
                (Some(option), _) => call.with("option", option),
                (None, text) => call.with("text", text?),
            }
        }
        Purpose::Again(task) => NextCall::for_task(&["local", "resume"], task).with("task", text),
        Purpose::Message(task) => NextCall::for_task(&["send"], task).with("text", text),
        Purpose::NewTask => NextCall::new(&["local", "exec"]).with("task", text),
    })
}

/// A command that needs consent: its check first, if it has one.
fn command(state: &mut State, action: &Action) {
    let Some(target) = state.target() else { return };
    let for_target = |path| NextCall::for_task(path, &target);
    let (call, then) = match action {
        Action::Apply => {
            let call = for_target(&["apply"]);
            (call.clone().with("check", true), Some(("Apply these changes?", call)))
        }
        Action::Undo => {
            let confirmed = for_target(&["undo"]).with("confirm_destructive", true);
            (for_target(&["undo"]).with("dry_run", true), Some(("Do this?", confirmed)))
        }
        Action::Cancel => {
            let call = NextCall::new(&["cancel"]).with("task_ids", vec![target.clone()]);
            (call.clone().with("dry_run", true), Some(("Cancel?", call)))
        }
        // It is refused without consent, with the reason.
        _ => (for_target(&["discard"]), None),
    };
    let then = then.map(|(question, call)| (question.to_owned(), call));
    state.effects.push(Effect::Call(Step { call, target: Some(target), then }));
}
