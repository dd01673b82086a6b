//! Preflight checks of agent inputs against configuration and file system.
//!
//! They apply the engine's rules early, so that a caller gets all problems at once and no user has to confirm a
//! call that would be refused anyway. They change nothing, and the engine checks again: paths can change in between.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use delegator_config::Config;
use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT};
use delegator_domain::task::{EnvPolicyName, Mode, SandboxKind};
use delegator_engine::{
    AgentInput, Capabilities, MessageSupport, VariableAccess, find_mechanism, open_allowed_file,
    resolve_allowed_dir, untrusted_trees, variable_access,
};
use serde_json::Value;

use crate::error::engine::{
    directory_problem, file_problem, mode_not_enforced, mode_too_wide, unsupported_input,
    variable_not_allowed,
};
use crate::error::{ErrorCode, Problem};
use crate::input::agent_selection::{agent_names, select_agent};
use crate::input::attempts::{attempt_inputs, problem_of_attempt};
use crate::input::chain::followers;
use crate::spec::PreflightContext;

/// Checks for a new agent run in `working_dir`, or else in the current directory.
pub fn agent_problems(input: &Value, context: &PreflightContext<'_>) -> Vec<Problem> {
    let mut problems = agent_problems_in(input, context, Some(context.current_dir));
    for (number, attempt) in attempt_inputs(input).iter().enumerate() {
        let found = selected_agent_problems(attempt, context, DEFAULT_AGENT).into_iter();
        let found: Vec<Problem> = found.map(|problem| problem_of_attempt(problem, input, number)).collect();
        problems.extend(found.into_iter().filter(|problem| !problems.contains(problem)).collect::<Vec<_>>());
    }
    problems.extend(follower_problems(input, context));
    if input.get("working_dir").is_none() {
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
    }
    problems
}

/// Checks for a resumed thread: without `working_dir` and `agent` it has those of the thread, which only the registry knows.
pub fn resumed_agent_problems(input: &Value, context: &PreflightContext<'_>) -> Vec<Problem> {
    let mut problems = agent_problems_in(input, context, None);
    if input.get("agent").is_some_and(|agent| !agent.is_null()) {
        problems.extend(selected_agent_problems(input, context, DEFAULT_AGENT));
    }
    problems.extend(follower_problems(input, context));
    problems
}

/// What the agents of the followers cannot do, and modes above the limit. What a follower takes over unchanged is
/// reported once, for the task itself.
fn follower_problems(input: &Value, context: &PreflightContext<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for follower in followers(input) {
        let within =
            |problem: Problem| Problem { field: format!("{}.{}", follower.field, problem.field), ..problem };
        let is_given = |name: &str| follower.given.get(name).is_some_and(|value| !value.is_null());
        if is_given("mode") {
            problems.extend(mode_problem(&follower.input, context.config).map(within));
        }
        if is_given("agent") {
            let found = selected_agent_problems(&follower.input, context, DEFAULT_AGENT);
            problems.extend(found.into_iter().map(within));
        }
    }
    problems
}

/// Checks for an agent in its `working_dir`, or else in `default_dir` if that is known.
fn agent_problems_in(
    input: &Value,
    context: &PreflightContext<'_>,
    default_dir: Option<&Path>,
) -> Vec<Problem> {
    let roots = &context.config.settings.allowed_roots;
    let mut problems = Vec::new();
    let given = input.get("working_dir").and_then(Value::as_str).map(Path::new);
    problems.extend(given.and_then(|given| unusable_directory("working_dir", given, roots)));
    match given.or(default_dir) {
        Some(directory) => problems.extend(project_file_problems(input, context, directory)),
        // A project file may lower the limit further; the engine checks that once it knows the directory.
        None => problems.extend(mode_problem(input, context.config)),
    }
    for (field, given) in list_items(input, "add_dirs") {
        let path = Path::new(given);
        problems
            .extend(relative_path(&field, path, context).or_else(|| unusable_directory(&field, path, roots)));
    }
    for (field, given) in list_items(input, "images") {
        let path = Path::new(given);
        problems
            .extend(relative_path(&field, path, context).or_else(|| unreadable_file(&field, path, context)));
    }
    problems
}

