//! `cloud apply`: apply the changes of a cloud task to a work tree here.

use delegator_engine::{
    AppliedFile, ChangeKind, DiffApplication, DiffOmissions, Recovery, display_path, restore_command,
};

use crate::commands::cloud::{AttemptInput, stored_diff};
use crate::commands::prelude::*;
use crate::error::engine::directory_problem;
use crate::error::work_trees::ConflictContext;
use crate::output::data::diff::{OmissionsData, omission_warnings};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Apply {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Directory in the work tree (default: the current directory)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path]))]
    pub working_dir: Option<PathBuf>,
    #[serde(flatten)]
    pub attempt: AttemptInput,
    /// Report what would change; change nothing
    #[serde(default)]
    pub dry_run: bool,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct AppliedDiff {
    pub task_id: String,
    pub dry_run: bool,
    pub is_applied: bool,
    /// The result in one sentence.
    pub summary: String,
    pub files: Vec<ChangedFile>,
    /// Files that already are as the task made them.
    pub already_applied_files: Vec<String>,
    /// Files that cannot be changed; only of a dry run, else they are an error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictContext>,
    #[serde(flatten)]
    pub omissions: OmissionsData,
    /// The commit with the changes, if one was made.
    pub commit: Option<String>,
    /// The branch that was created instead of changing the work tree.
    pub branch: Option<String>,
    pub is_worktree_removed: Option<bool>,
    /// The group of an attempt, and what became of its other attempts.
    #[serde(flatten)]
    #[serialize_always]
    pub group: Option<AppliedAttempt>,
    /// The command that shows how to revert this.
    pub restore_command: Option<String>,
}

/// The attempt of a group that was, or would be, applied.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AppliedAttempt {
    pub group_id: String,
    pub attempt: u8,
    /// Why this attempt, if it was not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation_reason: Option<String>,
    /// The other attempts whose worktrees were removed; their diffs are stored.
    pub discarded_task_ids: Vec<String>,
}

/// A file that was, or would be, changed; relative to the top of the work tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedFile {
    pub path: String,
    #[schemars(extend("enum" = ["modified", "added", "deleted", "renamed"]))]
    pub change: &'static str,
    /// The former path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The file had other changes, which were retained.
    pub is_merged: bool,
}

impl ChangedFile {
    fn of(file: &AppliedFile) -> ChangedFile {
        let (change, from) = match &file.change {
            ChangeKind::Modified => ("modified", None),
            ChangeKind::Added => ("added", None),
            ChangeKind::Deleted => ("deleted", None),
            ChangeKind::Renamed { from } => ("renamed", Some(display_path(from))),
        };
        ChangedFile { path: display_path(&file.path), change, from, is_merged: file.merged }
    }
}

pub const BRANCH_CREATED: &str = "branch_created";
pub const APPLY_PLANNED: &str = "apply_planned";
pub const NOTHING_TO_APPLY: &str = "nothing_to_apply";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Merges three-way: your own changes of other lines stay. If one file has a conflict, nothing is changed and \
              all conflicts are named. The changes are not staged or committed. The state before is saved, so that \
              restore reverts them.",
    shape: Shape::Action("diff_applied"),
    other_actions: &[APPLY_PLANNED, NOTHING_TO_APPLY],
    network: true,
    failures: &[ErrorCode::NotReady, ErrorCode::WrongState, ErrorCode::Unsupported],
    examples: &[
        example("mcp-delegator cloud apply T-cloud-… --dry-run", "what would change here"),
        example("mcp-delegator cloud apply T-cloud-…", "the changes, in this work tree"),
    ],
    ..CommandSpec::new::<Apply, AppliedDiff>(
        &["cloud", "apply"],
        "Apply the changes of a cloud task to your work tree",
    )
};

pub fn run(context: &Context<'_>, input: Apply) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let task = engine.results().task(&resolve_task(&engine, &input.task.task_id)?)?;
    if task.remote.is_none() {
        let message = "A task of this machine is not applied by this command.";
        return Err(AppError::new(ErrorCode::Unsupported, message)
            .context("task_id", task.id.as_str())
            .suggest("Run 'mcp-delegator apply' for a task in a worktree; another one has changed its directory itself."));
    }
    let (directory, attempt) = (input.working_dir, input.attempt.number());
    let (data, warnings) = apply_remote(context, &engine, &ended(task)?, attempt, directory, input.dry_run)?;
    Ok(data.into_output(warnings))
}

pub fn apply_remote(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    attempt: u8,
    working_dir: Option<PathBuf>,
    dry_run: bool,
) -> Result<(AppliedDiff, Vec<Warning>), AppError> {
    let (diff, omissions) = stored_diff(engine, task, attempt)?;
    if let (true, Some(warning)) = (diff.is_empty(), omission_warnings(&omissions).first()) {
        let message = format!("There is nothing to apply: {}.", warning.message);
        return Err(AppError::new(ErrorCode::WrongState, message).context("task_id", task.id.as_str()));
    }
    let directory = given_directory(context, working_dir.unwrap_or_default())?;
    let applied = engine.changes().apply_diff(&task.id, &diff, &directory, &variables(context), dry_run)?;
    let warnings = omission_warnings(&omissions).into_iter();
    let warnings = warnings.chain(applied.recovery.as_ref().map(recovery_warning)).collect();
    Ok((AppliedDiff::of(&task.id, &applied, &omissions, dry_run), warnings))
}

