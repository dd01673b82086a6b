//! What the screens look like.

use std::sync::Arc;

use delegator_engine::LiveOverall;
use delegator_testkit::generated::assert_up_to_date;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;
use crate::output::data::group::{AttemptData, AttemptResult, GroupData};
use crate::output::data::log_entry::EntryKind;
use crate::watch::diff_pane::DiffPane;
use crate::watch::keys::Action;
use crate::watch::loader::Loaded;
use crate::watch::log::LogEntry;
use crate::watch::results::{called, loaded};
use crate::watch::runner::CallResult;
use crate::watch::state::Effect;
use crate::watch::task_view::Tab;
use crate::watch::update::{open_task, update};
use crate::watch::view::{draw, layout};

const SIZES: [(u16, u16); 3] = [(40, 10), (80, 24), (200, 50)];

pub(super) fn drawn(state: &mut State, (columns, rows): (u16, u16)) -> TestBackend {
    (state.columns, state.rows) = (columns, rows);
    layout::scroll_into_view(state);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().clone()
}

fn check(name: &str, mut state: State) {
    let screen = |size: (u16, u16)| format!("==== {} × {} ====\n{}", size.0, size.1, drawn(&mut state, size));
    let screens: Vec<String> = SIZES.into_iter().map(screen).collect();
    assert_up_to_date(&format!("crates/mcp-delegator/tests/screens/watch/{name}.txt"), &screens.join("\n"));
}

const DIFF: &[u8] = b"diff --git a/src/cart.rs b/src/cart.rs\n--- a/src/cart.rs\n+++ b/src/cart.rs\n@@ -1,3 +1,3 @@ fn total\n \
                      let sum = 0;\n-round(sum)\n+round_half_up(sum) // as the shop has always done it, see the notes on prices\n\
                      diff --git a/logo.png b/logo.png\nnew file mode 100644\nBinary files /dev/null and b/logo.png differ\n";

pub(super) fn opened(tab: Tab) -> State {
    let mut state = state();
    open_task(&mut state, id(3), tab);
    loaded(&mut state, &Loaded::Overview(id(3), Ok("Task T-local-3 working\n\nagent: codex (gpt-6), workspace-write\n\nAsked:\nRound the prices.".to_owned())));
    let entry = |kind, text: &str| LogEntry {
        kind: Some(kind),
        has_failed: false,
        text: text.to_owned(),
        item: None,
    };
    let entries = vec![
        entry(EntryKind::Message, "Message: I will read the cart first.\nThen I round."),
        entry(EntryKind::Command, "Running rg round: exit 0 (<1s)\nsrc/cart.rs:2: round(sum)"),
        entry(EntryKind::Edit, "Editing src/cart.rs: done\n-round(sum)\n+round_half_up(sum)"),
        LogEntry {
            has_failed: true,
            ..entry(EntryKind::Test, "Running cargo test: exit 101 (1m 05s)\ntest total ... FAILED")
        },
        entry(EntryKind::Turn, "Turn completed: 12000 tokens read (8000 cached), 900 written"),
    ];
    loaded(&mut state, &Loaded::Log { task: id(3), entries, is_restarted: true });
    state.now_ms += 120_000;
    let late = vec![entry(EntryKind::Message, "Message: Done.")];
    loaded(&mut state, &Loaded::Log { task: id(3), entries: late, is_restarted: false });
    state.now_ms -= 120_000;
    loaded(&mut state, &Loaded::Diff(id(3), Ok(DiffPane::new(DIFF, String::new()))));
    state
}

fn with(mut state: State, actions: &[Action]) -> State {
    for action in actions {
        update(&mut state, action.clone());
    }
    state
}

fn typed(text: &str) -> Action {
    Action::Type(text.to_owned())
}

#[test]
fn lists() {
    check("list", state());
    let mut of_group = state();
    of_group.selected = Some(Key::Submission(group_id().to_string()));
    check("list_group", of_group);
    let mut running = state();
    select(&mut running, 3);
    check("list_running", running);
    check("empty", empty());
    check("filter", with(state(), &[Action::Filter, typed("search codex")]));
    let mut failed = state();
    let problem = Some("the registry is damaged".to_owned());
    failed.board.overall = Arc::new(LiveOverall { problem, ..LiveOverall::default() });
    check("problem", failed);
}

#[test]
fn tasks() {
    check("task_overview", opened(Tab::Overview));
    check("task_timeline", opened(Tab::Timeline));
    check("task_output", opened(Tab::Output));
    check("task_diff", opened(Tab::Diff));
    let mut asking = state();
    open_task(&mut asking, id(1), Tab::Overview);
    check("task_question", asking);
}

pub(super) fn group() -> GroupData {
    let attempt = |attempt: u8, number: u8, result| AttemptData {
        attempt,
        task_id: id(number).to_string(),
        agent: "codex".to_owned(),
        model: Some("gpt-6".to_owned()),
        state: "completed",
        end: "completed",
        result,
    };
    let result = |passed, summary: &str| AttemptResult {
        summary: summary.to_owned(),
        verification: Some("verified"),
        passed_test_count: Some(passed),
        failed_test_count: Some(0),
        file_count: Some(2),
        lines_added: Some(12),
        lines_deleted: Some(3),
        duration_seconds: 45,
        used_tokens: Some(12_900),
    };
    GroupData {
        group_id: group_id().to_string(),
        attempts: vec![
            attempt(1, 4, Some(result(12, "The search uses an index now."))),
            attempt(2, 5, Some(result(9, "The search stops at the first page."))),
        ],
        recommended_attempt: Some(1),
        recommendation_reason: Some("it has more passing tests".to_owned()),
    }
}

