//! `local status`: running, queued and recent tasks.
//!
//! All running and queued tasks are listed as far as they fit into the response; one cursor continues them
//! and the recent tasks, and belongs to the filters. Reading the status does not mark a task as read. Cloud
//! tasks are only counted here: their states must be queried from their providers, which may take seconds.

use std::collections::HashMap;

use delegator_domain::task::{GroupId, State, TaskLocation};
use delegator_engine::{LongLog, Overview, OverviewRequest, TaskMessages};
use delegator_registry::{Filter, StoredQuestion, TaskFile};
use jiff::Timestamp;

use crate::commands::local::attempts::resolve_tasks;
use crate::commands::prelude::*;
use crate::output::data::conversation::{Conversation, MessagesData};
use crate::output::data::group::GroupData;
use crate::output::data::notification::NotificationData;
use crate::output::data::status::{
    CloudTasks, EndedTask, ListedTask, QueuedTask, RunningTask, StatusCounts, StatusMeta, StatusSnapshot,
    Unread,
};
use crate::output::data::task_line::{Clock, TaskLine, TaskSections};
use crate::output::data::usage::Usage;
use crate::output::data::warnings;
use crate::output::outcome::{ListCursors, PagedList};
use crate::spec::paging::cursor_positions;

/// Filters shared by the local and the cloud command.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatusInputs {
    /// Only this task
    #[schemars(extend("x-markers" = [Marker::Positional, Marker::SelfExplanatory]))]
    pub task_id: Option<TaskRef>,
    /// In or below this directory
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<PathBuf>,
    /// Only with these labels
    #[schemars(extend("default" = null, "x-markers" = [Marker::SelfExplanatory]))]
    pub labels: BTreeMap<String, String>,
    /// Only this state
    #[schemars(with = "String", extend("enum" = STATES, "x-markers" = [Marker::SelfExplanatory]))]
    pub state: Option<State>,
    /// Finished tasks
    #[serde(default = "default_number::<5>")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    /// Add last 5 lines of running tasks
    pub verbose: bool,
    /// From the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Status {
    #[serde(flatten)]
    pub filter: StatusInputs,
    /// Add tokens and time used
    #[serde(default)]
    pub usage: bool,
    /// Redraw the screen at every change, until Ctrl-C; in a pipe: print a line for each question and each unread end
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub watch: bool,
}

const STATES: [&str; 6] = ["queued", "working", "completed", "failed", "cancelled", "timeout"];

pub const SPEC: CommandSpec = CommandSpec {
    category: Category::StatusSnapshot,
    shape: Shape::Show("snapshot"),
    toolset: Toolset::Local,
    config: ConfigUse::ValidPart,
    ..CommandSpec::read_only::<Status, StatusSnapshot>(
        &["local", "status"],
        "Show running, queued and recent tasks",
    )
};

/// Running and queued tasks that are read for one response: more than fit into 48,000 characters or, on the
/// command line, into the default of `--max-bytes`. Clients poll status every second, so it must stay fast.
const MAX_LISTED_FOR_TOOLS: u32 = 1_000;
const MAX_LISTED: u32 = 12_000;
/// Unread results that a person sees, however old they are.
const MAX_UNREAD: u32 = 20;
const MIN_USAGE_ROWS: u32 = 50;
/// Enough for five lines of the displayed length, and for most longer ones.
const VERBOSE_BYTES: u64 = 64 << 10;
pub const RECENT_MS: i64 = 24 * 60 * 60 * 1000;

/// Which tasks a command lists. A task that is named is shown wherever it runs.
#[derive(Debug)]
pub struct Scope {
    pub location: TaskLocation,
    pub environment: Option<String>,
}

fn usage(engine: &Engine, wanted: &OverviewRequest, limit: u32) -> Result<Usage, AppError> {
    let table = engine.results().usage(wanted, limit.max(MIN_USAGE_ROWS))?;
    Ok(Usage::of(table.unwrap_or_default(), &engine.worktrees().sizes()?))
}

