//! What keys and clicks do.

use delegator_domain::task::TaskId;
use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::*;
use crate::error::suggestion::NextCall;
use crate::watch::keys::{Action, action};
use crate::watch::lines::Look;
use crate::watch::loader::{Loaded, Request};
use crate::watch::results::{called, loaded, reload_if_shown};
use crate::watch::runner::CallResult;
use crate::watch::state::{Effect, Step, View};
use crate::watch::task_view::Tab;
use crate::watch::update::{open_task, update};

fn key(code: KeyCode) -> Event {
    Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn letter(letter: char) -> Event {
    key(KeyCode::Char(letter))
}

fn control(letter: char) -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
}

/// What the keys make the program do.
fn press(state: &mut State, events: &[Event]) -> Vec<Effect> {
    for event in events {
        if let Some(action) = action(state, event) {
            update(state, action);
        }
    }
    std::mem::take(&mut state.effects)
}

fn typed(text: &str) -> Vec<Event> {
    text.chars().map(letter).chain([key(KeyCode::Enter)]).collect()
}

fn calls(effects: &[Effect]) -> Vec<NextCall> {
    let call = |effect: &Effect| if let Effect::Call(step) = effect { Some(step.call.clone()) } else { None };
    effects.iter().filter_map(call).collect()
}

#[test]
fn keys_mean_actions() {
    let list = state();
    for (event, expected) in [
        (letter('q'), Some(Action::Quit)),
        (control('c'), Some(Action::Quit)),
        (letter('j'), Some(Action::Move(1))),
        (key(KeyCode::Up), Some(Action::Move(-1))),
        (key(KeyCode::PageDown), Some(Action::Page(1))),
        (key(KeyCode::PageUp), Some(Action::Page(-1))),
        (key(KeyCode::Enter), Some(Action::Open)),
        (key(KeyCode::Esc), Some(Action::Back)),
        (letter('/'), Some(Action::Filter)),
        (letter('?'), Some(Action::Help)),
        (letter('a'), Some(Action::Answer)),
        (letter('m'), Some(Action::Message)),
        (letter('d'), Some(Action::Diff)),
        (letter('A'), Some(Action::Apply)),
        (letter('D'), Some(Action::Discard)),
        (letter('u'), Some(Action::Undo)),
        (letter('c'), Some(Action::Cancel)),
        (letter('r'), Some(Action::Again)),
        (letter('n'), Some(Action::NewTask)),
        (letter('g'), Some(Action::Group)),
        (letter('x'), None),
        (letter('1'), None),
        (key(KeyCode::Tab), None),
        (control('a'), None),
        (Event::Paste("q".to_owned()), None),
        (Event::Resize(10, 20), None),
    ] {
        assert_eq!(action(&list, &event), expected, "{event:?}");
    }
    let mut open = state();
    open_task(&mut open, id(3), Tab::Overview);
    for (event, expected) in [
        (letter('4'), Some(Action::Tab(Tab::Diff))),
        (letter('5'), None),
        (key(KeyCode::Tab), Some(Action::Beside(1))),
        (key(KeyCode::BackTab), Some(Action::Beside(-1))),
        (letter('z'), Some(Action::ToggleAll)),
        (letter(']'), Some(Action::File(1))),
        (letter('q'), Some(Action::Quit)),
    ] {
        assert_eq!(action(&open, &event), expected, "{event:?}");
    }
    let mut typing = state();
    update(&mut typing, Action::NewTask);
    for (event, expected) in [
        (letter('q'), Some(Action::Type("q".to_owned()))),
        (Event::Paste("a\nb".to_owned()), Some(Action::Type("a\nb".to_owned()))),
        (control('c'), Some(Action::Quit)),
        (control('u'), Some(Action::EraseAll)),
        (control('w'), None),
        (key(KeyCode::Backspace), Some(Action::Erase)),
        (key(KeyCode::Enter), Some(Action::Submit)),
        (key(KeyCode::Esc), Some(Action::Back)),
    ] {
        assert_eq!(action(&typing, &event), expected, "{event:?}");
    }
}

