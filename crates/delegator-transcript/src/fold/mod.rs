//! The fold: from events to a [`Report`].
//!
//! [`Fold`] takes every line with what was understood of it and every [`Effect`] that follows, in order, and can be
//! asked for a report at any time. It is a pure function of the stream: run again over stored lines it says the
//! same. Counts are exact; lists are bounded, so memory does not grow with the stream.
//!
//! What decides how a turn ended: `turn.completed`, `turn.failed`, or that neither came. Warnings (items of type
//! `error`) and retries (`error` at the top) decide nothing.

mod account;
pub(crate) mod activity;
mod calls;
mod commands;
mod counts;
mod failures;
mod files;
mod kept;
mod notices;
mod progress;
mod recent;
mod repeats;
mod report;
mod test_log;
mod usage;

pub use account::{Account, Seen, Summarizer};
pub use activity::OpenItem;
pub use commands::{CommandReport, Commands};
pub use counts::Counts;
pub use failures::CommandFailure;
pub use files::FileOperations;
pub use notices::Notice;
pub use progress::Progress;
pub use recent::RecentLine;
pub use report::{FinalMessage, McpCalls, Outcome, PlanStep, Report, ToolCalls, TurnState};
pub use test_log::{TestReport, TestRunReport, test_report};
pub use usage::UsageReport;

use crate::event::{Event, IdleEvent, Item, ItemDetails, Phase, Status, ThreadEvent, Todo, Usage};
use crate::framer::Line;
use crate::json::Text;
use crate::map::{Dialect, Effect, MapWarning, Translator};
use activity::OpenItems;
use calls::CallLog;
use commands::CommandLog;
use counts::Tally;
use failures::Failures;
use files::Files;
use kept::KeptText;
use notices::Notices;
use progress::ProgressGauge;
use recent::RecentLines;
use repeats::Repeats;

const LONGEST_MESSAGE: usize = 1 << 20;
const LONGEST_ERROR: usize = 64 << 10;
const LONGEST_ID: usize = 256;
const MOST_PLAN_STEPS: usize = 200;
const LONGEST_PLAN_STEP: usize = 512;
const MOST_ODDITIES: usize = 32;

/// What the fold is told from outside the stream.
#[derive(Clone, Debug, Default)]
pub struct FoldOptions {
    /// Where the agent works: paths below it are shown relative to it in activities.
    pub workdir: Option<String>,
    /// What the thread had used before this run.
    pub usage_before: Option<Usage>,
}

/// Folds one stream.
#[derive(Debug, Default)]
struct Fold {
    options: FoldOptions,
    thread_id: Option<String>,
    turn: TurnState,
    turns: u64,
    failure: KeptText,
    final_message: Option<KeptText>,
    files: Files,
    commands: CommandLog,
    failures: Failures,
    calls: CallLog,
    plan: Vec<(KeptText, bool)>,
    plan_steps_not_listed: u64,
    usage: Option<Usage>,
    warnings: Notices,
    transient_errors: Notices,
    oddities: Vec<MapWarning>,
    open_items: OpenItems,
    progress: ProgressGauge,
    repeats: Repeats,
    mood: Mood,
    idle: bool,
    done: bool,
    is_over: bool,
    recent: RecentLines,
    tally: Tally,
}

/// What the agent does while no item is open.
#[derive(Debug, Default)]
enum Mood {
    #[default]
    Waiting,
    Thinking,
    Retrying(String),
}

