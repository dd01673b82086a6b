//! Commands for the environments file: add, remove, check. `delegator-config` defines its format.

pub mod add;
pub mod check;
pub mod remove;

use std::path::Path;

use delegator_config::environments::{Environment, Environments};
use serde_json::{Map, Value, json};

use crate::output::documents::document::{Block, Document, scalar};
use crate::output::outcome::{CommandOutput, Warning};
use crate::spec::paging::Page;

/// Output with all environments.
pub fn list_output(environments: &Environments) -> CommandOutput {
    let items: Vec<Value> = environments.all.iter().map(environment_json).collect();
    let count = items.len();
    let mut output = CommandOutput::done(json!({"environments": items}))
        .fact("count", count)
        .fact("source", environments.file.display().to_string());
    output.page = Some(Page { number: 1, size: count, total: count, filtered: count, next_cursor: None });
    output.warnings = warnings(environments);
    output
}

/// Warnings about unknown fields in the file.
pub fn warnings(environments: &Environments) -> Vec<Warning> {
    environments.warnings.iter().map(|warning| Warning::new(warning.code, &warning.message)).collect()
}

/// One environment as JSON.
fn environment_json(environment: &Environment) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: &str| drop(object.insert(key.to_owned(), value.into()));
    put("id", &environment.id);
    put("name", &environment.name);
    put("repository", &environment.repo_url);
    put("tech_stack", &environment.stack);
    put("provider", environment.provider.name());
    if let Some(created) = &environment.created_at {
        put("created_at", created);
    }
    Value::Object(object)
}

pub fn describe_list(data: &Value) -> Document {
    let columns = ["id", "name", "repository", "tech_stack", "provider", "created_at"];
    let rows: Vec<Vec<String>> = data["environments"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|environment| columns.iter().map(|column| scalar(&environment[*column])).collect())
        .collect();
    if rows.is_empty() {
        return Document::titled("No environments")
            .block(Block::Text("The environments file is empty.".to_owned()));
    }
    let title = format!("{} environment{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    let columns = vec!["id", "name", "repository", "stack", "provider", "created"];
    Document::titled(title).block(Block::Table { columns, rows })
}

/// Output of an edit.
fn edit_output(environment: &Environment, file: &Path, message: String) -> CommandOutput {
    let mut output = CommandOutput::done(json!({"environment": environment_json(environment)}))
        .fact("source", file.display().to_string());
    output.message = Some(message);
    output
}

fn describe_one(data: &Value) -> Document {
    let environment = data["environment"].as_object();
    let facts = environment.into_iter().flatten().map(|(key, value)| (key.replace('_', " "), scalar(value)));
    Document::default().block(Block::Facts(facts.collect()))
}
