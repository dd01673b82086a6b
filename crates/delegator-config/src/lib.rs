//! Configuration: the only crate that knows a configuration key, reads a configuration file or interprets an
//! environment variable.
//!
//! The caller passes [`Sources`] (environment, directory, flags, cores). [`load`] returns a [`Config`] with
//! the typed [`Settings`] and the origin of each, or an [`InvalidConfig`] with *all* problems of all sources:
//!
//! ```text
//! config.toml ──────────┐ document                        ┌► Config
//! .mcp-delegator.toml ──┤          ► Node ► check ► Layer ► resolve
//! variables, flags ─────┘ variables_and_flags             └► InvalidConfig
//! ```
//!
//! [`KEYS`] defines which values each key accepts and who may set it; `locations` finds the files; `files` is
//! the only module that reads them. [`environments`] handles the other file, `environments.json`. Everything
//! else is pure.

mod check;
mod config;
mod document;
pub mod environments;
mod files;
mod fleet;
mod key_path;
mod keys;
mod locations;
mod node;
mod problem;
mod reference;
mod resolve;
mod settings;
mod task_defaults;
mod toml_text;
pub mod user_edit;
mod variables_and_flags;

use std::path::{Path, PathBuf};

use document::read_file;
use locations::UserFile;
use resolve::Layer;

pub use config::Config;
pub use files::replace_text;
pub use key_path::{KeyPath, UnknownSetting};
pub use keys::{
    DefaultValue, KEYS, Key, ProjectRight, Scope, TextFormat, VARIABLE_PREFIX, ValueKind, built_in_default,
};
pub use locations::{Sources, environments_file, state_dir};
pub use problem::{ConfigError, ConfigWarning, Origin, Position, Problem, ProblemSource, Source};
pub use reference::reference;
pub use resolve::SourcedSetting;
pub use settings::{
    AgentSettings, Containment, Envelope, Format, HideStateDir, IdleCounts, RepositorySettings, SecretText,
    Settings, ToolFormat,
};
pub use toml_text::unset as remove_toml_value;

/// A configuration with problems, for commands that must work anyway.
#[derive(Clone, Debug)]
pub struct InvalidConfig {
    pub error: ConfigError,
    /// The values without problems; the others have their defaults.
    pub valid_part: Config,
}

/// Loads the configuration for a call in the current directory. The limits of a project apply to the tasks in
/// its work tree, see [`Config::for_work_tree`]; an invalid project file alone is only a warning here.
pub fn load(sources: &Sources) -> Result<Config, Box<InvalidConfig>> {
    load_with(sources, None)
}

/// The same with another text of the user's file.
pub(crate) fn load_with(sources: &Sources, user_text: Option<&str>) -> Result<Config, Box<InvalidConfig>> {
    let mut problems = Vec::new();
    let user_file_location = collect_problems(locations::user_file(sources), &mut problems);
    let project_file = collect_problems(
        locations::project_file(&sources.current_dir, user_file_location.as_ref()),
        &mut problems,
    );
    let is_used = |file: &UserFile| file.is_explicit || user_text.is_some() || !files::is_missing(&file.path);
    let user_file = user_file_location.clone().filter(is_used);
    let home = sources.home();
    let read_user = |file: &UserFile| match user_text {
        Some(text) => document::read(text, &file.path, Source::UserConfig, home),
        None => read_file(&file.path, Source::UserConfig, file.problem_source(), home),
    };
    let read_project = |path: &PathBuf| read_file(path, Source::Project, ProblemSource::Project, home);
    let mut collect_layer = |(layer, found): (Layer, Vec<Problem>)| {
        problems.extend(found);
        layer
    };
    let user = user_file.as_ref().map(read_user).map(&mut collect_layer).unwrap_or_default();
    let project = project_file.as_ref().map(read_project).map(&mut collect_layer).unwrap_or_default();
    let environment = collect_layer(variables_and_flags::read_environment(sources));
    let flags = collect_layer(variables_and_flags::read_flags(&sources.flags, home));

    let mut sourced = resolve::resolve([user, environment, flags], sources.cores);
    problems.extend(fleet::time_problems(&sourced));
    let is_usable =
        |problems: &[Problem]| problems.iter().all(|problem| problem.source == ProblemSource::Project);
    if is_usable(&problems) {
        problems.extend(task_defaults::reject_unusable(&mut sourced));
    }
    let mut warnings = variables_and_flags::unknown_variables(sources);
    if problems.is_empty() {
        // Values that are not lower are reported for the file, whichever task they would apply to.
        warnings.extend(resolve::apply_project(&mut sourced.clone(), project.clone(), |_| true));
        resolve::apply_project(&mut sourced, project, |key| key.scope == Scope::Call);
    }
    let config = |warnings| Config {
        settings: resolve::typed(&sourced),
        sourced,
        warnings,
        user_file: user_file.map(|file| file.path),
        project_file,
        user_file_location,
        home: home.map(Path::to_owned),
        database_url_file: fleet::UrlFile::default(),
    };
    if !is_usable(&problems) {
        return Err(Box::new(InvalidConfig {
            error: ConfigError { problems },
            valid_part: config(warnings),
        }));
    }
    warnings.extend(ConfigError { problems }.into_warnings());
    Ok(config(warnings))
}

/// The result, after moving the problems of an error into `problems`.
fn collect_problems<T>(found: Result<Option<T>, ConfigError>, problems: &mut Vec<Problem>) -> Option<T> {
    found.unwrap_or_else(|error| {
        problems.extend(error.problems);
        None
    })
}
