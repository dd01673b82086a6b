//! Configuration: the only crate that knows a configuration key, reads a configuration file or interprets an
//! environment variable.
//!
//! The caller passes [`Sources`] (environment, directory, flags, cores). [`load`] returns a [`Config`] in which
//! every key has a value, a source and an origin, or a [`ConfigError`] with *all* problems of all sources:
//!
//! ```text
//! config.toml ──────────┐ document                        ┌► Config
//! .mcp-delegator.toml ──┤          ► Node ► check ► Layer ► resolve
//! variables, flags ─────┘ variables_and_flags             └► ConfigError
//! ```
//!
//! [`KEYS`] defines which values each key accepts and who may set it; `locations` finds the files; `files` is the
//! only module that reads them. [`environments`] handles the other file, `environments.json`. Everything else is
//! pure.

mod agents;
mod check;
mod config;
mod document;
pub mod environments;
mod files;
mod keys;
mod layers;
mod locations;
mod node;
mod origin;
mod paths;
mod problem;
mod reference;
mod resolve;
mod sources;
mod value;
mod variables_and_flags;

use std::path::{Path, PathBuf};

use document::Owner;
use layers::{Layer, Layers};
use locations::UserFile;

pub use config::{Config, Setting};
pub use files::replace_text;
pub use keys::{DefaultValue, KEYS, Key, ProjectRight, Scope, TextFormat, VARIABLE_PREFIX, ValueKind};
pub use locations::{environments_file, state_dir};
pub use origin::{Origin, Source};
pub use problem::{ConfigError, ConfigWarning, Position, Problem, ProblemSource};
pub use reference::reference;
pub use sources::Sources;
pub use value::{Agent, Value};

/// Warning about an invalid project file, when the call starts no task there.
const BROKEN_PROJECT: &str = "W_CONFIG_004";

/// The contents of all sources.
struct LoadedSources {
    layers: Layers,
    problems: Vec<Problem>,
    user_file_location: Option<UserFile>,
    user_file: Option<PathBuf>,
    project_file: Option<PathBuf>,
}

/// Loads the configuration for a task in the current directory.
pub fn load(sources: &Sources) -> Result<Config, ConfigError> {
    build_config(sources, read_sources(sources))
}

/// Loads the configuration for a call in the current directory. The limits of a project apply to the tasks in its
/// work tree, see [`Config::for_work_tree`]; an invalid project file is only a warning here.
pub fn load_for_call(sources: &Sources) -> Result<Config, ConfigError> {
    let mut loaded = read_sources(sources);
    let is_project = |problem: &Problem| problem.source == ProblemSource::Project;
    let (broken, problems) = loaded.problems.into_iter().partition(is_project);
    loaded.problems = problems;
    let mut warnings: Vec<ConfigWarning> = broken.iter().map(broken_project).collect();
    if broken.is_empty() {
        // Values that are not lower are reported for the file, whichever task they would apply to.
        warnings.extend(resolve::resolve(loaded.layers.clone(), sources.cores).1);
        loaded.layers.project.retain(|name, _| keys::find(name).is_some_and(|key| key.scope == Scope::Call));
    } else {
        loaded.layers.project.clear();
    }
    let mut config = build_config(sources, loaded)?;
    warnings.retain(|warning| !config.warnings.contains(warning));
    config.warnings.extend(warnings);
    Ok(config)
}

fn broken_project(problem: &Problem) -> ConfigWarning {
    let message = format!(
        "{problem}. The file is ignored for this call; no task starts in its work tree until the file is fixed."
    );
    ConfigWarning { code: BROKEN_PROJECT, message }
}

