//! Queries about one task: row, files, logs; and about the registry as a whole.

use std::io::Write;
use std::path::{Path, PathBuf};

use delegator_domain::task::{GroupId, TaskId, TaskIdPrefix, TaskLocation, WorkTree};
use delegator_registry::{
    Filter, Idempotency, OpenOptions, Registry, RegistryError, StateCounts, StateDir, StoredQuestion, Task,
    TaskDir, TaskFile,
};
use delegator_supervisor::run::Snapshot;

use super::groups::{Target, only_match};
use crate::Results;
use crate::conversations::messages::TaskMessages;
use crate::error::{EngineError, Result};
use crate::remote::provider::ProviderRecord;
use crate::remote::refresh::refresh_remote;
use crate::restore_points::record::RestorePointRecord;
use crate::shared::snapshot_file::read_snapshot;
use crate::shared::work_tree::find_work_tree;
use crate::submit::launch_file::Launch;
use crate::supervise::task_report::Record;
use crate::upkeep::rescue::rescue_in;
use crate::worktrees::recorded::RecordedWorktree;

/// Tasks to read at once in search of the last one. Usually the first of them is it.
const LAST_TASK_PAGE: u32 = 20;

#[derive(Debug, Default)]
pub struct TaskFiles {
    pub record: Option<Record>,
    pub snapshot: Option<Snapshot>,
    pub restore_point: Option<RestorePointRecord>,
    /// The changes of a task that a provider ran, as a unified diff; empty if there are none.
    pub diff: Vec<u8>,
    pub remote: Option<ProviderRecord>,
    pub messages: TaskMessages,
    pub open_questions: Vec<StoredQuestion>,
    /// The tasks that directly follow it in a chain.
    pub followers: Vec<Task>,
    pub worktree: Option<RecordedWorktree>,
}

/// The write-ahead log is too long: a process that has been reading for long prevents the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLog {
    pub bytes: u64,
}

impl LongLog {
    const MAX_BYTES: u64 = 64 * 1024 * 1024;

    pub(crate) fn of(registry: &Registry) -> Option<LongLog> {
        let bytes = registry.wal_bytes();
        (bytes > LongLog::MAX_BYTES).then_some(LongLog { bytes })
    }
}

