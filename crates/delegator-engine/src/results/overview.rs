//! The overview of tasks: running, queued (with position and blocker) and recently ended.

use std::collections::HashMap;

use delegator_domain::task::{Obstacle, State, TaskId, TaskLocation};
use delegator_registry::{
    AgentPause, BlockedBy, EndedPage, Filter, OldestPage, QueueEntry, Registry, RegistryError,
    StoredQuestion, Task, TaskSummary, UnreadResults, UsageTable,
};
use delegator_supervisor::run::Snapshot;

use super::task_queries::LongLog;
use crate::Results;
use crate::conversations::messages::TaskMessages;
use crate::error::Result;
use crate::remote::refresh::{ProviderProblem, refresh_remote};
use crate::shared::estimate::DurationHistory;
use crate::shared::snapshot_file::read_cached_snapshot;
use crate::upkeep::rescue::rescue_unless_recent;

#[derive(Debug, Clone, Default)]
pub struct OverviewRequest {
    pub filter: Filter,
    /// If not empty: only these tasks, whenever they ended.
    pub only: Vec<TaskId>,
    /// Unread results are counted in and below this directory.
    pub under: String,
    /// Both lists are in order of submission, from this position on; 0 is the first.
    pub running_after: i64,
    pub queued_after: i64,
    /// The maximum number of running and of queued tasks that are listed; all are counted.
    pub unfinished_limit: u32,
    pub ended_since_ms: i64,
    pub ended_limit: u32,
    /// The cursor of the previous page of ended tasks.
    pub ended_before: Option<i64>,
}

#[derive(Debug)]
pub struct Overview {
    pub running: OldestPage<RunningTask>,
    pub queued: OldestPage<QueuedTask>,
    pub ended: EndedPage,
    pub unread: UnreadResults,
    /// Cloud tasks that an overview of the tasks of this machine does not list.
    pub cloud: CloudCounts,
    pub queue_paused: bool,
    pub agent_pauses: Vec<AgentPause>,
    pub questions: Vec<(TaskId, StoredQuestion)>,
    /// Messages of the running tasks, counted; those of a single task also listed.
    pub messages: HashMap<TaskId, TaskMessages>,
    pub provider_problems: Vec<ProviderProblem>,
    pub long_log: Option<LongLog>,
}

/// Cloud tasks, as recorded: no provider is queried, so that the overview of the tasks of this machine stays
/// fast.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloudCounts {
    pub unfinished: u64,
    /// In and below the directory of the request.
    pub unread: u64,
}

