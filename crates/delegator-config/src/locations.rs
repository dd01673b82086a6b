//! The inputs of a configuration, and the files that they name: the user's configuration file,
//! `environments.json` next to it, the state directory, and the project file.
//!
//! This crate reads no global state: the program passes its environment, its directory and the number of
//! cores. A relative path is not allowed, because its meaning would depend on the directory the program is
//! started in.
//!
//! The project file is searched from the current directory up to the one that contains `.git`, and never
//! outside: neither above the work tree nor through a link that leads out of it. Without a git directory only
//! the current directory counts, so that a file in `/tmp` or `/` affects nothing below it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::problem::{ConfigError, Problem, ProblemSource};

const PROGRAM: &str = "mcp-delegator";
const CONFIG_VARIABLE: &str = "MCP_DELEGATOR_CONFIG";
const STATE_DIR_VARIABLE: &str = "MCP_DELEGATOR_HOME";
const PROJECT_FILE: &str = ".mcp-delegator.toml";

/// Variables of this program that set no key; `MCP_DELEGATOR_LOG` belongs to the log.
pub(crate) const RESERVED_VARIABLES: [&str; 3] = [CONFIG_VARIABLE, STATE_DIR_VARIABLE, "MCP_DELEGATOR_LOG"];

/// The user's configuration file, whether or not it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserFile {
    pub(crate) path: PathBuf,
    /// Whether a variable names this file; then it must exist.
    pub(crate) is_explicit: bool,
}

impl UserFile {
    /// The source to report if the file cannot be used.
    pub(crate) fn problem_source(&self) -> ProblemSource {
        if self.is_explicit {
            ProblemSource::Variable(CONFIG_VARIABLE.to_owned())
        } else {
            ProblemSource::UserConfig
        }
    }
}

pub fn state_dir(sources: &Sources) -> Result<PathBuf, ConfigError> {
    let found = path_from_variable(sources, STATE_DIR_VARIABLE)?
        .or_else(|| standard_dir(sources, "XDG_STATE_HOME", ".local/state"));
    found.ok_or_else(|| unknown_location(STATE_DIR_VARIABLE, "the state directory"))
}

/// The list of cloud environments, next to the user's configuration file.
pub fn environments_file(sources: &Sources) -> Result<PathBuf, ConfigError> {
    let user_file = user_file(sources)?.ok_or_else(unknown_user_file)?;
    Ok(user_file.path.with_file_name("environments.json"))
}

/// The user's configuration file; `None` without a home directory.
pub(crate) fn user_file(sources: &Sources) -> Result<Option<UserFile>, ConfigError> {
    if let Some(path) = path_from_variable(sources, CONFIG_VARIABLE)? {
        return Ok(Some(UserFile { path, is_explicit: true }));
    }
    let directory = standard_dir(sources, "XDG_CONFIG_HOME", ".config");
    Ok(directory.map(|directory| UserFile { path: directory.join("config.toml"), is_explicit: false }))
}

pub(crate) fn unknown_user_file() -> ConfigError {
    unknown_location(CONFIG_VARIABLE, "the configuration directory")
}

fn path_from_variable(sources: &Sources, variable: &str) -> Result<Option<PathBuf>, ConfigError> {
    let Some(value) = sources.variable(variable) else { return Ok(None) };
    match absolute(Path::new(value), sources.home()) {
        Ok(path) => Ok(Some(path)),
        Err(error) => Err(variable_problem(variable, error.to_string())),
    }
}

fn standard_dir(sources: &Sources, xdg_variable: &str, below_home: &str) -> Option<PathBuf> {
    let base = match sources.absolute_dir(xdg_variable) {
        Some(directory) => directory.to_owned(),
        None => sources.home()?.join(below_home),
    };
    Some(base.join(PROGRAM))
}

fn unknown_location(variable: &str, what: &str) -> ConfigError {
    variable_problem(
        variable,
        format!(
            "{what} is unknown: neither {variable} nor HOME is set. Set one of them to an absolute path."
        ),
    )
}

fn variable_problem(variable: &str, problem: String) -> ConfigError {
    let source = ProblemSource::Variable(variable.to_owned());
    ConfigError { problems: vec![Problem::of_source(source, None, problem)] }
}

