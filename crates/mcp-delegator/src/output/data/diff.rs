//! The diff of a task in our JSON, files and hunks, and what it does not have, also as warnings.

use delegator_engine::{
    ChangeKind, DiffHunk, DiffOmissions, DiffSource, FileDiff, HunkRange, LeftOut, LeftOutReason, TaskDiff,
    display_path,
};

use crate::output::prelude::*;

/// Hunks with more bytes than this in all are not built: they would be truncated anyway.
const MAX_HUNK_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskDiffData {
    pub task_id: String,
    /// What is compared: `task`, the states before and after the task; `so_far`, the states before the task and now; `late`, the
    /// states before the task and when the loss of its supervisor was noticed;
    /// `worktree`, the worktree of the task since it was created; `cloud`, as the environment of the task reported it;
    /// `other_task`, the results of another task and of this one.
    #[schemars(extend("enum" = ["task", "so_far", "late", "worktree", "cloud", "other_task"]))]
    pub source: &'static str,
    pub file_count: usize,
    pub lines_added: u64,
    pub lines_deleted: u64,
    pub files: Vec<FileDiffData>,
    /// Hunks that are not listed because of their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_hunk_count: Option<usize>,
    #[serde(flatten)]
    pub omissions: OmissionsData,
    /// Files that changed during the task and are not in the diff, because nothing attributes the change to the agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unattributed_files: Vec<String>,
    /// Work trees whose changes are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable_work_trees: Vec<UnavailableWorkTree>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnavailableWorkTree {
    pub path: String,
    pub reason: String,
}

/// A changed file. Its path is relative to the top of the work tree, or absolute in another work tree.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileDiffData {
    pub path: String,
    #[schemars(extend("enum" = ["modified", "added", "deleted", "renamed"]))]
    pub change: &'static str,
    /// The former path of a renamed file.
    pub old_path: Option<String>,
    /// git's mode before and after, if it changed.
    pub old_mode: Option<String>,
    pub new_mode: Option<String>,
    pub is_binary: bool,
    pub lines_added: u64,
    pub lines_deleted: u64,
    pub hunks: Option<Vec<HunkData>>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HunkData {
    pub old_start: u64,
    pub old_lines: u64,
    pub new_start: u64,
    pub new_lines: u64,
    /// What git prints behind the ranges, usually the enclosing function.
    pub header: String,
    /// The lines with their sign: a space, `+`, `-`, or `\` for a remark about the line before.
    pub lines: Vec<String>,
}

impl TaskDiffData {
    /// The data of the selected files, with or without their hunks.
    pub fn of(id: &TaskId, diff: &TaskDiff, files: &[&FileDiff<'_>], has_hunks: bool) -> TaskDiffData {
        let mut left = MAX_HUNK_BYTES;
        let mut omitted = 0;
        let counts = files.iter().map(|file| file.line_counts());
        let (lines_added, lines_deleted) =
            counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        let file = |file: &&FileDiff<'_>| {
            let fits = file.bytes.len() <= left;
            left = left.saturating_sub(file.bytes.len());
            omitted += if has_hunks && !fits { file.hunks.len() } else { 0 };
            FileDiffData::of(file, has_hunks && fits)
        };
        let files: Vec<FileDiffData> = files.iter().map(file).collect();
        let unavailable = diff.unavailable.iter().map(|(path, reason)| UnavailableWorkTree {
            path: path.display().to_string(),
            reason: reason.clone(),
        });
        TaskDiffData {
            task_id: id.to_string(),
            source: match diff.source {
                DiffSource::InPlace => "task",
                DiffSource::InProgress => "so_far",
                DiffSource::Late => "late",
                DiffSource::Worktree => "worktree",
                DiffSource::Remote => "cloud",
                DiffSource::OtherTask => "other_task",
            },
            file_count: files.len(),
            lines_added,
            lines_deleted,
            files,
            omitted_hunk_count: Some(omitted).filter(|count| *count > 0),
            omissions: OmissionsData::of(&diff.omissions),
            unattributed_files: diff.unattributed.clone(),
            unavailable_work_trees: unavailable.collect(),
        }
    }
}

impl FileDiffData {
    fn of(file: &FileDiff<'_>, has_hunks: bool) -> FileDiffData {
        let change = match file.kind {
            ChangeKind::Modified => "modified",
            ChangeKind::Added => "added",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Renamed { .. } => "renamed",
        };
        let (lines_added, lines_deleted) = file.line_counts();
        let is_mode_changed = file.old_mode != file.new_mode;
        let mode = |mode: &Option<String>| mode.clone().filter(|_| is_mode_changed);
        FileDiffData {
            path: display_path(&file.path),
            change,
            old_path: file.old_path().map(display_path),
            old_mode: mode(&file.old_mode),
            new_mode: mode(&file.new_mode),
            is_binary: file.is_binary,
            lines_added,
            lines_deleted,
            hunks: has_hunks.then(|| file.hunks.iter().map(HunkData::of).collect()),
        }
    }
}

impl HunkData {
    fn of(hunk: &DiffHunk<'_>) -> HunkData {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let HunkRange { old_start, old_lines, new_start, new_lines } = hunk.range;
        HunkData {
            old_start,
            old_lines,
            new_start,
            new_lines,
            header: text(hunk.header),
            lines: hunk.lines.iter().map(|line| text(line)).collect(),
        }
    }
}

const NAMED_FILES: usize = 5;

/// What the diff of a task does not have.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct OmissionsData {
    /// Changed files that are not in the diff, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub left_out: Vec<LeftOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_count: Option<usize>,
}

