//! Folds the events of a stream into a [`Report`].
//!
//! [`Fold`] receives every line with its decoded event and every [`Effect`] that follows, in order, and can
//! produce a report at any time. It is a pure function of the stream, so stored lines give the same report
//! again. Counts are exact; lists are bounded, so memory does not grow with the stream.
//!
//! The turn state is decided by `turn.completed`, `turn.failed`, or the absence of both. Warnings (items of
//! type `error`) and retries (top-level `error`) never decide it.

pub(crate) mod activity;
mod bounded_text;
mod commands;
mod counts;
mod failures;
mod files;
mod finished_command;
mod notices;
mod progress;
mod recent;
mod repeats;
mod report;
mod summarizer;
mod test_log;
mod usage;

pub use activity::OpenItem;
pub use commands::{CommandReport, Commands};
pub use counts::Counts;
pub use failures::CommandFailure;
pub use files::FileOperations;
pub use notices::Notice;
pub use progress::{PlanSteps, Progress};
pub use recent::RecentLine;
pub use report::{AgentTexts, FinalMessage, McpCalls, PlanStep, Report, StreamOutcome, ToolCalls, TurnState};
pub use summarizer::{LineEffect, LineSummarizer, Summarizer};
pub use test_log::{TestReport, TestRunReport, test_report};
pub use usage::{CostReport, UsageReport};

use crate::decode::{Event, IdleEvent};
use crate::event::{AgentError, Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent, Todo, Usage};
use crate::framer::Line;
use crate::json::Text;
use crate::map::{AssumedThread, Dialect, Effect, Translator};
use activity::OpenItems;
use bounded_text::BoundedText;
use commands::CommandLog;
use counts::Tally;
use failures::Failures;
use files::Files;
use finished_command::FinishedCommand;
use notices::Notices;
use recent::RecentLines;
use repeats::Repeats;
use test_log::TestLog;

const MAX_MESSAGE_BYTES: usize = 1 << 20;
const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_ID_BYTES: usize = 256;
const MAX_PLAN_STEPS: usize = 200;
const MAX_PLAN_STEP_BYTES: usize = 512;
const MAX_ODDITIES: usize = 32;

/// Input of the fold that does not come from the stream.
#[derive(Clone, Debug, Default)]
pub struct FoldOptions {
    /// The agent's working directory; activities show paths inside it relative to it.
    pub workdir: Option<String>,
    /// The thread's token usage before this run.
    pub usage_before: Option<Usage>,
    /// The thread's cost before this run, in millionths of a US dollar.
    pub cost_before: Option<u64>,
    pub dialect: Option<Dialect>,
    /// The thread of a stream of a dialect without threads. A supervisor has none: its thread ids can be
    /// resumed.
    pub thread: AssumedThread,
}

#[derive(Debug, Default)]
struct Fold {
    options: FoldOptions,
    /// What is reported as it is stored; [`Fold::report`] adds the rest.
    stored: Report,
    failure: StreamOutcome,
    final_message: Option<BoundedText>,
    commands: CommandLog,
    files: Files,
    tests: TestLog,
    failures: Failures,
    usage: Option<Usage>,
    cost: Option<f64>,
    warnings: Notices,
    transient_errors: Notices,
    open_items: OpenItems,
    repeats: Repeats,
    between_items: BetweenItems,
    stream_ended: bool,
    recent: RecentLines,
    tally: Tally,
}

#[derive(Debug, Default)]
enum BetweenItems {
    #[default]
    Waiting,
    Thinking,
    Retrying(String),
}

impl Fold {
    fn on_line(&mut self, line: &Line<'_>, event: &Event<'_>) {
        self.tally.count_line(line, event);
        self.recent.push(line);
        // Any output, whether understood or not, means that the agent is no longer idle.
        if !matches!(event, Event::Blank | Event::Idle(IdleEvent::Idle | IdleEvent::Done)) {
            self.stored.idle = false;
        }
    }

    fn on_effect(&mut self, effect: &Effect<'_>) {
        match effect {
            Effect::Emit(event) => self.on_event(event),
            Effect::Usage(usage) => self.usage = Some(*usage),
            Effect::UsageBefore(usage) => self.options.usage_before = Some(*usage),
            Effect::LimitReset(reset) => self.stored.limit_resets_at = *reset,
            Effect::Cost(cost) => self.cost = Some(*cost),
            Effect::Interrupted => self.stored.turn = TurnState::Interrupted,
            Effect::Idle => self.stored.idle = true,
            Effect::Done => self.stored.done = true,
            Effect::Warn(warning) if self.stored.oddities.len() < MAX_ODDITIES => {
                self.stored.oddities.push(warning.clone())
            }
            Effect::Warn(_) | Effect::Unmapped(_) => {}
        }
    }

