//! A restore point in our JSON: what was kept before a task, and the words that bring it back.

use delegator_domain::task::TaskId;
use delegator_engine::{LeftOut, PointProblem, RestorePoint, RestorePointRecord};
use serde_json::{Value, json};

use crate::outcome::Warning;

/// Files an answer names; the count says how many there are.
const MAX_LISTED_FILES: usize = 100;

pub fn command(task: &TaskId) -> String {
    delegator_engine::restore_command(task)
}

/// `data.restore_point`: that of the working directory, with those of other work trees in `other_work_trees`. `None`
/// where nothing was kept.
pub fn to_json(task: &TaskId, kept: Option<&RestorePointRecord>) -> Option<Value> {
    let kept = kept?;
    let (first, others) = kept.points.split_first()?;
    let mut value = point_fields(kept, first);
    if kept.gone.len() < kept.points.len() {
        value["restore_command"] = command(task).into();
    }
    if !others.is_empty() {
        value["other_work_trees"] = others.iter().map(|point| point_fields(kept, point)).collect();
    }
    Some(value)
}

fn point_fields(kept: &RestorePointRecord, point: &RestorePoint) -> Value {
    let left_out = files_left_out(kept, point);
    let listed = left_out.iter().take(MAX_LISTED_FILES);
    let listed = listed.map(|file| json!({"path": file.path, "reason": file.reason, "bytes": file.bytes}));
    json!({
        "ref": point.reference,
        "head": point.head,
        "branch": point.branch,
        "dirty": point.is_dirty(),
        "staged": point.staged,
        "modified_count": point.modified,
        "untracked_count": point.untracked,
        "left_out": listed.collect::<Vec<Value>>(),
        "left_out_count": left_out.len(),
        "work_tree": point.top_level.display().to_string(),
    })
}

/// What a restore point does not hold. A repository inside its work tree that has a restore point of its own is not left out.
fn files_left_out<'a>(kept: &RestorePointRecord, point: &'a RestorePoint) -> Vec<&'a LeftOut> {
    let has_its_own = |file: &LeftOut| {
        let path = point.top_level.join(&file.path);
        kept.points.iter().any(|other| other.top_level == path)
    };
    point.left_out.iter().filter(|file| !has_its_own(file)).collect()
}

/// What a caller should know of it.
pub fn warnings(kept: Option<&RestorePointRecord>) -> Vec<Warning> {
    let Some(kept) = kept else { return Vec::new() };
    let mut value = Vec::new();
    for PointProblem { path, problem } in &kept.problems {
        let message = "no restore point was created before the task; its changes there cannot be restored";
        let mut warning = Warning::new("W_GIT_001", message);
        if !path.as_os_str().is_empty() {
            warning.context.insert("path".to_owned(), path.display().to_string().into());
        }
        warning.context.insert("problem".to_owned(), problem.clone().into());
        value.push(warning);
    }
    for path in &kept.gone {
        let message =
            "the restore point was deleted after it was created; the changes there cannot be restored";
        let mut warning = Warning::new("W_GIT_005", message);
        warning.context.insert("path".to_owned(), path.display().to_string().into());
        value.push(warning);
    }
    let left_out: usize = kept.points.iter().map(|point| files_left_out(kept, point).len()).sum();
    if left_out > 0 {
        let words = format!("{left_out} files or directories are not in the restore point; see left_out");
        value.push(Warning::new("W_GIT_002", words));
    }
    if kept.points.iter().any(|point| point.is_partial) {
        let words = "there were too many directories or unusual permissions to record all of them";
        value.push(Warning::new("W_GIT_004", words));
    }
    value
}
