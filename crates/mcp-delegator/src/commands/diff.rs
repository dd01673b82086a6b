//! `diff`: what a task changed, as a unified diff, a summary or a list of paths.
//!
//! In a pipe the diff is printed byte for byte, so that git can apply it. On a terminal it is coloured and
//! shown in the user's pager, without control sequences. Programs that ask for JSON get files and hunks.

use std::borrow::Cow;

use delegator_engine::{DiffSource, FileDiff, Target, TaskDiff, parse_unified_diff};

use crate::commands::cloud::{AttemptInput, stored_diff};
use crate::commands::local::attempts::attempt_of;
use crate::commands::prelude::*;
use crate::output::data::diff::{
    FileDiffData, HunkData, TaskDiffData, left_out_message, omission_warnings, setup_edits_warning,
};
use crate::output::documents::diff_text;

#[serde_with::apply(bool => #[serde(default)], Vec => #[serde(default)])]
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Diff {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// Only the changed lines per file
    pub stat: bool,
    /// Only the paths of the changed files
    pub name_only: bool,
    /// Only this file or directory, as the diff names it; repeatable
    #[schemars(inner(length(min = 1, max = 4096)), extend("default" = null))]
    pub path: Vec<String>,
    #[serde(flatten)]
    pub attempt: AttemptInput,
    /// Show what differs from the result of this task, for example another attempt; review: of the one that it continued
    #[schemars(extend("default" = null))]
    pub against: Option<TaskRef>,
    /// Print to the terminal without a pager
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub no_pager: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Only changes of the task's agent, whatever changed later; while the task runs, all changes so far. Prints \
              nothing if the task changed nothing. On a terminal the diff is coloured and shown in $PAGER.",
    shape: Shape::Show("diff"),
    network: true,
    raw: RawOutput::Always,
    toolset: Toolset::Worktree,
    failures: &[ErrorCode::NotReady, ErrorCode::WrongState, ErrorCode::Unsupported, ErrorCode::TimeoutWall],
    examples: &[
        example("mcp-delegator diff T-local-…", "what the task changed"),
        example("mcp-delegator diff T-local-… --stat", "how many lines of each file"),
        example("mcp-delegator diff G-local-… --attempt 2 --against T-local-…", "two attempts compared"),
    ],
    input: InputType::with_rules::<Diff>(),
    ..CommandSpec::read_only::<Diff, TaskDiffData>(&["diff"], "Show what a task changed, as a diff")
};

/// Instead of the id of another task.
const LAST_REVIEW: &str = "review";

impl InputRules for Diff {
    fn problems(&self) -> Vec<Problem> {
        let are_both_given = self.stat && self.name_only;
        are_both_given.then(|| Problem::excluded("stat", "name_only")).into_iter().collect()
    }
}

/// The task, and what it changed as far as the call asks for it.
pub fn requested_diff(context: &Context<'_>, input: &Diff) -> Result<(Task, TaskDiff), AppError> {
    let engine = engine(context)?;
    let (task, attempt) = match engine.results().resolve_target(input.task.task_id.as_str())? {
        Target::Task(id) => (engine.results().task(&id)?, input.attempt.number()),
        Target::Group(group) => (attempt_of(context, &engine, &group, input.attempt.attempt)?, 1),
    };
    if attempt > 1 && (task.remote.is_none() || input.against.is_some()) {
        return Err(Problem::invalid("attempt", "the task has only one").value(attempt.into()).into());
    }
    let diff = match &input.against {
        None => find_diff(context, &engine, &task, attempt)?,
        Some(other) => {
            let other = match other.as_str() {
                LAST_REVIEW => reviewed_before(&engine, &task)?,
                _ => resolve_task(&engine, other)?,
            };
            let other = engine.results().task(&other)?;
            with_text(&task.id, engine.changes().diff_against(&task, &other, &variables(context))?)?
        }
    };
    Ok((task, diff))
}

pub fn run(context: &Context<'_>, input: Diff) -> Result<CommandOutput, AppError> {
    let (task, diff) = requested_diff(context, &input)?;
    let files = parse_unified_diff(&diff.text);
    let selected: Vec<&FileDiff<'_>> = files.iter().filter(|file| is_selected(file, &input.path)).collect();
    let mut warnings = notes(&diff, !task.state.is_terminal());
    if selected.is_empty() && !files.is_empty() {
        let message = format!("the task changed {}, but none that is selected", plural(files.len(), "file"));
        warnings.push(Warning::new(WarningCode::NothingSelected, message));
    }
    let is_raw = context.screen.presentation.is_raw();
    let has_hunks = !is_raw && !input.stat && !input.name_only;
    let output = CommandOutput::done(TaskDiffData::of(&task.id, &diff, &selected, has_hunks));
    let so_far = if task.state.is_terminal() { "" } else { " so far" };
    let is_unchanged = files.is_empty()
        && diff.unavailable.is_empty()
        && (input.against.is_none() || diff.omissions.left_out.is_empty());
    let message = is_unchanged.then(|| match &input.against {
        None => format!("Task {} changed nothing{so_far}.", task.id),
        Some(other) => format!("Tasks {} and {} have the same result.", task.id, other.as_str()),
    });
    let output = CommandOutput { warnings, message, is_paged: !input.no_pager, ..output };
    if is_raw { print(context, &input, &diff, &selected, output) } else { Ok(output) }
}

