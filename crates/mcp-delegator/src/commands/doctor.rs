//! `doctor`: check that everything a task needs is available.
//!
//! Each check reports ok, warning or problem, with a suggestion, and ends within a time limit. One problem
//! makes the command fail, with the exit code of the first. It works with an invalid configuration, and
//! changes nothing unless `--set-aside-damaged` or `--bundle` is given.

pub mod agent_table;
pub mod agents;
pub mod bundle;
pub mod check;
pub mod clients;
pub mod configuration;
pub mod fleet;
pub mod machine;
pub mod notifications;
pub mod server;

use crate::commands::doctor::agent_table::AgentRow;
use crate::commands::doctor::agents::Examination;
use crate::commands::doctor::check::{Check, CheckStatus};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Doctor {
    /// If the registry is damaged, rename its files and start with an empty registry
    #[serde(default)]
    pub set_aside_damaged: bool,
    /// Write a new file for a bug report: checks, settings and recent tasks, without secrets and task texts
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::CommandLineOnly]))]
    pub bundle: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Checks {
    pub checks: Vec<Check>,
    /// The agents that tasks can name, installed or not, and what they can do.
    pub agents: Vec<AgentRow>,
    /// Whether no check has the status problem.
    pub is_healthy: bool,
    /// Path of the file for a bug report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Checks the configuration, the agent, its sign-in and sandbox, git, the state directory, the database of the fleet, notifications, the MCP clients and the server. \
              Fails if there is a problem.",
    idempotent: true,
    shape: Shape::List("checks"),
    config: ConfigUse::Reported,
    failures: &[
        ErrorCode::DependencyMissing,
        ErrorCode::DependencyVersion,
        ErrorCode::Unauthenticated,
        ErrorCode::AlreadyExists,
        ErrorCode::NetworkError,
    ],
    examples: &[
        example("mcp-delegator doctor", "every check, and how to fix what is wrong"),
        example("mcp-delegator doctor --bundle report.txt", "the same, and a file for a bug report"),
    ],
    ..CommandSpec::new::<Doctor, Checks>(&["doctor"], "Check that everything a task needs is available")
};

pub fn run(context: &Context<'_>, input: Doctor) -> Result<CommandOutput, AppError> {
    if input.set_aside_damaged {
        let moved = engine(context)?.results().set_aside_damaged()?;
        let moved: Vec<String> = moved.iter().map(|path| path.display().to_string()).collect();
        tracing::warn!(?moved, "the damaged registry was set aside");
    }
    let Examination { checks, agents } = examine(context);
    let bundle = input.bundle.map(|path| bundle::write(context, &path, &checks)).transpose()?;
    let bundle = bundle.map(|path| path.display().to_string());
    let problem = first_problem(&checks);
    Ok(CommandOutput::of(Checks { is_healthy: problem.is_none(), checks, agents, bundle }, problem))
}

/// All checks, in the order in which problems should be solved, and the agents.
fn examine(context: &Context<'_>) -> Examination {
    let mut checks = configuration::checks(context);
    let found = agents::examine(context);
    checks.extend(found.checks);
    checks.extend(machine::checks(context));
    checks.extend(fleet::checks(context));
    checks.extend(notifications::checks(context));
    checks.push(server::check(context));
    checks.extend(clients::checks(context));
    Examination { checks, agents: found.agents }
}

/// The error for the first problem, which also names the others.
pub fn first_problem(checks: &[Check]) -> Option<AppError> {
    let problems: Vec<&Check> = checks.iter().filter(|check| check.status == CheckStatus::Problem).collect();
    let first = problems.first()?;
    let code = first.code.unwrap_or(ErrorCode::Internal);
    let names: Vec<&str> = problems.iter().map(|check| check.name.as_str()).collect();
    let count = |noun: &str| format!("{} {noun}: {}", names.len(), names.join(", "));
    let error = match problems.as_slice() {
        [only] => AppError {
            message: format!("{}: {}", only.name, only.message),
            ..AppError::summarizing(code, count("problem"), first.message.clone())
        },
        _ => AppError::summarizing(code, count("problems"), first.message.clone()),
    };
    Some(match &first.suggestion {
        Some(suggestion) => error.suggest(suggestion.as_str()),
        None => error,
    })
}

impl CommandData for Checks {
    fn document(&self) -> Document {
        let row =
            |check: &Check| vec![check.status.name().to_owned(), check.name.clone(), check.message.clone()];
        let table = Block::Table {
            columns: vec!["status", "check", "message"],
            rows: self.checks.iter().map(row).collect(),
        };
        let fixes =
            self.checks.iter().filter_map(|check| Some((check.name.clone(), check.suggestion.clone()?)));
        let fixes: Vec<(String, String)> = fixes.collect();
        let mut document = Document::default().block(table);
        if !fixes.is_empty() {
            document = document.text("What to do:").block(Block::Facts(fixes));
        }
        if !self.agents.is_empty() {
            document = document.block(agent_table(&self.agents));
        }
        match &self.bundle {
            Some(file) => document.text(format!("Report for a bug report: {file}")),
            None => document,
        }
    }
}

/// The columns fit 100 characters. docs/agents.md has more of them.
fn agent_table(agents: &[AgentRow]) -> Block {
    let yes_or_no = |value: Option<bool>| match value {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => "-".to_owned(),
    };
    let row = |agent: &AgentRow| {
        let version = if agent.is_installed {
            agent.version.clone().unwrap_or_else(|| "installed".to_owned())
        } else {
            "not installed".to_owned()
        };
        vec![
            agent.name.clone(),
            version,
            yes_or_no(agent.is_signed_in),
            agent.protocol.to_owned(),
            agent.abilities.sandbox.to_owned(),
            yes_or_no(Some(agent.abilities.is_resumable)),
            agent.abilities.messages.to_owned(),
        ]
    };
    Block::Table {
        columns: vec!["agent", "version", "signed in", "protocol", "sandbox", "resume", "messages"],
        rows: agents.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::documents::human;
    use crate::output::documents::text::TextStyle;

    #[test]
    fn a_single_problem_is_not_repeated_below_the_table() {
        let check = Check::problem("agent", ErrorCode::DependencyMissing, "codex is missing", "Install it.");
        let error = first_problem(std::slice::from_ref(&check)).unwrap();
        assert_eq!(error.message, "agent: codex is missing");
        let checks = Checks { checks: vec![check], agents: Vec::new(), is_healthy: false, bundle: None };
        let printed = checks.document().to_text(TextStyle::default());
        assert_eq!(human::error(&error, &printed, TextStyle::default()), "error: 1 problem: agent.");
    }
}
