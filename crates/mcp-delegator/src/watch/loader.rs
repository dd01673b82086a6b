//! Reads what the screen shows about the open task, the diff of a task and the comparison of a group, in a
//! thread of its own, with the functions of `show`, `logs`, `diff` and `results`. Requests that are waiting
//! are answered together, so that a slow answer is not repeated.

use std::sync::mpsc::Receiver;

use delegator_domain::task::GroupId;
use delegator_engine::EventFollower;
use delegator_registry::TaskFile;
use delegator_transcript::LogDetail;

use crate::commands::diff::{find_diff, notes};
use crate::commands::local::attempts::group_data;
use crate::commands::logs::log_text::LogText;
use crate::commands::logs::streams::LogStreams;
use crate::commands::prelude::*;
use crate::commands::show;
use crate::output::data::group::GroupData;
use crate::watch::diff_pane::DiffPane;
use crate::watch::log::LogEntry;
use crate::watch::runner::CommandRunner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// From its beginning.
    Open(TaskId),
    /// What is new.
    Task(TaskId),
    Diff(TaskId),
    Group(GroupId),
}

#[derive(Debug)]
pub enum Loaded {
    Overview(TaskId, Result<String, String>),
    Log { task: TaskId, entries: Vec<LogEntry>, is_restarted: bool },
    Diff(TaskId, Result<DiffPane, String>),
    Group(GroupId, Result<GroupData, String>),
}

#[derive(Debug)]
pub struct Loader {
    runner: CommandRunner,
    open: Option<OpenTask>,
}

/// The task of the last request, and how far its streams were read.
#[derive(Debug)]
struct OpenTask {
    id: TaskId,
    text: LogText,
    streams: LogStreams,
    /// Nothing was passed on.
    is_new: bool,
    /// Copies the events of a task that runs elsewhere.
    _copy: Option<EventFollower>,
}

impl Loader {
    pub fn new(runner: CommandRunner) -> Loader {
        Loader { runner, open: None }
    }

    pub fn run(mut self, requests: &Receiver<Request>, on_loaded: impl Fn(Loaded)) {
        while let Ok(first) = requests.recv() {
            let mut waiting: Vec<Request> = vec![first];
            for request in requests.try_iter() {
                if !waiting.contains(&request) {
                    waiting.push(request);
                }
            }
            waiting.into_iter().for_each(|request| self.load(request, &on_loaded));
        }
    }

    fn load(&mut self, request: Request, on_loaded: &impl Fn(Loaded)) {
        let runner = self.runner;
        if matches!(request, Request::Open(_)) {
            self.open = None;
        }
        match request {
            Request::Open(id) | Request::Task(id) => {
                let overview = self.read(|context| overview(runner, context, &id));
                on_loaded(Loaded::Overview(id.clone(), overview));
                let read = runner.catch(|context| self.read_log(context, &id, on_loaded));
                if let Err(error) = read {
                    self.open = None;
                    let entries = vec![LogEntry::of(None, &runner.error_text(error))];
                    on_loaded(Loaded::Log { task: id, entries, is_restarted: true });
                }
            }
            Request::Diff(id) => {
                let diff = self.read(|context| diff(context, &id));
                on_loaded(Loaded::Diff(id, diff));
            }
            Request::Group(id) => {
                let group = self.read(|context| group_data(context, &engine(context)?, &id));
                on_loaded(Loaded::Group(id, group));
            }
        }
    }

    /// An error as its text.
    fn read<T>(&self, read: impl FnOnce(&Context<'_>) -> Result<T, AppError>) -> Result<T, String> {
        self.runner.catch(read).map_err(|error| self.runner.error_text(error))
    }

    fn read_log(
        &mut self,
        context: &Context<'_>,
        id: &TaskId,
        on_loaded: &impl Fn(Loaded),
    ) -> Result<(), AppError> {
        let engine = engine(context)?;
        // Before the output is read, so that everything written before the end is shown.
        let task = engine.results().task(id)?;
        engine.remote().check_events(&task)?;
        engine.remote().fetch_events(&task)?;
        let known = self.open.take().filter(|open| open.id == *id);
        let open = match known {
            Some(open) => self.open.insert(open),
            None => self.open.insert(OpenTask::new(context, &engine, &task)?),
        };
        open.streams.read_new(task.state.is_terminal(), |file, new| {
            let is_restarted = new.is_restarted && file == TaskFile::Events;
            if is_restarted {
                open.text.restart();
            }
            let mut entries = Vec::new();
            open.text.take(file, &new.bytes, |event, text| entries.push(LogEntry::of(event, &text)));
            // The screen may have what was read before this task was opened again.
            let is_restarted = std::mem::take(&mut open.is_new) || is_restarted;
            on_loaded(Loaded::Log { task: id.clone(), entries, is_restarted });
            Ok(())
        })
    }
}

impl OpenTask {
    fn new(context: &Context<'_>, engine: &Engine, task: &Task) -> Result<OpenTask, AppError> {
        let id = task.id.clone();
        let unknown = || EngineError::UnknownTask { given: id.to_string() };
        let dir = engine.results().task_dir(&id)?.ok_or_else(unknown)?;
        let text = LogText::new(context, engine, &id, LogDetail { is_live: true, is_full: false })?;
        let follows = !task.state.is_terminal();
        let copy = if follows { engine.remote().follow_events(task)? } else { None };
        Ok(OpenTask { id, text, streams: LogStreams::new(dir), is_new: true, _copy: copy })
    }
}

/// As `show` prints it. That of an ended task counts as read then.
fn overview(runner: CommandRunner, context: &Context<'_>, id: &TaskId) -> Result<String, AppError> {
    let unknown = || AppError::from(EngineError::UnknownTask { given: id.to_string() });
    let task_id = TaskRef::from_text(id.as_str()).ok_or_else(unknown)?;
    Ok(runner.document_text(&show::run(context, TaskIdInput { task_id })?))
}

fn diff(context: &Context<'_>, id: &TaskId) -> Result<DiffPane, AppError> {
    let engine = engine(context)?;
    let task = engine.results().task(id)?;
    let diff = find_diff(context, &engine, &task, 1)?;
    let notes = notes(&diff, !task.state.is_terminal());
    let notes: Vec<String> = notes.into_iter().map(|warning| warning.message).collect();
    let text = context.screen.printer.redact(&String::from_utf8_lossy(&diff.text));
    Ok(DiffPane::new(text.as_bytes(), notes.join("\n")))
}
