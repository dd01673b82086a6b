//! `fleet grant`: print the SQL that creates roles with the least rights.
//!
//! The command connects to nothing and changes nothing: the owner of the tables reads the SQL and runs it.

use delegator_fleet::grant_sql;

use crate::commands::completions::{RawText, raw_text};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Grant {
    /// Name of the role that submits tasks
    #[serde(default = "default_submitter")]
    #[schemars(length(min = 1, max = 63))]
    pub submitter: String,
    /// Name of the role that runs tasks
    #[serde(default = "default_worker")]
    #[schemars(length(min = 1, max = 63))]
    pub worker: String,
}

fn default_submitter() -> String {
    "delegator_submitter".to_owned()
}

fn default_worker() -> String {
    "delegator_worker".to_owned()
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Executes nothing. Run the SQL as the owner of the tables, after fleet migrate. A submitter can submit, read and \
              cancel tasks; a worker can run them and delete old ones; neither can change tables.",
    shape: Shape::Show("script"),
    raw: RawOutput::Always,
    toolset: Toolset::Hidden,
    config: ConfigUse::Unused,
    examples: &[example(
        "mcp-delegator fleet grant --submitter laptops --worker builders > roles.sql",
        "SQL for two roles; run it with psql, then set their passwords there with \\password",
    )],
    ..CommandSpec::read_only::<Grant, RawText>(
        &["fleet", "grant"],
        "Print SQL for roles with the least rights",
    )
};

pub fn run(_: &Context<'_>, input: Grant) -> Result<CommandOutput, AppError> {
    Ok(raw_text(grant_sql(&input.submitter, &input.worker).into_bytes()))
}
