//! Reads values from environment variables and flags.
//!
//! An unknown variable with our prefix is only a warning, because it may be meant for a newer version of the
//! program in the same environment. An unknown flag is a problem.

use std::ffi::OsStr;
use std::path::Path;

use delegator_domain::warning_code::WarningCode;
use serde_json::Value;

use crate::check::Checker;
use crate::keys::{self, Key, TextFormat, VARIABLE_PREFIX, ValueKind};
use crate::locations::{RESERVED_VARIABLES, Sources};
use crate::node::node_from_text;
use crate::problem::{ConfigWarning, Origin, Problem, ProblemSource, ValueProblem, escaped, quoted};
use crate::resolve::Layer;

pub(crate) fn read_environment(sources: &Sources) -> (Layer, Vec<Problem>) {
    let mut layer = Layer::new();
    let mut problems = Vec::new();
    for key in keys::settings() {
        let Some(name) = key.variable() else { continue };
        let Some(text) = sources.variable(&name) else { continue };
        let value = match text.to_str() {
            Some(text) => value_of_text(key, text, sources.home()),
            None => Err(vec![ValueProblem::new(key.name, None, "the value is not UTF-8 text")]),
        };
        let to_problem = |problem: ValueProblem| problem.into_problem(ProblemSource::Variable(name.clone()));
        match value {
            Err(found) => problems.extend(found.into_iter().map(to_problem)),
            Ok(value) => layer.extend(value.map(|value| (key.name, (value, Origin::Variable(name))))),
        }
    }
    (layer, problems)
}

/// Warnings about variables with our prefix that set no key.
pub(crate) fn unknown_variables(sources: &Sources) -> Vec<ConfigWarning> {
    let known: Vec<String> = keys::settings().filter_map(Key::variable).collect();
    let is_unknown = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with(VARIABLE_PREFIX)
            && !RESERVED_VARIABLES.contains(&name.as_ref())
            && !known.iter().any(|variable| *variable == name)
    };
    let warning = |name: &OsStr| {
        let name = name.to_string_lossy();
        let typed = name.strip_prefix(VARIABLE_PREFIX).unwrap_or_default();
        let suggestion = keys::nearest(typed).and_then(keys::find).and_then(Key::variable);
        let hint = suggestion.map(|variable| format!("; did you mean `{variable}`?")).unwrap_or_default();
        ConfigWarning {
            code: WarningCode::UnknownVariable,
            message: format!("the variable {} sets no configuration key{hint}", quoted(&name)),
        }
    };
    let set = sources.environment.iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, _)| name.as_os_str()).filter(|name| is_unknown(name)).map(warning).collect()
}

pub(crate) fn read_flags(flags: &[(String, String)], home: Option<&Path>) -> (Layer, Vec<Problem>) {
    let mut layer = Layer::new();
    let mut problems = Vec::new();
    for (name, text) in flags {
        let Some(key) = keys::find(name) else {
            let suggestion = keys::nearest(name).map(str::to_owned);
            let problem = ValueProblem::of_unknown_key(name, None, suggestion);
            problems.push(problem.into_problem(ProblemSource::Flag(keys::flag_name(name))));
            continue;
        };
        let flag = key.flag();
        let mut report =
            |problem: ValueProblem| problems.push(problem.into_problem(ProblemSource::Flag(flag.clone())));
        if layer.contains_key(key.name) {
            report(ValueProblem::new(key.name, None, "the flag is given twice"));
            continue;
        }
        match value_of_text(key, text, home) {
            Ok(Some(value)) if has_password(key, &value) => report(ValueProblem::new(
                key.name,
                None,
                "every user of the machine can see a command line; set a URL with a password by variable or file",
            )),
            Ok(value) => layer.extend(value.map(|value| (key.name, (value, Origin::Flag(flag))))),
            Err(value_problems) => value_problems.into_iter().for_each(report),
        }
    }
    (layer, problems)
}

fn value_of_text(key: &Key, text: &str, home: Option<&Path>) -> Result<Option<Value>, Vec<ValueProblem>> {
    let node = match node_from_text(&key.kind, text) {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(None),
        Err(problem) => {
            let value = Some(escaped(text.trim()).into());
            return Err(vec![ValueProblem::of_value(key.name, None, problem, &key.kind, value)]);
        }
    };
    let mut checker = Checker::new(home);
    match checker.value(&key.kind, key.name, &node) {
        Some(value) => Ok(Some(value)),
        None => Err(checker.problems),
    }
}

/// Whether a database URL carries a password, as user information or as a parameter.
fn has_password(key: &Key, value: &Value) -> bool {
    let (ValueKind::Text(TextFormat::DatabaseUrl), Some(url)) = (&key.kind, value.as_str()) else {
        return false;
    };
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let parameters = after_scheme.split_once('?').map_or("", |(_, parameters)| parameters);
    let in_user = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    in_user || parameters.split('&').any(|parameter| parameter.to_lowercase().starts_with("password="))
}

#[cfg(test)]
mod tests;
