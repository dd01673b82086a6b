//! What all tasks look like at one moment, and the difference of two moments.

use std::collections::BTreeMap;
use std::sync::Arc;

use delegator_domain::attention::{Need, Section, section_of_all};
use delegator_domain::notification::Subject;
use delegator_domain::task::{Member, State, TaskId};
use delegator_registry::{AgentPause, Filter, Registry, StoredQuestion, Task};

use crate::Engine;
use crate::conversations::messages::TaskMessages;
use crate::error::Result;
use crate::results::attention::ended_facts;
use crate::results::overview::{QueuedTask, RunningTask};
use crate::shared::snapshot_file::read_cached_snapshot;
use crate::upkeep::rescue::rescue_unless_recent;

/// Tasks of each kind that are shown; the others are counted.
const MAX_UNFINISHED: u32 = 5_000;
const MAX_ENDED: u32 = 500;
/// Tasks that were read are shown for this time after their end.
const RECENT_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone, PartialEq)]
pub enum LiveRow {
    Running(RunningTask),
    Queued(QueuedTask),
    /// It has ended, or its group or chain is shown and it is not among the first unfinished ones.
    Stored(Box<Task>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LiveTask {
    pub section: Section,
    pub need: Option<Need>,
    /// The section of its group or chain as a whole.
    pub submission_section: Option<Section>,
    pub row: LiveRow,
    pub questions: Vec<StoredQuestion>,
    pub messages: TaskMessages,
}

/// What concerns no single task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveOverall {
    pub is_queue_paused: bool,
    pub agent_pauses: Vec<AgentPause>,
    pub unfinished_total: u64,
    pub unread_total: u64,
    /// Why the tasks could not be read; they are shown as they were before.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    pub tasks: BTreeMap<TaskId, Arc<LiveTask>>,
    pub overall: Arc<LiveOverall>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LiveChange {
    /// It is new, or anything about it has changed.
    Task(Arc<LiveTask>),
    /// It is not shown any more.
    Removed(TaskId),
    Overall(Arc<LiveOverall>),
}

impl LiveChange {
    /// `None`: it concerns no single task.
    pub(super) fn task(&self) -> Option<&TaskId> {
        match self {
            LiveChange::Task(task) => Some(task.id()),
            LiveChange::Removed(id) => Some(id),
            LiveChange::Overall(_) => None,
        }
    }
}

impl LiveTask {
    pub fn id(&self) -> &TaskId {
        match &self.row {
            LiveRow::Running(RunningTask { task, .. }) | LiveRow::Queued(QueuedTask { task, .. }) => &task.id,
            LiveRow::Stored(task) => &task.id,
        }
    }

    /// The order of submission.
    pub fn seq(&self) -> i64 {
        match &self.row {
            LiveRow::Running(RunningTask { task, .. }) | LiveRow::Queued(QueuedTask { task, .. }) => task.seq,
            LiveRow::Stored(task) => task.seq,
        }
    }

    /// The group or chain with which it was submitted.
    pub fn submission(&self) -> Option<&Subject> {
        match &self.row {
            LiveRow::Running(RunningTask { task, .. }) | LiveRow::Queued(QueuedTask { task, .. }) => {
                task.submission.as_ref()
            }
            LiveRow::Stored(task) => task.submission.as_ref(),
        }
    }

    /// Running tasks and queued ones in order of submission, then the ended ones, the last one first.
    fn order(&self) -> (u8, i64) {
        match &self.row {
            LiveRow::Running(_) => (0, self.seq()),
            LiveRow::Queued(_) => (1, self.seq()),
            LiveRow::Stored(task) => (2, task.ended.as_ref().map_or(task.seq, |ended| -ended.order)),
        }
    }

    fn stored(task: Task) -> LiveTask {
        let facts = ended_facts(&task);
        LiveTask {
            section: facts.section(),
            need: facts.need(),
            submission_section: None,
            row: LiveRow::Stored(Box::new(task)),
            questions: Vec::new(),
            messages: TaskMessages::default(),
        }
    }
}

impl LiveState {
    /// In the order in which a person reads them.
    pub fn in_order(&self) -> Vec<&Arc<LiveTask>> {
        let mut tasks: Vec<&Arc<LiveTask>> = self.tasks.values().collect();
        tasks.sort_by_key(|task| task.order());
        tasks
    }

    /// Whether it changes by time alone: progress is not in the registry, silence grows, and pauses end.
    pub(super) fn changes_by_itself(&self) -> bool {
        let is_running = |task: &Arc<LiveTask>| matches!(task.row, LiveRow::Running(_));
        self.tasks.values().any(is_running)
            || self.overall.agent_pauses.iter().any(|pause| pause.until_ms.is_some())
    }

    /// What leads from this state to another one.
    pub(super) fn changes_to(&self, new: &LiveState) -> Vec<LiveChange> {
        let is_gone = |id: &&TaskId| !new.tasks.contains_key(*id);
        let removed = self.tasks.keys().filter(is_gone).cloned().map(LiveChange::Removed);
        // Why a queued task waits depends on whether the queue is paused.
        let is_pause = self.overall.is_queue_paused != new.overall.is_queue_paused;
        let differs = |(id, task): &(&TaskId, &Arc<LiveTask>)| {
            self.tasks.get(*id) != Some(*task) || (is_pause && matches!(task.row, LiveRow::Queued(_)))
        };
        let changed = new.tasks.iter().filter(differs);
        let changed = changed.map(|(_, task)| LiveChange::Task(Arc::clone(task)));
        let overall = (self.overall != new.overall).then(|| LiveChange::Overall(Arc::clone(&new.overall)));
        overall.into_iter().chain(removed).chain(changed).collect()
    }

    pub fn apply(&mut self, change: &LiveChange) {
        match change {
            LiveChange::Task(task) => drop(self.tasks.insert(task.id().clone(), Arc::clone(task))),
            LiveChange::Removed(id) => drop(self.tasks.remove(id)),
            LiveChange::Overall(overall) => self.overall = Arc::clone(overall),
        }
    }

    /// The tasks as they are now, after an upkeep pass.
    pub fn now(engine: &Engine) -> Result<LiveState> {
        let Some(mut registry) = engine.find_registry()? else { return Ok(LiveState::default()) };
        rescue_unless_recent(engine, &mut registry)?;
        LiveState::read(engine, &registry)
    }

    /// All tasks that have not ended, those that ended lately or are unread, and the other tasks of their
    /// groups and chains. As recorded: without an upkeep pass.
    pub(crate) fn read(engine: &Engine, registry: &Registry) -> Result<LiveState> {
        registry.in_read_transaction(|| read(engine, registry))
    }
}

fn read(engine: &Engine, registry: &Registry) -> Result<LiveState> {
    let now_ms = engine.now_ms();
    let of_states = |states: &[State]| Filter { states: states.to_vec(), ..Filter::default() };
    let running = registry.oldest(&of_states(&[State::Starting, State::Working]), 0, MAX_UNFINISHED)?;
    let queued = registry.oldest(&of_states(&[State::Queued]), 0, MAX_UNFINISHED)?;
    let unread = Filter { is_unread: true, ..Filter::default() };
    let unread = registry.list_ended(&unread, 0, MAX_ENDED, None)?;
    let recent = registry.list_ended(&Filter::default(), now_ms - RECENT_MS, MAX_ENDED, None)?;
    let overall = LiveOverall {
        is_queue_paused: registry.queue_paused()?,
        agent_pauses: registry.agent_pauses(now_ms)?,
        unfinished_total: running.total + queued.total,
        unread_total: unread.total,
        problem: None,
    };
    let mut questions: BTreeMap<TaskId, Vec<StoredQuestion>> = BTreeMap::new();
    for (task, question) in registry.all_open_questions()? {
        questions.entry(task).or_default().push(question);
    }
    let mut tasks: Vec<LiveTask> = Vec::new();
    for task in running.tasks {
        let snapshot = read_cached_snapshot(&registry.dir().task(&task.id));
        let counts = registry.message_counts(&task.id)?;
        let questions = questions.remove(&task.id).unwrap_or_default();
        let running = RunningTask { task, snapshot };
        let facts = running.facts(!questions.is_empty(), now_ms);
        tasks.push(LiveTask {
            section: facts.section(),
            need: facts.need(),
            submission_section: None,
            row: LiveRow::Running(running),
            questions,
            messages: TaskMessages { counts, last: Vec::new() },
        });
    }
    let queued = engine.results().with_queue_positions(registry, false, queued.tasks)?;
    tasks.extend(queued.into_iter().map(|queued| LiveTask {
        section: Section::Waiting,
        need: None,
        submission_section: None,
        row: LiveRow::Queued(QueuedTask { position: rounded(queued.position), ..queued }),
        questions: Vec::new(),
        messages: TaskMessages::default(),
    }));
    tasks.extend(unread.tasks.into_iter().chain(recent.tasks).map(LiveTask::stored));
    let mut state = LiveState { tasks: BTreeMap::new(), overall: Arc::new(overall) };
    for task in tasks {
        state.tasks.entry(task.id().clone()).or_insert_with(|| Arc::new(task));
    }
    complete_submissions(registry, &mut state)?;
    Ok(state)
}

/// Each start moves all tasks of the queue, and of a long one most by a small part of their way. So from 32 on only
/// five binary digits count: then few of these moves are changes.
fn rounded(position: usize) -> usize {
    let dropped = (usize::BITS - position.leading_zeros()).saturating_sub(5);
    position >> dropped << dropped
}

/// Adds the other tasks of groups and chains of which one is shown, and the section of each as a whole.
fn complete_submissions(registry: &Registry, state: &mut LiveState) -> Result<()> {
    let mut subjects: Vec<Subject> =
        state.tasks.values().filter_map(|task| task.submission()).cloned().collect();
    subjects.sort();
    subjects.dedup();
    for subject in subjects {
        let tasks = registry.submitted_together(&subject)?;
        let members: Vec<Member> = tasks.iter().map(Member::from).collect();
        for task in tasks {
            let id = task.id.clone();
            state.tasks.entry(id).or_insert_with(|| Arc::new(LiveTask::stored(task)));
        }
        let section = section_of_all(&members, |member| {
            let task = state.tasks.get(&member.id);
            task.map_or((Section::Finished, None), |task| (task.section, task.need))
        });
        for member in &members {
            if let Some(task) = state.tasks.get_mut(&member.id) {
                Arc::make_mut(task).submission_section = Some(section);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_at_the_end_of_a_long_queue_are_rounded() {
        let places: Vec<usize> = [0, 31, 32, 33, 34, 63, 64, 67, 1_000].map(rounded).to_vec();
        assert_eq!(places, [0, 31, 32, 32, 34, 62, 64, 64, 992]);
        let distinct: std::collections::BTreeSet<usize> = (0..5_000).map(rounded).collect();
        assert!(distinct.len() < 160, "{}", distinct.len());
    }
}
