//! Who wins: flag over environment over project over user's file over default.
//!
//! A project's file comes with the repository and is not trusted, so for a limit it wins over the user's file
//! or the default only by being lower. Variables and flags are the user's own and win over it either way.

use std::cmp::Ordering;

use crate::config::Setting;
use crate::keys::{self, Key, ProjectRight, Scope};
use crate::layers::{Given, Layer, Layers};
use crate::origin::{Origin, Source};
use crate::problem::{ConfigWarning, Problem, ProblemSource};
use crate::value::{Value, default_value};

const NOT_LOWER: &str = "W_CONFIG_003";

/// Pairs of which the first must be less than the second, and why.
const ASCENDING: [(&str, &str, &str); 2] = [
    ("fleet_beat_sec", "fleet_cutoff_sec", "a worker must get the chance to beat before it gives up"),
    ("fleet_cutoff_sec", "fleet_lease_sec", "a worker must stop its agents before its tasks are given away"),
];

/// Every setting in table order.
pub(crate) fn resolve(mut layers: Layers, cores: usize) -> (Vec<Setting>, Vec<ConfigWarning>) {
    let mut warnings = Vec::new();
    let settings = keys::settings()
        .map(|key| {
            let default = default_value(key, cores);
            let mut setting = Setting { key, value: default.clone(), default, origin: Origin::Default };
            setting.replace(layers.user.remove(key.name));
            let mut refused = None;
            if let Some(given) = layers.project.remove(key.name) {
                match admit(key, &given, setting.value.as_ref()) {
                    Verdict::Taken => setting.replace(Some(given)),
                    Verdict::Idle => {}
                    Verdict::Refused => refused = Some(given),
                }
            }
            setting.replace(layers.environment.remove(key.name));
            setting.replace(layers.flags.remove(key.name));
            // Told last, because only now is it known what holds instead.
            warnings.extend(refused.map(|given| not_lower(key, &given, &setting)));
            setting
        })
        .collect();
    (settings, warnings)
}

/// Applies what a project sets for the tasks in its work tree to settings that hold without it. Variables and flags win
/// over it either way.
pub(crate) fn lower_for_tasks(settings: &mut [Setting], mut project: Layer) -> Vec<ConfigWarning> {
    let mut warnings = Vec::new();
    for setting in settings.iter_mut().filter(|setting| setting.key.scope == Scope::Task) {
        let Some(given) = project.remove(setting.key.name) else { continue };
        let is_users_own = setting.source() > Source::Project;
        match admit(setting.key, &given, setting.value.as_ref()) {
            Verdict::Refused => warnings.push(not_lower(setting.key, &given, setting)),
            Verdict::Taken if !is_users_own => setting.replace(Some(given)),
            Verdict::Taken | Verdict::Idle => {}
        }
    }
    warnings
}

impl Setting {
    fn replace(&mut self, given: Option<Given>) {
        if let Some(Given { value, origin }) = given {
            self.value = Some(value);
            self.origin = origin;
        }
    }
}

/// What becomes of a project's value.
enum Verdict {
    Taken,
    /// It changes nothing, and nobody need hear of it.
    Idle,
    Refused,
}

fn admit(key: &Key, given: &Given, current: Option<&Value>) -> Verdict {
    if key.project == ProjectRight::Set {
        return Verdict::Taken;
    }
    let ranks = (given.value.rank(&key.kind), current.and_then(|value| value.rank(&key.kind)));
    match ranks {
        (Some(project), Some(user)) => match project.cmp(&user) {
            Ordering::Less => Verdict::Taken,
            Ordering::Equal => Verdict::Idle,
            Ordering::Greater => Verdict::Refused,
        },
        _ => Verdict::Refused,
    }
}

fn not_lower(key: &Key, given: &Given, setting: &Setting) -> ConfigWarning {
    ConfigWarning {
        code: NOT_LOWER,
        message: format!(
            "{}: a project file may only lower `{}`; {} is ignored, {} holds ({})",
            given.origin,
            key.name,
            given.value.to_json(),
            setting.value_json(),
            setting.origin,
        ),
    }
}

/// Values that are each allowed and do not go together.
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
        // The stronger source spoke last, so it is the one that broke the order.
        let blamed = if more.source() > less.source() { more } else { less };
        blame(blamed, problem)
    };
    ASCENDING.iter().filter_map(check).collect()
}

/// A problem at the place that set the value; defaults are never to blame.
fn blame(setting: &Setting, problem: String) -> Option<Problem> {
    let (source, place) = match &setting.origin {
        Origin::Default => return None,
        Origin::UserConfig { path, position } => (ProblemSource::UserConfig, Some((path, position))),
        Origin::Project { path, position } => (ProblemSource::Project, Some((path, position))),
        Origin::Variable(name) => (ProblemSource::Variable(name.clone()), None),
        Origin::Flag(name) => (ProblemSource::Flag(name.clone()), None),
    };
    Some(Problem {
        line: place.map(|(_, position)| position.line),
        column: place.map(|(_, position)| position.column),
        key: setting.key.name.to_owned(),
        ..Problem::of_source(source, place.map(|(path, _)| path.as_path()), problem)
    })
}