/// Whether a directory is the root of a git work tree. An empty `.git` does not count: sandboxes create one
/// in directories they protect, for example in `/tmp`.
fn is_work_tree(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.is_file() || exists(&git.join("HEAD"))
}

/// The nearest project file, unless it is the user's own configuration file.
pub(crate) fn project_file(
    current_dir: &Path,
    user_file: Option<&UserFile>,
) -> Result<Option<PathBuf>, ConfigError> {
    let directories = search_path(current_dir, is_work_tree);
    let user_file = user_file.and_then(|file| file.path.canonicalize().ok());
    let is_users_own =
        |path: &Path| user_file.is_some() && path.canonicalize().ok().as_ref() == user_file.as_ref();
    let found = directories
        .iter()
        .map(|directory| directory.join(PROJECT_FILE))
        .find(|path| exists(path) && !is_users_own(path));
    if let (Some(path), Some(root)) = (&found, directories.last()) {
        reject_link_out_of_project(path, root)?;
    }
    Ok(found)
}

/// The directories in which a project file is searched, nearest first.
fn search_path(current_dir: &Path, holds_git: impl Fn(&Path) -> bool) -> Vec<&Path> {
    let ancestors: Vec<&Path> = current_dir.ancestors().collect();
    let depth = ancestors.iter().position(|directory| holds_git(directory)).unwrap_or(0);
    ancestors.into_iter().take(depth + 1).collect()
}

/// Whether the path exists. A dangling link counts, too: ignoring it would hide the mistake.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Rejects a project file that is a link out of the project: a repository must not make the program read
/// other files.
fn reject_link_out_of_project(path: &Path, root: &Path) -> Result<(), ConfigError> {
    let (Ok(real_path), Ok(real_root)) = (path.canonicalize(), root.canonicalize()) else {
        // A dangling link: reading it will report the problem.
        return Ok(());
    };
    if real_path.starts_with(&real_root) {
        return Ok(());
    }
    let problem =
        "the file is a link that leads out of the project; a project file must be inside the project";
    Err(ConfigError { problems: vec![Problem::of_source(ProblemSource::Project, Some(path), problem)] })
}

#[derive(Clone, Default)]
pub struct Sources {
    /// The whole process environment. An empty variable counts as not set.
    pub environment: BTreeMap<OsString, OsString>,
    /// The directory the program was started in, absolute.
    pub current_dir: PathBuf,
    /// Configuration keys set on the command line, by key name, each at most once.
    pub flags: Vec<(String, String)>,
    pub cores: usize,
}

impl Sources {
    /// A variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that names a directory. As the XDG specification requires, a relative path is ignored.
    pub(crate) fn absolute_dir(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.absolute_dir("HOME")
    }
}

/// Omits the values: an environment contains secrets.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("variables", &self.environment.keys())
            .field("current_dir", &self.current_dir)
            .field("flags", &self.flags.iter().map(|(key, _)| key).collect::<Vec<_>>())
            .field("cores", &self.cores)
            .finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("expected an absolute path (`~/` is the home directory)")]
    Relative,
    #[error("`~` cannot be replaced: HOME is not set to an absolute path")]
    NoHome,
    #[error("`~` cannot be replaced: HOME is not UTF-8 text")]
    HomeNotUtf8,
}

pub(crate) fn absolute(path: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    match path.strip_prefix("~") {
        Ok(rest) if rest.as_os_str().is_empty() => Ok(home.ok_or(PathError::NoHome)?.to_owned()),
        Ok(rest) => Ok(home.ok_or(PathError::NoHome)?.join(rest)),
        Err(_) if path.is_absolute() => Ok(path.to_owned()),
        Err(_) => Err(PathError::Relative),
    }
}

/// The same for a path in a configuration value, which is text.
pub(crate) fn absolute_text(path: &str, home: Option<&Path>) -> Result<String, PathError> {
    if path.contains('\0') {
        return Err(PathError::Relative);
    }
    let absolute = absolute(Path::new(path), home)?;
    absolute.into_os_string().into_string().map_err(|_| PathError::HomeNotUtf8)
}

#[cfg(test)]
mod tests;
