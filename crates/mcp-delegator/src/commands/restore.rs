//! `restore`: bring a work tree back to what it was before a task.

use std::ffi::OsString;

use delegator_engine::{RestoreAsked, Restored};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::OneTask;
use super::local::tasks::{engine, resolved};
use crate::fault::{AppError, ErrorCode, Problem};
use crate::outcome::{Answer, Warning};
use crate::registry::{CommandSpec, Danger, Example, OutputSchema, Shape, typed};
use crate::run::Context;
use crate::views::document::{Block, Document, scalar};
use crate::views::restore_point as view;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restore {
    #[serde(flatten)]
    pub task: OneTask,
    /// Really do it
    #[serde(default)]
    pub confirm_destructive: bool,
    /// Only say what would be done
    #[serde(default)]
    pub dry_run: bool,
    /// Move HEAD and its branch back, too; commits made since stay reachable by the undo point
    #[serde(default)]
    pub force: bool,
    /// Go back to before the last restore of this task
    #[serde(default)]
    pub undo: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoreOutput {
    pub task_id: String,
    /// Something was changed
    pub restored: bool,
    pub dry_run: bool,
    /// What was gone back to
    pub restore_point: String,
    pub work_tree: String,
    /// Files brought back
    pub written: Vec<String>,
    /// Files that were not there before
    pub removed: Vec<String>,
    /// Files that differ and were left as they are
    pub kept: Vec<KeptFile>,
    pub index_restored: bool,
    /// HEAD or its branch is not where it was
    pub head_moved: bool,
    pub head_restored: bool,
    /// The state before the restore
    pub undo_point: Option<String>,
    pub undo_command: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptFile {
    pub path: String,
    pub reason: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Files and index come back as they were; files that were not there are removed; ignored files and those the \
              restore point had to leave out are never touched. HEAD and its branch move only with --force. The \
              present state is kept first: --undo goes back to it. Refused while a writing task is not over.",
    shape: Shape::Action("tree_restored"),
    danger: Danger::Destructive,
    failures: &[
        ErrorCode::TaskNotFound,
        ErrorCode::InvalidId,
        ErrorCode::ConfirmationRequired,
        ErrorCode::NotFound,
        ErrorCode::WrongState,
        ErrorCode::LockHeld,
        ErrorCode::DependencyMissing,
    ],
    examples: &[Example {
        command: "mcp-delegator restore T-local-… --dry-run",
        shows: "what would be brought back, without doing it",
    }],
    check,
    output: OutputSchema::Type(crate::registry::input_schema::schema_of::<RestoreOutput>),
    describe,
    run: Some(|context, input| typed(context, input, run)),
    ..CommandSpec::declare::<Restore>(&["restore"], "Bring back the tree as it was before a task")
};

fn check(input: &Value) -> Vec<Problem> {
    let is_true = |key: &str| input.get(key) == Some(&Value::Bool(true));
    if is_true("confirm_destructive") || is_true("dry_run") {
        return Vec::new();
    }
    let problem = "must be true: files of the work tree are overwritten and removed";
    vec![
        Problem::new(ErrorCode::ConfirmationRequired, "confirm_destructive", problem)
            .suggest(Some("Look first with --dry-run, then give --confirm-destructive.")),
    ]
}

fn run(context: &Context<'_>, input: Restore) -> Result<Answer, AppError> {
    let engine = engine(context)?;
    let id = resolved(&engine, &input.task.task_id)?;
    let environment: Vec<(OsString, OsString)> =
        context.process.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let asked = RestoreAsked { dry_run: input.dry_run, and_head: input.force, undo: input.undo };
    let restored = engine.restore(&id, asked, &environment)?;
    let message = sentence(&restored, input.dry_run);
    let warnings = warnings(&restored);
    let Restored { plan, point, undo, head_restored } = restored;
    let kept =
        plan.keep.iter().map(|(path, reason)| KeptFile { path: path.clone(), reason: (*reason).to_owned() });
    let mut answer = Answer::done(json!(RestoreOutput {
        task_id: id.to_string(),
        restored: undo.is_some(),
        dry_run: input.dry_run,
        restore_point: point.reference,
        work_tree: point.top_level.display().to_string(),
        kept: kept.collect(),
        index_restored: plan.index_differs,
        head_moved: plan.head_moved,
        head_restored,
        undo_command: undo.as_ref().map(|_| format!("{} --undo", view::command(&id))),
        undo_point: undo.map(|undo| undo.reference),
        written: plan.write,
        removed: plan.remove,
    }));
    answer.warnings = warnings;
    answer.message = Some(message);
    Ok(answer)
}

fn sentence(restored: &Restored, dry_run: bool) -> String {
    let plan = &restored.plan;
    let (written, removed) = (plan.write.len(), plan.remove.len());
    match (&restored.undo, dry_run) {
        (Some(_), _) => format!("{written} files brought back, {removed} removed"),
        (None, true) if !plan.is_empty() => {
            format!("{written} files would be brought back, {removed} removed")
        }
        (None, _) => "Nothing differs; nothing was changed".to_owned(),
    }
}

fn warnings(restored: &Restored) -> Vec<Warning> {
    let plan = &restored.plan;
    let mut told = Vec::new();
    if plan.head_moved && !restored.head_restored {
        let name = |head: &Option<String>, branch: &Option<String>| {
            let commit = head.as_deref().map_or("no commit", |id| &id[..id.len().min(12)]).to_owned();
            format!("{} at {commit}", branch.as_deref().unwrap_or("detached HEAD"))
        };
        let (then, now) =
            (name(&restored.point.head, &restored.point.branch), name(&plan.head.commit, &plan.head.branch));
        let words = format!("HEAD stays where it is ({now}; before the task: {then}); --force moves it back");
        told.push(Warning::new("W_RESTORE_001", words));
    }
    if plan.index_is_left {
        let words =
            "the index had conflicts before the task, which cannot be brought back; it stays as it is";
        told.push(Warning::new("W_RESTORE_002", words));
    }
    if !plan.under_way.is_empty() {
        let words =
            format!("git is in the middle of something, and stays there: {}", plan.under_way.join(", "));
        told.push(Warning::new("W_RESTORE_003", words));
    }
    if !plan.keep.is_empty() {
        let words = format!("{} paths that differ were left as they are", plan.keep.len());
        told.push(Warning::new("W_RESTORE_004", words));
    }
    told
}

fn describe(data: &Value) -> Document {
    let title = match (data["restored"] == true, data["dry_run"] == true) {
        (true, _) => "Brought back",
        (false, true) => "What a restore would do",
        (false, false) => "Nothing differs",
    };
    let keys = [
        "task_id",
        "restore_point",
        "work_tree",
        "index_restored",
        "head_moved",
        "head_restored",
        "undo_command",
    ];
    let facts = keys.iter().map(|key| (key.replace('_', " "), scalar(&data[*key]))).collect();
    let mut document = Document::titled(title).block(Block::Facts(facts));
    for (key, heading) in [("written", "Files brought back:"), ("removed", "Files removed:")] {
        let files: Vec<String> = data[key].as_array().into_iter().flatten().map(scalar).collect();
        if !files.is_empty() {
            document =
                document.block(Block::Text(heading.to_owned())).block(Block::Verbatim(files.join("\n")));
        }
    }
    let kept: Vec<Vec<String>> = data["kept"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| vec![scalar(&file["path"]), scalar(&file["reason"])])
        .collect();
    if kept.is_empty() {
        return document;
    }
    document.block(Block::Table { columns: vec!["left as it is", "because"], rows: kept })
}