#[test]
fn every_command_is_that_of_the_command_line() {
    let one = id(1).to_string();
    let for_one = |path| NextCall::for_task(path, &one);
    for (events, expected) in [
        (
            [vec![letter('a')], typed("1")].concat(),
            for_one(&["answer"]).with("question", 1).with("option", "allow_once"),
        ),
        ([vec![letter('m')], typed("hi q")].concat(), for_one(&["send"]).with("text", "hi q")),
        (vec![letter('A')], for_one(&["apply"]).with("check", true)),
        (vec![letter('u')], for_one(&["undo"]).with("dry_run", true)),
        (vec![letter('D')], for_one(&["discard"])),
        (
            vec![letter('c')],
            NextCall::new(&["cancel"]).with("task_ids", vec![one.clone()]).with("dry_run", true),
        ),
        ([vec![letter('r')], typed("")].concat(), for_one(&["retry"])),
        ([vec![letter('r')], typed("more")].concat(), for_one(&["local", "resume"]).with("task", "more")),
        (
            [vec![letter('n')], typed("fix it")].concat(),
            NextCall::new(&["local", "exec"]).with("task", "fix it"),
        ),
    ] {
        let mut state = state();
        assert_eq!(calls(&press(&mut state, &events)), [expected], "{events:?}");
    }
}

#[test]
fn a_check_is_shown_before_the_command_is_run() {
    let mut state = state();
    let effects = press(&mut state, &[letter('A')]);
    let [Effect::Call(step)] = effects.as_slice() else { panic!("{effects:?}") };
    called(&mut state, step.clone(), CallResult::Done("1 file".to_owned()));
    let heading = &state.dialogs[0].lines[0].text;
    assert!(heading.contains(id(1).as_str()) && heading.contains("Add a test runner"), "{heading}");
    assert!(press(&mut state.clone(), &[letter('n')]).is_empty());
    assert!(press(&mut state, &[letter('x'), key(KeyCode::Enter)]).is_empty(), "only y agrees");
    let effects = press(&mut state, &[letter('y')]);
    let apply = NextCall::for_task(&["apply"], id(1).as_str());
    assert_eq!(calls(&effects), std::slice::from_ref(&apply));
    let forced = apply.clone().with("force", true);
    let refused = CallResult::NeedsConsent { reason: "its check failed".to_owned(), call: forced.clone() };
    called(&mut state, Step { call: apply, target: None, then: None }, refused);
    assert_eq!(calls(&press(&mut state, &[letter('y')])), [forced]);
    assert!(state.dialogs.is_empty());
}

#[test]
fn a_question_of_a_result_waits_for_what_is_typed() {
    let mut state = state();
    let apply = NextCall::for_task(&["apply"], id(1).as_str());
    let step = Step { call: apply.clone(), target: None, then: Some(("Apply?".to_owned(), apply.clone())) };
    press(&mut state, &[letter('n'), letter('a')]);
    called(&mut state, step, CallResult::Done("1 file".to_owned()));
    let effects = press(&mut state, &typed("y"));
    assert_eq!(calls(&effects), [NextCall::new(&["local", "exec"]).with("task", "ay")]);
    assert_eq!(calls(&press(&mut state, &[letter('y')])), [apply]);
}

#[test]
fn a_shown_result_does_not_swallow_keys() {
    let mut state = state();
    let step = Step { call: NextCall::new(&["send"]), target: None, then: None };
    called(&mut state, step, CallResult::Done("1\n2\n3\n4".to_owned()));
    assert!(press(&mut state, &[letter('j')]).is_empty() && !state.dialogs.is_empty(), "it is scrolled");
    press(&mut state, &[letter('n')]);
    assert!(state.is_typing());
    press(&mut state, &[key(KeyCode::Esc), letter('?'), key(KeyCode::Esc)]);
    assert!(state.dialogs.is_empty());
}

#[test]
fn an_answer_that_the_question_does_not_have_is_asked_again() {
    let mut state = state();
    let effects = press(&mut state, &[vec![letter('a')], typed("")].concat());
    assert!(effects.is_empty() && state.is_typing());
    state.dialogs.clear();
    let mut with_text = board();
    let peek = with_text.peeks.get_mut(id(1).as_str()).unwrap();
    peek.questions[0].question.free_text = true;
    state.set_board(with_text);
    let effects = press(&mut state, &[vec![letter('a')], typed("7")].concat());
    assert!(effects.is_empty() && state.is_typing());
    let problem = state.message.as_ref().map(|message| message.text.as_str());
    assert_eq!(problem, Some("This is none of the answers."));
    select(&mut state, 3);
    state.dialogs.clear();
    press(&mut state, &[letter('a')]);
    assert!(
        state.dialogs.is_empty() && state.message.as_ref().is_some_and(|message| message.look == Look::Bad)
    );
}

#[test]
fn the_selection_stays_with_its_task() {
    let mut state = state();
    press(&mut state, &[letter('j'), letter('j')]);
    assert_eq!(state.selected, Some(Key::Task(id(3).to_string())));
    let mut board = board();
    board.sections.entries.remove(0);
    state.set_board(board.clone());
    assert_eq!(state.selected, Some(Key::Task(id(3).to_string())));
    board.sections.entries[0].1.remove(0);
    state.set_board(board);
    assert_eq!(state.selected, Some(Key::Submission(group_id().to_string())), "what is at its place");
    press(&mut state, &[key(KeyCode::End)]);
    assert_eq!(state.selected, Some(Key::Task(id(10).to_string())));
    press(&mut state, &[letter('/'), letter('x'), letter('x')]);
    assert_eq!((state.rows().len(), &state.selected), (0, &None));
    press(&mut state, &[key(KeyCode::Esc)]);
    assert!(state.selected.is_some());
}

