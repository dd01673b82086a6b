//! What callers do: each act is one call of the engine, as a process would make it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use delegator_domain::task::{Mode, TaskId};
use delegator_registry::Idempotency;
use serde_json::json;

use super::chance::Chance;
use super::stage::{Stage, short};
use crate::error::EngineError;
use crate::{AgentProgram, Cleaning, Ending, Engine, Nesting, Settings, Submission, cancel};

#[derive(Debug, Clone)]
pub(super) enum Act {
    Submit(Box<Submission>),
    Cancel(TaskId),
    Look(TaskId),
    Rescue,
    Clean {
        old_after_ms: i64,
    },
    /// Wants everything forgotten, whatever it does.
    Forget(Vec<TaskId>),
    Hold(bool),
}

impl Act {
    /// Something somebody might want now.
    pub(super) fn any(chance: &mut Chance, trees: &[PathBuf], tasks: &[TaskId], threads: &[String]) -> Act {
        match chance.below(20) {
            0..=8 => Act::Submit(Box::new(submission(chance, trees, threads))),
            9..=11 if !tasks.is_empty() => Act::Cancel(chance.pick(tasks).clone()),
            12..=13 if !tasks.is_empty() => Act::Look(chance.pick(tasks).clone()),
            14..=16 => Act::Rescue,
            17 => Act::Clean { old_after_ms: chance.below(4_000).cast_signed() },
            18 if chance.one_in(2) => Act::Forget(tasks.to_vec()),
            18 => Act::Hold(true),
            _ => Act::Hold(false),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Act::Submit(submission) => format!(
                "submit({}{}{}{})",
                submission.settings.mode,
                if submission.allow_parallel_writes { ", parallel" } else { "" },
                submission.settings.resume.as_ref().map(|thread| format!(", {thread}")).unwrap_or_default(),
                submission.idempotency.as_ref().map(|known| format!(", {}", known.key)).unwrap_or_default(),
            ),
            Act::Cancel(id) => format!("cancel({})", short(id)),
            Act::Look(id) => format!("look({})", short(id)),
            Act::Rescue => "rescue".to_owned(),
            Act::Clean { old_after_ms } => format!("clean({old_after_ms} ms)"),
            Act::Forget(ids) => format!("forget({})", ids.len()),
            Act::Hold(true) => "hold".to_owned(),
            Act::Hold(false) => "let go".to_owned(),
        }
    }

    /// Makes the call. Only answers a caller may get are no problem.
    pub(super) fn play(self, engine: &Engine, stage: &Arc<Stage>) {
        let name = self.name();
        let played = match self {
            Act::Submit(submission) => submit(engine, stage, *submission),
            Act::Cancel(id) => cancel_one(engine, &id),
            Act::Look(id) => engine.task(&id).map(drop),
            Act::Rescue => engine.rescue(),
            Act::Clean { old_after_ms } => clean(engine, old_after_ms),
            Act::Forget(ids) => forget(engine, &ids),
            Act::Hold(is_held) => engine.hold_queue(is_held).map(drop),
        };
        match played {
            Ok(()) | Err(EngineError::UnknownTask { .. } | EngineError::AlreadyEnded { .. }) => {}
            Err(error) => stage.scene().problems.push(format!("{name} failed: {error}")),
        }
    }
}

fn submit(engine: &Engine, stage: &Arc<Stage>, submission: Submission) -> Result<(), EngineError> {
    let key = submission.idempotency.as_ref().map(|known| known.key.clone());
    let answer = engine.submit(submission)?;
    stage.scene().acknowledged.push((answer.task.id, key));
    Ok(())
}

/// A cancel without the wait: the director decides how long things take.
fn cancel_one(engine: &Engine, id: &TaskId) -> Result<(), EngineError> {
    let Some(mut registry) = engine.find()? else { return Ok(()) };
    cancel::request(&mut registry, id, Some("not wanted"))?;
    engine.promote(&mut registry)
}

fn clean(engine: &Engine, old_after_ms: i64) -> Result<(), EngineError> {
    engine
        .clean(&Cleaning {
            stuck_after_ms: 0,
            old_after_ms,
            dry_run: false,
            include_restore_points: false,
            trust_clock: false,
            environment: Vec::new(),
        })
        .map(drop)
}

fn forget(engine: &Engine, ids: &[TaskId]) -> Result<(), EngineError> {
    let Some(mut registry) = engine.find()? else { return Ok(()) };
    registry.forget(ids)?;
    Ok(())
}

fn submission(chance: &mut Chance, trees: &[PathBuf], threads: &[String]) -> Submission {
    let mode = *chance.pick(&[Mode::ReadOnly, Mode::WorkspaceWrite, Mode::WorkspaceWrite]);
    let resume = (chance.one_in(4) && !threads.is_empty()).then(|| chance.pick(threads).clone());
    let key = chance.one_in(4).then(|| format!("key {}", chance.below(2)));
    Submission {
        text: "do it".to_owned(),
        settings: settings(mode, chance.pick::<PathBuf>(trees), resume),
        agent: AgentProgram { program: "/bin/true".into(), leading_args: Vec::new(), version: None },
        agent_name: "codex".to_owned(),
        max_mode: Mode::WorkspaceWrite,
        environment: BTreeMap::new(),
        passed_on: Vec::new(),
        secret_names: Vec::new(),
        umask: 0o022,
        title: "do it".to_owned(),
        labels: BTreeMap::new(),
        input: json!({}),
        allow_parallel_writes: chance.one_in(6),
        nesting: Nesting { parent: None, max_depth: 0, max_children: 0 },
        idempotency: key.map(|key| Idempotency::new(key, "the same")),
    }
}

fn settings(mode: Mode, tree: &Path, resume: Option<String>) -> Settings {
    Settings {
        skip_git_repo_check: true,
        resume,
        ending: Ending { interrupt_grace_sec: 1, terminate_grace_sec: 1 },
        max_stream_bytes: 1 << 20,
        max_processes: 64,
        without_group: true,
        ..Settings::plain(mode, tree.to_owned())
    }
}
