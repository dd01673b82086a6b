//! The resolved configuration: every key with its value and its origin.

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
    /// Location of the user's file, whether or not it exists.
    pub(crate) user_file_location: Option<UserFile>,
    pub(crate) home: Option<PathBuf>,
}

/// One key with its effective value.
#[derive(Clone)]
pub struct Setting {
    pub key: &'static Key,
    /// Absent if no source sets it and it has no default.
    pub value: Option<Value>,
    pub default: Option<Value>,
    pub origin: Origin,
}

impl Config {
    /// The configuration when no source sets anything.
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

    /// The configured envelope of JSON responses; `None` if the surface (CLI, file or MCP) decides.
    pub fn envelope(&self) -> Option<&str> {
        self.value("envelope").and_then(Value::as_text)
    }

    pub fn log_level(&self) -> &str {
        self.value("log_level").and_then(Value::as_text).unwrap_or_default()
    }

    /// Prefix of every tool name; may be empty.
    pub fn tool_prefix(&self) -> &str {
        self.value("tool_prefix").and_then(Value::as_text).unwrap_or_default()
    }

    /// Additional variables whose values are secrets.
    pub fn redact_names(&self) -> &[String] {
        self.value("redact_names").and_then(Value::as_list).unwrap_or_default()
    }

    /// Variables passed to an agent in addition to the built-in list.
    pub fn agent_variables(&self, agent: &str) -> &[String] {
        let Some(Value::Agents(agents)) = self.value("agents") else { return &[] };
        let fields = agents.get(agent);
        fields.and_then(|fields| fields.get("env")).and_then(Value::as_list).unwrap_or_default()
    }

    /// Labels added to every submitted task.
    pub fn labels(&self) -> BTreeMap<String, String> {
        match self.value("labels") {
            Some(Value::Labels(labels)) => labels.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// A numeric setting; 0 if it has no value.
    pub fn number(&self, key: &str) -> u64 {
        self.value(key).and_then(Value::as_number).unwrap_or_default()
    }

    /// A boolean setting; false if it has no value.
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Bool(true)))
    }

    /// A text setting.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value(key).and_then(Value::as_text)
    }

    /// A setting that is a list of texts.
    pub fn texts(&self, key: &str) -> &[String] {
        self.value(key).and_then(Value::as_list).unwrap_or_default()
    }

    /// A setting that is a list of paths.
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

    /// The value as JSON; null if there is none. Secrets are not hidden: see [`Key::secret`].
    pub fn value_json(&self) -> serde_json::Value {
        self.value.as_ref().map(Value::to_json).unwrap_or_default()
    }

    pub fn default_json(&self) -> serde_json::Value {
        self.default.as_ref().map(Value::to_json).unwrap_or_default()
    }
}

/// Omits the value of a secret, so that no debug output contains it.
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