    fn on_event(&mut self, event: &ThreadEvent<'_>) {
        self.stored.unresolved_error = None;
        match event {
            ThreadEvent::ThreadStarted { thread_id } => {
                let id = BoundedText::new(thread_id, MAX_ID_BYTES).resolve();
                self.stored.thread_id = Some(id).filter(|id| !id.is_empty()).or(self.stored.thread_id.take());
            }
            ThreadEvent::TurnStarted => {
                self.stored.turns += 1;
                self.stored.turn = TurnState::Running;
                self.between_items = BetweenItems::Waiting;
                self.stored.progress = Some(Progress::default());
                self.repeats.turn_started();
            }
            ThreadEvent::TurnCompleted { usage } => {
                self.stored.turn = TurnState::Completed;
                self.usage = usage.or(self.usage);
                if let Some(progress) = &mut self.stored.progress {
                    progress.percent = Some(100);
                }
            }
            ThreadEvent::TurnFailed { error } => {
                self.stored.turn = TurnState::Failed;
                self.failure = failed(error);
                // Codex announces a failure as an `error` first; that one was not transient.
                self.transient_errors.retract(&error.message);
            }
            ThreadEvent::Error { message } => {
                self.stored.unresolved_error = Some(BoundedText::new(message, MAX_ERROR_BYTES).resolve());
                self.transient_errors.add(message);
                self.repeats.stream_interrupted();
                self.between_items = BetweenItems::Retrying(activity::describe_retry(&message.resolve()));
            }
            ThreadEvent::Item { phase, item } => self.on_item(*phase, item),
        }
    }

    fn on_item(&mut self, phase: ItemPhase, item: &Item<'_>) {
        self.between_items = match item.details {
            ItemDetails::Reasoning { .. } => BetweenItems::Thinking,
            _ => BetweenItems::Waiting,
        };
        if let ItemDetails::TodoList { items } = &item.details {
            self.store_plan(items);
        }
        match phase {
            // An item that is repeated after a reconnect does not start again.
            ItemPhase::Started if self.repeats.has_finished(&item.id) => {}
            ItemPhase::Started => {
                self.open_items.start(item);
                match &item.details {
                    ItemDetails::FileChange { changes } => self.files.attempt(changes),
                    ItemDetails::Other { .. } => self.stored.unknown_items += 1,
                    _ => {}
                }
            }
            ItemPhase::Updated => {}
            ItemPhase::Completed => {
                let was_open = self.open_items.complete(&item.id);
                // A repeated message is still the latest message.
                if let ItemDetails::AgentMessage { text } = &item.details {
                    self.store_final_message(text, item.full_bytes);
                }
                if self.repeats.record_finished(item, was_open) {
                    return;
                }
                // An unknown item was counted when it started.
                self.stored.unknown_items +=
                    u64::from(!was_open && matches!(item.details, ItemDetails::Other { .. }));
                self.on_item_completed(item);
            }
        }
    }

    fn on_item_completed(&mut self, item: &Item<'_>) {
        self.tally.count_item(&item.details);
        let status = item.status.unwrap_or(ItemStatus::Completed);
        match &item.details {
            ItemDetails::CommandExecution(command) => {
                let command = FinishedCommand::new(command, status, self.options.workdir.as_deref());
                if !command.is_declined() {
                    self.tests.record(&command);
                }
                self.commands.record(&command);
                self.failures.record(&command);
            }
            ItemDetails::FileChange { changes } if status == ItemStatus::Completed => {
                self.files.apply(changes)
            }
            ItemDetails::FileChange { changes } => {
                self.files.attempt(changes);
                self.files.failed_patches += 1;
            }
            ItemDetails::McpToolCall(call) => self.stored.mcp_calls.count(call, status),
            ItemDetails::WebSearch { .. } => self.stored.web_searches += 1,
            ItemDetails::CollabToolCall(call) => {
                let is_spawned = call.tool == *"spawn_agent" && status == ItemStatus::Completed;
                self.stored.sub_agents += u64::from(is_spawned);
            }
            ItemDetails::Error { message } => self.warnings.add(message),
            ItemDetails::AgentMessage { .. }
            | ItemDetails::Reasoning { .. }
            | ItemDetails::TodoList { .. }
            | ItemDetails::Other { .. } => {}
        }
    }

    fn store_final_message(&mut self, text: &Text<'_>, full_bytes: Option<u64>) {
        if let (Some(stored), Some(Dialect::Plain)) = (&mut self.final_message, self.options.dialect) {
            return stored.push_line(text, full_bytes, MAX_MESSAGE_BYTES);
        }
        let stored = self.final_message.get_or_insert_default();
        stored.set(text, MAX_MESSAGE_BYTES);
        if let Some(bytes) = full_bytes {
            // The stored text is itself only the beginning of a text of `bytes` bytes.
            (stored.truncated, stored.bytes) = (true, bytes);
        }
    }

