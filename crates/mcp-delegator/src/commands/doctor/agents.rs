//! Checks of the agents: their programs and versions, whether they can authenticate, and whether their
//! sandbox works.

use delegator_domain::agents::{AgentProtocol, ConfiguredAgent, DEFAULT_AGENT};
use delegator_domain::task::SandboxKind;
use delegator_engine::{
    Agent, EnclosureProblem, HealthCheck, HealthStatus, HealthSubject, Variables, agent_version,
    check_environment, check_sign_in, locate_agent, probe_agent_sandbox, probe_enclosure, sandbox_advice,
};

use super::agent_table::AgentRow;
use super::check::{Check, CheckStatus};
use crate::commands::local::agent_candidates::default_agent;
use crate::commands::prelude::*;

#[derive(Debug, Default)]
pub struct Examination {
    /// Those of the default agent are named `agent`, `sign_in` and `sandbox`.
    pub checks: Vec<Check>,
    pub agents: Vec<AgentRow>,
}

/// Examines all agents. One that is built in and neither configured nor installed is listed, but is no
/// problem: no user needs all of them. Needed is the agent that the user has chosen as default, or else, if no
/// agent can run a task, the first one that is installed.
pub fn examine(context: &Context<'_>) -> Examination {
    let Ok(engine) = engine(context) else {
        // The check of the state directory says what to do.
        let check = Check::warning("agent", "not checked, because the state directory is unknown", "");
        return Examination { checks: vec![check], agents: Vec::new() };
    };
    let variables = variables(context);
    let enclosure = probe_enclosure(&engine, context.config.settings.enclosure, &variables);
    let mut findings = Examination { checks: vec![enclosure_check(&enclosure)], agents: Vec::new() };
    let configured = context.config.agent_names().into_iter().filter_map(|name| context.config.agent(name));
    let examined: Vec<(ConfiguredAgent, AgentRow, Vec<Check>)> = configured
        .map(|agent| {
            let (row, checks) = examine_agent(context, &engine, &agent, &variables, enclosure.is_ok());
            (agent, row, checks)
        })
        .collect();
    let settings = &context.config.settings;
    let chosen = settings.default_agent.as_deref();
    let is_any_usable = examined.iter().any(|(_, row, _)| row.is_usable);
    let installed = examined.iter().map(|(_, row, _)| row).find(|row| row.is_installed);
    let fallback = installed.map_or(DEFAULT_AGENT, |row| row.name.as_str()).to_owned();
    let needed = chosen.map(str::to_owned).or((!is_any_usable).then_some(fallback));
    for (agent, row, mut checks) in examined {
        let is_default = agent.name == chosen.unwrap_or(DEFAULT_AGENT);
        let is_wanted = is_default || settings.agents.contains_key(&agent.name);
        if is_wanted || row.is_installed {
            let found = check_environment(agent.protocol, &variables);
            let check = found.map(|found| health(subject_name(found.subject).to_owned(), found));
            // Several agents may share an environment.
            let is_new = |check: &Check| findings.checks.iter().all(|known| known.name != check.name);
            checks.extend(check.filter(is_new));
            let is_fallback = is_default || agent.name == DEFAULT_AGENT;
            let is_needed = needed.as_ref() == Some(&agent.name) || (is_wanted && !is_fallback);
            let limit = |check: Check| if is_needed { check } else { check.at_most_warning() };
            findings.checks.extend(checks.into_iter().map(limit));
        }
        findings.agents.push(row);
    }
    if chosen.is_none() && findings.agents.iter().all(|row| !row.is_installed) {
        let missing =
            findings.checks.iter_mut().find(|check| check.code == Some(ErrorCode::DependencyMissing));
        missing.into_iter().for_each(|check| check.suggestion = Some(INSTALL_ONE.to_owned()));
    }
    let default = default_agent(context, &[&context.process.current_dir]);
    for row in &mut findings.agents {
        row.is_default = row.name == default;
    }
    findings
}

