//! `show`: everything about one task on one screen, whatever its state is.
//!
//! Ended tasks have their result, others their progress and open questions. Long texts are shortened for a
//! person; the JSON has them as `results` has.

use delegator_domain::task::State;
use delegator_engine::TaskFiles;
use delegator_registry::TaskFile;
use jiff::Timestamp;

use crate::commands::local::output_budget;
use crate::commands::local::tasks::task_result;
use crate::commands::prelude::*;
use crate::output::data::notification::{NotificationData, append_notifications};
use crate::output::data::stored_task::{self, RunTimes};
use crate::output::data::task::{TaskResult, UnfinishedTask};
use crate::output::data::warnings;
use crate::output::documents::document::known_facts;
use crate::output::truncation::plan::TruncationPlan;
use crate::output::values::format_age_seconds;

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownTask {
    pub task_id: String,
    pub state: &'static str,
    pub title: String,
    /// The task text.
    pub ask: String,
    pub agent: String,
    pub model: Option<String>,
    pub mode: &'static str,
    pub created_ts: UtcTime,
    pub age_seconds: u64,
    pub started_ts: Option<UtcTime>,
    pub completed_ts: Option<UtcTime>,
    /// Of an ended task.
    pub result: Option<TaskResult>,
    /// Of a task that has not ended.
    pub unfinished: Option<UnfinishedTask>,
    /// The notifications about it, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationData>,
    /// What can be done with the task now.
    pub next_commands: Vec<NextCommand>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NextCommand {
    pub command: String,
    pub shows: &'static str,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("task"),
    toolset: Toolset::Hidden,
    network: true,
    examples: &[example(
        "mcp-delegator show T-local-…",
        "the task, its result, and what can be done with it",
    )],
    ..CommandSpec::read_only::<TaskIdInput, ShownTask>(&["show"], "Show everything about one task")
};

/// Bytes of the task text and of the final message that a person sees.
const MAX_ASK_BYTES: usize = 800;
const MAX_MESSAGE_BYTES: usize = 1_600;

pub fn run(context: &Context<'_>, input: TaskIdInput) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let task = engine.results().task(&resolve_task(&engine, &input.task_id)?)?;
    let files = engine.results().files(&task.id)?;
    let data = shown_task(context, &engine, &task, &files)?;
    let read = if task.state.is_terminal() { mark_read(&engine, &task.id) } else { None };
    Ok(CommandOutput::done(data).warn(warnings::for_task(&task, &files)).warn(read))
}

pub fn shown_task(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    files: &TaskFiles,
) -> Result<ShownTask, AppError> {
    let ask = engine.results().read_stored(&task.id, TaskFile::Text)?;
    let now_ms = Timestamp::now().as_millisecond();
    let has_ended = task.state.is_terminal();
    let result = if has_ended {
        Some(task_result(context, engine, task, files, false, output_budget())?)
    } else {
        None
    };
    let times = RunTimes::of(task);
    Ok(ShownTask {
        task_id: task.id.to_string(),
        state: task.state.public_name(),
        title: task.title.clone(),
        ask: String::from_utf8_lossy(&ask).into_owned(),
        agent: task.agent.clone(),
        model: task.model.clone(),
        mode: task.mode.name(),
        created_ts: UtcTime::from_ms(task.created_at_ms),
        age_seconds: stored_task::seconds_since(task.created_at_ms, now_ms),
        started_ts: task.started_at_ms.map(UtcTime::from_ms),
        completed_ts: has_ended.then(|| UtcTime::from_ms(times.ended_ms)),
        next_commands: next_commands(task, files, result.as_ref()),
        notifications: engine.outbox().notifications_of(&task.id)?.iter().map(Into::into).collect(),
        unfinished: (!has_ended).then(|| UnfinishedTask::of(task, files, now_ms)),
        result,
    })
}

fn next_commands(task: &Task, files: &TaskFiles, result: Option<&TaskResult>) -> Vec<NextCommand> {
    let id = &task.id;
    let command = |text: String, shows| NextCommand { command: format!("mcp-delegator {text}"), shows };
    let mut commands = Vec::new();
    let Some(result) = result else {
        if !files.open_questions.is_empty() {
            commands.push(command(format!("answer {id}"), "the question, and its options"));
        }
        commands.push(command(format!("wait {id}"), "the result when it has ended"));
        commands.push(command(format!("logs {id} --follow"), "what the agent does"));
        commands.push(command(format!("cancel {id}"), "cancels it"));
        return commands;
    };
    let report = &result.report;
    let has_changes = report.metadata.file_operations.may_have_changes(report.git.as_ref());
    let worktree = report.worktree.as_ref().filter(|worktree| worktree.apply_command.is_some());
    if has_changes {
        commands
            .extend(report.diff_command.is_some().then(|| command(format!("diff {id}"), "what it changed")));
        if worktree.is_some() {
            commands.push(command(format!("apply {id}"), "applies its changes"));
        }
        let point = report.restore_point.as_ref().filter(|_| task.worktree.is_none());
        let undo = point.and_then(|point| point.undo_command.clone());
        commands.extend(undo.map(|command| NextCommand { command, shows: "reverts what it changed" }));
    }
    if worktree.is_some() {
        commands.push(command(format!("discard {id} --confirm-destructive"), "removes its worktree"));
    }
    if task.state != State::Completed {
        commands.push(command(format!("retry {id}"), "runs it again"));
    }
    if task.thread_id.is_some() {
        commands.push(command(format!("resume --task-id {id} 'TEXT'"), "continues its thread"));
    }
    commands.push(command(format!("logs {id}"), "what the agent did"));
    commands
}

impl CommandData for ShownTask {
    fn document(&self) -> Document {
        let inner = match (&self.result, &self.unfinished) {
            (Some(result), _) => {
                let mut result = result.clone();
                let limit = TruncationPlan { priority_bytes: MAX_MESSAGE_BYTES, ..TruncationPlan::NONE };
                result.report.shrink(limit);
                result.document()
            }
            (None, Some(unfinished)) => unfinished.document(),
            (None, None) => Document::default(),
        };
        let age = format_age_seconds(self.age_seconds);
        let model = self.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
        let thread = self.result.as_ref().map(|result| &result.report.metadata.thread_info);
        let cost = thread.and_then(|thread| thread.cost_usd);
        let verification = self.result.as_ref().and_then(|result| result.report.verification.as_ref());
        let status =
            verification.map(|found| format!(", {}", found.status.replace('_', " "))).unwrap_or_default();
        let facts = known_facts([
            ("task", Some(self.title.clone())),
            ("agent", Some(format!("{}{model}, {}", self.agent, self.mode))),
            ("submitted", Some(format!("{age} ago"))),
            ("cost", cost.map(|cost| format!("${cost:.4}, as the agent reported it"))),
        ]);
        let document = Document::titled(format!("Task {} {}{status}", self.task_id, self.state));
        // The commands are listed at the end.
        let is_command = |block: &Block| matches!(block, Block::Next(_) | Block::ForPeople(_));
        let mut blocks = inner.blocks.into_iter().filter(|block| !is_command(block)).peekable();
        let mut document = document.block(Block::Facts(facts));
        if let Some(Block::Facts(mut of_state)) = blocks.next_if(|block| matches!(block, Block::Facts(_))) {
            of_state.retain(|(name, _)| !["changes", "apply", "revert", "undo"].contains(&name.as_str()));
            document = document.with_facts(of_state);
        }
        let ask = delegator_domain::text::beginning(self.ask.trim(), MAX_ASK_BYTES);
        let more = if ask.len() < self.ask.trim().len() { " …" } else { "" };
        document = document.quote("Asked:", format!("{ask}{more}"));
        let document = blocks.fold(document, Document::block);
        let document = append_notifications(document, "Notifications:", &self.notifications);
        let fact = |next: &NextCommand| (next.shows.to_owned(), next.command.clone());
        document.text("Next:").block(Block::Facts(self.next_commands.iter().map(fact).collect()))
    }
}
