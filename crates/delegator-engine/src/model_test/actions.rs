//! What callers do: each action is one call of the engine, as a process would make it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delegator_domain::message::Delivery;
use delegator_domain::task::{ChainOutcome, Mode, RunSettings, TaskId};
use delegator_registry::Idempotency;
use serde_json::json;

use crate::cancel::store_cancel_request;
use crate::error::EngineError;
use crate::simulation::{Rng, Simulator, short};
use crate::submit::promote::promote;
use crate::upkeep::clean::clean;
use crate::upkeep::rescue::rescue;
use crate::{Agent, CleanRequest, Ending, Engine, Follower, MessageSupport, Nesting, Settings, Submission};

#[derive(Debug, Clone)]
pub(super) enum Action {
    Submit(Box<Submission>),
    Cancel(TaskId),
    Send(TaskId),
    Query(TaskId),
    Rescue,
    Clean {
        old_after_ms: i64,
    },
    /// Tries to delete all tasks, including those that have not ended.
    Delete(Vec<TaskId>),
    PauseQueue(bool),
}

impl Action {
    pub(super) fn random(rng: &mut Rng, trees: &[PathBuf], tasks: &[TaskId], threads: &[String]) -> Action {
        match rng.below(24) {
            0..=8 => Action::Submit(Box::new(submission(rng, trees, threads))),
            9..=11 if !tasks.is_empty() => Action::Cancel(rng.pick(tasks).clone()),
            12..=13 if !tasks.is_empty() => Action::Query(rng.pick(tasks).clone()),
            14..=16 => Action::Rescue,
            20..=23 if !tasks.is_empty() => Action::Send(rng.pick(tasks).clone()),
            17 => Action::Clean { old_after_ms: rng.below(4_000).cast_signed() },
            18 if rng.one_in(2) => Action::Delete(tasks.to_vec()),
            18 => Action::PauseQueue(true),
            _ => Action::PauseQueue(false),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Action::Submit(submission) => format!(
                "submit({}{}{}{}{})",
                submission.settings.run.mode.name(),
                if submission.allow_parallel_writes { ", parallel" } else { "" },
                submission
                    .settings
                    .run
                    .resume
                    .as_ref()
                    .map(|thread| format!(", {thread}"))
                    .unwrap_or_default(),
                submission.idempotency.as_ref().map(|known| format!(", {}", known.key)).unwrap_or_default(),
                if submission.followers.is_empty() { "" } else { ", chain" },
            ),
            Action::Cancel(id) => format!("cancel({})", short(id)),
            Action::Send(id) => format!("send({})", short(id)),
            Action::Query(id) => format!("query({})", short(id)),
            Action::Rescue => "rescue".to_owned(),
            Action::Clean { old_after_ms } => format!("clean({old_after_ms} ms)"),
            Action::Delete(ids) => format!("delete({})", ids.len()),
            Action::PauseQueue(true) => "pause the queue".to_owned(),
            Action::PauseQueue(false) => "resume the queue".to_owned(),
        }
    }

    /// Makes the call. Errors that a caller may get are not a problem.
    pub(super) fn run(self, engine: &Engine, simulator: &Arc<Simulator>) {
        let name = self.name();
        let result = match self {
            Action::Submit(submission) => submit(engine, simulator, *submission),
            Action::Cancel(id) => cancel_one(engine, &id),
            Action::Send(id) => send(engine, simulator, id),
            Action::Query(id) => engine.results().task(&id).map(drop),
            Action::Rescue => rescue(engine),
            Action::Clean { old_after_ms } => clean(engine, &clean_request(old_after_ms)).map(drop),
            Action::Delete(ids) => delete_all(engine, &ids),
            Action::PauseQueue(is_paused) => engine.queue().set_paused(is_paused).map(drop),
        };
        match result {
            Ok(()) | Err(EngineError::UnknownTask { .. } | EngineError::AlreadyEnded { .. }) => {}
            Err(error) => simulator.state().problems.push(format!("{name} failed: {error}")),
        }
    }
}

