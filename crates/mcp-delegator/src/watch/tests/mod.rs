//! Every screen from a fixed state, in three sizes; keys as actions; texts that try to control the terminal; the images
//! of the documentation.

mod actions;
mod images;
mod screens;

use std::collections::BTreeMap;

use delegator_domain::attention::Section;
use delegator_domain::notification::Subject;
use delegator_domain::question::{
    AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber, QuestionState,
};
use delegator_domain::task::{EndKind, GroupId, Member, TaskId, TaskLocation};
use delegator_registry::{ChangedLines, StoredQuestion};
use delegator_transcript::{PlanStep, Usage};

use crate::output::data::task_line::{Entry, TaskLine, TaskSections};
use crate::watch::board::{Board, Key, Peek};
use crate::watch::state::State;

const NOW_MS: i64 = 1_800_000_000_000;

fn id(number: u8) -> TaskId {
    TaskId::from_random(TaskLocation::Local, [number; 16])
}

fn group_id() -> GroupId {
    GroupId::from_random([9; 16])
}

fn task(
    number: u8,
    age_sec: u64,
    agent: &str,
    (state, color_of): (&str, &'static str),
    title: &str,
) -> TaskLine {
    TaskLine {
        section: Section::Working,
        need: None,
        id: id(number).to_string(),
        age_sec,
        agent: agent.to_owned(),
        state: state.to_owned(),
        color_of,
        lines: None,
        cost_microdollars: None,
        title: title.to_owned(),
        labels: BTreeMap::new(),
        working_dir: "/home/me/shop".to_owned(),
        is_unread: false,
        member: Member { id: id(number), follows: None, end: None, is_skipped: false },
        submission: None,
    }
}

fn ended(task: TaskLine, added: u64, deleted: u64) -> TaskLine {
    let member = Member { end: Some(EndKind::Completed), ..task.member };
    TaskLine {
        lines: Some(ChangedLines { added, deleted }),
        cost_microdollars: Some(120_000),
        member,
        ..task
    }
}

fn question() -> StoredQuestion {
    let option =
        |id: &str, label: &str, kind| AnswerOption { id: id.to_owned(), label: label.to_owned(), kind };
    StoredQuestion {
        question: Question {
            number: QuestionNumber(1),
            kind: QuestionKind::Permission,
            title: "Run a command".to_owned(),
            detail: Some("npm install --save-dev vitest".to_owned()),
            options: vec![
                option("allow_once", "Allow once", OptionKind::AllowOnce),
                option("reject_once", "Reject", OptionKind::RejectOnce),
            ],
            free_text: false,
        },
        state: QuestionState::Open,
        asked_at_ms: NOW_MS - 200_000,
        expires_at_ms: NOW_MS + 100_000,
        answer: None,
    }
}

fn sections() -> TaskSections {
    let of_group = |task: TaskLine| TaskLine { submission: Some(Subject::Group(group_id())), ..task };
    let needs = vec![
        task(
            1,
            230,
            "claude",
            ("needs you: allow 'npm install --save-dev vitest'?", "warning"),
            "Add a test runner",
        ),
        ended(task(2, 700, "codex", ("verify failed", "failed"), "Fix the login page of the shop"), 120, 31),
    ];
    let attempts = Entry::Submission {
        id: group_id().to_string(),
        state: "group of 2, 1 of 2 ended".to_owned(),
        tasks: vec![
            of_group(ended(task(4, 45, "codex", ("verified", "completed"), "Make the search faster"), 12, 3)),
            of_group(task(
                5,
                260,
                "claude",
                ("Running cargo test (2 of 5 steps)", "working"),
                "Make the search faster",
            )),
        ],
    };
    let working = task(3, 59, "codex", ("Editing src/cart.rs", "working"), "Round the prices");
    let waiting =
        task(6, 30, "codex", ("waits for a free slot, 2 ahead", ""), "Write down how prices are rounded");
    let unread = ended(
        task(8, 4_000, "claude", ("verified", "completed"), "Show a message if the cart is empty"),
        7,
        0,
    );
    let recent = task(10, 200_000, "codex", ("cancelled", "cancelled"), "Try another color");
    let single = |tasks: Vec<TaskLine>| tasks.into_iter().map(Entry::Task).collect::<Vec<_>>();
    TaskSections {
        entries: vec![
            (Section::NeedsYou, single(needs)),
            (Section::Working, vec![Entry::Task(working), attempts]),
            (Section::Waiting, single(vec![waiting])),
            (Section::FinishedUnread, single(vec![unread])),
            (Section::Finished, single(vec![recent])),
        ],
        unread_not_listed: 0,
    }
}

fn board() -> Board {
    let step = |text: &str, completed| PlanStep { text: text.to_owned(), completed };
    let usage =
        Usage { input_tokens: 12_000, cached_input_tokens: 8_000, output_tokens: 900, ..Usage::default() };
    let asking = Peek { questions: vec![question()], ..Peek::default() };
    let planning = Peek {
        plan: vec![step("Read the cart", true), step("Round half up", false)],
        last_message: Some("The prices are rounded in two places.".to_owned()),
        usage: Some(usage),
        ..Peek::default()
    };
    let peeks = BTreeMap::from([(id(1).to_string(), asking), (id(3).to_string(), planning)]);
    Board { made_at_ms: NOW_MS, sections: sections(), peeks, ..Board::default() }
}

fn empty() -> State {
    State { directory: "/home/me/shop".to_owned(), is_colored: true, ..State::default() }
}

fn state() -> State {
    let mut state = empty();
    (state.columns, state.rows) = (80, 24);
    state.set_board(board());
    state
}

fn select(state: &mut State, number: u8) {
    state.selected = Some(Key::Task(id(number).to_string()));
}