#[derive(Debug, Default)]
pub struct AwaitedTasks {
    pub ids: Vec<TaskId>,
    pub has_more_ended: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueuedTask {
    pub task: TaskSummary,
    /// 0: the task is next.
    pub position: usize,
    pub waiting_for: Option<BlockedBy>,
    pub agent_pause: Option<AgentPause>,
    pub estimated_start_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunningTask {
    pub task: TaskSummary,
    pub snapshot: Option<Snapshot>,
}

/// Queue positions beyond this get no estimated start.
const MAX_ESTIMATED: usize = 1000;
const MAX_UNREAD_LISTED: u32 = 20;
const UNFINISHED: [State; 3] = [State::Queued, State::Starting, State::Working];

impl Results<'_> {
    /// Running, queued and recently ended tasks, after an upkeep pass. `None` if there is no registry.
    pub fn overview(&self, request: &OverviewRequest) -> Result<Option<Overview>> {
        let Some(mut registry) = self.engine.find_registry()? else { return Ok(None) };
        rescue_unless_recent(self.engine, &mut registry)?;
        let remote = self.selected_remote(&registry, request)?;
        let provider_problems = refresh_remote(self.engine, &mut registry, &remote)?;
        registry
            .in_read_transaction(|| self.recorded_overview(&registry, request, provider_problems))
            .map(Some)
    }

    fn recorded_overview(
        &self,
        registry: &Registry,
        request: &OverviewRequest,
        provider_problems: Vec<ProviderProblem>,
    ) -> Result<Overview> {
        let (running, queued, ended) = if request.only.is_empty() {
            let OverviewRequest { ended_since_ms, ended_limit, ended_before, .. } = *request;
            let ended = registry.list_ended(&request.filter, ended_since_ms, ended_limit, ended_before)?;
            let page = |states, after| oldest(registry, request, states, after);
            let running = page(&[State::Starting, State::Working], request.running_after)?;
            (running, page(&[State::Queued], request.queued_after)?, ended)
        } else {
            named_tasks(all_of(registry, &request.only)?)
        };
        let queue_paused = registry.queue_paused()?;
        let messages = listed_messages(registry, request, &running.tasks)?;
        // One file that cannot be read must not hide the other tasks.
        let with_snapshot = |task: TaskSummary| {
            let snapshot = read_cached_snapshot(&registry.dir().task(&task.id));
            RunningTask { task, snapshot }
        };
        Ok(Overview {
            running: OldestPage {
                tasks: running.tasks.into_iter().map(with_snapshot).collect(),
                total: running.total,
                remaining: running.remaining,
            },
            queued: OldestPage {
                // Starts cannot be estimated while the queue is paused.
                tasks: self.with_queue_positions(registry, !queue_paused, queued.tasks)?,
                total: queued.total,
                remaining: queued.remaining,
            },
            ended,
            unread: registry.unread(&request.under, request.filter.location, MAX_UNREAD_LISTED)?,
            cloud: cloud_counts(registry, request)?,
            queue_paused,
            agent_pauses: registry.agent_pauses(self.engine.now_ms())?,
            questions: if request.only.is_empty() {
                registry.all_open_questions()?
            } else {
                open_questions(registry, &request.only)?
            },
            messages,
            provider_problems,
            long_log: LongLog::of(registry),
        })
    }

    fn selected_remote(&self, registry: &Registry, request: &OverviewRequest) -> Result<Vec<Task>> {
        match (request.only.as_slice(), request.filter.location) {
            ([], Some(TaskLocation::Local)) => Ok(Vec::new()),
            ([], _) => Ok(registry.unfinished_remote()?),
            (named, _) => {
                let remote = named.iter().filter(|id| id.location() == TaskLocation::Cloud);
                all_of(registry, remote)
            }
        }
    }

    /// The tasks that pass the filter, newest first.
    pub fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<Task>> {
        self.engine.query(|registry| Ok(registry.list(filter, limit, None)?.tasks))
    }

    pub fn unfinished_tasks(&self, filter: &Filter) -> Result<Vec<Task>> {
        self.engine.query(|registry| unfinished_tasks(registry, filter))
    }

    /// The tasks to wait for: those that pass the filter and have not ended, and those that ended at or after
    /// `ended_since_ms`, at most the `ended_limit` last ones. The ended ones first, in order of their end;
    /// then the others, in order of submission.
    ///
    /// With `unread_first`, ended tasks whose results a caller has read are left out if others remain.
    pub fn awaited_tasks(
        &self,
        filter: &Filter,
        ended_since_ms: i64,
        ended_limit: u32,
        unread_first: bool,
    ) -> Result<AwaitedTasks> {
        let Some(registry) = self.engine.find_registry()? else { return Ok(AwaitedTasks::default()) };
        let unfinished = unfinished_tasks(&registry, filter)?;
        // Read second, so that a task that ends in between is in one of the lists.
        let ended = registry.list_ended(filter, ended_since_ms, ended_limit, None)?;
        let has_more_ended = ended.next.is_some();
        let mut ended = ended.tasks;
        ended.reverse();
        let is_unread = |task: &Task| task.ended.as_ref().is_some_and(|ended| ended.read_at_ms.is_none());
        if unread_first && (!unfinished.is_empty() || ended.iter().any(is_unread)) {
            ended.retain(is_unread);
        }
        let mut ids: Vec<TaskId> = ended.into_iter().map(|task| task.id).collect();
        for task in unfinished.into_iter().rev() {
            if !ids.contains(&task.id) {
                ids.push(task.id);
            }
        }
        Ok(AwaitedTasks { ids, has_more_ended })
    }

    pub fn usage(&self, request: &OverviewRequest, limit: u32) -> Result<Option<UsageTable>> {
        let OverviewRequest { filter, only, .. } = request;
        self.engine.query(|registry| registry.usage(filter, only, limit).map(Some))
    }

    pub(crate) fn with_queue_positions(
        &self,
        registry: &Registry,
        estimates_starts: bool,
        queued: Vec<TaskSummary>,
    ) -> Result<Vec<QueuedTask>> {
        if queued.is_empty() {
            return Ok(Vec::new());
        }
        let history = if estimates_starts { DurationHistory::of_all(registry)? } else { None };
        let starts = history.map(|history| history.start_times(registry, self.engine, MAX_ESTIMATED));
        let starts = starts.transpose()?.unwrap_or_default();
        let mut positions: HashMap<TaskId, (usize, QueueEntry)> = HashMap::new();
        let mut ahead = 0;
        for entry in registry.queue_with_blockers(self.engine.now_ms())? {
            // A task that waits for its predecessor delays no other one.
            let blocker = entry.blocked_by.as_ref().map(|blocker| blocker.obstacle);
            let is_ahead_of_others = blocker != Some(Obstacle::Predecessor);
            positions.insert(entry.id.clone(), (ahead, entry));
            ahead += usize::from(is_ahead_of_others);
        }
        let with_position = |(index, task): (usize, TaskSummary)| {
            // A provider has a queue of its own.
            if task.environment.is_some() {
                return Some(QueuedTask {
                    task,
                    position: index,
                    waiting_for: None,
                    agent_pause: None,
                    estimated_start_ms: None,
                });
            }
            // A task that was started between the two reads is no longer queued.
            let (position, entry) = positions.remove(&task.id)?;
            let QueueEntry { blocked_by: waiting_for, pause: agent_pause, .. } = entry;
            // The start of a task that also waits for something else cannot be estimated.
            let waits_for_slot = waiting_for.is_none() && agent_pause.is_none();
            let estimated_start_ms = starts.get(position).copied().filter(|_| waits_for_slot);
            Some(QueuedTask { task, position, waiting_for, agent_pause, estimated_start_ms })
        };
        Ok(queued.into_iter().enumerate().filter_map(with_position).collect())
    }
}

fn unfinished_tasks(registry: &Registry, filter: &Filter) -> Result<Vec<Task>, RegistryError> {
    match narrow_filter(filter, &UNFINISHED) {
        Some(filter) => Ok(registry.list(&filter, u32::MAX, None)?.tasks),
        None => Ok(Vec::new()),
    }
}

fn listed_messages(
    registry: &Registry,
    request: &OverviewRequest,
    running: &[TaskSummary],
) -> Result<HashMap<TaskId, TaskMessages>> {
    if !request.only.is_empty() {
        let read = |id: &TaskId| Ok((id.clone(), TaskMessages::read(registry, id)?));
        return request.only.iter().map(read).collect();
    }
    let counted = |task: &TaskSummary| {
        let counts = registry.message_counts(&task.id)?;
        Ok((task.id.clone(), TaskMessages { counts, last: Vec::new() }))
    };
    running.iter().map(counted).collect()
}

fn cloud_counts(registry: &Registry, request: &OverviewRequest) -> Result<CloudCounts> {
    if !request.only.is_empty() || request.filter.location != Some(TaskLocation::Local) {
        return Ok(CloudCounts::default());
    }
    let location = Some(TaskLocation::Cloud);
    let unfinished = Filter { states: UNFINISHED.to_vec(), location, ..Filter::default() };
    Ok(CloudCounts {
        unfinished: registry.oldest(&unfinished, 0, 0)?.total,
        unread: registry.unread(&request.under, location, 0)?.count,
    })
}

fn oldest(
    registry: &Registry,
    request: &OverviewRequest,
    states: &[State],
    after: i64,
) -> Result<OldestPage<TaskSummary>> {
    match narrow_filter(&request.filter, states) {
        Some(filter) => Ok(registry.oldest(&filter, after, request.unfinished_limit)?),
        None => Ok(OldestPage::default()),
    }
}

fn narrow_filter(filter: &Filter, states: &[State]) -> Option<Filter> {
    let passes = |state: &State| filter.states.is_empty() || filter.states.contains(state);
    let states: Vec<State> = states.iter().copied().filter(passes).collect();
    (!states.is_empty()).then(|| Filter { states, ..filter.clone() })
}

fn all_of<'a>(registry: &Registry, ids: impl IntoIterator<Item = &'a TaskId>) -> Result<Vec<Task>> {
    let found = ids.into_iter().map(|id| registry.get(id)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn open_questions(registry: &Registry, ids: &[TaskId]) -> Result<Vec<(TaskId, StoredQuestion)>> {
    let mut found = Vec::new();
    for id in ids {
        found.extend(registry.open_questions(id)?.into_iter().map(|open| (id.clone(), open)));
    }
    Ok(found)
}

fn named_tasks(tasks: Vec<Task>) -> (OldestPage<TaskSummary>, OldestPage<TaskSummary>, EndedPage) {
    let (mut running, mut queued, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for task in tasks {
        match task.state {
            State::Queued => queued.push((&task).into()),
            state if state.is_terminal() => ended.push(task),
            _ => running.push((&task).into()),
        }
    }
    let page = EndedPage { total: ended.len() as u64, tasks: ended, next: None };
    let whole = |tasks: Vec<TaskSummary>| {
        let count = tasks.len() as u64;
        OldestPage { tasks, total: count, remaining: count }
    };
    (whole(running), whole(queued), page)
}