impl Fold {
    /// A fold at the beginning of a stream.
    fn new(options: FoldOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Takes note of a line. Its effects come next.
    fn line(&mut self, line: &Line<'_>, event: &Event<'_>) {
        self.tally.line(line, event);
        self.recent.push(line);
        // Whatever an agent says, it is not idle any more, understood or not.
        if !matches!(event, Event::Blank | Event::Idle(IdleEvent::Idle | IdleEvent::Done)) {
            self.idle = false;
        }
    }

    /// Takes note of what follows from a line.
    fn effect(&mut self, effect: &Effect<'_>) {
        match effect {
            Effect::Emit(event) => self.event(event),
            Effect::Usage(usage) => self.usage = Some(*usage),
            Effect::Interrupted => self.turn = TurnState::Interrupted,
            Effect::Idle => self.idle = true,
            Effect::Done => self.done = true,
            Effect::Warn(warning) if self.oddities.len() < MOST_ODDITIES => {
                self.oddities.push(warning.clone())
            }
            Effect::Warn(_) | Effect::NoPlace(_) => {}
        }
    }

    fn event(&mut self, event: &ThreadEvent<'_>) {
        match event {
            ThreadEvent::ThreadStarted { thread_id } => {
                let id = KeptText::of(thread_id, LONGEST_ID).resolve();
                self.thread_id = Some(id).filter(|id| !id.is_empty()).or(self.thread_id.take());
            }
            ThreadEvent::TurnStarted => {
                self.turns += 1;
                self.turn = TurnState::Running;
                self.failure.clear();
                self.mood = Mood::Waiting;
                self.progress.turn_started();
                self.repeats.turn_started();
            }
            ThreadEvent::TurnCompleted { usage } => {
                self.turn = TurnState::Completed;
                self.usage = usage.or(self.usage);
                self.progress.turn_completed();
            }
            ThreadEvent::TurnFailed { message } => {
                self.turn = TurnState::Failed;
                self.failure.set(message, LONGEST_ERROR);
                // Codex announces a failure as an error first: that one was not transient.
                self.transient_errors.retract(message);
            }
            ThreadEvent::Error { message } => {
                self.transient_errors.add(message);
                self.repeats.stream_was_cut();
                self.mood = Mood::Retrying(activity::words_of_error(&message.resolve()));
            }
            ThreadEvent::Item { phase, item } => self.item(*phase, item),
        }
    }

    fn item(&mut self, phase: Phase, item: &Item<'_>) {
        self.mood = match item.details {
            ItemDetails::Reasoning { .. } => Mood::Thinking,
            _ => Mood::Waiting,
        };
        // Items without a beginning of their own are not steps; nor is the plan, which is made of steps.
        let is_step = !matches!(
            item.details,
            ItemDetails::AgentMessage { .. }
                | ItemDetails::Reasoning { .. }
                | ItemDetails::Error { .. }
                | ItemDetails::TodoList { .. }
        );
        if let ItemDetails::TodoList { items } = &item.details {
            self.keep_plan(items);
        }
        match phase {
            // What is told again is not done again.
            Phase::Started if self.repeats.has_finished(&item.id) => {}
            Phase::Started => {
                if self.open_items.start(item) && is_step {
                    self.progress.item_started();
                }
            }
            Phase::Updated => {}
            Phase::Completed => {
                let was_open = self.open_items.complete(&item.id);
                // Repeated or not, what was said last was said last.
                if let ItemDetails::AgentMessage { text } = &item.details {
                    self.keep_final_message(text, item.full_bytes);
                }
                if self.repeats.finished(item, was_open) {
                    return;
                }
                if is_step {
                    if !was_open {
                        self.progress.item_started();
                    }
                    self.progress.item_finished();
                }
                self.completed(item);
            }
        }
    }

    fn completed(&mut self, item: &Item<'_>) {
        self.tally.item(&item.details);
        let status = item.status.unwrap_or(Status::Completed);
        match &item.details {
            ItemDetails::CommandExecution(command) => {
                let workdir = self.options.workdir.as_deref();
                self.commands.finish(command, status, workdir);
                self.failures.finish(command, status, workdir);
            }
            ItemDetails::FileChange { changes } if status == Status::Completed => self.files.apply(changes),
            ItemDetails::FileChange { .. } => self.files.patch_failed(),
            ItemDetails::McpToolCall(call) => self.calls.mcp_call(call, status),
            ItemDetails::WebSearch { .. } => self.calls.web_search(),
            ItemDetails::CollabToolCall(call) => self.calls.collab_call(call, status),
            ItemDetails::Error { message } => self.warnings.add(message),
            ItemDetails::AgentMessage { .. }
            | ItemDetails::Reasoning { .. }
            | ItemDetails::TodoList { .. }
            | ItemDetails::Other { .. } => {}
        }
    }

    fn keep_final_message(&mut self, text: &Text<'_>, full_bytes: Option<u64>) {
        let kept = self.final_message.get_or_insert_default();
        kept.set(text, LONGEST_MESSAGE);
        if let Some(bytes) = full_bytes {
            kept.is_beginning_of(bytes);
        }
    }

    fn keep_plan(&mut self, items: &[Todo<'_>]) {
        let listed = items.len().min(MOST_PLAN_STEPS);
        self.plan_steps_not_listed = (items.len() - listed) as u64;
        self.plan.clear();
        let step = |todo: &Todo<'_>| (KeptText::of(&todo.text, LONGEST_PLAN_STEP), todo.completed);
        self.plan.extend(items[..listed].iter().map(step));
        let completed = items.iter().filter(|todo| todo.completed).count();
        self.progress.plan(completed as u64, items.len() as u64);
    }

    /// The stream is over: a turn that still runs was interrupted.
    fn finish(&mut self, translator: &Translator) {
        self.is_over = true;
        if self.turn == TurnState::Running && translator.announces_turn_ends() {
            self.turn = TurnState::Interrupted;
        }
    }

    fn outcome(&self, translator: &Translator) -> Outcome {
        match self.turn {
            // Dialect 003 ends with `done`, or while idle; a turn that is over is not an end.
            _ if translator.dialect() == Some(Dialect::Idle) && (self.done || self.idle) => {
                Outcome::Completed
            }
            TurnState::Failed => Outcome::Failed { message: self.failure.resolve() },
            _ if translator.dialect() == Some(Dialect::Idle) => Outcome::Interrupted,
            TurnState::Completed => Outcome::Completed,
            TurnState::Interrupted => Outcome::Interrupted,
            TurnState::None | TurnState::Running if translator.announces_turn_ends() => Outcome::Interrupted,
            TurnState::None | TurnState::Running => match translator.critical_error() {
                Some(message) => Outcome::Failed { message: message.resolve().into_owned() },
                None => Outcome::NotAnnounced,
            },
        }
    }

    fn activity(&self, dialect: Option<Dialect>) -> Option<String> {
        let workdir = self.options.workdir.as_deref();
        match (self.turn, &self.mood) {
            _ if self.is_over => None,
            _ if dialect == Some(Dialect::Idle) && self.done => None,
            _ if dialect == Some(Dialect::Idle) && self.idle => Some("Waiting for a message".to_owned()),
            (TurnState::None, _) => self.thread_id.is_some().then(|| "Starting".to_owned()),
            (TurnState::Running, Mood::Retrying(words)) => Some(words.clone()),
            (TurnState::Running, mood) => Some(self.open_items.latest_words(workdir).unwrap_or_else(|| {
                let words = if matches!(mood, Mood::Thinking) { "Thinking" } else { "Waiting for the model" };
                words.to_owned()
            })),
            (TurnState::Completed | TurnState::Failed | TurnState::Interrupted, _) => None,
        }
    }

    /// What the stream says so far.
    fn report(&self, translator: &Translator) -> Report {
        let final_message = self.final_message.as_ref().map(|message| FinalMessage {
            text: message.resolve(),
            bytes: message.bytes(),
            truncated: message.is_cut(),
        });
        let step =
            |(text, completed): &(KeptText, bool)| PlanStep { text: text.resolve(), completed: *completed };
        Report {
            dialect: translator.dialect(),
            thread_id: self.thread_id.clone(),
            turn: self.turn,
            turns: self.turns,
            outcome: self.outcome(translator),
            progress: (self.turns > 0).then(|| self.progress.report()),
            current_activity: self.activity(translator.dialect()),
            final_message,
            files: self.files.report(),
            commands: self.commands.report(),
            tests: self.commands.tests(),
            failures: self.failures.report(),
            mcp_calls: self.calls.mcp_report(),
            web_searches: self.calls.web_searches(),
            sub_agents: self.calls.sub_agents(),
            plan: self.plan.iter().map(step).collect(),
            plan_steps_not_listed: self.plan_steps_not_listed,
            usage: self.usage.map(|total| usage::report(total, self.options.usage_before)),
            warnings: self.warnings.report(),
            transient_errors: self.transient_errors.report(),
            transient_error_count: self.transient_errors.total(),
            oddities: self.oddities.clone(),
            open_items: self.open_items.report(self.options.workdir.as_deref()),
            repeated_items: self.repeats.count(),
            idle: self.idle,
            done: self.done,
            recent_lines: self.recent.report(),
            counts: self.tally.report(translator.mixed_lines()),
        }
    }

    /// The thread, as soon as it is known.
    fn thread_id(&self) -> Option<&str> {
        self.thread_id.as_deref()
    }
}
