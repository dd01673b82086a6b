//! `read`: mark results as read, so that they are not listed as finished and unread any more.

use crate::commands::local::attempts::resolve_tasks;
use crate::commands::prelude::*;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Read {
    /// Ids of ended tasks, or of groups
    #[schemars(extend("x-markers" = [Marker::Positional], "default" = null))]
    pub task_ids: Vec<TaskRef>,
    /// All results
    pub all: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReadResults {
    /// Results that were not read before.
    pub count: usize,
}

const NOTHING_TO_READ: &str = "nothing_to_read";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Results that wait, results or run have shown are marked already.",
    shape: Shape::Action("results_read"),
    other_actions: &[NOTHING_TO_READ],
    idempotent: true,
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::NotReady],
    examples: &[
        example("mcp-delegator read --all", "how many results were marked"),
        example("mcp-delegator read T-local-…", "this one marked"),
    ],
    exactly_one_of: &["task_ids", "all"],
    ..CommandSpec::new::<Read, ReadResults>(&["read"], "Mark results as read")
};

pub fn run(context: &Context<'_>, input: Read) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let results = engine.results();
    let count = if input.all {
        results.mark_all_read()?
    } else {
        let mut tasks = Vec::new();
        for given in &input.task_ids {
            for id in resolve_tasks(&engine, given)? {
                tasks.push(ended(results.task(&id)?)?);
            }
        }
        let mut count = 0;
        for task in tasks {
            count += usize::from(results.mark_read(&task.id)?);
        }
        count
    };
    let output = CommandOutput::done(ReadResults { count });
    Ok(CommandOutput { shape: (count == 0).then_some(Shape::Action(NOTHING_TO_READ)), ..output })
}

impl CommandData for ReadResults {
    fn document(&self) -> Document {
        Document::titled(match self.count {
            0 => "No result to mark as read".to_owned(),
            count => format!("{} marked as read", plural(count, "result")),
        })
    }
}