fn read_sources(sources: &Sources) -> LoadedSources {
    let mut problems = Vec::new();
    let user_file_location = collect_problems(locations::user_file(sources), &mut problems);
    let project_file = collect_problems(
        locations::project_file(&sources.current_dir, user_file_location.as_ref()),
        &mut problems,
    );
    let user_file =
        user_file_location.clone().filter(|file| file.is_explicit || !files::is_missing(&file.path));
    let home = sources.home();
    let read_user = |file: &UserFile| read_file(&file.path, Owner::User, file.problem_source(), home);
    let read_project = |path: &PathBuf| read_file(path, Owner::Project, ProblemSource::Project, home);
    let mut collect_layer = |(layer, found): (Layer, Vec<Problem>)| {
        problems.extend(found);
        layer
    };
    let layers = Layers {
        user: user_file.as_ref().map(read_user).map(&mut collect_layer).unwrap_or_default(),
        project: project_file.as_ref().map(read_project).map(&mut collect_layer).unwrap_or_default(),
        environment: collect_layer(variables_and_flags::read_environment(sources)),
        flags: collect_layer(variables_and_flags::read_flags(sources)),
    };
    LoadedSources {
        layers,
        problems,
        user_file_location,
        user_file: user_file.map(|file| file.path),
        project_file,
    }
}

fn build_config(sources: &Sources, loaded: LoadedSources) -> Result<Config, ConfigError> {
    let LoadedSources { layers, mut problems, user_file_location, user_file, project_file } = loaded;
    let (settings, mut warnings) = resolve::resolve(layers, sources.cores);
    // An invalid value is replaced by its default here, and a contradiction with that default would be misleading.
    if problems.is_empty() {
        problems.extend(resolve::contradictions(&settings));
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    warnings.extend(variables_and_flags::unknown_variables(sources));
    let home = sources.home().map(Path::to_owned);
    Ok(Config { settings, warnings, user_file, project_file, user_file_location, home })
}

impl Config {
    /// Directory of the user's configuration file, whether or not it exists. `None` for a file named by a variable,
    /// because it may be anywhere.
    pub fn user_directory(&self) -> Option<&Path> {
        self.user_file_location.as_ref().filter(|file| !file.is_explicit)?.path.parent()
    }

    /// The configuration for a task in this directory: this one, with what the project file of its work tree sets
    /// for tasks. An error if that file is invalid. `directory` must be a real path.
    pub fn for_work_tree(&self, directory: &Path) -> Result<Config, ConfigError> {
        let Some((path, layer)) = self.project_of(directory)? else {
            return Ok(Config { project_file: None, ..self.clone() });
        };
        let mut config = Config { project_file: Some(path), ..self.clone() };
        config.warnings = resolve::apply_project_layer(&mut config.settings, layer);
        Ok(config)
    }

    /// This configuration with the limits of an additional directory the task may write to. Other values of that
    /// project, such as labels, apply only to tasks that work there.
    pub fn with_limits_of(&self, directory: &Path) -> Result<Config, ConfigError> {
        let Some((_, mut layer)) = self.project_of(directory)? else { return Ok(self.clone()) };
        let is_lowerable =
            |name: &str| keys::find(name).is_some_and(|key| key.project == ProjectRight::Lower);
        layer.retain(|name, _| is_lowerable(name));
        let mut config = self.clone();
        config.warnings.extend(resolve::apply_project_layer(&mut config.settings, layer));
        Ok(config)
    }

    /// The project file of a directory's work tree, and what it sets.
    fn project_of(&self, directory: &Path) -> Result<Option<(PathBuf, Layer)>, ConfigError> {
        let Some(path) = locations::project_file(directory, self.user_file_location.as_ref())? else {
            return Ok(None);
        };
        let (layer, problems) =
            read_file(&path, Owner::Project, ProblemSource::Project, self.home.as_deref());
        if problems.is_empty() { Ok(Some((path, layer))) } else { Err(ConfigError { problems }) }
    }
}

/// The result, after moving the problems of an error into `problems`.
fn collect_problems<T>(found: Result<Option<T>, ConfigError>, problems: &mut Vec<Problem>) -> Option<T> {
    found.unwrap_or_else(|error| {
        problems.extend(error.problems);
        None
    })
}

/// Reads one file. `problem_source` is the source to report if the file cannot be read at all.
fn read_file(
    path: &Path,
    owner: Owner,
    problem_source: ProblemSource,
    home: Option<&Path>,
) -> (Layer, Vec<Problem>) {
    match files::read_text(path) {
        Ok(text) => document::read(&text, path, owner, home),
        Err(error) => (Layer::new(), vec![Problem::of_source(problem_source, Some(path), error.to_string())]),
    }
}
