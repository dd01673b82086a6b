//! Folds the events of a stream into a [`Report`].
//!
//! [`Fold`] receives every line with its decoded event and every [`Effect`] that follows, in order, and can produce a
//! report at any time. It is a pure function of the stream, so stored lines give the same report again. Counts are
//! exact; lists are bounded, so memory does not grow with the stream.
//!
//! The turn state is decided by `turn.completed`, `turn.failed`, or the absence of both. Warnings (items of type
//! `error`) and retries (top-level `error`) never decide it.

pub(crate) mod activity;
mod agent_texts;
mod bounded_text;
mod calls;
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
pub use agent_texts::AgentTexts;
pub use commands::{CommandReport, Commands};
pub use counts::Counts;
pub use failures::CommandFailure;
pub use files::FileOperations;
pub use notices::Notice;
pub use progress::{PlanSteps, Progress};
pub use recent::RecentLine;
pub use report::{FinalMessage, McpCalls, PlanStep, Report, StreamOutcome, ToolCalls, TurnState};
pub use summarizer::{LineInfo, LineSummarizer, Summarizer};
pub use test_log::{TestReport, TestRunReport, test_report};
pub use usage::{CostReport, UsageReport};

use crate::event::{
    AgentError, ErrorCode, Event, IdleEvent, Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent, Todo,
    Usage,
};
use crate::framer::Line;
use crate::json::Text;
use crate::map::{AssumedThread, Dialect, Effect, MapWarning, Translator};
use activity::OpenItems;
use bounded_text::BoundedText;
use calls::CallLog;
use commands::CommandLog;
use counts::Tally;
use failures::Failures;
use files::Files;
use finished_command::FinishedCommand;
use notices::Notices;
use progress::ProgressTracker;
use recent::RecentLines;
use repeats::Repeats;

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
    /// The dialect, if the lines do not show it.
    pub dialect: Option<Dialect>,
    /// The thread of a stream of a dialect without threads. A supervisor has none: its thread ids can be resumed.
    pub thread: AssumedThread,
}

#[derive(Debug, Default)]
struct Fold {
    options: FoldOptions,
    thread_id: Option<String>,
    turn: TurnState,
    turns: u64,
    failure: BoundedText,
    failure_code: Option<ErrorCode>,
    /// The last error event, unless something followed it.
    unresolved_error: Option<BoundedText>,
    final_message: Option<BoundedText>,
    files: Files,
    commands: CommandLog,
    failures: Failures,
    calls: CallLog,
    plan: Vec<(BoundedText, bool)>,
    plan_steps_not_listed: u64,
    usage: Option<Usage>,
    cost: Option<f64>,
    limit_resets_at: Option<i64>,
    warnings: Notices,
    transient_errors: Notices,
    oddities: Vec<MapWarning>,
    open_items: OpenItems,
    progress: ProgressTracker,
    repeats: Repeats,
    between_items: BetweenItems,
    idle: bool,
    done: bool,
    stream_ended: bool,
    recent: RecentLines,
    tally: Tally,
}

/// What the agent does while no item is open.
#[derive(Debug, Default)]
enum BetweenItems {
    #[default]
    Waiting,
    Thinking,
    Retrying(String),
}

impl Fold {
    /// Records a line. Its effects are passed to [`Fold::on_effect`] afterwards.
    fn on_line(&mut self, line: &Line<'_>, event: &Event<'_>) {
        self.tally.count_line(line, event);
        self.recent.push(line);
        // Any output, whether understood or not, means that the agent is no longer idle.
        if !matches!(event, Event::Blank | Event::Idle(IdleEvent::Idle | IdleEvent::Done)) {
            self.idle = false;
        }
    }

    fn on_effect(&mut self, effect: &Effect<'_>) {
        match effect {
            Effect::Emit(event) => self.on_event(event),
            Effect::Usage(usage) => self.usage = Some(*usage),
            Effect::UsageBefore(usage) => self.options.usage_before = Some(*usage),
            Effect::LimitReset(reset) => self.limit_resets_at = *reset,
            Effect::Cost(cost) => self.cost = Some(*cost),
            Effect::Interrupted => self.turn = TurnState::Interrupted,
            Effect::Idle => self.idle = true,
            Effect::Done => self.done = true,
            Effect::Warn(warning) if self.oddities.len() < MAX_ODDITIES => {
                self.oddities.push(warning.clone())
            }
            Effect::Warn(_) | Effect::Unmapped(_) => {}
        }
    }

