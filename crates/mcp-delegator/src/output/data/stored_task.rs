//! What is computed from a stored task: the names of its states, its times, its exit code, its summary, and
//! the facts for a bug report.

use std::collections::BTreeMap;

use delegator_domain::task::{ExitStatus, SandboxKind};
use delegator_registry::EndRecord;

use crate::output::outcome::ChildExit;
use crate::output::prelude::*;

pub fn state_names(include: fn(State) -> bool) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        State::ALL.into_iter().filter(|state| include(*state)).map(State::public_name).collect();
    names.dedup();
    names
}

/// When a task ran, as responses show it: `duration_ms` is always the difference of the two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTimes {
    pub started_ms: i64,
    pub ended_ms: i64,
}

impl RunTimes {
    /// A task that never started took no time, however long it was queued. If the wall clock was set during
    /// the run, the start is counted back from the end by the monotonic clock.
    pub fn of(task: &Task) -> RunTimes {
        let ended_ms = task.ended.as_ref().map_or(task.updated_at_ms, |ended| ended.at_ms);
        let ran_ms = task.ended.as_ref().and_then(|ended| i64::try_from(ended.ran_ms?).ok());
        let by_wall_ms = task.started_at_ms.map(|started| ended_ms - started);
        let duration_ms = match (by_wall_ms, ran_ms) {
            (None, _) => 0,
            (Some(by_wall_ms), Some(ran_ms)) if !is_plausible(by_wall_ms, ran_ms) => ran_ms,
            (Some(by_wall_ms), _) => by_wall_ms.max(0),
        };
        RunTimes { started_ms: ended_ms - duration_ms, ended_ms }
    }

    pub fn duration_ms(self) -> u64 {
        (self.ended_ms - self.started_ms).unsigned_abs()
    }

    pub fn duration_seconds(self) -> u64 {
        self.duration_ms() / 1000
    }
}

/// Whether the wall clock was not set: the whole run lasts as long as the agent ran, plus the time to prepare
/// it and to examine its changes.
fn is_plausible(by_wall_ms: i64, agent_ran_ms: i64) -> bool {
    const MAX_OVERHEAD_MS: i64 = 60 * 60 * 1000;
    (agent_ran_ms..agent_ran_ms.saturating_add(MAX_OVERHEAD_MS)).contains(&by_wall_ms)
}

/// The state; of a completed task whose check failed, that.
pub fn end_name(task: &Task) -> &'static str {
    let end = task.ended.as_ref().map(|ended| ended.end.kind(ended.verification).name());
    end.unwrap_or_else(|| task.state.public_name())
}

pub fn exit_code(task: &Task) -> Option<i32> {
    match task.ended.as_ref()?.exit? {
        ExitStatus::Code(code) => Some(code),
        // The shell convention.
        ExitStatus::Signal(signal) => Some(128 + signal),
    }
}

pub fn child_exit(task: &Task) -> Option<ChildExit> {
    exit_code(task).map(|code| ChildExit { code: Some(code) })
}

pub fn summary(task: &Task) -> String {
    match &task.ended {
        Some(EndRecord { summary: Some(summary), .. }) => summary.clone(),
        Some(EndRecord { end: TaskEnd::Cancelled { reason: Some(reason) }, .. }) => {
            format!("Cancelled ({reason}) before it began")
        }
        _ => format!("Task {}", task.state.public_name()),
    }
}

pub fn final_text(record: Option<&Record>) -> Option<&str> {
    Some(&record?.report.final_message.as_ref()?.text)
}

/// How long a task has been running; `None` before its start.
pub fn elapsed_seconds(task: &Task, now_ms: i64) -> Option<u64> {
    task.started_at_ms.map(|started_ms| seconds_since(started_ms, now_ms))
}

/// 0 if the clock was set back.
pub fn seconds_since(started_ms: i64, now_ms: i64) -> u64 {
    (now_ms - started_ms).max(0).unsigned_abs() / 1000
}

/// The thread of a task. A resuming task has it before its agent reports it.
pub fn thread(task: &Task) -> Option<&str> {
    task.thread_id.as_deref().or(task.resumed_thread.as_deref())
}

/// Failed and timed-out tasks always include the output, because it contains the reason.
pub fn includes_output(state: State, is_requested: bool) -> bool {
    is_requested || matches!(state, State::Failed | State::Timeout)
}

/// What a bug report says of a task: nothing that the user or the agent wrote, and no path.
pub fn report_of_task(task: &Task) -> Value {
    json!({
        "task_id": task.id.as_str(),
        "state": task.state.public_name(),
        "agent": task.agent,
        "mode": task.mode.name(),
        "sandbox": task.sandbox.map(SandboxKind::name),
        "model": task.model,
        "created": UtcTime::from_ms(task.created_at_ms),
        "started": task.started_at_ms.map(UtcTime::from_ms),
        "updated": UtcTime::from_ms(task.updated_at_ms),
        "starts": task.starts,
        "containment": task.containment,
        "has_survivors": task.ended.as_ref().is_some_and(|ended| !ended.survivors.is_empty()),
        "failure_kind": failure_kind(task),
    })
}

pub fn failure_counts(tasks: &[Task]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for kind in tasks.iter().filter_map(failure_kind) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn failure_kind(task: &Task) -> Option<&'static str> {
    match task.ended.as_ref()?.end {
        TaskEnd::Failed { kind, .. } => Some(kind.name()),
        _ => None,
    }
}
