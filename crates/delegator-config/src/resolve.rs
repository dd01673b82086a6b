//! Applies precedence: flag over environment over project file over user file over default.
//!
//! A project file comes with the repository and is not trusted, so for a limit it overrides the user file or the
//! default only with a lower value. Variables and flags are the user's own and always override it.

use std::cmp::Ordering;

use crate::config::Setting;
use crate::keys::{self, Key, ProjectRight, Scope};
use crate::layers::{Layer, Layers, SourcedValue};
use crate::origin::{Origin, Source};
use crate::problem::{ConfigWarning, Problem, ProblemSource};
use crate::value::{Value, default_value};

const NOT_LOWER: &str = "W_CONFIG_003";

/// Pairs of keys of which the first must be less than the second, and the reason.
const REQUIRED_ORDER: [(&str, &str, &str); 2] = [
    ("fleet_beat_sec", "fleet_cutoff_sec", "a worker must be able to send a heartbeat before it gives up"),
    ("fleet_cutoff_sec", "fleet_lease_sec", "a worker must stop its agents before its tasks are reassigned"),
];

/// Resolves every setting, in table order.
pub(crate) fn resolve(mut layers: Layers, cores: usize) -> (Vec<Setting>, Vec<ConfigWarning>) {
    let mut warnings = Vec::new();
    let settings = keys::settings()
        .map(|key| {
            let default = default_value(key, cores);
            let mut setting = Setting { key, value: default.clone(), default, origin: Origin::Default };
            setting.replace(layers.user.remove(key.name));
            let mut rejected = None;
            if let Some(given) = layers.project.remove(key.name) {
                match judge_project_value(key, &given, setting.value.as_ref()) {
                    Verdict::Accepted => setting.replace(Some(given)),
                    Verdict::NoEffect => {}
                    Verdict::Rejected => rejected = Some(given),
                }
            }
            setting.replace(layers.environment.remove(key.name));
            setting.replace(layers.flags.remove(key.name));
            // Reported last, because only now the effective value is known.
            warnings.extend(rejected.map(|given| not_lower(key, &given, &setting)));
            setting
        })
        .collect();
    (settings, warnings)
}

/// Applies the values that a project sets for the tasks in its work tree to resolved settings. Variables and flags
/// still override them.
pub(crate) fn apply_project_layer(settings: &mut [Setting], mut project: Layer) -> Vec<ConfigWarning> {
    let mut warnings = Vec::new();
    for setting in settings.iter_mut().filter(|setting| setting.key.scope == Scope::Task) {
        let Some(given) = project.remove(setting.key.name) else { continue };
        let is_users_own = setting.source() > Source::Project;
        match judge_project_value(setting.key, &given, setting.value.as_ref()) {
            Verdict::Rejected => warnings.push(not_lower(setting.key, &given, setting)),
            Verdict::Accepted if !is_users_own => setting.replace(Some(given)),
            Verdict::Accepted | Verdict::NoEffect => {}
        }
    }
    warnings
}

impl Setting {
    fn replace(&mut self, given: Option<SourcedValue>) {
        if let Some(SourcedValue { value, origin }) = given {
            self.value = Some(value);
            self.origin = origin;
        }
    }
}

/// What happens to a value of a project file.
enum Verdict {
    Accepted,
    /// It equals the current value: no change, no warning.
    NoEffect,
    Rejected,
}

fn judge_project_value(key: &Key, given: &SourcedValue, current: Option<&Value>) -> Verdict {
    if key.project == ProjectRight::Set {
        return Verdict::Accepted;
    }
    let ranks = (given.value.rank(&key.kind), current.and_then(|value| value.rank(&key.kind)));
    match ranks {
        (Some(project), Some(user)) => match project.cmp(&user) {
            Ordering::Less => Verdict::Accepted,
            Ordering::Equal => Verdict::NoEffect,
            Ordering::Greater => Verdict::Rejected,
        },
        _ => Verdict::Rejected,
    }
}

fn not_lower(key: &Key, given: &SourcedValue, setting: &Setting) -> ConfigWarning {
    ConfigWarning {
        code: NOT_LOWER,
        message: format!(
            "{}: a project file may only lower `{}`; {} is ignored, {} applies ({})",
            given.origin,
            key.name,
            given.value.to_json(),
            setting.value_json(),
            setting.origin,
        ),
    }
}

/// Problems of values that are valid alone but contradict each other.
pub(crate) fn contradictions(settings: &[Setting]) -> Vec<Problem> {
    let find = |name: &str| settings.iter().find(|setting| setting.key.name == name);
    let number = |setting: &Setting| match setting.value {
        Some(Value::Integer(number)) => Some(number),
        _ => None,
    };
    let check = |&(less, more, why): &(&str, &str, &str)| {
        let (less, more) = (find(less)?, find(more)?);
        let (small, large) = (number(less)?, number(more)?);
        if small < large {
            return None;
        }
        let problem =
            format!("{} ({small}) must be less than {} ({large}): {why}", less.key.name, more.key.name);
        // The source with higher precedence was applied last, so it broke the order.
        let culprit = if more.source() > less.source() { more } else { less };
        problem_at_origin(culprit, problem)
    };
    REQUIRED_ORDER.iter().filter_map(check).collect()
}

/// A problem at the origin of the value; `None` for a default.
fn problem_at_origin(setting: &Setting, problem: String) -> Option<Problem> {
    let (source, location) = match &setting.origin {
        Origin::Default => return None,
        Origin::UserConfig { path, position } => (ProblemSource::UserConfig, Some((path, position))),
        Origin::Project { path, position } => (ProblemSource::Project, Some((path, position))),
        Origin::Variable(name) => (ProblemSource::Variable(name.clone()), None),
        Origin::Flag(name) => (ProblemSource::Flag(name.clone()), None),
    };
    Some(Problem {
        line: location.map(|(_, position)| position.line),
        column: location.map(|(_, position)| position.column),
        key: setting.key.name.to_owned(),
        ..Problem::of_source(source, location.map(|(path, _)| path.as_path()), problem)
    })
}
