//! The loaded configuration: the typed values, the origin of each, and the agents that tasks can name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::agents::{BUILT_IN_AGENTS, ConfiguredAgent, DEFAULT_AGENT, LIVE_AGENT, built_in_agent};

use crate::document::read_file;
use crate::fleet::{self, UrlFile};
use crate::keys::{Key, ProjectRight, Scope};
use crate::locations::{self, UserFile};
use crate::problem::{ConfigError, ConfigWarning, ProblemSource, Source};
use crate::resolve::{Layer, SourcedSetting, apply_project, typed};
use crate::settings::{SecretText, Settings};
use crate::variables_and_flags::read_flags;

#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    /// The same values by key, each with its origin.
    pub(crate) sourced: Vec<SourcedSetting>,
    pub warnings: Vec<ConfigWarning>,
    pub user_file: Option<PathBuf>,
    pub project_file: Option<PathBuf>,
    /// Location of the user's file, whether or not it exists.
    pub(crate) user_file_location: Option<UserFile>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) database_url_file: UrlFile,
}

impl Config {
    /// Every key with its value and origin, set or not, in table order. The agents are one setting, `agents`.
    pub fn sourced(&self) -> &[SourcedSetting] {
        &self.sourced
    }

    /// This configuration with keys set by flags of one command, by key name.
    pub fn with_flags(&self, flags: &[(String, String)]) -> Result<Config, ConfigError> {
        let (mut layer, mut problems) = read_flags(flags, self.home.as_deref());
        let mut config = self.clone();
        for setting in &mut config.sourced {
            if let Some((value, origin)) = layer.remove(setting.key.name) {
                (setting.value, setting.origin) = (value, origin);
            }
        }
        problems.extend(fleet::time_problems(&config.sourced));
        config.settings = typed(&config.sourced);
        if problems.is_empty() { Ok(config) } else { Err(ConfigError { problems }) }
    }

    /// The PostgreSQL URL of the fleet, from its key or its file, which is read once; `None` without a fleet.
    pub fn database_url(&self) -> Result<Option<SecretText>, ConfigError> {
        fleet::database_url(&self.settings, &self.sourced, &self.database_url_file)
    }

    /// An error if a worker with these times could lose its lease before its agents have stopped.
    pub fn check_lease(&self) -> Result<(), ConfigError> {
        let problems: Vec<_> = fleet::lease_problem(&self.sourced).into_iter().collect();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
    }

    pub fn database_url_file(&self) -> Option<&Path> {
        self.settings.database_url_file.as_deref()
    }

    /// Directory of the user's configuration file, whether or not it exists. `None` for a file named by a
    /// variable, because it may be anywhere.
    pub fn user_directory(&self) -> Option<&Path> {
        self.user_file_location.as_ref().filter(|file| !file.is_explicit)?.path.parent()
    }

    /// The configuration for a task in this directory: this one, with what the project file of its work tree
    /// sets for tasks. An error if that file is invalid. `directory` must be a real path.
    pub fn for_work_tree(&self, directory: &Path) -> Result<Config, ConfigError> {
        let (project_file, layer) = self.project_of(directory)?.unzip();
        let config = self.with_project(layer, |key| key.scope == Scope::Task);
        Ok(Config { project_file, ..config })
    }

    /// This configuration with the limits of an additional directory the task may write to. Other values of
    /// that project, such as labels, apply only to tasks that work there.
    pub fn with_limits_of(&self, directory: &Path) -> Result<Config, ConfigError> {
        let (_, layer) = self.project_of(directory)?.unzip();
        Ok(self.with_project(layer, |key| key.scope == Scope::Task && key.project == ProjectRight::Lower))
    }

    fn with_project(&self, layer: Option<Layer>, applies: impl Fn(&Key) -> bool) -> Config {
        let mut config = self.clone();
        let Some(layer) = layer else { return config };
        let warnings = apply_project(&mut config.sourced, layer, applies);
        config.settings = typed(&config.sourced);
        config.warnings.extend(warnings.into_iter().filter(|warning| !self.warnings.contains(warning)));
        config
    }

    /// The project file of a directory's work tree, and what it sets.
    fn project_of(&self, directory: &Path) -> Result<Option<(PathBuf, Layer)>, ConfigError> {
        let Some(path) = locations::project_file(directory, self.user_file_location.as_ref())? else {
            return Ok(None);
        };
        let (layer, problems) =
            read_file(&path, Source::Project, ProblemSource::Project, self.home.as_deref());
        if problems.is_empty() { Ok(Some((path, layer))) } else { Err(ConfigError { problems }) }
    }
}

impl Config {
    /// The configuration of a built-in agent may replace its protocol and its command.
    pub fn agent(&self, name: &str) -> Option<ConfiguredAgent> {
        let built_in = built_in_agent(name);
        let settings = self.settings.agents.get(name);
        let (program, args) = match (settings.map(|agent| agent.command.as_slice()), built_in) {
            _ if name == DEFAULT_AGENT => (self.settings.codex_bin.clone(), &[][..]),
            (Some([program, args @ ..]), _) => (program.into(), args),
            _ if name == LIVE_AGENT => (self.settings.codex_bin.clone(), &[][..]),
            (_, Some(built_in)) => (built_in.program.into(), &[][..]),
            (_, None) => return None,
        };
        let protocol = settings.map(|agent| agent.protocol).or(built_in.map(|agent| agent.protocol))?;
        Some(ConfiguredAgent {
            name: name.to_owned(),
            protocol,
            program,
            args: args.to_vec(),
            variables: settings.map(|agent| agent.env.clone()).unwrap_or_default(),
            unsandboxed: settings.is_some_and(|agent| agent.unsandboxed),
            state_dirs: settings.map(|agent| agent.state_dirs.clone()).unwrap_or_default(),
            linger: settings.map_or(Duration::ZERO, |agent| agent.linger),
            tool_command: settings.and_then(|agent| agent.tool_command.clone()).unwrap_or_default(),
        })
    }

    pub fn agent_names(&self) -> Vec<&str> {
        let built_in = BUILT_IN_AGENTS.iter().map(|agent| agent.name);
        let configured = self.settings.agents.keys().map(String::as_str);
        built_in.chain(configured.filter(|name| built_in_agent(name).is_none())).collect()
    }
}