fn submit(engine: &Engine, simulator: &Arc<Simulator>, submission: Submission) -> Result<(), EngineError> {
    let key = submission.idempotency.as_ref().map(|known| known.key.clone());
    let submitted = engine.submissions().submit(submission)?;
    let mut state = simulator.state();
    state.acknowledged.push((submitted.task.id, key));
    state.acknowledged.extend(submitted.followers.into_iter().map(|task| (task.id, None)));
    Ok(())
}

fn send(engine: &Engine, simulator: &Arc<Simulator>, id: TaskId) -> Result<(), EngineError> {
    let sent = engine.conversations().send(&id, "go on", Delivery::Next, MessageSupport::NextTurn)?;
    simulator.state().sent.push((id, sent.message.number));
    Ok(())
}

/// A cancel without waiting: only the model decides how long an actor takes.
fn cancel_one(engine: &Engine, id: &TaskId) -> Result<(), EngineError> {
    let Some(mut registry) = engine.find_registry()? else { return Ok(()) };
    store_cancel_request(engine, &mut registry, id, Some("not wanted"))?;
    promote(engine, &mut registry)
}

/// Makes retention trust the simulated clock; otherwise it would only after an hour without a jump.
pub(super) fn trust_clock(engine: &Engine) -> Result<(), EngineError> {
    clean(engine, &CleanRequest { trust_clock: true, ..clean_request(0) }).map(drop)
}

fn clean_request(old_after_ms: i64) -> CleanRequest {
    CleanRequest {
        stuck_after_ms: 0,
        old_after_ms,
        dry_run: false,
        include_restore_points: false,
        trust_clock: false,
        environment: Vec::new(),
    }
}

fn delete_all(engine: &Engine, ids: &[TaskId]) -> Result<(), EngineError> {
    let Some(mut registry) = engine.find_registry()? else { return Ok(()) };
    registry.prune(ids)?;
    Ok(())
}

fn submission(rng: &mut Rng, trees: &[PathBuf], threads: &[String]) -> Submission {
    let mut first = single_submission(rng, trees, threads);
    if rng.one_in(3) {
        add_followers(&mut first, rng, trees, 2);
    }
    first
}

/// Adds followers for one outcome or both, which may have followers themselves.
fn add_followers(predecessor: &mut Submission, rng: &mut Rng, trees: &[PathBuf], depth: u64) {
    for on in ChainOutcome::ALL {
        if rng.one_in(2) {
            let mut submission = Submission { idempotency: None, ..single_submission(rng, trees, &[]) };
            if depth > 0 && rng.one_in(2) {
                add_followers(&mut submission, rng, trees, depth - 1);
            }
            predecessor.followers.push(Follower { on, submission });
        }
    }
}

fn single_submission(rng: &mut Rng, trees: &[PathBuf], threads: &[String]) -> Submission {
    let mode = *rng.pick(&[Mode::ReadOnly, Mode::WorkspaceWrite, Mode::WorkspaceWrite]);
    let resume = (rng.one_in(4) && !threads.is_empty()).then(|| rng.pick(threads).clone());
    let key = rng.one_in(4).then(|| format!("key {}", rng.below(2)));
    Submission {
        isolation: crate::Isolation::None,
        text: "do it".to_owned(),
        settings: settings(mode, rng.pick::<PathBuf>(trees), resume),
        agent: Agent::built_in("/bin/true", None),
        fallbacks: Vec::new(),
        skipped: Vec::new(),
        max_mode: Mode::WorkspaceWrite,
        environment: Vec::new(),
        passed_variables: Vec::new(),
        secret_names: Vec::new(),
        umask: 0o022,
        title: "do it".to_owned(),
        labels: BTreeMap::new(),
        input: json!({}),
        allow_parallel_writes: rng.one_in(6),
        nesting: Nesting { parent: None, max_depth: 0, max_children: 0 },
        idempotency: key.map(|key| Idempotency::new(key, "the same")),
        reviews: None,
        report_of: None,
        followers: Vec::new(),
    }
}

fn settings(mode: Mode, tree: &Path, resume: Option<String>) -> Settings {
    let plain = Settings::plain(mode, tree.to_owned());
    Settings {
        run: RunSettings { skip_git_repo_check: true, resume, ..plain.run },
        ending: Ending { interrupt_grace_sec: 1, terminate_grace_sec: 1 },
        max_stream_bytes: 1 << 20,
        max_processes: 64,
        without_group: true,
        ..plain
    }
}
