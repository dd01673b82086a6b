//! `fleet tasks`: the tasks of all machines.

use delegator_fleet::{ListedTask, TaskFilter, TaskPhase};
use jiff::Timestamp;

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::prelude::*;
use crate::output::documents::document::truncate_cell;
use crate::output::values::format_age;

const MAX_TITLE_BYTES: usize = 60;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct FleetTasksInput {
    /// Only tasks in this state; running includes claimed
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["queued", "running", "ended"]))]
    pub state: Option<TaskPhase>,
    /// Only tasks that this worker runs or ran
    #[schemars(length(min = 1, max = 128))]
    pub worker: Option<String>,
    /// Maximum number of tasks
    #[serde(default = "default_number::<50>")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetTasks {
    /// Running tasks, then queued ones in the order of their claims, then ended ones, the last first.
    pub tasks: Vec<FleetTaskEntry>,
    /// Whether there are more than the limit.
    pub has_more: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetTaskEntry {
    /// The id on the machine that submitted the task, if that is known.
    pub task_id: Option<String>,
    /// The fleet's own id.
    pub remote_id: String,
    pub environment: String,
    /// queued, claimed, running, completed, failed, timeout or cancelled.
    pub state: String,
    /// Whether its worker was requested to stop it.
    pub is_cancel_requested: bool,
    /// Who runs it, or ran it last; null for a queued task.
    pub worker: Option<String>,
    pub created_at: String,
    /// Since its submission.
    pub age_ms: i64,
    /// The first line of the task.
    pub title: String,
}

fn entry(task: ListedTask) -> FleetTaskEntry {
    FleetTaskEntry {
        task_id: task.submitter_task,
        remote_id: task.id,
        environment: task.environment,
        state: task.state,
        is_cancel_requested: task.is_cancel_requested,
        worker: task.worker,
        created_at: Timestamp::from_millisecond(task.created_at_ms).unwrap_or_default().to_string(),
        age_ms: task.age_ms,
        title: task.title,
    }
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Running tasks come first, then queued ones in the order of their claims, then ended ones, the last first.",
    shape: Shape::List("tasks"),
    network: true,
    examples: &[
        example("mcp-delegator fleet tasks --state queued", "the queue"),
        example("mcp-delegator fleet tasks --state running --worker build-3", "what this worker runs"),
    ],
    ..CommandSpec::read_only::<FleetTasksInput, FleetTasks>(
        &["fleet", "tasks"],
        "List the tasks of the fleet, from all machines",
    )
};

pub fn run(context: &Context<'_>, input: FleetTasksInput) -> Result<CommandOutput, AppError> {
    let filter = TaskFilter { phase: input.state, worker: input.worker, limit: input.limit };
    let list = database_from(context, &input.database)?.list_tasks(&filter)?;
    let tasks = list.tasks.into_iter().map(entry).collect();
    Ok(CommandOutput::done(FleetTasks { tasks, has_more: list.has_more }))
}

impl CommandData for FleetTasks {
    fn document(&self) -> Document {
        let title = match (self.tasks.len(), self.has_more) {
            (0, _) => "No such task in the fleet".to_owned(),
            (count, false) => format!("{} in the fleet", plural(count, "task")),
            (count, true) => format!("The first {count} tasks of the fleet"),
        };
        let columns = ["task", "state", "age", "first line", "worker", "environment"];
        let rows = self.tasks.iter().map(row).collect();
        let mut document = Document::titled(title).table(&columns, rows);
        if self.has_more {
            let text = "There are more: raise the limit, or filter by state or worker.";
            document = document.text(text);
        }
        let is_open = |task: &FleetTaskEntry| ["queued", "claimed", "running"].contains(&task.state.as_str());
        if self.tasks.iter().any(is_open) {
            let text = "To cancel one, run 'mcp-delegator fleet cancel' with its id.";
            document = document.block(Block::ForPeople(text.into()));
        }
        document
    }
}

fn row(task: &FleetTaskEntry) -> Vec<String> {
    vec![
        task.task_id.as_ref().unwrap_or(&task.remote_id).clone(),
        if task.is_cancel_requested { "cancelling".to_owned() } else { task.state.clone() },
        format_age(task.age_ms),
        truncate_cell(&task.title, MAX_TITLE_BYTES),
        cell(task.worker.as_ref()),
        task.environment.clone(),
    ]
}
