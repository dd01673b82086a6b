//! Submits a task, or all tasks of a chain or a group: first the launch files, then all rows in one
//! transaction, which also claims what may start.
//!
//! When [`Registry::submit_and_claim`] returns a task, all are durable; when it fails, there is none. A
//! repeated idempotency key returns the first task.
//!
//! A new id must not be in use, neither by a row nor by the files or restore points of a pruned task. An id
//! that is in use is refused before anything is written with it; the caller tries another.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::notification::Subject;
use delegator_domain::task::{SandboxKind, State, TaskId, WorkTree};
use rusqlite::{Connection, OptionalExtension, named_params};
use serde_json::Value;

use super::chain;
use super::claim::{self, Claim, MAX_CLAIMS_PER_CALL, Promotion};
use crate::compare_and_set::Nonce;
use crate::error::{RegistryError, Result};
use crate::files::durable;
use crate::files::lock::{LockAttempt, SubmitEntry};
use crate::registry::Registry;
use crate::row;
use crate::task::{Idempotency, NewTask, NewWorktree, Task, WorktreeUse, is_enforced};

#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub task: Task,
    /// The key was known: `task` is the first task, and nothing was created.
    pub replayed: bool,
}

/// A pruned task may have left a directory or restore points behind.
pub(crate) const ID_IN_USE: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1) \
     OR EXISTS (SELECT 1 FROM forgotten WHERE id = ?1) OR EXISTS (SELECT 1 FROM restore_points WHERE task = ?1)";

impl Registry {
    /// Stores a task durably and claims nothing. If this fails, there is no task.
    pub fn submit(&mut self, task: &NewTask, launch: &[u8], now_ms: i64) -> Result<Submission> {
        self.submit_chain(&[(task.clone(), launch.to_vec())], now_ms)
    }

    /// The same for several tasks: see [`Registry::submit_and_claim`].
    pub fn submit_chain(&mut self, chain: &[(NewTask, Vec<u8>)], now_ms: i64) -> Result<Submission> {
        let none = Promotion { max_concurrent: 0, fresh_nonce: &|| Nonce::from_random([0; 16]) };
        self.submit_and_claim(chain, &none, now_ms).map(|(submission, _)| submission)
    }

    /// Stores the tasks of a chain, or of several that form a group, with their launch files, each task after
    /// its predecessor, and claims whatever may start then, in the same transaction. If this fails, there are
    /// none. Returns the first task; only that one may have an idempotency key. The caller must start what it
    /// gets. A repeated submission claims nothing.
    pub fn submit_and_claim(
        &mut self,
        chain: &[(NewTask, Vec<u8>)],
        promotion: &Promotion<'_>,
        now_ms: i64,
    ) -> Result<(Submission, Vec<Claim>)> {
        let requests: Vec<&NewTask> = chain.iter().map(|(task, _)| task).collect();
        chain::check_order(&requests)?;
        // A replay needs neither space nor a directory, so it also works on a full disk.
        if let Some(refusal) = self.read(|db| find_refusal(db, &requests))? {
            return Ok((refusal?, Vec::new()));
        }
        let tasks: Vec<NewTask> = requests.iter().map(|task| self.sink.task(task)).collect();
        self.dir.check_space_for(chain.iter().map(|(_, launch)| launch.len()).sum())?;
        let launches = chain.iter().map(|(_, launch)| launch.as_slice());
        let entries = self.begin_submits(tasks.iter().zip(launches))?;
        let new: Vec<&NewTask> = tasks.iter().collect();
        let stored = self.write(|db| {
            if let Some(refusal) = find_refusal(db, &new)? {
                return Ok((refusal, Vec::new()));
            }
            let task = insert_all(db, &new, now_ms)?;
            let claims = claim::claim(db, promotion, MAX_CLAIMS_PER_CALL, now_ms)?;
            Ok((Ok(Submission { task, replayed: false }), claims))
        });
        crash_point(CrashPoint::RowCommitted);
        let is_new = matches!(&stored, Ok((Ok(submission), _)) if !submission.replayed);
        if !is_new && !matches!(stored, Err(RegistryError::Database { .. })) {
            // The directories are not needed. After a disk error they stay: whether the rows were committed
            // is only known after a restart, and until then they are leftovers as after a crash.
            tasks.iter().for_each(|task| self.discard(&task.id));
        }
        entries.into_iter().for_each(end_submit);
        let (submission, claims) = stored?;
        if !claims.is_empty() {
            crash_point(CrashPoint::ClaimCommitted);
        }
        Ok((submission?, claims))
    }

