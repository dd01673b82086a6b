//! Commands for the environments file: add, remove, check. `delegator-config` defines its format.

pub mod add;
pub mod check;
pub mod remove;

use delegator_config::environments::Environments;
use delegator_domain::environment::Environment;

use crate::commands::prelude::*;
use crate::output::data::registry::{ChangedEnvironment, EnvironmentData, EnvironmentList};
use crate::spec::paging::{Paging, paginate};

/// Inputs of the commands that list environments.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ListInputs {
    /// Cursor of the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

pub fn list_output(environments: &Environments, inputs: ListInputs) -> Result<CommandOutput, AppError> {
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

impl EnvironmentData {
    fn facts(&self) -> [(&'static str, String); 6] {
        [
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("repository", self.repository.clone()),
            ("tech stack", self.tech_stack.clone()),
            ("provider", self.provider.to_owned()),
            ("created at", cell(self.created_at.as_ref())),
        ]
    }
}

fn edit_output(environment: &Environment, file: &Path, message: String) -> CommandOutput {
    CommandOutput::done(ChangedEnvironment { environment: environment.into() })
        .fact("source", file.display().to_string())
        .message(message)
}

impl CommandData for ChangedEnvironment {
    fn document(&self) -> Document {
        let facts =
            self.environment.facts().map(|(name, value)| (name, Some(value).filter(|value| value != "-")));
        Document::default().block(Block::facts(facts))
    }
}