pub fn find_diff(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    attempt: u8,
) -> Result<TaskDiff, AppError> {
    if task.remote.is_some() {
        let task = ended(task.clone())?;
        let (text, omissions) = stored_diff(engine, &task, attempt)?;
        return Ok(TaskDiff { text, omissions, source: DiffSource::Remote, ..TaskDiff::default() });
    }
    with_text(&task.id, engine.changes().diff(&task.id, &variables(context))?)
}

/// The task whose result was reviewed when this one was requested.
fn reviewed_before(engine: &Engine, task: &Task) -> Result<TaskId, AppError> {
    engine.changes().reviewed_before(task)?.ok_or_else(|| {
        let message =
            format!("{} continued no other task in its worktree, so it follows no review.", task.id);
        AppError::new(ErrorCode::WrongState, message).context("task_id", task.id.as_str())
    })
}

/// The diff, unless it has no text because of its size.
fn with_text(id: &TaskId, diff: TaskDiff) -> Result<TaskDiff, AppError> {
    match diff.omissions.size_limit {
        Some(limit) => {
            let message = format!("The changes cannot be shown: they have over {} MiB.", limit >> 20);
            Err(AppError::new(ErrorCode::Unsupported, message).context("task_id", id.as_str()))
        }
        None => Ok(diff),
    }
}

/// Whether a path, or a directory above it, is one of these.
fn is_selected(file: &FileDiff<'_>, paths: &[String]) -> bool {
    let matches = |path: &[u8], given: &String| {
        let given = given.strip_prefix("./").unwrap_or(given).trim_end_matches('/').as_bytes();
        path.strip_prefix(given).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            || matches!(given, b"" | b".")
    };
    let is_given = |path: &[u8]| paths.iter().any(|given| matches(path, given));
    paths.is_empty() || is_given(&file.path) || file.old_path().is_some_and(is_given)
}

fn print(
    context: &Context<'_>,
    input: &Diff,
    diff: &TaskDiff,
    files: &[&FileDiff<'_>],
    output: CommandOutput,
) -> Result<CommandOutput, AppError> {
    let screen = context.screen;
    let style = screen.presentation.body_style();
    if input.name_only {
        return Ok(output.raw(diff_text::names(files)));
    }
    if input.stat {
        return Ok(output.raw(diff_text::summary(files, style)));
    }
    let bytes = if input.path.is_empty() {
        Cow::Borrowed(diff.text.as_slice())
    } else {
        Cow::Owned(files.iter().flat_map(|file| file.bytes).copied().collect())
    };
    if screen.presentation.writes_to_terminal() || style.is_colored {
        // Colours must not separate the parts of a secret.
        let text = screen.printer.redact(&String::from_utf8_lossy(&bytes));
        return Ok(output.raw(diff_text::for_terminal(&text, style)));
    }
    screen.write_lines(&bytes)?;
    Ok(output)
}

/// What a reader of the diff has to know: what it lacks, and what it has besides.
pub fn notes(diff: &TaskDiff, is_running: bool) -> Vec<Warning> {
    if diff.source == DiffSource::Remote {
        return omission_warnings(&diff.omissions);
    }
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning::new(code, message));
    if let Some(message) = left_out_message(&diff.omissions) {
        warn(WarningCode::NotInDiff, message);
    }
    if !diff.unattributed.is_empty() {
        let named: Vec<&str> = diff.unattributed.iter().take(5).map(String::as_str).collect();
        let more = if diff.unattributed.len() > named.len() { ", …" } else { "" };
        let message = format!(
            "{} changed during the task, but not certainly by its agent, so not in the diff: {}{more}",
            plural(diff.unattributed.len(), "file"),
            named.join(", ")
        );
        warn(WarningCode::NotAttributedInDiff, message);
    }
    for (path, reason) in &diff.unavailable {
        warn(
            WarningCode::DiffUnavailable,
            format!("the changes in {} are unknown: {reason}", path.display()),
        );
    }
    if is_running {
        let message = match diff.source {
            DiffSource::InProgress => {
                "the task has not ended: these are all changes since its start, also those of others"
            }
            _ => "the task has not ended: these are its changes so far",
        };
        warn(WarningCode::DiffSoFar, message.to_owned());
    }
    if diff.source == DiffSource::Late {
        let message = "the supervisor of the task was lost: these are all changes from its start until that was noticed, also those of others";
        warn(WarningCode::LateDiff, message.to_owned());
    }
    warnings.extend(setup_edits_warning(&diff.with_setup_edits));
    warnings
}