fn examine_agent(
    context: &Context<'_>,
    engine: &Engine,
    configured: &ConfiguredAgent,
    variables: &Variables,
    can_enclose: bool,
) -> (AgentRow, Vec<Check>) {
    let check_name = |what: &str| check_name(&configured.name, what);
    let name = check_name("agent");
    let row = AgentRow::missing(configured);
    let agent = match locate_agent(engine, configured, &[&context.process.current_dir], variables) {
        Ok(agent) => agent,
        Err(error) => return (row, vec![Check::failed(context, name, AppError::from(error))]),
    };
    let version = agent.version.or_else(|| agent_version(engine, &agent, variables));
    let agent = Agent { version, ..agent };
    let version = version.map(|(major, minor, patch)| format!("{major}.{minor}.{patch}"));
    let sign_in = check_sign_in(&agent, &configured.variables, variables);
    let is_signed_in = sign_in.as_ref().filter(|found| found.subject == HealthSubject::SignIn);
    let is_signed_in = is_signed_in.map(|found| found.status == HealthStatus::Ok);
    let row = AgentRow { is_installed: true, version, is_signed_in, ..row };
    if agent.sandbox(Mode::default()) == SandboxKind::Enforced && !can_enclose {
        let message = "its tasks are refused, because nothing enforces their mode; see enclosure";
        let suggestion = format!("Install bubblewrap, or set {name}.unsandboxed to true to accept that.");
        return (row, vec![Check::warning(name, message, suggestion)]);
    }
    let (status, message) = agent.describe_program();
    let mut checks = vec![match status {
        HealthStatus::Ok => Check::ok(name, message),
        _ => Check::warning(name, message, "If tasks fail, install a tested version."),
    }];
    let is_configured = sign_in.as_ref().is_none_or(|found| found.subject != HealthSubject::Configuration);
    checks.extend(sign_in.map(|found| health(check_name(subject_name(found.subject)), found)));
    // With an invalid configuration the agent runs no command, which would look like a problem of the
    // sandbox.
    if agent.protocol == AgentProtocol::CodexExec && is_configured {
        checks.push(sandbox(check_name("sandbox"), &agent, variables));
    }
    // The app server is the program of Codex, whose sandbox is checked only once.
    let is_usable = agent.protocol != AgentProtocol::CodexAppServer
        && checks.iter().all(|check| check.status != CheckStatus::Problem);
    (AgentRow { is_usable, ..row }, checks)
}

const INSTALL_ONE: &str = "Install an agent and sign in. For Codex: npm install -g @openai/codex, then: codex login. \
     For Claude Code: npm install -g @anthropic-ai/claude-code, then: claude. 'mcp-delegator agents' lists the others.";

pub fn check_name(agent: &str, what: &str) -> String {
    match (agent, what) {
        (DEFAULT_AGENT, what) => what.to_owned(),
        (agent, "agent") => format!("agents.{agent}"),
        (agent, what) => format!("agents.{agent}.{what}"),
    }
}

fn enclosure_check(probed: &Result<String, EnclosureProblem>) -> Check {
    match probed {
        Ok(mechanism) => {
            Check::ok("enclosure", format!("{mechanism}: a command ran in it, and could not write"))
        }
        Err(problem) => Check::warning(
            "enclosure",
            format!("agents without a sandbox of their own cannot be enclosed: {problem}"),
            "Install bubblewrap, or use Linux 6.2 or newer.",
        ),
    }
}

fn subject_name(subject: HealthSubject) -> &'static str {
    match subject {
        HealthSubject::Home => "codex_home",
        HealthSubject::Configuration => "codex_config",
        HealthSubject::SignIn => "sign_in",
    }
}

fn health(name: String, found: HealthCheck) -> Check {
    let code = match found.subject {
        HealthSubject::Home | HealthSubject::Configuration => ErrorCode::ConfigInvalid,
        HealthSubject::SignIn => ErrorCode::Unauthenticated,
    };
    let suggestion = found.suggestion.unwrap_or_default();
    match found.status {
        HealthStatus::Ok => Check::ok(name, found.message),
        HealthStatus::Warning => Check::warning(name, found.message, suggestion),
        HealthStatus::Problem => Check::problem(name, code, found.message, suggestion),
    }
}

/// Runs a command in the agent's sandbox: whether the kernel lists a feature does not show that it can be
/// used.
fn sandbox(name: String, agent: &Agent, variables: &Variables) -> Check {
    match probe_agent_sandbox(agent, variables) {
        Ok(()) => Check::ok(name, "a command ran in it, and could not write"),
        Err(problem) => {
            let advice = sandbox_advice(&problem).unwrap_or(
                "Allow unprivileged user namespaces (sysctl user.max_user_namespaces), or install bubblewrap.",
            );
            Check::problem(name, ErrorCode::DependencyMissing, problem, advice)
        }
    }
}
