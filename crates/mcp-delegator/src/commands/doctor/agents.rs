//! Checks of the agents: their programs and versions, whether they can authenticate, and whether their sandbox works.

use delegator_domain::agents::{AgentProtocol, BUILT_IN_AGENT, ConfiguredAgent};
use delegator_domain::task::Mode;
use delegator_engine::{
    Agent, Engine, HealthCheck, HealthStatus, Variables, check_environment, sandbox_advice,
};

use super::check::Check;
use crate::commands::context::Context;
use crate::commands::local::tasks::{engine, variables};
use crate::error::{AppError, ErrorCode};

/// The checks of all agents. Those of the built-in agent are named `agent`, `sign_in` and `sandbox`.
pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let engine = match engine(context) {
        Ok(engine) => engine,
        Err(error) => return vec![Check::failed(context, "agent", error)],
    };
    let variables = variables(context);
    let (mut checks, mut protocols) = (Vec::new(), Vec::new());
    for name in context.config.agent_names() {
        let Some(configured) = context.config.agent(name) else { continue };
        checks.extend(agent_checks(context, &engine, &configured, &variables));
        if !protocols.contains(&configured.protocol) {
            protocols.push(configured.protocol);
            let found = check_environment(configured.protocol, &variables);
            checks.extend(found.map(|found| health(found.name.to_owned(), found, ErrorCode::ConfigInvalid)));
        }
    }
    checks
}

fn agent_checks(
    context: &Context<'_>,
    engine: &Engine,
    configured: &ConfiguredAgent,
    variables: &Variables,
) -> Vec<Check> {
    let is_built_in = configured.name == BUILT_IN_AGENT;
    let check_name = |what: &str| match (is_built_in, what) {
        (true, what) => what.to_owned(),
        (false, "agent") => format!("agents.{}", configured.name),
        (false, what) => format!("agents.{}.{what}", configured.name),
    };
    let name = check_name("agent");
    let agent = match engine.locate_agent(configured, &context.process.current_dir, variables) {
        Ok(agent) => agent,
        Err(error) => return vec![Check::failed(context, name, AppError::from(error))],
    };
    if !agent.capabilities().permits(Mode::default(), agent.unsandboxed) {
        let message = "its tasks are refused, because nothing enforces their mode";
        let suggestion = format!("Set {name}.unsandboxed to true to accept that.");
        return vec![Check::warning(name, message, suggestion)];
    }
    let (status, message) = agent.describe_program();
    let mut checks = vec![match status {
        HealthStatus::Ok => Check::ok(name, message),
        _ => Check::warning(name, message, "If tasks fail, install a tested version."),
    }];
    let sign_in = engine.check_sign_in(configured, &agent, variables);
    checks.extend(sign_in.map(|found| health(check_name("sign_in"), found, ErrorCode::Unauthenticated)));
    if agent.protocol == AgentProtocol::CodexExec {
        checks.push(sandbox(check_name("sandbox"), engine, &agent, variables));
    }
    checks
}

fn health(name: String, found: HealthCheck, code: ErrorCode) -> Check {
    match found.status {
        HealthStatus::Ok => Check::ok(name, found.message),
        HealthStatus::Warning => Check::warning(name, found.message, found.suggestion.unwrap_or_default()),
        HealthStatus::Problem => Check::problem(name, code, found.message, found.suggestion),
    }
}

/// Runs a command in the agent's sandbox: whether the kernel lists a feature does not show that it can be used.
fn sandbox(name: String, engine: &Engine, agent: &Agent, variables: &Variables) -> Check {
    match engine.probe_agent_sandbox(agent, variables) {
        Ok(()) => Check::ok(name, "a command ran in it, and could not write"),
        Err(problem) => {
            let advice = sandbox_advice(&problem).unwrap_or(
                "Allow unprivileged user namespaces (sysctl user.max_user_namespaces), or install bubblewrap.",
            );
            Check::problem(name, ErrorCode::DependencyMissing, problem, Some(advice.to_owned()))
        }
    }
}
