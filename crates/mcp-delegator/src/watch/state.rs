//! Everything that the screen shows, as a value: the tasks, what is selected and open, what is typed. Pure:
//! [`super::keys`] says which action a key means, [`super::update`] what it changes.

use std::collections::VecDeque;

use delegator_domain::attention::Section;
use delegator_domain::task::{GroupId, TaskId};
use delegator_registry::StoredQuestion;

use crate::error::suggestion::NextCall;
use crate::output::data::group::GroupData;
use crate::output::data::task_line::{TaskLine, short_age};
use crate::watch::board::{Board, Key, Row};
use crate::watch::describe;
use crate::watch::lines::{Look, TextLine, Top, clean_line};
use crate::watch::loader::Request;
use crate::watch::task_view::{Loadable, TaskView};

/// The words for tasks contain times, which no change announces.
pub const BOARD_INTERVAL_SEC: u64 = 60;

#[derive(Debug, Clone)]
pub enum View {
    Task(Box<TaskView>),
    /// The attempts of a group side by side, and which of them is chosen.
    Group {
        id: GroupId,
        data: Loadable<GroupData>,
        chosen: usize,
        top: Top,
    },
}

/// What is typed for.
#[derive(Debug, Clone, PartialEq)]
pub enum Purpose {
    Filter,
    Answer(String, Box<StoredQuestion>),
    Message(String),
    /// Continue the thread of an ended task, or start it again.
    Again(String),
    NewTask,
}

impl Purpose {
    pub fn task(&self) -> Option<&str> {
        match self {
            Purpose::Answer(task, _) | Purpose::Message(task) | Purpose::Again(task) => Some(task),
            Purpose::Filter | Purpose::NewTask => None,
        }
    }
}

#[derive(Debug, Clone)]
pub enum DialogKind {
    Input {
        purpose: Purpose,
        text: String,
    },
    /// Whether to make this call.
    Confirm {
        question: String,
        step: Step,
    },
    /// The lines are only shown.
    Text,
}

/// Lines, and the question about them.
#[derive(Debug, Clone)]
pub struct Dialog {
    pub lines: Vec<TextLine>,
    pub top: Top,
    pub kind: DialogKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    Load(Request),
    Call(Step),
}

/// A command to run. If it is a check, this question follows, and this call.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub call: NextCall,
    /// The task, group or chain that it changes.
    pub target: Option<String>,
    pub then: Option<(String, NextCall)>,
}

#[derive(Debug, Clone, Default)]
pub struct State {
    /// What is to be done; the event loop takes it.
    pub effects: Vec<Effect>,
    pub board: Board,
    pub now_ms: i64,
    pub columns: u16,
    pub rows: u16,
    /// Where a new task works.
    pub directory: String,
    pub selected: Option<Key>,
    pub first_row: usize,
    pub filter: String,
    /// The last one is shown; the list if there is none.
    pub views: Vec<View>,
    /// The first one is shown; those of results wait until it is closed.
    pub dialogs: VecDeque<Dialog>,
    /// What happened last.
    pub message: Option<TextLine>,
    /// The commands that run in the background or wait for it, in their order.
    pub running: VecDeque<String>,
    pub is_colored: bool,
}