#[test]
fn what_is_selected_stays_in_a_filtered_list() {
    let mut state = state();
    press(&mut state, &[vec![letter('/')], typed("allow")].concat());
    assert_eq!(state.selected, Some(Key::Task(id(1).to_string())));
    let mut answered = board();
    answered.sections.entries[0].1[0] =
        Entry::Task(task(1, 231, "claude", ("Running npm", "working"), "Add"));
    state.set_board(answered);
    assert_eq!(state.selected, Some(Key::Task(id(1).to_string())), "its words have changed");
    press(&mut state, &[vec![letter('/')], typed(" login")].concat());
    assert_eq!(state.rows().len(), 0, "another filter");
}

#[test]
fn a_question_is_answered_from_the_line_of_its_group() {
    let mut state = state();
    let mut board = board();
    board.peeks.insert(id(5).to_string(), Peek { questions: vec![question()], ..Peek::default() });
    state.set_board(board);
    state.selected = Some(Key::Submission(group_id().to_string()));
    let answer =
        NextCall::for_task(&["answer"], id(5).as_str()).with("question", 1).with("option", "allow_once");
    assert_eq!(calls(&press(&mut state, &[vec![letter('a')], typed("1")].concat())), [answer]);
}

#[test]
fn only_what_is_shown_is_read_again() {
    let mut state = state();
    open_task(&mut state, id(4), Tab::Overview);
    open_task(&mut state, id(5), Tab::Overview);
    state.effects.clear();
    reload_if_shown(&mut state, &[id(4)]);
    assert_eq!(state.effects, [], "its result would count as read");
    assert_eq!(press(&mut state, &[key(KeyCode::Esc)]), [Effect::Load(Request::Task(id(4)))]);
}

#[test]
fn views_are_opened_and_closed() {
    let mut state = state();
    let effects = press(&mut state, &[key(KeyCode::Enter)]);
    assert_eq!(effects, [Effect::Load(Request::Open(id(1)))]);
    let effects = press(&mut state, &[letter('d')]);
    assert_eq!(effects, [Effect::Load(Request::Diff(id(1)))]);
    press(&mut state, &[letter('?'), key(KeyCode::Esc), key(KeyCode::Esc)]);
    assert!(state.views.is_empty());
    select(&mut state, 5);
    assert_eq!(press(&mut state, &[letter('g')]), [Effect::Load(Request::Group(group_id()))]);
    loaded(&mut state, &Loaded::Group(group_id(), Err("gone".to_owned())));
    press(&mut state, &[key(KeyCode::Esc), letter('q')]);
    assert!(state.views.is_empty());
}

#[test]
fn the_mouse_selects_and_opens() {
    let mut state = state();
    (state.columns, state.rows) = (80, 24);
    let click = |row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        Event::Mouse(MouseEvent { kind, column: 5, row, modifiers: KeyModifiers::NONE })
    };
    assert_eq!(action(&state, &click(1)), None, "a heading");
    press(&mut state, &[click(3)]);
    assert_eq!(state.selected, Some(Key::Task(id(2).to_string())));
    press(&mut state, &[click(3)]);
    let Some(View::Task(view)) = state.views.last() else { panic!("{:?}", state.views) };
    let expected: TaskId = id(2);
    assert_eq!(view.id, expected);
}

#[test]
fn time_is_counted_only_as_often_as_it_is_shown() {
    let mut state = state();
    assert_eq!(state.next_tick_ms(), Some(1_000), "a task of 59 s is shown");
    state.set_filter("login".to_owned());
    assert_eq!(state.next_tick_ms(), Some(20_000), "700 s are 11 minutes and 40 s");
    state.now_ms += 20_000;
    assert_eq!(state.next_tick_ms(), Some(60_000));
    state.set_filter("another color".to_owned());
    assert_eq!(state.next_tick_ms(), Some(20_000), "200 020 s");
    state.set_filter("nothing".to_owned());
    assert_eq!(state.next_tick_ms(), Some(60_000), "a task may fall silent");
    state.board.peeks.clear();
    assert_eq!(state.next_tick_ms(), None);
    assert_eq!(
        (state.title().as_str(), State::default().title().as_str()),
        ("2 waiting · mcp-delegator", "mcp-delegator")
    );
}
