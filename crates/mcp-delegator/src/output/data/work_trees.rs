//! The restore point and the worktree of a task in our JSON, with the commands that use them.

use delegator_domain::task::FailureKind;
use delegator_engine::{
    LeftOut, PointProblem, RecordedWorktree, RestorePoint, RestorePointRecord, WorktreeState,
};

use crate::output::prelude::*;

/// Files that are listed; the count includes all.
const MAX_LISTED_FILES: usize = 100;

/// The restore point of the working directory, with those of other work trees.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskRestorePoints {
    #[serde(flatten)]
    pub point: PointData,
    /// Shows what a restore would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_command: Option<String>,
    /// The same for a person: shows what would be reverted, and asks.
    #[serde(skip)]
    pub undo_command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_work_trees: Vec<PointData>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PointData {
    #[serde(rename = "ref")]
    pub reference: String,
    pub head: Option<String>,
    pub branch: Option<String>,
    pub is_dirty: bool,
    pub has_staged_changes: bool,
    pub modified_count: usize,
    pub untracked_count: usize,
    /// Files that it does not contain, with the reason.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub left_out: Vec<LeftOut>,
    pub left_out_count: usize,
    pub work_tree: String,
}

/// `None` if there is none.
pub fn of_task(task: &Task, record: Option<&RestorePointRecord>) -> Option<TaskRestorePoints> {
    let record = record?;
    let (first, others) = record.points.split_first()?;
    let restores_all = has_no_end_state(task);
    let restore_command = is_stored(record)
        .then(|| delegator_engine::restore_command(&task.id) + if restores_all { " --all" } else { "" });
    let undo_command = match &restore_command {
        Some(_) if !restores_all => Some(format!("mcp-delegator undo {}", task.id)),
        other => other.clone(),
    };
    Some(TaskRestorePoints {
        point: PointData::of(record, first),
        restore_command,
        undo_command,
        other_work_trees: others.iter().map(|point| PointData::of(record, point)).collect(),
    })
}

/// The command that shows what the task changed, if there is a diff of it.
pub fn diff_command(task: &Task, record: Option<&RestorePointRecord>) -> Option<String> {
    let is_comparable = record.is_some_and(is_stored) && !has_no_end_state(task);
    (task.worktree.is_some() || is_comparable).then(|| format!("mcp-delegator diff {}", task.id))
}

fn is_stored(record: &RestorePointRecord) -> bool {
    record.gone.len() < record.points.len()
}

/// Without the state after the task, only the whole work tree can be restored.
fn has_no_end_state(task: &Task) -> bool {
    let end = task.ended.as_ref().map(|ended| &ended.end);
    matches!(end, Some(TaskEnd::Failed { kind: FailureKind::SupervisorLost, .. }))
}

impl PointData {
    fn of(record: &RestorePointRecord, point: &RestorePoint) -> PointData {
        let left_out = files_left_out(record, point);
        PointData {
            reference: point.reference.clone(),
            head: point.head.clone(),
            branch: point.branch.clone(),
            is_dirty: point.is_dirty(),
            has_staged_changes: point.staged,
            modified_count: point.modified,
            untracked_count: point.untracked,
            left_out: left_out.iter().take(MAX_LISTED_FILES).copied().cloned().collect(),
            left_out_count: left_out.len(),
            work_tree: point.top_level.display().to_string(),
        }
    }
}

/// The files that a restore point does not contain. A nested repository with its own restore point does not
/// count.
fn files_left_out<'a>(record: &RestorePointRecord, point: &'a RestorePoint) -> Vec<&'a LeftOut> {
    let has_own_point = |file: &LeftOut| {
        let path = point.top_level.join(&file.path);
        record.points.iter().any(|other| other.top_level == path)
    };
    point.left_out.iter().filter(|file| !has_own_point(file)).collect()
}

pub fn warnings(record: Option<&RestorePointRecord>) -> Vec<Warning> {
    let Some(record) = record else { return Vec::new() };
    let mut warnings = Vec::new();
    for PointProblem { path, problem } in &record.problems {
        let message = "no restore point was created before the task; its changes there cannot be restored";
        let mut warning = Warning::new(WarningCode::NoRestorePoint, message);
        if !path.as_os_str().is_empty() {
            warning = warning.fact("path", path.display().to_string());
        }
        warnings.push(warning.fact("problem", problem.as_str()));
    }
    for path in &record.gone {
        let message =
            "the restore point was deleted after it was created; the changes there cannot be restored";
        let path = path.display().to_string();
        warnings.push(Warning::new(WarningCode::RestorePointGone, message).fact("path", path));
    }
    let left_out: usize = record.points.iter().map(|point| files_left_out(record, point).len()).sum();
    if left_out > 0 {
        let message = match left_out {
            1 => "1 file or directory is not in the restore point; see left_out".to_owned(),
            _ => format!("{left_out} files or directories are not in the restore point; see left_out"),
        };
        warnings.push(Warning::new(WarningCode::NotInRestorePoint, message));
    }
    if record.points.iter().any(|point| point.is_partial) {
        let message = "there were too many directories or unusual permissions to record all of them";
        warnings.push(Warning::new(WarningCode::PartialRestorePoint, message));
    }
    warnings
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorktreeData {
    /// The directory in which an isolated task works.
    #[schemars(extend("x-optional" = true))]
    pub worktree: String,
    #[schemars(extend("enum" = WorktreeState::NAMES, "x-optional" = true))]
    pub worktree_state: &'static str,
    /// Takes the changes, while the worktree exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_command: Option<String>,
    /// The task for which it was created.
    #[serde(skip)]
    pub owner: String,
}

impl WorktreeData {
    pub fn is_present(&self) -> bool {
        self.worktree_state == WorktreeState::Present.name()
    }
}

impl From<&RecordedWorktree> for WorktreeData {
    fn from(worktree: &RecordedWorktree) -> WorktreeData {
        let is_present = worktree.state == WorktreeState::Present;
        WorktreeData {
            worktree: worktree.path.display().to_string(),
            worktree_state: worktree.state.name(),
            owner: worktree.owner.to_string(),
            apply_command: is_present.then(|| format!("mcp-delegator apply {}", worktree.owner)),
        }
    }
}