impl OmissionsData {
    pub fn of(omissions: &DiffOmissions) -> OmissionsData {
        OmissionsData {
            left_out: omissions.left_out.clone(),
            left_out_count: Some(omissions.left_out_count).filter(|count| *count > 0),
        }
    }
}

/// Warns about everything that the diff of a cloud task does not have.
pub fn omission_warnings(omissions: &DiffOmissions) -> Vec<Warning> {
    let too_large = omissions.size_limit.map(too_large_message);
    let messages = left_out_message(omissions).into_iter().chain(too_large);
    messages.map(|message| Warning::new(WarningCode::NotInCloudDiff, message)).collect()
}

pub fn setup_edits_warning(files: &[String]) -> Option<Warning> {
    let message = format!("edits of the worktree's setup are among the changes of {}", files.join(", "));
    (!files.is_empty()).then(|| Warning::new(WarningCode::SetupEdits, message))
}

pub fn too_large_message(limit: usize) -> String {
    format!("the diff is not stored: it is larger than {} MiB", limit >> 20)
}

pub fn left_out_message(omissions: &DiffOmissions) -> Option<String> {
    if omissions.left_out_count == 0 {
        return None;
    }
    let shown: Vec<String> = omissions
        .left_out
        .iter()
        .take(NAMED_FILES)
        .map(|file| format!("{} ({})", file.path, reason(file)))
        .collect();
    let more = match omissions.left_out_count.saturating_sub(shown.len()) {
        0 => String::new(),
        count => format!(" and {count} more, see left_out"),
    };
    let are = if omissions.left_out_count == 1 { "change is" } else { "changes are" };
    Some(format!("{} {are} not in the diff: {}{more}", omissions.left_out_count, shown.join(", ")))
}

pub fn not_carried_warning(left_out: &[LeftOut]) -> Option<Warning> {
    let shown: Vec<&str> = left_out.iter().take(NAMED_FILES).map(|file| file.path.as_str()).collect();
    let more = match left_out.len().saturating_sub(shown.len()) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let message = format!("not carried into the worktree: {}{more}", shown.join(", "));
    (!left_out.is_empty()).then(|| Warning::new(WarningCode::NotCarried, message))
}

fn reason(file: &LeftOut) -> String {
    match file.reason {
        LeftOutReason::TooLarge => {
            format!("{} MiB; a file over 20 MiB is included only if the agent commits it", file.bytes >> 20)
        }
        LeftOutReason::TooMuch => "new files are over 200 MiB in all".to_owned(),
        LeftOutReason::TooLate => "reading the new files took too long".to_owned(),
        LeftOutReason::Unreadable => "unreadable".to_owned(),
        LeftOutReason::Repository => "a repository of its own".to_owned(),
        LeftOutReason::Ignored => "ignored by git".to_owned(),
        LeftOutReason::Commits => "commits that change no file".to_owned(),
        LeftOutReason::NoContent if file.bytes >> 20 > 0 => {
            format!("{} MiB, so its content is not stored", file.bytes >> 20)
        }
        LeftOutReason::NoContent => "its content is not stored".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;
    use delegator_engine::parse_unified_diff;
    use serde_json::json;

    use super::*;

    #[test]
    fn files_have_hunks_until_there_are_too_many_bytes() {
        let small = "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n--- a/run\n+++ b/run\n@@ -3 +3 @@ fn\n-a\n+b\n";
        let added = "+x\n".repeat(2 << 20);
        let large = format!(
            "diff --git a/l b/l\nnew file mode 100644\n--- /dev/null\n+++ b/l\n@@ -0,0 +1,{} @@\n{added}",
            2 << 20
        );
        let text = format!("{small}{large}");
        let files = parse_unified_diff(text.as_bytes());
        let id = TaskId::from_random(TaskLocation::Local, [1; 16]);
        let data = TaskDiffData::of(&id, &TaskDiff::default(), &files.iter().collect::<Vec<_>>(), true);
        assert_eq!((data.file_count, data.lines_added, data.omitted_hunk_count), (2, 1 + (2 << 20), Some(1)));
        assert!(data.files[1].hunks.is_none() && data.files[1].change == "added");
        assert_eq!(
            json!(data.files[0]),
            json!({
                "path": "run", "change": "modified", "old_mode": "100644", "new_mode": "100755", "is_binary": false,
                "lines_added": 1, "lines_deleted": 1,
                "hunks": [{"old_start": 3, "old_lines": 1, "new_start": 3, "new_lines": 1, "header": "fn", "lines": ["-a", "+b"]}],
            })
        );
    }

    #[test]
    fn what_is_not_in_the_diff_is_named() {
        let file = |path: &str, reason| LeftOut { path: path.to_owned(), reason, bytes: 40 << 20 };
        let mut omissions = DiffOmissions {
            left_out: vec![file("big.bin", LeftOutReason::TooLarge)],
            left_out_count: 1,
            size_limit: None,
        };
        let message = |omissions: &DiffOmissions| omission_warnings(omissions).remove(0).message;
        assert_eq!(
            message(&omissions),
            "1 change is not in the diff: big.bin (40 MiB; a file over 20 MiB is included only if the agent commits it)"
        );
        omissions.left_out = vec![file("sub/", LeftOutReason::Repository); 7];
        omissions.left_out_count = 9;
        let shown = message(&omissions);
        assert!(shown.starts_with("9 changes are") && shown.ends_with("and 4 more, see left_out"), "{shown}");
        omissions = DiffOmissions { size_limit: Some(256 << 20), ..DiffOmissions::default() };
        assert_eq!(message(&omissions), "the diff is not stored: it is larger than 256 MiB");
        assert!(omission_warnings(&DiffOmissions::default()).is_empty());
    }
}