pub fn given_directory(context: &Context<'_>, given: PathBuf) -> Result<PathBuf, AppError> {
    let given = context.process.current_dir.join(given);
    let roots = &context.config.settings.allowed_roots;
    let refuse = |problem| directory_problem("working_dir", &given, &problem);
    Ok(delegator_engine::resolve_allowed_dir(&given, roots).map_err(refuse)?)
}

impl AppliedDiff {
    pub fn of(
        id: &TaskId,
        applied: &DiffApplication,
        omissions: &DiffOmissions,
        dry_run: bool,
    ) -> AppliedDiff {
        let report = &applied.report;
        AppliedDiff {
            task_id: id.to_string(),
            dry_run,
            is_applied: applied.point.is_some(),
            summary: summary(applied, omissions, dry_run),
            files: report.files.iter().map(ChangedFile::of).collect(),
            already_applied_files: report.already_applied.iter().map(|path| display_path(path)).collect(),
            conflicts: report.conflicts.iter().map(ConflictContext::of).collect(),
            omissions: OmissionsData::of(omissions),
            commit: applied.commit.clone(),
            restore_command: applied.point.as_ref().map(|_| restore_command(id)),
            ..AppliedDiff::default()
        }
    }

    pub fn into_output(self, warnings: Vec<Warning>) -> CommandOutput {
        let shape = match (self.dry_run, self.is_applied) {
            _ if self.branch.is_some() => Some(Shape::Action(BRANCH_CREATED)),
            (true, _) => Some(Shape::Action(APPLY_PLANNED)),
            (false, false) if self.commit.is_none() => Some(Shape::Action(NOTHING_TO_APPLY)),
            (false, _) => None,
        };
        let (message, dry_run) = (Some(self.summary.clone()), self.dry_run);
        CommandOutput { message, shape, warnings, ..CommandOutput::done(self).fact("dry_run", dry_run) }
    }
}

fn summary(applied: &DiffApplication, omissions: &DiffOmissions, dry_run: bool) -> String {
    let changed = plural(applied.report.files.len(), "file");
    let short = applied.commit.as_ref().map(|id| &id[..id.len().min(12)]);
    match (applied.report.files.len(), short) {
        _ if !applied.report.conflicts.is_empty() => {
            let conflicting = plural(applied.report.conflicts.len(), "file");
            format!("{conflicting} in conflict, so nothing would change")
        }
        (0, None) if omissions.left_out_count > 0 => {
            "Nothing to apply: the changes are not in the diff".to_owned()
        }
        (0, None) => "The changes are here already".to_owned(),
        (0, Some(commit)) => format!("The changes are here already, committed as {commit}"),
        (_, None) if dry_run => format!("{changed} would change"),
        (_, None) => format!("{changed} changed"),
        (_, Some(commit)) => format!("{changed} changed and committed as {commit}"),
    }
}

pub fn recovery_warning(recovery: &Recovery) -> Warning {
    let operation = recovery.operation;
    let message = match (recovery.is_completed, recovery.edited.is_empty()) {
        (true, _) => format!("an earlier {operation} here was interrupted; it was completed first"),
        (false, true) => format!("an earlier {operation} here was interrupted; it was taken back first"),
        (false, false) => format!(
            "an earlier {operation} here was interrupted; it was taken back first, except in files that were edited since and \
             stay as they are: {}",
            recovery.edited.join(", ")
        ),
    };
    Warning::new(WarningCode::WriteCompleted, message)
}

impl CommandData for AppliedDiff {
    fn document(&self) -> Document {
        let file = |file: &ChangedFile| vec![file.change.to_owned(), file.path.clone()];
        let conflict = |conflict: &ConflictContext| vec![conflict.path.clone(), conflict.reason.clone()];
        let mut document =
            Document::titled(&self.summary).table(&["change", "file"], self.files.iter().map(file).collect());
        if let Some(AppliedAttempt { group_id, attempt, recommendation_reason, discarded_task_ids }) =
            &self.group
        {
            let reason = recommendation_reason.as_ref().map(|reason| format!(", because {reason}"));
            let reason = reason.unwrap_or_default();
            document = document.text(format!("Attempt {attempt} of {group_id}{reason}."));
            if !discarded_task_ids.is_empty() {
                let discarded = discarded_task_ids.join(", ");
                document = document.text(format!("Discarded: {discarded}."));
            }
        }
        document = document.table(&["file", "conflict"], self.conflicts.iter().map(conflict).collect());
        if let (Some(commit), None) = (&self.commit, &self.branch) {
            document = document.text(format!("Committed as {commit}."));
        }
        match &self.restore_command {
            Some(_) => document.text(format!("Undo it: mcp-delegator undo {}", self.task_id)),
            None => document,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn renamed_files_have_both_paths() {
        let change = ChangeKind::Renamed { from: b"old".to_vec() };
        let file = ChangedFile::of(&AppliedFile { path: b"new".to_vec(), change, merged: true });
        assert_eq!(
            json!(file),
            json!({"path": "new", "change": "renamed", "from": "old", "is_merged": true})
        );
    }
}
