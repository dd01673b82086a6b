//! Commands for the environments file: add, remove, check. `delegator-config` defines its format.

pub mod add;
pub mod check;
pub mod remove;

use std::path::Path;

use delegator_config::environments::Environments;
use delegator_domain::environment::Environment;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::AppError;
use crate::output::data::registry::{ChangedEnvironment, EnvironmentData, EnvironmentList};
use crate::output::documents::document::{Block, Document, plural, rows, scalar};
use crate::output::outcome::{CommandOutput, Warning};
use crate::spec::paging::{Paging, paginate};

/// Inputs of the commands that list environments.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ListInputs {
    /// Cursor of the previous page
    #[schemars(length(min = 1, max = 512))]
    pub cursor: Option<String>,
}

/// Output with the environments, or with those after the cursor.
pub fn list_output(environments: &Environments, inputs: ListInputs) -> Result<CommandOutput, AppError> {
    let items: Vec<EnvironmentData> = environments.all.iter().map(Into::into).collect();
    let query = json!(["environments", items]);
    let (items, page) = paginate(items, &Paging { limit: None, cursor: inputs.cursor }, &query)?;
    let mut output = CommandOutput::done(EnvironmentList { environments: items })
        .fact("count", page.count)
        .with_page("environments", page)
        .fact("source", environments.file.display().to_string());
    output.warnings = warnings(environments);
    Ok(output)
}

/// Warnings about unknown fields in the file.
pub fn warnings(environments: &Environments) -> Vec<Warning> {
    environments.warnings.iter().map(|warning| Warning::new(warning.code, &warning.message)).collect()
}

pub fn describe_list(data: &Value) -> Document {
    let columns = ["id", "name", "repository", "tech_stack", "provider", "created_at"];
    let rows = rows(&data["environments"], &columns);
    if rows.is_empty() {
        return Document::titled("No environments")
            .block(Block::Text("The environments file is empty.".to_owned()));
    }
    let title = plural(rows.len(), "environment");
    let columns = vec!["id", "name", "repository", "stack", "provider", "created"];
    Document::titled(title).block(Block::Table { columns, rows })
}

/// Output of an edit.
fn edit_output(environment: &Environment, file: &Path, message: String) -> CommandOutput {
    let mut output = CommandOutput::done(ChangedEnvironment { environment: environment.into() })
        .fact("source", file.display().to_string());
    output.message = Some(message);
    output
}

fn describe_one(data: &Value) -> Document {
    let environment = data["environment"].as_object();
    let facts = environment.into_iter().flatten().map(|(key, value)| (key.replace('_', " "), scalar(value)));
    Document::default().block(Block::Facts(facts.collect()))
}