pub fn show(context: &Context<'_>, input: &Status, scope: &Scope) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let now_ms = Timestamp::now().as_millisecond();
    let wanted = overview_query(context, &engine, &input.filter, scope, now_ms)?;
    let Some(overview) = engine.results().overview(&wanted)? else {
        let all_tasks = (context.surface == Surface::CommandLine).then(Vec::new);
        let is_cloud = scope.location == TaskLocation::Cloud;
        let empty = StatusSnapshot { all_tasks, is_cloud, ..StatusSnapshot::default() };
        return Ok(snapshot_output(now_ms, empty));
    };
    let cursors = list_cursors(&wanted, &overview, cursor_query(&input.filter));
    let all_tasks = (context.surface == Surface::CommandLine).then(|| all_tasks(&overview, now_ms));
    let sections = people_sections(context, &engine, &overview, &wanted, now_ms)?;
    let warnings = overview_warnings(&engine, &overview, &wanted, scope);
    let groups = listed_groups(&engine, &overview)?;
    let conversations = Conversations { questions: overview.questions, messages: overview.messages };
    let tasks = running_tasks(&engine, overview.running.tasks, &conversations, input.filter.verbose, now_ms)?;
    let usage = if input.usage { Some(usage(&engine, &wanted, input.filter.limit)?) } else { None };
    let queued = overview
        .queued
        .tasks
        .into_iter()
        .map(|queued| QueuedTask { messages: conversations.messages_to(&queued.task.id), ..queued.into() });
    let ended = overview
        .ended
        .tasks
        .iter()
        .map(|task| EndedTask { messages: conversations.messages_to(&task.id), ..task.into() });
    let is_local = scope.location == TaskLocation::Local;
    let snapshot = StatusSnapshot {
        summary: StatusCounts {
            running: overview.running.total,
            queued: overview.queued.total,
            recently_completed: overview.ended.total,
        },
        tasks,
        queue: queued.collect(),
        recently_completed: ended.collect(),
        groups,
        worktree: worktree_of_only(&engine, &wanted)?,
        notifications: notifications_of_only(&engine, &wanted)?,
        all_tasks,
        not_listed: None,
        usage,
        is_queue_paused: overview.queue_paused && is_local,
        agent_pauses: overview.agent_pauses.iter().filter(|_| is_local).map(Into::into).collect(),
        // The status of one task is only about this task.
        unread: Unread::of(&overview.unread).filter(|_| wanted.only.is_empty()),
        cloud: CloudTasks::of(overview.cloud),
        is_cloud: !is_local,
        sections,
        cursors: Some(cursors),
    };
    let mut output = snapshot_output(now_ms, snapshot).warn(warnings);
    output.update_cursors();
    Ok(output)
}

