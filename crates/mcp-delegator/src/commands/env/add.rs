//! `env add`: add an environment to the environments file.

use delegator_config::environments::{self, field_default};
use delegator_config::environments_file;
use delegator_domain::environment::OnLost;
use delegator_domain::task::Provider;

use crate::commands::env::edit_output;
use crate::commands::prelude::*;
use crate::output::data::registry::ChangedEnvironment;
use crate::output::values::rfc3339;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct EnvAdd {
    /// Environment id: letters, digits, dots, underscores and hyphens
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub env_id: String,
    /// Display name
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Repository: https://…, ssh://…, user@host:path or an absolute path
    #[schemars(length(min = 1, max = 1024))]
    pub repo_url: String,
    /// Technology stack: node, python, go, rust or another name
    #[schemars(length(min = 1, max = 32))]
    pub stack: String,
    /// Description
    #[schemars(length(min = 1, max = 2000))]
    pub description: Option<String>,
    /// Provider that runs the tasks
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Provider::NAMES, "default" = field_default("provider")))]
    pub provider: Option<Provider>,
    /// Branch; for a fleet also a tag or commit
    #[schemars(length(min = 1, max = 255))]
    pub branch: Option<String>,
    /// Script that prepares a checkout
    #[schemars(length(min = 1, max = 100_000))]
    pub setup: Option<String>,
    /// Sandbox mode of its tasks
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Mode::NAMES, "default" = field_default("mode")))]
    pub mode: Option<Mode>,
    /// Labels that a worker must have, as key=value
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub labels: BTreeMap<String, String>,
    /// Queue priority of its tasks; higher runs first
    #[schemars(range(min = -1_000_000, max = 1_000_000), extend("default" = field_default("priority")))]
    pub priority: Option<i32>,
    /// What happens to a task whose worker is lost
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["fail", "retry"], "default" = field_default("on_lost")))]
    pub on_lost: Option<OnLost>,
    /// Maximum number of workers that claim a task, one after another
    #[schemars(range(min = 1, max = 100), extend("default" = field_default("max_claims")))]
    pub max_claims: Option<u32>,
    /// Push the branch of a finished task
    #[serde(default)]
    pub push: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Writes environments.json in the configuration directory; creates the file if it does not exist.",
    shape: Shape::Action("environment_added"),
    failures: &[ErrorCode::AlreadyExists],
    examples: &[example(
        "mcp-delegator env add env_site --name Site --repo-url https://github.com/me/site --stack node",
        "the new environment",
    )],
    input: InputType::with_rules::<EnvAdd>(),
    ..CommandSpec::new::<EnvAdd, ChangedEnvironment>(&["env", "add"], "Add an environment")
};

impl InputRules for EnvAdd {
    fn problems(&self) -> Vec<Problem> {
        let problems = environments::entry_problems(&self.env_id, &self.new_entry()).into_iter();
        let problems = problems.map(|problem| {
            let field = match problem.key.as_str() {
                "id" => "env_id",
                "repoUrl" => "repo_url",
                other => other,
            };
            let suggestion = problem.suggestion.map(|meant| format!("Did you mean {meant}?"));
            let permitted = problem.expected.map(|expected| format!("Give {expected}."));
            let value = problem.value;
            let problem = Problem::invalid(field, problem.problem).suggest(suggestion);
            Problem { value, permitted, ..problem }
        });
        problems.collect()
    }
}

impl EnvAdd {
    /// The entry to write, without its creation time.
    fn new_entry(&self) -> Map<String, Value> {
        fn value_of(given: Option<&impl Serialize>) -> Option<Value> {
            given.map(|given| json!(given))
        }
        environments::new_entry(vec![
            ("name", value_of(Some(&self.name))),
            ("repoUrl", value_of(Some(&self.repo_url))),
            ("stack", value_of(Some(&self.stack))),
            ("description", value_of(self.description.as_ref())),
            ("provider", value_of(self.provider.as_ref())),
            ("branch", value_of(self.branch.as_ref())),
            ("setup", value_of(self.setup.as_ref())),
            ("mode", value_of(self.mode.as_ref())),
            ("labels", value_of(Some(&self.labels).filter(|labels| !labels.is_empty()))),
            ("priority", value_of(self.priority.as_ref())),
            ("on_lost", value_of(self.on_lost.as_ref())),
            ("max_claims", value_of(self.max_claims.as_ref())),
            ("push", value_of(Some(&self.push).filter(|push| **push))),
        ])
    }
}

pub fn run(context: &Context<'_>, input: EnvAdd) -> Result<CommandOutput, AppError> {
    let sources = sources(context.process);
    let mut entry = input.new_entry();
    entry.insert("createdAt".to_owned(), rfc3339(jiff::Timestamp::now()).into());
    let added = environments::add(&sources, &input.env_id, entry)?;
    let message = format!("{} was added", added.id);
    Ok(edit_output(&added, &environments_file(&sources)?, message))
}
