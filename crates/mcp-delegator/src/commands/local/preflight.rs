//! Preflight checks of agent inputs against configuration and file system.
//!
//! They apply the engine's rules early, so that a caller gets all problems at once and no user has to confirm
//! a call that would be refused anyway. They change nothing, and the engine checks again: paths can change in
//! between.

use std::ffi::{OsStr, OsString};

use delegator_config::Config;
use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT};
use delegator_domain::task::{EnvPolicyName, RunSettings, SandboxKind};
use delegator_engine::{
    AgentInput, Capabilities, MessageSupport, VariableAccess, find_mechanism, open_allowed_file,
    resolve_allowed_dir, untrusted_trees, variable_access,
};

use crate::commands::local::attempts::AttemptsInputs;
use crate::commands::prelude::*;
use crate::error::engine::{
    directory_problem, file_problem, mode_not_enforced, mode_too_wide, unsupported_input,
    variable_not_allowed,
};
use crate::input::agent_selection::{running_agent, select_agent};

/// Checks for a new agent run in `working_dir`, or else in the current directory.
pub fn agent_problems(
    input: &TaskInput,
    attempts: &AttemptsInputs,
    context: &PreflightContext<'_>,
) -> Vec<Problem> {
    let mut problems = agent_problems_in(input, context, Some(context.current_dir));
    for (number, attempt) in attempts.inputs(input).iter().enumerate() {
        let found = selected_agent_problems(attempt, context).into_iter();
        let found: Vec<Problem> = found.map(|problem| attempts.name_entry(problem, number)).collect();
        problems.extend(found.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
    }
    problems.extend(follower_problems(input, context));
    if input.agent.working_dir.is_none() {
        let roots = &context.config.settings.allowed_roots;
        problems.extend(resolve_allowed_dir(context.current_dir, roots).err().map(|problem| {
            let converted = directory_problem("working_dir", context.current_dir, &problem);
            let message = format!(
                "is not given, and the current directory {} {}",
                context.current_dir.display(),
                converted.problem
            );
            Problem { problem: message, ..converted }
        }));
        if is_plugin_directory(context) {
            let problem = Problem::new(
                ErrorCode::InvalidValue,
                "working_dir",
                "is needed: this server runs in the directory of a plugin",
            );
            problems.push(problem.suggest(Some("Give the absolute path of the user's repository.")));
        }
    }
    problems
}

/// Clients start the servers of Agent Plugins 1.0 in the directory of the plugin, never in that of the user.
fn is_plugin_directory(context: &PreflightContext<'_>) -> bool {
    let root = context.process.variable("PLUGIN_ROOT").map(Path::new);
    root.and_then(|root| root.canonicalize().ok()).is_some_and(|root| context.current_dir.starts_with(root))
}

/// Checks for a resumed thread: without `working_dir` and `agent` it has those of the thread, which only the
/// registry knows.
pub fn resumed_agent_problems(input: &TaskInput, context: &PreflightContext<'_>) -> Vec<Problem> {
    let mut problems = agent_problems_in(input, context, None);
    if input.agent.agent.is_some() {
        problems.extend(selected_agent_problems(input, context));
    }
    problems.extend(follower_problems(input, context));
    problems
}

/// What the agents of the followers cannot do, and modes above the limit. What a follower takes over
/// unchanged is reported once, for the task itself.
fn follower_problems(input: &TaskInput, context: &PreflightContext<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for follower in input.followers() {
        let within =
            |problem: Problem| Problem { field: format!("{}.{}", follower.field, problem.field), ..problem };
        let given = follower.given.to_task();
        if given.mode.is_some() {
            problems.extend(mode_problem(&follower.input, context.config).map(within));
        }
        if given.agent.is_some() {
            let found = selected_agent_problems(&follower.input, context);
            problems.extend(found.into_iter().map(within));
        }
    }
    problems
}

/// Checks for an agent in its `working_dir`, or else in `default_dir` if that is known.
fn agent_problems_in(
    input: &TaskInput,
    context: &PreflightContext<'_>,
    default_dir: Option<&Path>,
) -> Vec<Problem> {
    let roots = &context.config.settings.allowed_roots;
    let mut problems = Vec::new();
    let given = input.agent.working_dir.as_deref();
    problems.extend(given.and_then(|given| unusable_directory("working_dir", given, roots)));
    match given.or(default_dir) {
        Some(directory) => problems.extend(project_file_problems(input, context, directory)),
        // A project file may lower the limit further; the engine checks that once it knows the directory.
        None => problems.extend(mode_problem(input, context.config)),
    }
    for (at, path) in input.agent.add_dirs.iter().enumerate() {
        let field = format!("add_dirs.{at}");
        problems
            .extend(relative_path(&field, path, context).or_else(|| unusable_directory(&field, path, roots)));
    }
    for (at, path) in input.agent.images.iter().enumerate() {
        let field = format!("images.{at}");
        problems
            .extend(relative_path(&field, path, context).or_else(|| unreadable_file(&field, path, context)));
    }
    problems
}

fn selected_agent_problems(input: &TaskInput, context: &PreflightContext<'_>) -> Vec<Problem> {
    let names = match input.agent.agent.as_ref().map(AgentNames::names) {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => vec![context.config.settings.default_agent.as_deref().unwrap_or(DEFAULT_AGENT)],
    };
    let ambiguous = (names.len() > 1 && input.agent.model.is_some()).then(|| {
        Problem::new(ErrorCode::InvalidValue, "model", "belongs to one agent, but several are given")
            .suggest(Some("Remove {input:model}, or name one agent."))
    });
    let of_agent = |name: &str| match select_agent(context.config, running_agent(name, input.agent.live)) {
        Ok(agent) => problems_of_agent(input, context, &agent),
        Err(problem) => vec![problem],
    };
    ambiguous.into_iter().chain(names.into_iter().flat_map(of_agent)).collect()
}

fn problems_of_agent(
    input: &TaskInput,
    context: &PreflightContext<'_>,
    agent: &ConfiguredAgent,
) -> Vec<Problem> {
    let capabilities = Capabilities::of(agent.kind());
    let run = input.agent.run_settings(input.mode, context.current_dir);
    let unsupported =
        capabilities.unsupported_inputs.iter().filter(|name| is_given(&input.agent, &run, **name));
    let unsupported = unsupported.map(|name| name.name());
    let takes_messages = capabilities.messages != MessageSupport::None;
    let unsupported = unsupported.chain((input.agent.live && !takes_messages).then_some("live"));
    let mut problems: Vec<Problem> = unsupported.map(|name| unsupported_input(&agent.name, name)).collect();
    // A preview is read-only.
    let mode = input.mode.sandbox();
    if capabilities.sandbox_of(mode, agent.unsandboxed) == SandboxKind::Enforced {
        let path = context.process.environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let found =
            find_mechanism(context.config.settings.enclosure, path, &untrusted_trees([context.current_dir]));
        problems.extend(found.err().map(|problem| mode_not_enforced(&agent.name, mode, &problem)));
    }
    if problems.is_empty() { variable_problems(&input.agent, agent) } else { problems }
}

/// `run` are the settings that were made of the inputs.
fn is_given(given: &AgentInputs, run: &RunSettings, input: AgentInput) -> bool {
    match input {
        AgentInput::OutputSchema => given.output_schema.is_some(),
        // Without a sandbox of its own, an agent's commands see all variables that it has.
        AgentInput::EnvPolicy => given.env_policy.is_some_and(|policy| policy != EnvPolicyName::InheritAll),
        AgentInput::Salvage => given.salvage,
        other => other.is_set_in(run),
    }
}

fn variable_problems(given: &AgentInputs, agent: &ConfiguredAgent) -> Vec<Problem> {
    let problem = |(at, name): (usize, &String)| match variable_access(agent.kind(), name, &agent.variables) {
        VariableAccess::Passed => None,
        right => Some(variable_not_allowed(&format!("env_allow_list.{at}"), &agent.name, name, right)),
    };
    given.env_allow_list.iter().enumerate().filter_map(problem).collect()
}

fn project_file_problems(
    input: &TaskInput,
    context: &PreflightContext<'_>,
    directory: &Path,
) -> Vec<Problem> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    match context.config.for_work_tree(&real) {
        Ok(config) => mode_problem(input, &config).into_iter().collect(),
        Err(error) => {
            let problem = |problem: &delegator_config::Problem| {
                let message = format!("is in a work tree whose project file is not valid: {problem}");
                Problem::new(ErrorCode::ConfigInvalid, "working_dir", message).suggest(Some(
                    "Fix or remove the project file; no task starts in this work tree until then.",
                ))
            };
            error.problems.iter().map(problem).collect()
        }
    }
}

fn mode_problem(input: &TaskInput, config: &Config) -> Option<Problem> {
    let (requested, allowed) = (input.mode.sandbox(), config.settings.max_mode);
    (requested > allowed).then(|| mode_too_wide(requested, allowed))
}

fn unusable_directory(field: &str, path: &Path, roots: &[PathBuf]) -> Option<Problem> {
    resolve_allowed_dir(path, roots).err().map(|problem| directory_problem(field, path, &problem))
}

/// Refuses a relative path: an MCP client does not know the server's current directory.
fn relative_path(field: &str, path: &Path, context: &PreflightContext<'_>) -> Option<Problem> {
    let absolute = context.current_dir.join(path);
    path.is_relative().then(|| {
        Problem::new(ErrorCode::InvalidValue, field, "must be an absolute path")
            .value(path.display().to_string().into())
            .suggest(Some(format!("Relative to the current directory it is {}.", absolute.display())))
    })
}

fn unreadable_file(field: &str, path: &Path, context: &PreflightContext<'_>) -> Option<Problem> {
    let opened = open_allowed_file(path, &context.config.settings.allowed_roots, context.state_dir);
    opened.err().map(|problem| file_problem(field, path, &problem))
}
