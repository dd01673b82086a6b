//! The configuration as the rest of the program sees it: every key with its value and where that is from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::keys::Key;
use crate::layers::Layers;
use crate::locations::UserFile;
use crate::origin::{Origin, Source};
use crate::problem::ConfigWarning;
use crate::resolve::resolve;
use crate::value::Value;

/// A configuration without problems.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) settings: Vec<Setting>,
    pub warnings: Vec<ConfigWarning>,
    /// The user's file, if there is one.
    pub user_file: Option<PathBuf>,
    /// The project's file, if there is one.
    pub project_file: Option<PathBuf>,
    /// Where the user's file would be, whether or not it exists.
    pub(crate) user_file_location: Option<UserFile>,
    pub(crate) home: Option<PathBuf>,
}

/// One key as it stands.
#[derive(Clone)]
pub struct Setting {
    pub key: &'static Key,
    /// Absent if no source sets it and it has no default.
    pub value: Option<Value>,
    pub default: Option<Value>,
    pub origin: Origin,
}

impl Config {
    /// What holds when nobody has configured anything.
    pub fn defaults(cores: usize) -> Config {
        let (settings, warnings) = resolve(Layers::default(), cores);
        Config {
            settings,
            warnings,
            user_file: None,
            project_file: None,
            user_file_location: None,
            home: None,
        }
    }

    /// Every key, set or not, in table order. The agents are one setting, `agents`.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }

    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key.name == key)
    }

    /// The wrapper of JSON answers, if one was chosen; otherwise the surface decides.
    pub fn envelope(&self) -> Option<&str> {
        self.value("envelope").and_then(Value::as_text)
    }

    pub fn log_level(&self) -> &str {
        self.value("log_level").and_then(Value::as_text).unwrap_or_default()
    }

    /// The beginning of every tool's name; may be empty.
    pub fn tool_prefix(&self) -> &str {
        self.value("tool_prefix").and_then(Value::as_text).unwrap_or_default()
    }

    /// Variables whose values are secrets, beside those that look like one.
    pub fn redact_names(&self) -> &[String] {
        self.value("redact_names").and_then(Value::as_list).unwrap_or_default()
    }

    /// Variables that an agent is given beside the built-in list.
    pub fn agent_variables(&self, agent: &str) -> &[String] {
        let Some(Value::Agents(agents)) = self.value("agents") else { return &[] };
        let fields = agents.get(agent);
        fields.and_then(|fields| fields.get("env")).and_then(Value::as_list).unwrap_or_default()
    }

    /// Labels of every task submitted.
    pub fn labels(&self) -> BTreeMap<String, String> {
        match self.value("labels") {
            Some(Value::Labels(labels)) => labels.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// A setting that is a number; 0 for one that has no value.
    pub fn number(&self, key: &str) -> u64 {
        self.value(key).and_then(Value::as_number).unwrap_or_default()
    }

    /// A setting that is a switch; off for one that has no value.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Bool(true)))
    }

    /// A setting that is a word.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value(key).and_then(Value::as_text)
    }

    /// A setting that is a list of words.
    pub fn texts(&self, key: &str) -> &[String] {
        self.value(key).and_then(Value::as_list).unwrap_or_default()
    }

    /// A setting that is a list of directories.
    pub fn paths(&self, key: &str) -> &[PathBuf] {
        self.value(key).and_then(Value::as_paths).unwrap_or_default()
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.get(key).and_then(|setting| setting.value.as_ref())
    }
}

impl Setting {
    pub fn source(&self) -> Source {
        self.origin.source()
    }

    /// The value as JSON, null if there is none. A secret is not hidden: see [`Key::secret`].
    pub fn value_json(&self) -> serde_json::Value {
        self.value.as_ref().map(Value::to_json).unwrap_or_default()
    }

    pub fn default_json(&self) -> serde_json::Value {
        self.default.as_ref().map(Value::to_json).unwrap_or_default()
    }
}

/// A secret stays out of logs, whoever prints the configuration.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Setting");
        debug.field("key", &self.key.name).field("origin", &self.origin);
        if self.key.secret {
            return debug.finish_non_exhaustive();
        }
        debug.field("value", &self.value).finish()
    }
}