    fn on_event(&mut self, event: &ThreadEvent<'_>) {
        self.unresolved_error = None;
        match event {
            ThreadEvent::ThreadStarted { thread_id } => {
                let id = BoundedText::new(thread_id, MAX_ID_BYTES).resolve();
                self.thread_id = Some(id).filter(|id| !id.is_empty()).or(self.thread_id.take());
            }
            ThreadEvent::TurnStarted => {
                self.turns += 1;
                self.turn = TurnState::Running;
                self.failure.clear();
                self.between_items = BetweenItems::Waiting;
                self.progress.turn_started();
                self.repeats.turn_started();
            }
            ThreadEvent::TurnCompleted { usage } => {
                self.turn = TurnState::Completed;
                self.usage = usage.or(self.usage);
                self.progress.turn_completed();
            }
            ThreadEvent::TurnFailed { error } => {
                self.turn = TurnState::Failed;
                self.failure.set(&error.message, MAX_ERROR_BYTES);
                self.failure_code = error.code;
                // Codex announces a failure as an `error` first; that one was not transient.
                self.transient_errors.retract(&error.message);
            }
            ThreadEvent::Error { message } => {
                self.unresolved_error = Some(BoundedText::new(message, MAX_ERROR_BYTES));
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
                    ItemDetails::Other { .. } => self.calls.unknown += 1,
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
                self.calls.unknown +=
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
            ItemDetails::McpToolCall(call) => self.calls.mcp_call(call, status),
            ItemDetails::WebSearch { .. } => self.calls.web_searches += 1,
            ItemDetails::CollabToolCall(call) => self.calls.collab_call(call, status),
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
        self.plan_steps_not_listed = (items.len() - listed) as u64;
        self.plan.clear();
        let step = |todo: &Todo<'_>| (BoundedText::new(&todo.text, MAX_PLAN_STEP_BYTES), todo.completed);
        self.plan.extend(items[..listed].iter().map(step));
        let completed = items.iter().filter(|todo| todo.completed).count();
        self.progress.plan(completed as u64, items.len() as u64);
    }

    /// Ends the stream: a turn that is still running was interrupted.
    fn finish(&mut self, translator: &Translator) {
        self.stream_ended = true;
        if self.turn == TurnState::Running && translator.announces_turn_ends() {
            self.turn = TurnState::Interrupted;
        }
    }

    fn outcome(&self, translator: &Translator) -> StreamOutcome {
        match self.turn {
            // An idle-dialect stream ends with `done` or while idle; the end of a turn does not end it.
            _ if translator.dialect() == Some(Dialect::Idle) && (self.done || self.idle) => {
                StreamOutcome::Completed
            }
            TurnState::Failed => {
                StreamOutcome::Failed { message: self.failure.resolve(), code: self.failure_code }
            }
            _ if translator.dialect() == Some(Dialect::Idle) => StreamOutcome::Interrupted,
            TurnState::Completed => StreamOutcome::Completed,
            TurnState::Interrupted => StreamOutcome::Interrupted,
            TurnState::None | TurnState::Running if translator.announces_turn_ends() => {
                StreamOutcome::Interrupted
            }
            TurnState::None | TurnState::Running => match translator.critical_error() {
                Some(AgentError { message, code }) => {
                    let message = BoundedText::new(message, MAX_ERROR_BYTES).resolve();
                    StreamOutcome::Failed { message, code: *code }
                }
                None => StreamOutcome::NotAnnounced,
            },
        }
    }

    fn activity(&self, dialect: Option<Dialect>) -> Option<String> {
        let workdir = self.options.workdir.as_deref();
        match (self.turn, &self.between_items) {
            _ if self.stream_ended => None,
            _ if dialect == Some(Dialect::Plain) => {
                self.recent.last_line().map(|line| activity::one_line(&line))
            }
            _ if dialect == Some(Dialect::Idle) && self.done => None,
            _ if dialect == Some(Dialect::Idle) && self.idle => Some("Waiting for a message".to_owned()),
            (TurnState::None, _) => self.thread_id.is_some().then(|| "Starting".to_owned()),
            (TurnState::Running, BetweenItems::Retrying(activity)) => Some(activity.clone()),
            (TurnState::Running, between_items) => {
                Some(self.open_items.latest_activity(workdir).unwrap_or_else(|| {
                    let activity = if matches!(between_items, BetweenItems::Thinking) {
                        "Thinking"
                    } else {
                        "Waiting for the model"
                    };
                    activity.to_owned()
                }))
            }
            (TurnState::Completed | TurnState::Failed | TurnState::Interrupted, _) => None,
        }
    }

    fn current_progress(&self) -> Option<Progress> {
        (self.turns > 0).then(|| self.progress.report())
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
        let step = |(text, completed): &(BoundedText, bool)| PlanStep {
            text: text.resolve(),
            completed: *completed,
        };
        Report {
            dialect: translator.dialect(),
            thread_id: self.thread_id.clone(),
            turn: self.turn,
            turns: self.turns,
            outcome: self.outcome(translator),
            progress: self.current_progress(),
            current_activity: self.activity(translator.dialect()),
            final_message,
            files: self.files.report(),
            commands: self.commands.report(),
            tests: self.commands.tests(),
            failures: self.failures.report(self.options.workdir.as_deref()),
            mcp_calls: McpCalls { unfinished: self.open_items.mcp_calls(), ..self.calls.mcp.clone() },
            web_searches: self.calls.web_searches,
            sub_agents: self.calls.sub_agents,
            unknown_items: self.calls.unknown,
            plan: self.plan.iter().map(step).collect(),
            plan_steps_not_listed: self.plan_steps_not_listed,
            usage: self.usage_report(translator.dialect()),
            cost: self.cost_report(translator.dialect()),
            limit_resets_at: self.limit_resets_at,
            warnings: self.warnings.report(),
            transient_errors: self.transient_errors.report(),
            transient_error_count: self.transient_errors.total,
            unresolved_error: self.unresolved_error.as_ref().map(BoundedText::resolve),
            oddities: self.oddities.clone(),
            open_items: self.open_items.report(self.options.workdir.as_deref()),
            repeated_items: self.repeats.count,
            idle: self.idle,
            done: self.done,
            recent_lines: self.recent.report(),
            counts: self.tally.report(translator.mixed_lines()),
        }
    }
}
