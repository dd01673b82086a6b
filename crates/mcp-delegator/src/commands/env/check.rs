//! `env check`: validate the environments file and report all problems.

use delegator_config::environments;

use crate::commands::prelude::*;
use crate::output::data::registry::{EnvironmentData, EnvironmentList};
use crate::spec::paging::{Paging, paginate};

/// Inputs of the commands that list environments.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ListInputs {
    /// Cursor of the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Reports every problem with line and column; unknown fields are warnings.",
    shape: Shape::List("environments"),
    failures: &[ErrorCode::NotFound],
    ..CommandSpec::read_only::<ListInputs, EnvironmentList>(&["env", "check"], "Check the environments file")
};

pub fn run(context: &Context<'_>, inputs: ListInputs) -> Result<CommandOutput, AppError> {
    let environments = environments::read(&sources(context.process))?;
    let items: Vec<EnvironmentData> = environments.all.iter().map(Into::into).collect();
    let query = json!(["environments", items]);
    let (items, page) = paginate(items, &Paging { limit: None, cursor: inputs.cursor }, &query)?;
    Ok(CommandOutput::done(EnvironmentList { environments: items })
        .fact("count", page.count)
        .with_page("environments", page)
        .fact("source", environments.file.display().to_string())
        .warn(&environments.warnings))
}

impl CommandData for EnvironmentList {
    fn document(&self) -> Document {
        if self.environments.is_empty() {
            return Document::titled("No environments").text("The environments file is empty.");
        }
        let row = |environment: &EnvironmentData| environment.facts().map(|(_, value)| value).to_vec();
        Document::titled(plural(self.environments.len(), "environment")).block(Block::Table {
            columns: vec!["id", "name", "repository", "stack", "provider", "created"],
            rows: self.environments.iter().map(row).collect(),
        })
    }
}
