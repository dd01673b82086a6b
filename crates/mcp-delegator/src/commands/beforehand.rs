//! What the surroundings say about a call to an agent, found out before anything is done.
//!
//! A caller is told all that is wrong at once, and nobody is asked to confirm what would be refused anyway: so what the
//! engine would refuse for reasons one can see from here is looked at here too, by the same rules. The engine's own look
//! stays what counts: between the two, names may come to mean something else.

use std::path::{Path, PathBuf};

use delegator_config::Config;
use delegator_domain::task::Mode;
use delegator_engine::{VariableRight, open_file, real_directory, variable_right};
use serde_json::Value;

use crate::commands::local::tasks::AGENT;
use crate::fault::engine::{mode_too_wide, unfit_directory, unfit_file, variable_not_allowed};
use crate::fault::{ErrorCode, Problem};
use crate::registry::{Circumstances, max_mode};

/// An agent that works where it is told to, or where we are.
pub fn of_agent(input: &Value, around: &Circumstances<'_>) -> Vec<Problem> {
    let mut problems = of_agent_in(input, around, Some(around.current_dir));
    if input.get("working_dir").is_none() {
        let roots = around.config.paths("allowed_roots");
        problems.extend(real_directory(around.current_dir, roots).err().map(|problem| {
            let told = unfit_directory("working_dir", around.current_dir, &problem);
            let words = format!(
                "is not given, and the current directory, {}, {}",
                around.current_dir.display(),
                told.problem
            );
            Problem { problem: words, ..told }
        }));
    }
    problems
}

/// An agent that works where it is told to, or where only the registry knows.
pub fn of_agent_elsewhere(input: &Value, around: &Circumstances<'_>) -> Vec<Problem> {
    of_agent_in(input, around, None)
}

/// An agent in its `working_dir`, or else in this directory, where one is known.
fn of_agent_in(input: &Value, around: &Circumstances<'_>, otherwise: Option<&Path>) -> Vec<Problem> {
    let roots = around.config.paths("allowed_roots");
    let mut problems = Vec::new();
    let given = input.get("working_dir").and_then(Value::as_str).map(Path::new);
    problems.extend(given.and_then(|given| unfit("working_dir", given, roots)));
    match given.or(otherwise) {
        Some(directory) => problems.extend(of_work_tree(input, around, directory)),
        // The work tree may allow less; that is checked where it is known.
        None => problems.extend(wide_mode(input, around.config)),
    }
    for (field, given) in items(input, "add_dirs") {
        let path = Path::new(given);
        problems.extend(relative(&field, path, around).or_else(|| unfit(&field, path, roots)));
    }
    for (field, given) in items(input, "images") {
        let path = Path::new(given);
        problems.extend(relative(&field, path, around).or_else(|| unreadable(&field, path, around)));
    }
    for (field, given) in items(input, "env_allow_list") {
        let right = variable_right(given, around.config.agent_variables(AGENT));
        problems.extend((right != VariableRight::Given).then(|| variable_not_allowed(&field, given, right)));
    }
    problems
}

/// What the project file of the task's work tree has against it.
fn of_work_tree(input: &Value, around: &Circumstances<'_>, directory: &Path) -> Vec<Problem> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    match around.config.for_work_tree(&real) {
        Ok(config) => wide_mode(input, &config).into_iter().collect(),
        Err(error) => {
            let problem = |problem: &delegator_config::Problem| {
                let words = format!("is in a work tree whose project file is not valid: {problem}");
                Problem::new(ErrorCode::ConfigInvalid, "working_dir", words)
                    .suggest(Some("Mend or remove that file; until then no task is started in its tree."))
            };
            error.problems.iter().map(problem).collect()
        }
    }
}

fn wide_mode(input: &Value, config: &Config) -> Option<Problem> {
    let asked = input.get("mode").and_then(Value::as_str).and_then(Mode::named)?;
    let allowed = max_mode(config);
    (asked > allowed).then(|| mode_too_wide(asked, allowed))
}

/// The texts of a list, each under the name problems have for it.
fn items<'a>(input: &'a Value, list: &str) -> Vec<(String, &'a str)> {
    let given = input.get(list).and_then(Value::as_array).into_iter().flatten();
    let texts = given.enumerate().filter_map(|(at, item)| Some((at, item.as_str()?)));
    texts.map(|(at, text)| (format!("{list}.{at}"), text)).collect()
}

fn unfit(field: &str, path: &Path, roots: &[PathBuf]) -> Option<Problem> {
    real_directory(path, roots).err().map(|problem| unfit_directory(field, path, &problem))
}

/// Whose directory would it start from? A caller of a server hardly knows the server's.
fn relative(field: &str, path: &Path, around: &Circumstances<'_>) -> Option<Problem> {
    let meant = around.current_dir.join(path);
    path.is_relative().then(|| {
        Problem::new(ErrorCode::InvalidValue, field, "must be an absolute path")
            .value(path.display().to_string().into())
            .suggest(Some(format!("From the current directory it would be {}.", meant.display())))
    })
}

fn unreadable(field: &str, path: &Path, around: &Circumstances<'_>) -> Option<Problem> {
    let refused = open_file(path, around.config.paths("allowed_roots"), around.state_dir);
    refused.err().map(|problem| unfit_file(field, path, &problem))
}
