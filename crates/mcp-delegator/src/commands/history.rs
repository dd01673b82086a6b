//! `history`: past tasks, by the words of their title, text and final message, and by how they ended.
//!
//! Tasks of all directories are found, the newest first, also those that have not ended.

use delegator_domain::task::Verification;
use delegator_registry::{HistoryOutcome, HistoryQuery};
use jiff::Timestamp;

use crate::commands::inputs::{since_ms, since_problem};
use crate::commands::prelude::*;
use crate::output::data::stored_task;
use crate::output::documents::document::truncate_cell;
use crate::output::values::format_age_seconds;
use crate::spec::paging::{Page, Paging, paginate};

#[serde_with::apply(bool => #[serde(default)])]
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct History {
    /// Words, or beginnings of words, that the task has in its title, text or final message
    #[schemars(length(min = 1, max = 1000), extend("x-markers" = [Marker::Positional]))]
    pub query: Option<String>,
    /// Only tasks of this agent
    #[schemars(length(min = 1, max = 64))]
    pub agent: Option<String>,
    /// Only tasks submitted within this time, such as 3d or 12h
    #[schemars(length(min = 1, max = 64))]
    pub since: Option<String>,
    /// Only tasks whose verify command passed
    pub verified: bool,
    /// Only tasks that failed, timed out, or whose verify command failed
    pub failed: bool,
    /// Only tasks in this repository: a path in it, or its name
    #[schemars(length(min = 1, max = 4096))]
    pub repo: Option<String>,
    /// Tasks per page (default: 20)
    #[schemars(range(min = 1, max = MAX_FOUND))]
    pub limit: Option<u32>,
    /// From the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HistoryList {
    pub tasks: Vec<PastTask>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PastTask {
    pub task_id: String,
    pub title: String,
    pub state: &'static str,
    /// `verified`, `verify_failed` or `not_run`; absent without a verify command.
    pub verification: Option<&'static str>,
    pub agent: String,
    pub mode: &'static str,
    pub working_dir: String,
    pub created_ts: UtcTime,
    pub age_seconds: u64,
    /// The result in one sentence; absent before the end.
    pub summary: Option<String>,
}

/// Tasks that one call reads; a person finds no more.
const MAX_FOUND: u32 = 1000;
/// Tasks on the first page if the call does not say it.
const DEFAULT_LIMIT: u32 = 20;
const MAX_TITLE_BYTES: usize = 80;

pub const SPEC: CommandSpec = CommandSpec {
    details: "Finds tasks as long as they are retained (retention_hours), the newest first, at most 1000. A query finds the tasks \
              that have all its words, in upper or lower case; each may be the beginning of a word.",
    shape: Shape::List("tasks"),
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator history 'leap year'", "the tasks that have both words"),
        example("mcp-delegator history --failed --since 3d", "what failed in the last three days"),
        example("mcp-delegator history --verified --repo .", "what was verified in this repository"),
    ],
    input: InputType::with_rules::<History>(),
    ..CommandSpec::read_only::<History, HistoryList>(&["history"], "Find past tasks")
};

impl InputRules for History {
    fn problems(&self) -> Vec<Problem> {
        let are_both_given = self.verified && self.failed;
        let excluded = are_both_given.then(|| Problem::excluded("verified", "failed"));
        excluded.into_iter().chain(since_problem(self.since.as_deref())).collect()
    }
}

pub fn run(context: &Context<'_>, input: History) -> Result<CommandOutput, AppError> {
    let (list, page) = find(context, input)?;
    Ok(CommandOutput::done(list).fact("count", page.count).with_page("tasks", page))
}

pub fn find(context: &Context<'_>, input: History) -> Result<(HistoryList, Page), AppError> {
    let outcome = match (input.verified, input.failed) {
        (true, _) => Some(HistoryOutcome::Verified),
        (_, true) => Some(HistoryOutcome::Failed),
        _ => None,
    };
    let at = |given: &String| context.process.current_dir.join(given);
    let path = input.repo.as_ref().map(at).filter(|path| path.is_dir());
    let query = HistoryQuery {
        words: input.query.clone(),
        agent: input.agent.clone(),
        since_ms: input.since.as_deref().and_then(since_ms),
        outcome,
        repository: path.map(|path| path.display().to_string()).or(input.repo.clone()),
    };
    let found = engine(context)?.results().history(&query, MAX_FOUND)?;
    let now_ms = Timestamp::now().as_millisecond();
    let first_limit = input.cursor.is_none().then_some(DEFAULT_LIMIT);
    let paging = Paging { limit: input.limit.or(first_limit), cursor: input.cursor };
    let first = found.first().map(|task| task.seq);
    // The list begins with the newest task, so a cursor is valid until there is a newer one.
    let fingerprint = json!(["history", query.words, query.agent, input.since, input.repo, first]);
    let tasks = found.iter().map(|task| PastTask::of(task, now_ms)).collect();
    let (tasks, page) = paginate(tasks, &paging, &fingerprint)?;
    Ok((HistoryList { tasks }, page))
}

impl PastTask {
    fn of(task: &Task, now_ms: i64) -> PastTask {
        let verification = task.ended.as_ref().and_then(|ended| ended.verification);
        PastTask {
            task_id: task.id.to_string(),
            title: task.title.clone(),
            state: task.state.public_name(),
            verification: verification.map(Verification::status),
            agent: task.agent.clone(),
            mode: task.mode.name(),
            working_dir: task.working_dir.clone(),
            created_ts: UtcTime::from_ms(task.created_at_ms),
            age_seconds: stored_task::seconds_since(task.created_at_ms, now_ms),
            summary: task.state.is_terminal().then(|| stored_task::summary(task)),
        }
    }

    fn row(&self) -> Vec<String> {
        let state = self.verification.filter(|status| *status != "not_run").unwrap_or(self.state);
        vec![
            self.task_id.clone(),
            state.to_owned(),
            format_age_seconds(self.age_seconds),
            self.agent.clone(),
            truncate_cell(&self.title, MAX_TITLE_BYTES),
            self.working_dir.clone(),
        ]
    }
}

impl CommandData for HistoryList {
    fn document(&self) -> Document {
        let Some(first) = self.tasks.first() else { return Document::titled("No task found") };
        let show = NextCall::new(&["show"]).with("task_id", first.task_id.as_str());
        Document::titled(plural(self.tasks.len(), "task"))
            .table(
                &["task id", "state", "age", "agent", "task", "directory"],
                self.tasks.iter().map(PastTask::row).collect(),
            )
            .block(Block::Next(show))
    }
}
