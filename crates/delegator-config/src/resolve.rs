//! Applies precedence: flag over environment over project file over user file over default.
//!
//! A project file comes with the repository and is not trusted, so for a limit it overrides the user file or
//! the default only with a lower value. Variables and flags are the user's own and always override it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use delegator_domain::warning_code::WarningCode;
use serde_json::Value;

use crate::keys::{self, Key, ProjectRight};
use crate::problem::{ConfigWarning, Origin, Problem, ProblemSource, Source};
use crate::settings::Settings;

/// The checked values that one source sets, by key name, and where each was set.
pub(crate) type Layer = BTreeMap<&'static str, (Value, Origin)>;

/// One key with its effective value, as JSON, and its origin. Secrets are not hidden: see `secret` of
/// [`Key`].
#[derive(Clone)]
pub struct SourcedSetting {
    pub key: &'static Key,
    /// Null if no source sets it and it has no default.
    pub value: Value,
    pub default: Value,
    pub origin: Origin,
    /// The value in the user's file, or else the default: what a project file competes with.
    pub(crate) below_project: Value,
}

impl SourcedSetting {
    /// A problem at the place where the setting was set.
    pub(crate) fn problem(&self, message: String) -> Problem {
        let problem = Problem::of_source(ProblemSource::from(&self.origin), None, message);
        let problem = Problem { key: self.key.name.to_owned(), ..problem };
        match &self.origin {
            Origin::File { path, position, .. } => Problem {
                file: Some(path.clone()),
                line: Some(position.line),
                column: Some(position.column),
                ..problem
            },
            _ => problem,
        }
    }
}

/// Omits the value of a secret, so that no debug output contains it.
impl fmt::Debug for SourcedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SourcedSetting");
        debug.field("key", &self.key.name).field("origin", &self.origin);
        if self.key.secret {
            return debug.finish_non_exhaustive();
        }
        debug.field("value", &self.value).finish()
    }
}

/// Resolves every setting, in table order, from the user's own sources in ascending precedence.
pub(crate) fn resolve(mut layers: [Layer; 3], cores: usize) -> Vec<SourcedSetting> {
    let resolve_key = |key: &'static Key| {
        let default = key.default.value(cores);
        let (value, below_project) = (default.clone(), default.clone());
        let mut setting = SourcedSetting { key, value, default, origin: Origin::Default, below_project };
        for (value, origin) in layers.iter_mut().filter_map(|layer| layer.remove(key.name)) {
            if origin.source() < Source::Project {
                setting.below_project = value.clone();
            }
            (setting.value, setting.origin) = (value, origin);
        }
        setting
    };
    keys::settings().map(resolve_key).collect()
}

/// Ignores values of keys that do not apply, and with a warning values of limits that are not lower.
pub(crate) fn apply_project(
    settings: &mut [SourcedSetting],
    mut project: Layer,
    applies: impl Fn(&Key) -> bool,
) -> Vec<ConfigWarning> {
    let mut warnings = Vec::new();
    for setting in settings.iter_mut().filter(|setting| applies(setting.key)) {
        let Some((value, origin)) = project.remove(setting.key.name) else { continue };
        let is_overridden = setting.origin.source() > Source::Project;
        let current = if is_overridden { &setting.below_project } else { &setting.value };
        let order = setting.key.rank(&value).cmp(&setting.key.rank(current));
        if setting.key.project == ProjectRight::Lower && order == Ordering::Greater {
            warnings.push(not_lower(setting, &value, &origin));
        } else if !is_overridden && (setting.key.project == ProjectRight::Set || order == Ordering::Less) {
            (setting.value, setting.origin) = (value, origin);
        }
    }
    warnings
}

fn not_lower(setting: &SourcedSetting, given: &Value, origin: &Origin) -> ConfigWarning {
    ConfigWarning {
        code: WarningCode::IgnoredValue,
        message: format!(
            "{origin}: a project file may only lower `{}`; {given} is ignored, {} applies ({})",
            setting.key.name, setting.value, setting.origin,
        ),
    }
}

pub(crate) fn typed(settings: &[SourcedSetting]) -> Settings {
    let values = settings.iter().map(|setting| (setting.key.name.to_owned(), setting.value.clone()));
    serde_json::from_value(Value::Object(values.collect()))
        .unwrap_or_else(|error| unreachable!("a test compares the key table with the struct: {error}"))
}