impl State {
    pub fn rows(&self) -> Vec<Row<'_>> {
        self.board.rows(&self.filter, self.selected.as_ref())
    }

    /// The row of what is selected.
    pub fn selected_row(&self, rows: &[Row<'_>]) -> Option<usize> {
        rows.iter().position(|row| row.key().is_some() && row.key() == self.selected)
    }

    /// Shows other tasks. What was selected stays selected; if it is gone, what is at its place.
    pub fn set_board(&mut self, board: Board) {
        let place = self.selected_row(&self.rows()).unwrap_or(0);
        self.now_ms = board.made_at_ms;
        self.board = board;
        self.select_near(place);
    }

    pub fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        let rows = self.board.rows(&self.filter, None);
        if self.selected_row(&rows).is_none() {
            self.selected = rows.iter().find_map(Row::key);
        }
    }

    /// Selects what is at this row, or near it, unless something is selected.
    fn select_near(&mut self, place: usize) {
        let rows = self.rows();
        if self.selected_row(&rows).is_none() {
            let after = rows.iter().skip(place).find_map(Row::key);
            self.selected = after.or_else(|| rows.iter().rev().find_map(Row::key));
        }
    }

    pub fn age(&self, line: &TaskLine) -> String {
        short_age(self.age_sec(line))
    }

    fn age_sec(&self, line: &TaskLine) -> u64 {
        line.age_sec + u64::try_from((self.now_ms - self.board.made_at_ms) / 1000).unwrap_or(0)
    }

    /// What is shown about a task beside its line.
    pub fn description(&self, id: &str) -> Vec<TextLine> {
        let Some(line) = self.board.line(id) else { return Vec::new() };
        let peek = self.board.peeks.get(id).cloned().unwrap_or_default();
        describe::task(line, &peek, &self.age(line), self.now_ms)
    }

    pub fn task_lines(&self, view: &TaskView) -> Vec<TextLine> {
        view.lines(self.description(view.id.as_str()))
    }

    /// The task, group or chain that a key is about: what is open, else what is selected.
    pub fn target(&self) -> Option<String> {
        match self.views.last() {
            Some(View::Task(view)) => Some(view.id.to_string()),
            Some(View::Group { id, data, chosen, .. }) => {
                let attempt = data.as_ref().and_then(|data| data.as_ref().ok()?.attempts.get(*chosen));
                Some(attempt.map_or_else(|| id.to_string(), |attempt| attempt.task_id.clone()))
            }
            None => self.selected.as_ref().map(|key| key.id().to_owned()),
        }
    }

    /// The task with an open question that a key is about, and the question. Of a group or a chain it is the first
    /// one that has a question.
    pub fn open_question(&self) -> Option<(String, &StoredQuestion)> {
        let ids: Vec<String> = match (self.views.last(), &self.selected) {
            (None, Some(Key::Submission(id))) => {
                self.board.members(id).unwrap_or_default().iter().map(|line| line.id.clone()).collect()
            }
            _ => self.target().into_iter().collect(),
        };
        ids.into_iter().find_map(|id| self.board.question(&id).map(|question| (id.clone(), question)))
    }

    /// Names a task, group or chain above a question about it: what is selected may be another one by then.
    pub fn name(&self, id: &str) -> TextLine {
        let title = self.board.line(id).map(|line| format!("  {}", clean_line(&line.title)));
        TextLine::new(Look::Heading, format!("{id}{}", title.unwrap_or_default()))
    }

    /// The task that a key is about; of a chain, its first one.
    pub fn target_task(&self) -> Option<TaskId> {
        self.target()?.parse().ok()
    }

    /// The group that is selected or that the target belongs to.
    pub fn target_group(&self) -> Option<GroupId> {
        let target = self.target()?;
        let of_line = || self.board.line(&target)?.submission.as_ref()?.id().parse().ok();
        target.parse().ok().or_else(of_line)
    }

    pub fn is_typing(&self) -> bool {
        self.dialogs.front().is_some_and(|dialog| matches!(dialog.kind, DialogKind::Input { .. }))
    }

    /// `2 waiting`: for the title of the terminal.
    pub fn title(&self) -> String {
        match self.board.count(Section::NeedsYou) {
            0 => "mcp-delegator".to_owned(),
            count => format!("{count} waiting · mcp-delegator"),
        }
    }

    pub fn open_dialog(&mut self, lines: Vec<TextLine>, kind: DialogKind) {
        self.dialogs.push_back(Dialog { lines, top: Top::At(0), kind });
    }

    pub fn show_error(&mut self, text: &str) {
        self.message = Some(TextLine::new(Look::Bad, text));
    }

    /// Milliseconds until something visible that counts time changes; `None` if nothing does.
    pub fn next_tick_ms(&self) -> Option<u64> {
        let rows = || self.rows().into_iter().skip(self.first_row).take(self.rows.into());
        let lines: Vec<&TaskLine> = match self.views.last() {
            None => rows().filter_map(|row| row.line()).collect(),
            Some(View::Task(view)) => self.board.line(view.id.as_str()).into_iter().collect(),
            Some(View::Group { .. }) => Vec::new(),
        };
        let next_sec = |age: u64| if age < 60 { 1 } else { 60 - age % 60 };
        // Whether a running task needs a person depends on the time.
        let of_board = (!self.board.peeks.is_empty()).then_some(BOARD_INTERVAL_SEC);
        let ages = lines.into_iter().map(|line| next_sec(self.age_sec(line)));
        ages.chain(of_board).min().map(|seconds| seconds * 1000)
    }
}
