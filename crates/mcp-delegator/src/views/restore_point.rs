//! A restore point in our JSON: what was kept before a task, and the words that bring it back.

use delegator_domain::task::TaskId;
use delegator_engine::{KeptPoint, PointProblem};
use serde_json::{Value, json};

use crate::outcome::Warning;

/// Files an answer names; the count says how many there are.
const MOST_NAMED: usize = 100;

pub fn command(task: &TaskId) -> String {
    delegator_engine::restore_command(task)
}

/// `data.restore_point`; `None` where nothing was kept.
pub fn told(task: &TaskId, kept: Option<&KeptPoint>) -> Option<Value> {
    let point = kept?.points.first()?;
    let left_out: Vec<Value> = point
        .left_out
        .iter()
        .take(MOST_NAMED)
        .map(|file| json!({"path": file.path, "reason": file.reason, "bytes": file.bytes}))
        .collect();
    Some(json!({
        "ref": point.reference,
        "head": point.head,
        "branch": point.branch,
        "dirty": point.is_dirty(),
        "staged": point.staged,
        "modified_count": point.modified,
        "untracked_count": point.untracked,
        "left_out": left_out,
        "left_out_count": point.left_out.len(),
        "work_tree": point.top_level.display().to_string(),
        "restore_command": command(task),
    }))
}

/// What a caller should know of it.
pub fn warnings(kept: Option<&KeptPoint>) -> Vec<Warning> {
    let Some(kept) = kept else { return Vec::new() };
    let mut told = Vec::new();
    for PointProblem { path, problem } in &kept.problems {
        let place = match path.as_os_str().is_empty() {
            true => String::new(),
            false => format!(" of {}", path.display()),
        };
        let words = format!("no restore point{place} was kept before the task: {problem}");
        told.push(Warning::new("W_GIT_001", words));
    }
    let left_out: usize = kept.points.iter().map(|point| point.left_out.len()).sum();
    if left_out > 0 {
        let words = format!("{left_out} files are not in the restore point; see left_out");
        told.push(Warning::new("W_GIT_002", words));
    }
    if kept.points.iter().any(|point| point.index_tree.is_none()) {
        let words = "the index had conflicts before the task; the restore point holds the files alone";
        told.push(Warning::new("W_GIT_003", words));
    }
    told
}
