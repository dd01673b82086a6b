//! Output of `restore`: JSON data, message, warnings and document.

use delegator_engine::{
    DroppedPoint, HeadTarget, KeepReason, ListedPoint, RestoreChanges, RestoreReport, RestoreRequest,
    RestoredTree,
};
use jiff::Timestamp;

use crate::commands::cloud::apply::recovery_warning;
use crate::commands::prelude::*;
use crate::output::data::batch::BatchResult;
use crate::output::documents::document::table;
use crate::output::values::rfc3339;

#[serde_with::skip_serializing_none]
#[serde_with::apply(Vec => #[serde(skip_serializing_if = "Vec::is_empty")])]
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct RestoreOutput {
    pub task_id: Option<String>,
    /// Something was changed
    pub is_restored: bool,
    pub dry_run: bool,
    /// The work tree of the task's working directory
    #[serde(flatten)]
    #[serialize_always]
    pub tree: Option<TreeOutput>,
    /// Further work trees the task could write to
    pub other_work_trees: Vec<TreeOutput>,
    /// Work trees that could not be restored, because their repository or restore point is gone
    pub unavailable_work_trees: Vec<UnavailableTree>,
    /// Files of git's own settings restored or removed: configuration, hooks, attributes
    pub git_settings: Vec<String>,
    /// Shows what reverting the restore would change
    pub undo_command: Option<String>,
    /// With drop: the restore points that were deleted, or would be with dry_run
    pub dropped: Option<Vec<PointOutput>>,
    /// With list: the restore points of the repository
    pub restore_points: Option<Vec<PointOutput>>,
    /// One item per work tree, if some could not be restored
    #[serde(flatten)]
    #[serialize_always]
    pub batch: Option<BatchResult>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct UnavailableTree {
    pub work_tree: String,
    pub problem: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct TreeOutput {
    /// The restore point that was used
    pub restore_point: String,
    pub work_tree: String,
    /// Files restored
    pub written: Vec<String>,
    /// Those of them that retain later edits
    pub merged: Vec<String>,
    /// Files removed because they did not exist before
    pub removed: Vec<String>,
    /// Files and directories of which only the permissions were restored
    pub modes_restored: Vec<String>,
    pub directories_created: Vec<String>,
    /// Empty directories removed because they did not exist before
    pub directories_removed: Vec<String>,
    /// Files that differ and were left unchanged
    #[serde(rename = "kept")]
    pub unchanged: Vec<FileReason>,
    /// Those of the restored and removed files that may hold edits of the user; missing if that is not known, because the
    /// state after the task is not stored
    #[serde(skip_serializing_if = "Option::is_none")]
    pub possible_user_edits: Option<Vec<FileReason>>,
    pub is_index_restored: bool,
    /// HEAD or its branch has moved since the restore point
    pub has_head_moved: bool,
    pub is_head_restored: bool,
    /// The state before the restore
    #[schemars(extend("x-optional" = true))]
    pub undo_point: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct FileReason {
    pub path: String,
    pub reason: String,
}

impl FileReason {
    fn list(files: Vec<(String, impl ToString)>) -> Vec<FileReason> {
        let reason = |(path, reason): (String, _)| FileReason { path, reason: ToString::to_string(&reason) };
        files.into_iter().map(reason).collect()
    }

    fn rows(files: &[FileReason]) -> Vec<Vec<String>> {
        files.iter().map(|file| vec![file.path.clone(), file.reason.clone()]).collect()
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct PointOutput {
    pub task_id: String,
    pub restore_point: String,
    /// Saved before a restore, not before the task
    pub is_undo: bool,
    pub work_tree: String,
    pub created_at: Option<String>,
    pub has_staged_changes: bool,
    pub modified_count: usize,
    pub untracked_count: usize,
    pub left_out_count: usize,
    /// Bytes on disk
    pub bytes: u64,
    /// No branch, tag or remote-tracking ref contains all of its content
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_only_copy: Option<bool>,
}

impl RestoreOutput {
    pub(super) fn incomplete(task: &TaskId, changes: RestoreChanges, batch: BatchResult) -> RestoreOutput {
        RestoreOutput {
            task_id: Some(task.to_string()),
            is_restored: changes != RestoreChanges::None,
            undo_command: undo_command(task, changes),
            batch: Some(batch),
            ..RestoreOutput::default()
        }
    }

    pub(super) fn restored(
        task: &TaskId,
        report: RestoreReport,
        dry_run: bool,
        batch: Option<BatchResult>,
    ) -> RestoreOutput {
        let changes = match RestoreChanges::of_trees(&report.trees) {
            RestoreChanges::None if !dry_run && !report.settings.is_empty() => RestoreChanges::Files,
            changes => changes,
        };
        let unavailable = report
            .unavailable
            .into_iter()
            .map(|(path, problem)| UnavailableTree { work_tree: path.display().to_string(), problem });
        let mut trees = report.trees.into_iter().map(TreeOutput::of);
        RestoreOutput {
            task_id: Some(task.to_string()),
            is_restored: changes != RestoreChanges::None,
            dry_run,
            tree: trees.next(),
            other_work_trees: trees.collect(),
            unavailable_work_trees: unavailable.collect(),
            git_settings: report.settings.iter().map(|path| path.display().to_string()).collect(),
            undo_command: undo_command(task, changes),
            batch,
            ..RestoreOutput::default()
        }
    }

    pub(super) fn dropped(task: &TaskId, points: Vec<DroppedPoint>, dry_run: bool) -> RestoreOutput {
        let output = |dropped: DroppedPoint| PointOutput {
            is_only_copy: Some(dropped.is_only_copy),
            is_undo: dropped.is_undo,
            ..PointOutput::of(task.to_string(), &dropped.point, dropped.bytes)
        };
        RestoreOutput {
            task_id: Some(task.to_string()),
            dry_run,
            dropped: Some(points.into_iter().map(output).collect()),
            ..RestoreOutput::default()
        }
    }

    pub(super) fn listed(points: Vec<ListedPoint>) -> RestoreOutput {
        let output = |listed: ListedPoint| PointOutput {
            is_undo: listed.is_undo,
            ..PointOutput::of(listed.task, &listed.point, listed.bytes)
        };
        let restore_points = Some(points.into_iter().map(output).collect());
        RestoreOutput { restore_points, ..RestoreOutput::default() }
    }
}

impl TreeOutput {
    fn of(restored: RestoredTree) -> TreeOutput {
        let RestoredTree { plan, point, undo, head_restored } = restored;
        TreeOutput {
            restore_point: point.reference,
            work_tree: point.top_level.display().to_string(),
            written: plan.write,
            merged: plan.merged,
            removed: plan.remove,
            modes_restored: plan.modes,
            directories_created: plan.make_directories,
            directories_removed: plan.remove_directories,
            unchanged: FileReason::list(plan.keep),
            possible_user_edits: plan.possible_edits.map(FileReason::list),
            is_index_restored: plan.index_differs,
            has_head_moved: plan.head_target != HeadTarget::Unchanged,
            is_head_restored: head_restored,
            undo_point: undo.map(|undo| undo.reference),
        }
    }
}

impl PointOutput {
    fn of(task_id: String, point: &delegator_engine::RestorePoint, bytes: u64) -> PointOutput {
        let created_at = Timestamp::from_second(point.created_at).ok().filter(|_| point.created_at > 0);
        PointOutput {
            task_id,
            restore_point: point.reference.clone(),
            is_undo: false,
            work_tree: point.top_level.display().to_string(),
            created_at: created_at.map(rfc3339),
            has_staged_changes: point.staged,
            modified_count: point.modified,
            untracked_count: point.untracked,
            left_out_count: point.left_out.len(),
            bytes,
            is_only_copy: None,
        }
    }
}

fn undo_command(task: &TaskId, changes: RestoreChanges) -> Option<String> {
    let force = match changes {
        RestoreChanges::None => return None,
        RestoreChanges::Files => "",
        RestoreChanges::FilesAndHead => " --force",
    };
    Some(format!("{} --undo{force}", delegator_engine::restore_command(task)))
}

fn is_later(reason: KeepReason) -> bool {
    matches!(reason, KeepReason::ChangedLater | KeepReason::ChangedAfterRestore)
}

pub(super) fn summary_sentence(report: &RestoreReport, dry_run: bool) -> String {
    let sentence = trees_sentence(&report.trees, dry_run);
    match (report.settings.len(), dry_run) {
        (0, _) => sentence,
        (count, false) => format!("{sentence}; git settings restored: {count}"),
        (count, true) => format!("{sentence}; git settings that would be restored: {count}"),
    }
}

fn trees_sentence(trees: &[RestoredTree], dry_run: bool) -> String {
    let count = |list: fn(&RestoredTree) -> usize| trees.iter().map(list).sum::<usize>();
    let written = count(|tree| tree.plan.write.len() + tree.plan.modes.len());
    let removed = count(|tree| tree.plan.remove.len());
    let is_later = |(_, reason): &&(String, KeepReason)| is_later(*reason);
    let later: usize = trees.iter().map(|tree| tree.plan.keep.iter().filter(is_later).count()).sum();
    let sentence = if trees.iter().any(|tree| tree.undo.is_some()) {
        format!("{written} files restored, {removed} removed")
    } else if dry_run && trees.iter().any(|tree| !tree.plan.is_empty() || tree.head_restored) {
        format!("{written} files would be restored, {removed} would be removed")
    } else if dry_run {
        "Nothing to restore; nothing would be changed".to_owned()
    } else {
        "Nothing to restore; nothing was changed".to_owned()
    };
    match later {
        0 => sentence,
        1 => format!("{sentence}; 1 file changed later stays"),
        later => format!("{sentence}; {later} files changed later stay"),
    }
}

/// If nothing is restored because nothing attributes the files that differ to the agent: what would revert
/// them.
pub(super) fn unattributed_sentence(report: &RestoreReport) -> Option<String> {
    let is_unchanged = report.settings.is_empty()
        && report.trees.iter().all(|tree| tree.plan.is_empty() && !tree.head_restored);
    let retained = report.trees.iter().flat_map(|tree| &tree.plan.keep);
    match retained.filter(|(_, reason)| *reason == KeepReason::NotByAgent).count() {
        0 => None,
        1 => Some("1 file is not attributed to the agent; --all reverts it".to_owned()),
        count => Some(format!("{count} files are not attributed to the agent; --all reverts them")),
    }
    .filter(|_| is_unchanged)
    .map(|reason| format!("Nothing restored: {reason}"))
}

pub(super) fn warnings(report: &RestoreReport, request: RestoreRequest) -> Vec<Warning> {
    let changer = if request.undo { "restore" } else { "task" };
    let mut warnings: Vec<Warning> =
        report.trees.iter().flat_map(|tree| tree_warnings(tree, changer)).collect();
    warnings.extend(report.recovered.iter().map(recovery_warning));
    if !report.unavailable.is_empty() {
        let message =
            format!("{} work trees cannot be restored; see unavailable_work_trees", report.unavailable.len());
        warnings.push(Warning::new(WarningCode::WorkTreesNotRestored, message));
    }
    warnings
}

/// `changer`: what is reverted, the task or a restore of it.
fn tree_warnings(restored: &RestoredTree, changer: &str) -> Vec<Warning> {
    let (plan, point) = (&restored.plan, &restored.point);
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning::new(code, message));
    let how_to_move = match plan.head_target {
        HeadTarget::Unchanged => None,
        HeadTarget::Moves => {
            Some("--force moves it back, which takes commits made since then off the branch")
        }
        HeadTarget::Overlaps => Some("it was moved again since; only --force with --all moves it back"),
        HeadTarget::NotByAgent => {
            Some("nothing attributes the move to the agent; only --force with --all moves it back")
        }
    };
    if let Some(how_to_move) = how_to_move.filter(|_| !restored.head_restored) {
        let name = |head: &Option<String>, branch: &Option<String>| {
            let commit = head.as_deref().map_or("no commit", |id| &id[..id.len().min(12)]).to_owned();
            format!("{} at {commit}", branch.as_deref().unwrap_or("detached HEAD"))
        };
        let (before, now) = (name(&point.head, &point.branch), name(&plan.head.commit, &plan.head.branch));
        let message =
            format!("HEAD stays where it is ({now}; before the {changer}: {before}); {how_to_move}");
        warn(WarningCode::HeadStays, message);
    }
    if !plan.in_progress.is_empty() {
        let message =
            format!("a git operation is in progress and stays in progress: {}", plan.in_progress.join(", "));
        warn(WarningCode::OperationInProgress, message);
    }
    let is_problem = |(_, reason): &&(String, KeepReason)| !is_later(*reason);
    let unchanged = plan.keep.iter().filter(is_problem).count();
    if unchanged > 0 {
        let paths = if unchanged == 1 { "path that differs was" } else { "paths that differ were" };
        warn(WarningCode::PathsUnchanged, format!("{unchanged} {paths} left unchanged; see kept"));
    }
    let ended_operations = point.under_way.iter().filter(|name| !plan.in_progress.contains(&name.as_str()));
    let ended_operations: Vec<&str> = ended_operations.map(String::as_str).collect();
    if !ended_operations.is_empty() {
        let message = format!(
            "a git operation was in progress before the {changer} ({}); files and index are restored, \
             but the operation itself is not",
            ended_operations.join(", ")
        );
        warn(WarningCode::OperationNotRestored, message);
    }
    if point.is_partial {
        let message = format!(
            "there were too many directories or unusual permissions to record all of them; directories that \
             the {changer} created may remain"
        );
        warn(WarningCode::DirectoriesMayRemain, message);
    }
    warnings.extend(possible_edits_warning(restored, changer));
    warnings
}

fn possible_edits_warning(restored: &RestoredTree, changer: &str) -> Option<Warning> {
    let plan = &restored.plan;
    if plan.write.is_empty() && plan.remove.is_empty() {
        return None;
    }
    let verb = if restored.undo.is_some() { "may have held" } else { "may hold" };
    let Some(edits) = &plan.possible_edits else {
        let message = format!(
            "the state after the {changer} is not stored or cannot be read, so any restored or removed file {verb} your own \
             edits"
        );
        return Some(Warning::new(WarningCode::EndStateUnknown, message));
    };
    let files = if edits.len() == 1 { "file" } else { "files" };
    let message =
        format!("{} restored or removed {files} {verb} your own edits; see possible_user_edits", edits.len());
    (!edits.is_empty()).then(|| Warning::new(WarningCode::PossibleUserEdits, message))
}

impl CommandData for RestoreOutput {
    fn document(&self) -> Document {
        let dropped =
            if self.dry_run { "Restore points that would be deleted" } else { "Restore points deleted" };
        for (points, title) in [(&self.dropped, dropped), (&self.restore_points, "Restore points")] {
            if let Some(points) = points {
                let none = || Block::Text("This repository has no restore points.".to_owned());
                return Document::titled(title).block(points_table(points).unwrap_or_else(none));
            }
        }
        let title = match (self.is_restored, self.dry_run) {
            // A restore that fails midway has no report of its work trees.
            _ if self.batch.is_some() && self.tree.is_none() => "Restore failed",
            (true, _) => "Restored",
            (false, true) => "What a restore would do",
            (false, false) => "Nothing to restore",
        };
        let mut document = Document::titled(title);
        if !self.git_settings.is_empty() {
            let would = if self.dry_run { "that would be " } else { "" };
            document = document
                .text(format!("Settings of git {would}restored:"))
                .block(Block::Verbatim(self.git_settings.join("\n")));
        }
        document = self.add_work_tree(document, self.tree.as_ref(), true);
        for tree in &self.other_work_trees {
            document = self.add_work_tree(document, Some(tree), false);
        }
        if self.dry_run && self.changes_anything() {
            let text = "Nothing was changed. To restore, give --confirm-destructive (confirm_destructive: true) instead of \
                        --dry-run.";
            document = document.text(text);
        }
        document
    }
}

impl RestoreOutput {
    fn changes_anything(&self) -> bool {
        !self.git_settings.is_empty()
            || self.tree.iter().chain(&self.other_work_trees).any(TreeOutput::is_changed)
    }

    /// `is_first`: the work tree of the task's working directory, which the facts about the whole restore
    /// precede.
    fn add_work_tree(&self, document: Document, tree: Option<&TreeOutput>, is_first: bool) -> Document {
        let label = |done: &'static str, planned: &'static str| if self.dry_run { planned } else { done };
        let text = |value: fn(&TreeOutput) -> String| tree.map(value);
        let document = document.block(Block::facts([
            ("task id", self.task_id.clone().filter(|_| is_first)),
            ("restore point", text(|tree| tree.restore_point.clone())),
            ("work tree", text(|tree| tree.work_tree.clone())),
            (
                label("index restored", "index would be restored"),
                text(|tree| tree.is_index_restored.to_string()),
            ),
            ("head moved", text(|tree| tree.has_head_moved.to_string())),
            (
                label("head restored", "head would be restored"),
                text(|tree| tree.is_head_restored.to_string()),
            ),
            ("undo command", self.undo_command.clone().filter(|_| is_first)),
        ]));
        match tree {
            Some(tree) => tree.add_files(document, self.dry_run),
            None => document,
        }
    }
}

impl TreeOutput {
    fn is_changed(&self) -> bool {
        let lists = [
            &self.written,
            &self.removed,
            &self.modes_restored,
            &self.directories_created,
            &self.directories_removed,
        ];
        self.is_index_restored || self.is_head_restored || lists.iter().any(|paths| !paths.is_empty())
    }

    fn add_files(&self, mut document: Document, dry_run: bool) -> Document {
        let lists = [
            (&self.written, "Files", "restored"),
            (&self.merged, "Of these, files with later edits", "retained"),
            (&self.removed, "Files", "removed"),
            (&self.modes_restored, "Permissions", "restored"),
            (&self.directories_created, "Directories", "created"),
            (&self.directories_removed, "Directories", "removed"),
        ];
        let would = if dry_run { "that would be " } else { "" };
        for (paths, what, change) in lists.into_iter().filter(|(paths, ..)| !paths.is_empty()) {
            document =
                document.text(format!("{what} {would}{change}:")).block(Block::Verbatim(paths.join("\n")));
        }
        let (held, left) = if dry_run {
            ("may hold your own edits", "would be left unchanged")
        } else {
            ("may have held your own edits", "left unchanged")
        };
        let edits = self.possible_user_edits.as_deref().unwrap_or_default();
        document
            .table(&[held, "reason"], FileReason::rows(edits))
            .table(&[left, "reason"], FileReason::rows(&self.unchanged))
    }
}

fn points_table(points: &[PointOutput]) -> Option<Block> {
    let row = |point: &PointOutput| {
        let state = if point.is_undo { "before a restore" } else { "before the task" };
        vec![
            point.task_id.clone(),
            cell(point.is_only_copy.as_ref()),
            cell(point.created_at.as_ref()),
            state.to_owned(),
            point.work_tree.clone(),
            point.modified_count.to_string(),
            point.untracked_count.to_string(),
            point.bytes.to_string(),
        ]
    };
    let columns = ["task", "only copy", "created", "state", "work tree", "modified", "untracked", "bytes"];
    table(&columns, points.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{AppError, ErrorCode};
    use crate::output::batch::Batch;
    use crate::output::call_syntax::CallSyntax;

    fn failed(changes: RestoreChanges) -> RestoreOutput {
        let task = "T-local-0123456789".parse().unwrap();
        let mut batch = Batch::new(CallSyntax::Commands, false);
        batch.failed("/a", AppError::new(ErrorCode::IoError, "No space is left."));
        RestoreOutput::incomplete(&task, changes, batch.result())
    }

    #[test]
    fn a_failed_restore_is_never_described_as_without_differences() {
        let undo = " --dry-run --undo";
        let force = " --dry-run --undo --force";
        for (changes, ending) in [
            (RestoreChanges::None, None),
            (RestoreChanges::Files, Some(undo)),
            (RestoreChanges::FilesAndHead, Some(force)),
        ] {
            let output = failed(changes);
            assert_eq!(output.is_restored, ending.is_some(), "{changes:?}");
            let command = output.undo_command.as_deref();
            assert_eq!(command.map(|text| text.ends_with(ending.unwrap_or("?"))), ending.map(|_| true));
            assert_eq!(output.document().title.as_deref(), Some("Restore failed"), "{changes:?}");
        }
    }
}