fn running_tasks(
    engine: &Engine,
    running: Vec<delegator_engine::RunningTask>,
    conversations: &Conversations,
    verbose: bool,
    now_ms: i64,
) -> Result<Vec<RunningTask>, AppError> {
    let mut tasks = Vec::new();
    for running in running {
        let id = running.task.id.clone();
        let mut task = RunningTask::of(running, conversations.of(&id), now_ms);
        if verbose {
            let stored = engine.results().read_dir(&id, |dir| {
                Ok(dir.read_tail(TaskFile::Events, VERBOSE_BYTES)?.unwrap_or_default())
            })?;
            task.last_lines = Some(last_lines(&stored));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

struct Conversations {
    questions: Vec<(TaskId, StoredQuestion)>,
    messages: HashMap<TaskId, TaskMessages>,
}

impl Conversations {
    fn messages_to(&self, id: &TaskId) -> Option<MessagesData> {
        self.messages.get(id).and_then(MessagesData::of)
    }

    fn of(&self, id: &TaskId) -> Conversation {
        let of_task = self.questions.iter().filter(|(task, _)| task == id);
        let open: Vec<StoredQuestion> = of_task.map(|(_, question)| question.clone()).collect();
        let none = TaskMessages::default();
        Conversation::of(&open, self.messages.get(id).unwrap_or(&none))
    }
}

fn overview_warnings(
    engine: &Engine,
    overview: &Overview,
    wanted: &OverviewRequest,
    scope: &Scope,
) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(log) = overview.long_log {
        found.push(Warning::new(WarningCode::RegistryLogGrows, long_log_message(log)));
    }
    // A provider that does not answer is not queried again.
    if overview.provider_problems.is_empty() {
        let queued: Vec<TaskId> = overview.queued.tasks.iter().map(|queued| queued.task.id.clone()).collect();
        found.extend(warnings::fleet_obstacles(&engine.remote().obstacles(&queued)));
    }
    found.extend(overview.provider_problems.iter().map(warnings::provider_not_queried));
    found.extend(overview.running.tasks.iter().flat_map(warnings::of_running_task));
    let shows_pauses = overview.queued.total > 0 || wanted.only.is_empty();
    if scope.location == TaskLocation::Local && shows_pauses {
        found.extend(overview.queue_paused.then(warnings::queue_paused));
        found.extend(overview.agent_pauses.iter().map(warnings::agent_paused));
    }
    found
}

fn listed_groups(engine: &Engine, overview: &Overview) -> Result<Vec<GroupData>, AppError> {
    let running = overview.running.tasks.iter().map(|running| &running.task.group);
    let queued = overview.queued.tasks.iter().map(|queued| &queued.task.group);
    let ended = overview.ended.tasks.iter().map(|task| &task.group);
    let mut groups: Vec<&GroupId> = Vec::new();
    for member in running.chain(queued).chain(ended).flatten() {
        if !groups.contains(&&member.group) {
            groups.push(&member.group);
        }
    }
    groups
        .into_iter()
        .map(|group| Ok(GroupData::of_tasks(group, &engine.results().recorded_group(group)?)))
        .collect()
}

fn worktree_of_only(engine: &Engine, wanted: &OverviewRequest) -> Result<Option<String>, AppError> {
    let [only] = wanted.only.as_slice() else { return Ok(None) };
    let worktree = engine.worktrees().of(&engine.results().recorded_task(only)?)?;
    Ok(worktree.map(|worktree| worktree.path.display().to_string()))
}

fn notifications_of_only(
    engine: &Engine,
    wanted: &OverviewRequest,
) -> Result<Vec<NotificationData>, AppError> {
    let [only] = wanted.only.as_slice() else { return Ok(Vec::new()) };
    Ok(engine.outbox().notifications_of(only)?.iter().map(Into::into).collect())
}

fn all_tasks(overview: &Overview, now_ms: i64) -> Vec<ListedTask> {
    let running = overview.running.tasks.iter().map(|running| {
        ListedTask::running(running, open_question(overview, &running.task.id).is_some(), now_ms)
    });
    let queued = overview.queued.tasks.iter().map(ListedTask::queued);
    running.chain(queued).chain(overview.ended.tasks.iter().map(ListedTask::ended)).collect()
}

fn open_question<'a>(overview: &'a Overview, id: &TaskId) -> Option<&'a StoredQuestion> {
    overview.questions.iter().find(|(task, _)| task == id).map(|(_, question)| question)
}

/// The same tasks as a person reads them, and all unread ones; `None` if no person reads them.
fn people_sections(
    context: &Context<'_>,
    engine: &Engine,
    overview: &Overview,
    wanted: &OverviewRequest,
    now_ms: i64,
) -> Result<Option<TaskSections>, AppError> {
    if !context.screen.presentation.is_for_people() {
        return Ok(None);
    }
    let beside = engine.results().shown_beside(overview, wanted, MAX_UNREAD)?;
    let clock = Clock { now_ms, variables: &variables(context) };
    let running = overview.running.tasks.iter();
    let running =
        running.map(|running| TaskLine::running(running, open_question(overview, &running.task.id), clock));
    let queued = overview.queued.tasks.iter();
    let queued = queued.map(|queued| TaskLine::queued(queued, overview.queue_paused, clock));
    let is_new = |task: &&Task| !overview.ended.tasks.iter().any(|listed| listed.id == task.id);
    let ended = overview.ended.tasks.iter().chain(beside.unread.iter().filter(is_new));
    let ended = ended.map(|task| TaskLine::of_row(task, clock));
    let lines = running.chain(queued).chain(ended).collect();
    let of_rows = |tasks: &[Task]| tasks.iter().map(|task| TaskLine::of_row(task, clock)).collect();
    let submissions: Vec<_> =
        beside.submissions.iter().map(|(subject, tasks)| (subject.clone(), of_rows(tasks))).collect();
    Ok(Some(TaskSections::of(lines, &submissions, beside.unread_total)))
}