    fn store_plan(&mut self, items: &[Todo<'_>]) {
        let listed = items.len().min(MAX_PLAN_STEPS);
        self.stored.plan_steps_not_listed = (items.len() - listed) as u64;
        let step = |todo: &Todo<'_>| PlanStep {
            text: BoundedText::new(&todo.text, MAX_PLAN_STEP_BYTES).resolve(),
            completed: todo.completed,
        };
        self.stored.plan = items[..listed].iter().map(step).collect();
        let completed = items.iter().filter(|todo| todo.completed).count();
        if let Some(progress) = &mut self.stored.progress {
            progress.set_plan(completed as u64, items.len() as u64);
        }
    }

    /// Ends the stream: a turn that is still running was interrupted.
    fn finish(&mut self, translator: &Translator) {
        self.stream_ended = true;
        if self.stored.turn == TurnState::Running && translator.announces_turn_ends() {
            self.stored.turn = TurnState::Interrupted;
        }
    }

    fn outcome(&self, translator: &Translator) -> StreamOutcome {
        match self.stored.turn {
            // An idle-dialect stream ends with `done` or while idle; the end of a turn does not end it.
            _ if translator.dialect() == Some(Dialect::Idle) && (self.stored.done || self.stored.idle) => {
                StreamOutcome::Completed
            }
            TurnState::Failed => self.failure.clone(),
            _ if translator.dialect() == Some(Dialect::Idle) => StreamOutcome::Interrupted,
            TurnState::Completed => StreamOutcome::Completed,
            TurnState::Interrupted => StreamOutcome::Interrupted,
            TurnState::None | TurnState::Running if translator.announces_turn_ends() => {
                StreamOutcome::Interrupted
            }
            TurnState::None | TurnState::Running => {
                translator.critical_error().map_or(StreamOutcome::NotAnnounced, failed)
            }
        }
    }

    fn activity(&self, dialect: Option<Dialect>) -> Option<String> {
        match (self.stored.turn, &self.between_items) {
            _ if self.stream_ended => None,
            _ if dialect == Some(Dialect::Plain) => {
                self.recent.last_line().map(|line| activity::one_line(&line))
            }
            _ if dialect == Some(Dialect::Idle) && self.stored.done => None,
            _ if dialect == Some(Dialect::Idle) && self.stored.idle => {
                Some("Waiting for a message".to_owned())
            }
            (TurnState::None, _) => self.stored.thread_id.is_some().then(|| "Starting".to_owned()),
            (TurnState::Running, BetweenItems::Retrying(activity)) => Some(activity.clone()),
            (TurnState::Running, between_items) => {
                let is_thinking = matches!(between_items, BetweenItems::Thinking);
                let waiting = || if is_thinking { "Thinking" } else { "Waiting for the model" }.to_owned();
                Some(self.open_items.latest_activity(self.options.workdir.as_deref()).unwrap_or_else(waiting))
            }
            (TurnState::Completed | TurnState::Failed | TurnState::Interrupted, _) => None,
        }
    }

    fn usage_report(&self, dialect: Option<Dialect>) -> Option<UsageReport> {
        let of_stream = dialect.is_some_and(Dialect::counts_usage_of_stream);
        let report = if of_stream { UsageReport::of_run } else { UsageReport::of_thread };
        self.usage.map(|total| report(total, self.options.usage_before))
    }

    fn cost_report(&self, dialect: Option<Dialect>) -> Option<CostReport> {
        let of_stream = dialect.is_some_and(Dialect::counts_cost_of_stream);
        let report = if of_stream { CostReport::of_run } else { CostReport::of_thread };
        self.cost.map(|total| report(total, self.options.cost_before))
    }

    fn report(&self, translator: &Translator) -> Report {
        let final_message = self.final_message.as_ref().map(|message| FinalMessage {
            text: message.resolve(),
            bytes: message.bytes,
            truncated: message.truncated,
        });
        let mut report = Report {
            dialect: translator.dialect(),
            outcome: self.outcome(translator),
            current_activity: self.activity(translator.dialect()),
            final_message,
            files: self.files.report(),
            tests: self.tests.report(),
            failures: self.failures.report(self.options.workdir.as_deref()),
            usage: self.usage_report(translator.dialect()),
            cost: self.cost_report(translator.dialect()),
            warnings: self.warnings.list.clone(),
            transient_errors: self.transient_errors.list.clone(),
            transient_error_count: self.transient_errors.total,
            open_items: self.open_items.report(self.options.workdir.as_deref()),
            commands: self.commands.report(),
            repeated_items: self.repeats.count,
            recent_lines: self.recent.report(),
            counts: self.tally.report(translator.mixed_lines()),
            ..self.stored.clone()
        };
        report.mcp_calls.unfinished = self.open_items.mcp_calls();
        report
    }
}

fn failed(error: &AgentError<'_>) -> StreamOutcome {
    let message = BoundedText::new(&error.message, MAX_ERROR_BYTES).resolve();
    StreamOutcome::Failed { message, code: error.code }
}