#[test]
fn groups() {
    let mut state = state();
    select(&mut state, 4);
    update(&mut state, Action::Group);
    let effects = std::mem::take(&mut state.effects);
    assert!(matches!(effects.as_slice(), [Effect::Load(_)]), "{effects:?}");
    loaded(&mut state, &Loaded::Group(group_id(), Ok(group())));
    check("group", with(state, &[Action::Beside(1)]));
}

#[test]
fn dialogs() {
    check("answer", with(state(), &[Action::Answer, typed("1")]));
    check(
        "message",
        with(
            state(),
            &[Action::Message, typed("Also update the changelog, and mention 日本語 in it, please.")],
        ),
    );
    check("new_task", with(state(), &[Action::NewTask]));
    check("again", with(state(), &[Action::Again]));
    let mut state = state();
    update(&mut state, Action::Apply);
    let effects = std::mem::take(&mut state.effects);
    let [Effect::Call(step)] = effects.as_slice() else { panic!("{effects:?}") };
    let text =
        "2 files would be changed\n\nfile         lines\nsrc/cart.rs  +1 -1\nlogo.png     binary".to_owned();
    called(&mut state, step.clone(), CallResult::Done(text));
    check("confirm", state.clone());
    update(&mut state, Action::Submit);
    let effects = std::mem::take(&mut state.effects);
    let [Effect::Call(step)] = effects.as_slice() else { panic!("{effects:?}") };
    let text =
        "error: 1 file has a conflict: src/cart.rs\n  both changed line 2\nhint: resolve it".to_owned();
    called(&mut state, step.clone(), CallResult::Failed(text));
    check("error", state);
}

#[test]
fn help() {
    check("help", with(state(), &[Action::Help]));
}

#[test]
fn no_size_is_too_small() {
    let states =
        [state(), opened(Tab::Diff), with(state(), &[Action::Answer]), with(state(), &[Action::Help])];
    for mut state in states {
        for (columns, rows) in [(1, 1), (3, 2), (10, 3), (20, 5), (300, 100)] {
            drawn(&mut state, (columns, rows));
            update(&mut state, Action::Page(1));
            update(&mut state, Action::Move(isize::MAX / 2));
            drawn(&mut state, (columns, rows));
        }
    }
}

#[test]
fn colours_are_those_of_the_terminal_and_can_be_left_out() {
    let named = [Color::Reset, Color::Red, Color::Green, Color::Yellow, Color::Cyan];
    for is_colored in [true, false] {
        for mut state in [state(), opened(Tab::Diff), opened(Tab::Timeline)] {
            state.is_colored = is_colored;
            let backend = drawn(&mut state, (120, 40));
            let cells = backend.buffer().content();
            assert!(cells.iter().all(|cell| named.contains(&cell.fg) && cell.bg == Color::Reset));
            assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), is_colored);
        }
    }
}

#[test]
fn text_of_agents_is_shown_as_text() {
    const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31mred\u{202e}evil\u{200f}\r\nsecond\u{8}\tline 日本語日本語 👩‍👩‍👧 é\u{301}\u{301}";
    let mut state = state();
    let line = TaskLine {
        state: HOSTILE.to_owned(),
        title: HOSTILE.to_owned(),
        agent: HOSTILE.to_owned(),
        ..task(1, 5, "", ("", ""), "")
    };
    let mut asked = question();
    asked.question.title = HOSTILE.to_owned();
    asked.question.detail = Some(HOSTILE.to_owned());
    asked.question.options[0].label = HOSTILE.to_owned();
    state.board.peeks.insert(
        id(1).to_string(),
        Peek { questions: vec![asked], last_message: Some(HOSTILE.to_owned()), ..Peek::default() },
    );
    state.board.sections.entries = vec![(Section::NeedsYou, vec![Entry::Task(line)])];
    let mut opened = state.clone();
    open_task(&mut opened, id(1), Tab::Output);
    let entries = vec![LogEntry::of(None, HOSTILE)];
    loaded(&mut opened, &Loaded::Log { task: id(1), entries, is_restarted: true });
    loaded(&mut opened, &Loaded::Overview(id(1), Err(HOSTILE.to_owned())));
    let overview = with(opened.clone(), &[Action::Tab(Tab::Overview)]);
    let answer = with(state.clone(), &[Action::Answer, typed(HOSTILE)]);
    for mut state in [state, opened, overview, answer] {
        for size in SIZES {
            let backend = drawn(&mut state, size);
            let text: String = backend.buffer().content().iter().map(|cell| cell.symbol()).collect();
            assert!(!text.chars().any(char::is_control), "{text}");
            assert!(!text.contains(['\u{202e}', '\u{200f}']) && !text.contains("owned"), "{text}");
            assert!(text.contains("red"), "{text}");
        }
    }
}