/// What the selected agents cannot do: enforce the mode, honour an input, get a variable.
fn selected_agent_problems(
    input: &Value,
    context: &PreflightContext<'_>,
    default_agent: &str,
) -> Vec<Problem> {
    let names = match agent_names(input, default_agent) {
        Ok(names) => names,
        Err(problem) => return vec![problem],
    };
    let model = input.get("model").filter(|model| names.len() > 1 && !model.is_null());
    let ambiguous = model.map(|_| {
        Problem::new(ErrorCode::InvalidValue, "model", "belongs to one agent, but several are given")
            .suggest(Some("Remove {input:model}, or name one agent."))
    });
    let of_agent = |name: &str| match select_agent(context.config, name) {
        Ok(agent) => problems_of_agent(input, context, &agent),
        Err(problem) => vec![problem],
    };
    ambiguous.into_iter().chain(names.into_iter().flat_map(of_agent)).collect()
}

fn problems_of_agent(input: &Value, context: &PreflightContext<'_>, agent: &ConfiguredAgent) -> Vec<Problem> {
    let capabilities = Capabilities::of(agent.kind());
    let is_given = |name: &str| match input.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        // Without a sandbox of its own, an agent's commands see all variables that it has.
        Some(policy) if name == AgentInput::EnvPolicy.name() => policy != EnvPolicyName::InheritAll.name(),
        Some(_) => true,
    };
    let takes_messages = capabilities.messages != MessageSupport::None;
    let unsupported = capabilities.unsupported_inputs.iter().map(|input| input.name());
    let unsupported = unsupported.chain((!takes_messages).then_some("live"));
    let mut problems: Vec<Problem> =
        unsupported.filter(|name| is_given(name)).map(|name| unsupported_input(&agent.name, name)).collect();
    // A preview is read-only.
    let mode = requested_mode(input).unwrap_or(Mode::ReadOnly);
    if capabilities.sandbox_of(mode, agent.unsandboxed) == SandboxKind::Enforced {
        let path = context.process.environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let found =
            find_mechanism(context.config.settings.enclosure, path, &untrusted_trees([context.current_dir]));
        problems.extend(found.err().map(|problem| mode_not_enforced(&agent.name, mode, &problem)));
    }
    if problems.is_empty() { variable_problems(input, agent) } else { problems }
}

fn variable_problems(input: &Value, agent: &ConfiguredAgent) -> Vec<Problem> {
    let problem =
        |(field, given): (String, &str)| match variable_access(agent.kind(), given, &agent.variables) {
            VariableAccess::Passed => None,
            right => Some(variable_not_allowed(&field, &agent.name, given, right)),
        };
    list_items(input, "env_allow_list").into_iter().filter_map(problem).collect()
}

/// Problems with the project file of the task's work tree.
fn project_file_problems(input: &Value, context: &PreflightContext<'_>, directory: &Path) -> Vec<Problem> {
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

/// The sandbox mode in a raw input, if it is given and valid.
pub fn requested_mode(input: &Value) -> Option<Mode> {
    input.get("mode").and_then(Value::as_str).and_then(Mode::from_name)
}

fn mode_problem(input: &Value, config: &Config) -> Option<Problem> {
    let requested = requested_mode(input)?;
    let allowed = config.settings.max_mode;
    (requested > allowed).then(|| mode_too_wide(requested, allowed))
}

/// The strings of a list input, each with its field name such as `images.0`.
fn list_items<'a>(input: &'a Value, list: &str) -> Vec<(String, &'a str)> {
    let given = input.get(list).and_then(Value::as_array).into_iter().flatten();
    let texts = given.enumerate().filter_map(|(at, item)| Some((at, item.as_str()?)));
    texts.map(|(at, text)| (format!("{list}.{at}"), text)).collect()
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