    /// Creates the directories of tasks that have no rows yet. If one cannot be created, none is left.
    fn begin_submits<'a>(
        &self,
        tasks: impl Iterator<Item = (&'a NewTask, &'a [u8])>,
    ) -> Result<Vec<SubmitEntry>> {
        let mut begun: Vec<(&TaskId, SubmitEntry)> = Vec::new();
        for (task, launch) in tasks {
            match self.begin_submit(task, launch) {
                Ok(entry) => begun.push((&task.id, entry)),
                Err(error) => {
                    for (id, entry) in begun {
                        self.discard(id);
                        end_submit(entry);
                    }
                    return Err(self.as_disk_full(error));
                }
            }
        }
        Ok(begun.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The task that was submitted with a key, whatever the rest of its request was.
    pub fn find_by_key(&self, key: &Idempotency) -> Result<Option<Task>> {
        self.read(|db| first_with_key(db, key))
    }

    /// Creates the directory of a task that has no row yet, protected by an entry.
    pub(crate) fn begin_submit(&self, task: &NewTask, launch: &[u8]) -> Result<SubmitEntry> {
        let folder = self.dir.submitting();
        let entry = SubmitEntry::create(&folder, &task.id)
            .map_err(RegistryError::file(&folder, "create an entry in"))?
            .ok_or_else(|| RegistryError::IdInUse { id: task.id.clone() })?;
        crash_point(CrashPoint::SubmitEntered);
        let notify = task.notify.as_ref().map(|notify| notify.settings.as_slice());
        match self.dir.task(&task.id).create(launch, &task.text, notify) {
            Ok(()) => Ok(entry),
            // The entry may be that of a killed submit with this id. It stays, so that its directory is
            // removed.
            Err(error @ RegistryError::IdInUse { .. }) => Err(error),
            Err(error) => {
                end_submit(entry);
                Err(error)
            }
        }
    }

    /// The disk may have filled up since free space was checked.
    fn as_disk_full(&self, error: RegistryError) -> RegistryError {
        match error {
            RegistryError::File { path, source, .. } if durable::is_out_of_space(&source) => {
                let available = self.dir.free_bytes().unwrap_or(0);
                RegistryError::DiskFull { path, available, needed: self.dir.options().min_free_bytes }
            }
            other => other,
        }
    }

    /// Removes the directory of a task that has no row.
    pub(crate) fn discard(&self, id: &TaskId) {
        let dir = self.dir.task(id);
        if let Ok(LockAttempt::Locked(lock)) = dir.try_lock() {
            let _ = dir.remove(lock);
        }
    }
}

/// Ends the submit. If the entry cannot be removed, it looks like a dead submit once this process has ended;
/// its task has a row and is left alone.
pub(crate) fn end_submit(entry: SubmitEntry) {
    let _ = entry.remove();
    crash_point(CrashPoint::SubmitLeft);
}

/// The new task, the one that was submitted with the same idempotency key, or why there is none.
pub(crate) type SubmitResult = Result<Submission>;

/// Why the task cannot be inserted: one was submitted with the same idempotency key, or its id is in use.
pub(crate) fn find_existing(db: &Connection, task: &NewTask) -> rusqlite::Result<Option<SubmitResult>> {
    let first = task.idempotency.as_ref().map(|request| find_by_key(db, request)).transpose()?.flatten();
    if first.is_some() {
        return Ok(first);
    }
    let is_used = |sql: &str, id: &str| -> rusqlite::Result<bool> {
        db.prepare_cached(sql)?.query_row([id], |row| row.get(0))
    };
    let is_group_used =
        task.group.as_ref().map(|member| is_used(chain::IS_GROUP, member.group.as_str())).transpose()?;
    let is_refused = is_group_used == Some(true) || is_used(ID_IN_USE, task.id.as_str())?;
    Ok(is_refused.then(|| Err(RegistryError::IdInUse { id: task.id.clone() })))
}

fn find_refusal(db: &Connection, tasks: &[&NewTask]) -> rusqlite::Result<Option<SubmitResult>> {
    tasks.iter().find_map(|task| find_existing(db, task).transpose()).transpose()
}

/// Inserts all tasks; returns the first.
fn insert_all(db: &Connection, tasks: &[&NewTask], now_ms: i64) -> rusqlite::Result<Task> {
    let submission = submission(tasks);
    let mut inserted = tasks
        .iter()
        .map(|task| insert(db, task, submission.as_ref(), now_ms))
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(inserted.swap_remove(0))
}

/// The group or chain that the tasks form; `None` of a single task.
fn submission(tasks: &[&NewTask]) -> Option<Subject> {
    let first = tasks.first()?;
    match &first.group {
        Some(member) => Some(Subject::Group(member.group.clone())),
        None => (tasks.len() > 1).then(|| Subject::Chain(first.id.clone())),
    }
}

fn first_with_key(db: &Connection, key: &Idempotency) -> rusqlite::Result<Option<Task>> {
    let sql = "SELECT * FROM tasks WHERE idempotency_key = ?1";
    db.prepare_cached(sql)?.query_row([key.stored_key()], Task::from_row).optional()
}

fn find_by_key(db: &Connection, request: &Idempotency) -> rusqlite::Result<Option<SubmitResult>> {
    let first = first_with_key(db, request)?;
    Ok(first.map(|first| {
        if first.idempotency.as_ref().is_some_and(|known| known.request_hash == request.request_hash) {
            return Ok(Submission { task: first, replayed: true });
        }
        Err(RegistryError::IdempotencyConflict { key: request.key.clone(), first: first.id })
    }))
}

pub(crate) fn insert(
    db: &Connection,
    task: &NewTask,
    submission: Option<&Subject>,
    now_ms: i64,
) -> rusqlite::Result<Task> {
    let mut trees = task.work_trees.iter().map(WorkTree::to_text);
    let first_tree = trees.next();
    let more_trees: Vec<String> = trees.collect();
    let worktree = task.worktree.as_ref().map(|used| match used {
        WorktreeUse::New(_) => task.id.as_str(),
        WorktreeUse::Of(owner) => owner.as_str(),
    });
    let (idempotency, environment) = (task.idempotency.as_ref(), task.environment.as_ref());
    let (follows, group) = (task.follows.as_ref(), task.group.as_ref());
    let predecessor = follows.map(|follows| row::load_state(db, &follows.task)).transpose()?.flatten();
    let values = named_params! {
        ":id": task.id.as_str(),
        ":state": State::Queued.name(),
        ":created_at_ms": now_ms,
        ":updated_at_ms": now_ms,
        ":working_dir": task.working_dir,
        ":work_tree": first_tree,
        ":more_work_trees": (!more_trees.is_empty()).then(|| Value::from(more_trees).to_string()),
        ":allow_parallel_writes": task.allow_parallel_writes,
        ":mode": task.mode.name(),
        ":mode_enforced": is_enforced(task.sandbox),
        ":sandbox": task.sandbox.map(SandboxKind::name),
        ":agent": task.agent,
        ":model": task.model,
        ":title": task.title,
        ":labels": Value::from_iter(task.labels.clone()).to_string(),
        ":input": task.input.to_string(),
        ":resumed_thread": task.resumed_thread,
        ":idempotency_key": idempotency.map(Idempotency::stored_key),
        ":request_hash": idempotency.map(|known| &known.request_hash),
        ":provider": environment.map(|environment| environment.provider.name()),
        ":environment": environment.map(|environment| &environment.id),
        ":fallbacks": task.fallbacks,
        ":follows": follows.map(|follows| follows.task.as_str()),
        ":follows_on": follows.map(|follows| follows.on.name()),
        ":awaits": predecessor.map(|predecessor| predecessor.seq),
        ":worktree": worktree,
        ":notify": task.notify.as_ref().map(|notify| notify.plan.to_text()),
        ":notify_later": task.notify.as_ref().map(|notify| notify.plan.later_events()),
        ":group_id": group.map(|member| member.group.as_str()),
        ":attempt": group.map(|member| member.attempt),
        ":submission": submission.map(Subject::id),
    };
    let seq = row::insert(db, "tasks", values)?;
    for (key, value) in &task.labels {
        row::insert(db, "labels", named_params! { ":key": key, ":value": value, ":task": seq })?;
    }
    if let Some(WorktreeUse::New(NewWorktree { path, facts })) = &task.worktree {
        let values =
            named_params! { ":task": seq, ":owner": task.id.as_str(), ":path": path, ":facts": facts };
        row::insert(db, "worktrees", values)?;
    }
    row::insert_transition(db, seq, None, State::Queued, "submitted", now_ms)?;
    row::task_at(db, seq)
}