impl Results<'_> {
    /// The task with this id, or with this unique beginning of an id.
    pub fn resolve(&self, given: &str) -> Result<TaskId> {
        if GroupId::beginning(given).is_some()
            && let Target::Group(group) = self.resolve_target(given)?
        {
            let tasks = self.group(&group)?.into_iter().map(|task| task.id).collect();
            return Err(EngineError::GroupGiven { group, tasks });
        }
        let invalid = |_| EngineError::InvalidTaskId { given: given.to_owned() };
        let prefix: TaskIdPrefix = given.parse().map_err(invalid)?;
        let found = self.engine.query(|registry| registry.find_by_prefix(&prefix))?;
        only_match(found, given, EngineError::UnknownTask { given: given.to_owned() })
    }

    /// The task that was submitted last in the work tree of a directory, not in one nested in it; or, outside
    /// a work tree, in or below the directory.
    pub fn last_task_in(&self, directory: &Path) -> Result<Task> {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let tree = find_work_tree(&directory);
        let root = tree.as_ref().map_or(directory.as_path(), WorkTree::root).to_owned();
        let working_dir = Some(root.display().to_string());
        let filter = Filter { working_dir, ..Filter::default() };
        let is_here = |task: &Task| tree.is_none() || find_work_tree(Path::new(&task.working_dir)) == tree;
        let no_task_here = || EngineError::NoTaskHere { directory: root.clone() };
        let registry = self.engine.find_registry()?.ok_or_else(no_task_here)?;
        let mut from = None;
        loop {
            let page = registry.list(&filter, LAST_TASK_PAGE, from)?;
            if let Some(task) = page.tasks.into_iter().find(is_here) {
                return Ok(task);
            }
            from = Some(page.next.ok_or_else(no_task_here)?);
        }
    }

    /// The first task of the chain in which this task is, as far as it is recorded.
    pub fn first_of_chain(&self, task: Task) -> Result<Task> {
        let mut first = task;
        while let Some(follows) = &first.follows {
            match self.recorded_task(&follows.task) {
                Ok(predecessor) => first = predecessor,
                Err(EngineError::UnknownTask { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(first)
    }

    /// A task, after an upkeep pass. For a task that a provider runs, the provider is queried first.
    pub fn task(&self, id: &TaskId) -> Result<Task> {
        let unknown = || EngineError::unknown(id);
        let mut registry = self.engine.registry_of(id)?;
        rescue_in(self.engine, &mut registry)?;
        let task = registry.get(id)?.ok_or_else(unknown)?;
        if task.remote.is_none() || task.state.is_terminal() {
            return Ok(task);
        }
        match refresh_remote(self.engine, &mut registry, std::slice::from_ref(&task))?.first() {
            Some(problem) => Err(problem.for_task(id)),
            None => registry.get(id)?.ok_or_else(unknown),
        }
    }

    pub fn recorded_task(&self, id: &TaskId) -> Result<Task> {
        self.engine.registry_of(id)?.get(id)?.ok_or_else(|| EngineError::unknown(id))
    }

    pub fn task_with_key(&self, key: &Idempotency) -> Result<Option<TaskId>> {
        self.engine.query(|registry| Ok(registry.find_by_key(key)?.map(|task| task.id)))
    }

    pub fn last_task_of_thread(&self, thread_id: &str) -> Result<Option<Task>> {
        self.engine.query(|registry| Ok(registry.by_thread(thread_id, 1)?.into_iter().next()))
    }

    /// An error if the report, the restore points or the registry cannot be read.
    pub fn files(&self, id: &TaskId) -> Result<TaskFiles> {
        let Some(registry) = self.engine.find_registry()? else { return Ok(TaskFiles::default()) };
        let dir = registry.dir().task(id);
        let owner = registry.get(id)?.and_then(|task| task.worktree);
        let files = TaskFiles {
            record: Record::read(&dir)?,
            snapshot: read_snapshot(&dir)?,
            restore_point: RestorePointRecord::read(&dir)?.map(RestorePointRecord::check_stored),
            followers: registry.followers(id)?,
            worktree: owner.map(|owner| RecordedWorktree::read(&registry, &owner)).transpose()?.flatten(),
            ..TaskFiles::default()
        };
        Ok(match id.location() {
            TaskLocation::Cloud => TaskFiles {
                diff: dir.read(TaskFile::Diff)?.unwrap_or_default(),
                remote: ProviderRecord::read(&dir)?,
                ..files
            },
            TaskLocation::Local => TaskFiles {
                messages: TaskMessages::read(&registry, id)?,
                open_questions: registry.open_questions(id)?,
                ..files
            },
        })
    }

    /// All tasks that follow this one, directly or not, each after its predecessor.
    pub fn rest_of_chain(&self, id: &TaskId) -> Result<Vec<Task>> {
        self.engine.query(|registry| registry.rest_of_chain(id))
    }

    /// The tasks that follow a task in a chain and have not ended, each after the one it follows.
    pub fn unfinished_followers(&self, id: &TaskId) -> Result<Vec<Task>> {
        let rest = self.rest_of_chain(id)?.into_iter();
        Ok(rest.filter(|task| !task.state.is_terminal()).collect())
    }

    /// From the launch file before the start, then from the snapshot, at last from the record.
    pub fn hard_limit_sec(&self, id: &TaskId) -> Option<u64> {
        let launch = self.read_stored(id, TaskFile::Launch).ok().filter(|bytes| !bytes.is_empty());
        if let Some(launch) = launch.and_then(|bytes| Launch::from_bytes(id, &bytes).ok()) {
            return Some(launch.settings.limits.hard_sec);
        }
        let files = self.files(id).ok()?;
        let of_record = files.record.and_then(|record| record.limits).map(|limits| limits.hard_sec);
        files.snapshot.map(|snapshot| snapshot.hard_limit_sec).or(of_record)
    }

    pub fn task_dir(&self, id: &TaskId) -> Result<Option<TaskDir>> {
        self.engine.query(|registry| Ok(Some(registry.dir().task(id))))
    }

    /// The content of a task file; empty if it is missing.
    pub fn read_stored(&self, id: &TaskId, which: TaskFile) -> Result<Vec<u8>> {
        self.read_dir(id, |dir| Ok(dir.read(which)?.unwrap_or_default()))
    }

    /// What `read` finds in the directory of a task; the default if there is no registry.
    pub fn read_dir<T: Default>(
        &self,
        id: &TaskId,
        read: impl FnOnce(&TaskDir) -> Result<T, RegistryError>,
    ) -> Result<T> {
        self.engine.query(|registry| read(&registry.dir().task(id)))
    }

    pub fn append_handle(&self, id: &TaskId, line: &str) -> Result<()> {
        let mut file = self.engine.registry_of(id)?.dir().task(id).open_append(TaskFile::Handles)?;
        // One write, because another server may append at the same time.
        file.write_all(format!("{line}\n").as_bytes()).map_err(EngineError::io("record a handle"))
    }

    /// Marks a result as read; true the first time.
    pub fn mark_read(&self, id: &TaskId) -> Result<bool> {
        let registry = self.engine.find_registry()?;
        Ok(registry.map_or(Ok(false), |mut registry| registry.mark_read(id, self.engine.now_ms()))?)
    }

    /// Marks all results as read; returns how many were not before.
    pub fn mark_all_read(&self) -> Result<usize> {
        let registry = self.engine.find_registry()?;
        Ok(registry.map_or(Ok(0), |mut registry| registry.mark_all_read(self.engine.now_ms()))?)
    }

    /// Renames a damaged registry and creates an empty one. An error if the registry is not damaged.
    pub fn set_aside_damaged(&self) -> Result<Vec<PathBuf>> {
        let dir =
            StateDir::open(&self.engine.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        Ok(delegator_registry::set_aside_damaged(&dir, self.engine.now_ms())?)
    }

    /// `None` if there is no registry.
    pub fn counts(&self) -> Result<Option<(StateCounts, Option<LongLog>)>> {
        self.engine.query(|registry| Ok(Some((registry.counts()?, LongLog::of(registry)))))
    }
}