fn list_cursors(request: &OverviewRequest, overview: &Overview, query: Value) -> ListCursors {
    let Overview { running, queued, ended, .. } = overview;
    let lists = [
        PagedList {
            start: request.running_after,
            positions: running.tasks.iter().map(|running| running.task.seq).collect(),
            remaining: running.remaining,
        },
        PagedList {
            start: request.queued_after,
            positions: queued.tasks.iter().map(|queued| queued.task.seq).collect(),
            remaining: queued.remaining,
        },
        PagedList {
            // Newest first, so the first page begins before the highest position.
            start: request.ended_before.unwrap_or(i64::MAX),
            positions: ended.tasks.iter().filter_map(|task| Some(task.ended.as_ref()?.order)).collect(),
            remaining: ended.tasks.len() as u64 + u64::from(ended.next.is_some()),
        },
    ];
    ListCursors { lists, query }
}

pub fn long_log_message(log: LongLog) -> String {
    let size = log.bytes >> 20;
    format!(
        "the registry's write-ahead log has grown to {size} MiB because a program keeps the database open for reading; end that program"
    )
}

pub fn overview_query(
    context: &Context<'_>,
    engine: &Engine,
    inputs: &StatusInputs,
    scope: &Scope,
    now_ms: i64,
) -> Result<OverviewRequest, AppError> {
    let states = inputs.state.map(State::with_same_public_name).unwrap_or_default();
    let [running_after, queued_after, ended_before] = match &inputs.cursor {
        Some(cursor) => cursor_positions("cursor", cursor, &cursor_query(inputs))?,
        None => [0, 0, i64::MAX],
    };
    Ok(OverviewRequest {
        filter: Filter {
            states,
            working_dir: inputs.working_dir.as_deref().map(|dir| absolute_dir(context, dir)),
            labels: inputs.labels.clone(),
            since_ms: None,
            location: Some(scope.location),
            environment: scope.environment.clone(),
            is_unread: false,
        },
        only: inputs.task_id.as_ref().map_or(Ok(Vec::new()), |given| resolve_tasks(engine, given))?,
        under: context.process.current_dir.display().to_string(),
        running_after,
        queued_after,
        unfinished_limit: match context.surface {
            Surface::CommandLine => MAX_LISTED,
            Surface::Server => MAX_LISTED_FOR_TOOLS,
        },
        ended_since_ms: now_ms - RECENT_MS,
        ended_limit: inputs.limit,
        ended_before: Some(ended_before),
    })
}

/// The query that a cursor belongs to: all filters, without cursor and limit.
fn cursor_query(inputs: &StatusInputs) -> Value {
    json!(["status", inputs.task_id, inputs.working_dir, inputs.labels, inputs.state])
}

/// The directory as stored with tasks: absolute, with symbolic links resolved if it exists.
pub fn absolute_dir(context: &Context<'_>, given: &Path) -> String {
    let path = context.process.current_dir.join(given);
    path.canonicalize().unwrap_or(path).display().to_string()
}

fn snapshot_output(now_ms: i64, mut snapshot: StatusSnapshot) -> CommandOutput {
    let total = snapshot.summary.running + snapshot.summary.queued;
    snapshot.follow_lists(snapshot.list_lengths());
    let facts = StatusMeta { snapshot_ts: UtcTime::from_ms(now_ms), total };
    CommandOutput::done(snapshot).with_facts(facts)
}

fn last_lines(stored: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stored);
    let lines: Vec<&str> = text.lines().collect();
    let shortened = |line: &&str| line.chars().take(400).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(shortened).collect()
}