impl CommandData for TaskDiffData {
    fn document(&self) -> Document {
        let totals = match self.file_count {
            0 => "none".to_owned(),
            files => diff_text::totals(files, self.lines_added, self.lines_deleted),
        };
        let row = |file: &FileDiffData| {
            let name = match &file.old_path {
                Some(old) => format!("{old} => {}", file.path),
                None => file.path.clone(),
            };
            let lines = if file.is_binary {
                "binary".to_owned()
            } else {
                format!("+{} -{}", file.lines_added, file.lines_deleted)
            };
            vec![file.change.to_owned(), name, lines]
        };
        let document = Document::titled(format!("Changes of {}: {totals}", self.task_id))
            .table(&["change", "file", "lines"], self.files.iter().map(row).collect());
        let text: String = self.files.iter().map(hunks_text).collect();
        if text.is_empty() { document } else { document.block(Block::Verbatim(text)) }
    }
}

fn hunks_text(file: &FileDiffData) -> String {
    let hunks = file.hunks.as_deref().unwrap_or_default();
    if hunks.is_empty() {
        return String::new();
    }
    let path = &file.path;
    let old = file.old_path.as_ref().unwrap_or(path);
    let mut text = match file.change {
        "added" => format!("--- /dev/null\n+++ b/{path}\n"),
        "deleted" => format!("--- a/{path}\n+++ /dev/null\n"),
        _ => format!("--- a/{old}\n+++ b/{path}\n"),
    };
    for HunkData { old_start, old_lines, new_start, new_lines, header, lines } in hunks {
        text += format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@ {header}").trim_end();
        text.push('\n');
        for line in lines {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::output::data::diff::OmissionsData;

    use super::*;

    #[test]
    fn a_directory_selects_its_files_and_a_file_its_former_name() {
        let diff = b"diff --git a/src/a b/lib/a\nrename from src/a\nrename to lib/a\n\
                     diff --git a/src2 b/src2\nold mode 100644\nnew mode 100755\n";
        let files = parse_unified_diff(diff);
        let selected = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            files.iter().filter(|file| is_selected(file, &paths)).count()
        };
        assert_eq!(
            (selected(&[]), selected(&["."]), selected(&["src"]), selected(&["./src2"])),
            (2, 2, 1, 1)
        );
        assert_eq!((selected(&["lib/", "src2"]), selected(&["other"])), (2, 0));
    }

    #[test]
    fn the_document_has_the_hunks_as_text() {
        let hunk = HunkData {
            old_start: 1,
            old_lines: 1,
            new_start: 1,
            new_lines: 1,
            header: String::new(),
            lines: ["-x", "+y"].map(str::to_owned).to_vec(),
        };
        let renamed = FileDiffData {
            path: "b".to_owned(),
            change: "renamed",
            old_path: Some("a".to_owned()),
            old_mode: None,
            new_mode: None,
            is_binary: false,
            lines_added: 1,
            lines_deleted: 1,
            hunks: Some(vec![hunk]),
        };
        let picture = FileDiffData {
            path: "pic".to_owned(),
            change: "added",
            old_path: None,
            old_mode: None,
            new_mode: None,
            is_binary: true,
            lines_added: 0,
            lines_deleted: 0,
            hunks: Some(Vec::new()),
        };
        let data = TaskDiffData {
            task_id: "T-local-1".to_owned(),
            source: "task",
            file_count: 2,
            lines_added: 1,
            lines_deleted: 1,
            files: vec![renamed, picture],
            omitted_hunk_count: None,
            omissions: OmissionsData::default(),
            unattributed_files: Vec::new(),
            unavailable_work_trees: Vec::new(),
        };
        let document = data.document();
        assert_eq!(
            document.title.as_deref(),
            Some("Changes of T-local-1: 2 files changed, 1 line added, 1 line deleted")
        );
        let text = "--- a/a\n+++ b/b\n@@ -1,1 +1,1 @@\n-x\n+y\n".to_owned();
        assert_eq!(document.blocks.last(), Some(&Block::Verbatim(text)));
    }
}
