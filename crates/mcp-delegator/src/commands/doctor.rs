//! `doctor`: check that everything a task needs is available.
//!
//! Each check reports ok, warning or problem, with a suggestion. The command changes nothing unless
//! `--set-aside-damaged` is given.

use delegator_config::Containment;
use delegator_domain::agents::{BUILT_IN_AGENT, ConfiguredAgent};
use delegator_domain::task::Mode;
use delegator_engine::{HealthStatus, Variables, best_containment, check_environment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::local::status::long_log_message;
use crate::commands::local::tasks::{engine, variables};
use crate::commands::{Command, prepare};
use crate::error::AppError;
use crate::output::documents::document::{Block, Document, rows};
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Shape};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Doctor {
    /// If the registry is damaged, rename its files and start with an empty registry
    #[serde(default)]
    pub set_aside_damaged: bool,
    /// Write a report for a bug report
    #[schemars(extend("x-unbuilt" = true))]
    pub bundle: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Checks {
    pub checks: Vec<Check>,
    /// Whether no check has the status problem.
    pub is_healthy: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    pub name: String,
    /// ok, warning or problem.
    pub status: &'static str,
    pub message: String,
    /// How to fix it.
    pub suggestion: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Checks the agent and its version, its sandbox, process containment and the state directory.",
    idempotent: true,
    shape: Shape::List("checks"),
    ..CommandSpec::new::<Doctor, Checks>(&["doctor"], "Check that everything a task needs is available")
};

pub const COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn run(context: &Context<'_>, input: Doctor) -> Result<CommandOutput, AppError> {
    if input.set_aside_damaged {
        let moved = engine(context)?.set_aside_damaged()?;
        let moved: Vec<String> = moved.iter().map(|path| path.display().to_string()).collect();
        tracing::warn!(?moved, "the damaged registry was set aside");
    }
    let mut checks = agents(context);
    checks.extend([sandbox(), containment(context), state_dir(context)]);
    let is_healthy = checks.iter().all(|check| check.status != "problem");
    Ok(CommandOutput::done(Checks { checks, is_healthy }))
}

fn check(name: String, status: &'static str, message: String, suggestion: Option<&str>) -> Check {
    Check { name, status, message, suggestion: suggestion.map(str::to_owned) }
}

/// A problem with the suggestion of the error that caused it.
fn failed_check(context: &Context<'_>, name: String, error: AppError) -> Check {
    let syntax = context.screen.presentation.call_syntax();
    let suggestion = error.suggestion.map(|suggestion| syntax.sentence(&suggestion));
    Check { suggestion, ..check(name, "problem", error.message, None) }
}

/// Finds the program of every agent, and checks the environment of each protocol once. The check of the built-in agent
/// is named `agent`.
fn agents(context: &Context<'_>) -> Vec<Check> {
    let variables = variables(context);
    let (mut checks, mut protocols) = (Vec::new(), Vec::new());
    for name in context.config.agent_names() {
        let Some(configured) = context.config.agent(name) else { continue };
        checks.push(agent(context, &configured, &variables));
        if protocols.contains(&configured.protocol) {
            continue;
        }
        protocols.push(configured.protocol);
        let found = check_environment(configured.protocol, &variables);
        let found = found
            .map(|found| check(found.name.into(), status(found.status), found.message, found.suggestion));
        checks.extend(found);
    }
    checks
}

fn agent(context: &Context<'_>, configured: &ConfiguredAgent, variables: &Variables) -> Check {
    let name = match configured.name.as_str() {
        BUILT_IN_AGENT => "agent".to_owned(),
        name => format!("agents.{name}"),
    };
    let workdir = &context.process.current_dir;
    match engine(context).and_then(|engine| Ok(engine.locate_agent(configured, workdir, variables)?)) {
        Err(error) => failed_check(context, name, error),
        Ok(agent) if !agent.capabilities().permits(Mode::default(), agent.unsandboxed) => {
            let message = "its tasks are refused, because nothing enforces their mode".to_owned();
            let suggestion = format!("Set {name}.unsandboxed to true to accept that.");
            check(name, "warning", message, Some(&suggestion))
        }
        Ok(agent) => {
            let (health, message) = agent.describe_program();
            check(name, status(health), message, None)
        }
    }
}

fn status(health: HealthStatus) -> &'static str {
    match health {
        HealthStatus::Ok => "ok",
        HealthStatus::Warning => "warning",
        HealthStatus::Problem => "problem",
    }
}

fn sandbox() -> Check {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let landlock = read("/sys/kernel/security/lsm").contains("landlock");
    let namespaces = read("/proc/sys/user/max_user_namespaces").trim().parse::<u64>().unwrap_or(0) > 0;
    match (landlock, namespaces) {
        (_, true) => check("sandbox".into(), "ok", "user namespaces are available".into(), None),
        (true, false) => check("sandbox".into(), "ok", "landlock is available".into(), None),
        (false, false) => check(
            "sandbox".into(),
            "warning",
            "neither user namespaces nor landlock are available; sandboxed modes may not work".into(),
            Some("Raise user.max_user_namespaces, or use mode danger-full-access where that is acceptable."),
        ),
    }
}

/// Both kinds of containment work. A control group also finds unmarked processes of a supervisor that was killed.
fn containment(context: &Context<'_>) -> Check {
    let message = match (context.config.settings.containment, best_containment()) {
        (Containment::Subreaper, _) => "subreaper, as configured",
        (_, "cgroup") => "cgroup: every task runs in its own control group",
        _ => "subreaper: control groups (cgroup v2) cannot be created here",
    };
    check("containment".into(), "ok", message.to_owned(), None)
}

fn state_dir(context: &Context<'_>) -> Check {
    let counts = engine(context).and_then(|engine| Ok((engine.counts()?, engine.state_dir)));
    match counts {
        Err(error) => failed_check(context, "state_dir".into(), error),
        Ok((None, path)) => check("state_dir".into(), "ok", format!("{} (empty)", path.display()), None),
        Ok((Some((counts, long_log)), path)) => {
            let tasks: u64 = counts.iter().map(|(_, count)| count).sum();
            let message = format!("{}, {tasks} tasks", path.display());
            match long_log {
                None => check("state_dir".into(), "ok", message, None),
                Some(log) => check(
                    "state_dir".into(),
                    "warning",
                    format!("{message}; {}", long_log_message(log)),
                    None,
                ),
            }
        }
    }
}

fn describe(data: &Value) -> Document {
    let rows = rows(&data["checks"], &["status", "name", "message", "suggestion"]);
    Document::default()
        .block(Block::Table { columns: vec!["status", "check", "message", "suggestion"], rows })
}
