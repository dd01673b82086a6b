//! Where agents keep state of their own: settings, sign-in, threads, caches. An enclosed agent may write there in every mode.
//!
//! An agent's table lists these places; `state_dirs` in the user's configuration adds directories. No project and no caller
//! can add one.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::environment::{Variables, variable};
use crate::enclosure::WritablePath;

/// A directory of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateDir {
    /// The variable that names it, optionally with a path below it: `CLAUDE_CONFIG_DIR`, `XDG_DATA_HOME/opencode`.
    pub variable: Option<&'static str>,
    /// Its path below HOME if the variable is not set.
    pub home: &'static str,
}

impl StateDir {
    /// `None` if neither the variable nor HOME names an absolute path.
    fn path(self, environment: &Variables) -> Option<PathBuf> {
        let (variable, below) = match self.variable.map(|name| name.split_once('/').unwrap_or((name, ""))) {
            Some((variable, below)) => (absolute_path(variable, environment), below),
            None => (None, ""),
        };
        match variable {
            Some(base) if below.is_empty() => Some(base),
            Some(base) => Some(base.join(below)),
            None => Some(absolute_path("HOME", environment)?.join(self.home)),
        }
    }
}

fn absolute_path(name: &str, environment: &Variables) -> Option<PathBuf> {
    variable(environment, name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The places of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatePaths {
    /// Created if they are missing.
    pub directories: &'static [StateDir],
    /// Single files below HOME. One that is missing cannot be made writable: the agent may not create files in HOME. Nor may
    /// it replace one by renaming another file.
    pub files: &'static [&'static str],
}

impl StatePaths {
    pub const NONE: StatePaths = StatePaths { directories: &[], files: &[] };

    pub(super) fn resolve(&self, configured: &[PathBuf], environment: &Variables) -> Vec<StatePath> {
        let own = self.directories.iter().filter_map(|directory| directory.path(environment));
        let directories = own.chain(configured.iter().cloned()).map(StatePath::Directory);
        let home = absolute_path("HOME", environment);
        let files = self.files.iter().filter_map(|file| Some(StatePath::File(home.as_ref()?.join(file))));
        without_nested(directories.chain(files).collect())
    }
}

/// A nested path adds nothing, and is not trusted: an earlier task may have replaced it by a symbolic link, because it could
/// write to the directory around it.
fn without_nested(paths: Vec<StatePath>) -> Vec<StatePath> {
    let is_nested = |path: &StatePath| {
        paths.iter().any(|outer| outer.path() != path.path() && path.path().starts_with(outer.path()))
    };
    paths.iter().filter(|path| !is_nested(path)).cloned().collect()
}

/// A place of an agent on this machine. It may be missing, and it may be a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatePath {
    Directory(PathBuf),
    File(PathBuf),
}

impl StatePath {
    pub fn path(&self) -> &Path {
        match self {
            StatePath::Directory(path) | StatePath::File(path) => path,
        }
    }

    /// The path without symbolic links. What does not exist yet has none.
    pub fn real_path(&self) -> PathBuf {
        let path = self.path();
        let (mut existing, mut missing) = (path, Vec::new());
        loop {
            if let Ok(real) = existing.canonicalize() {
                return missing.iter().rev().fold(real, |real, name: &&OsStr| real.join(name));
            }
            let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                return path.to_owned();
            };
            missing.push(name);
            existing = parent;
        }
    }

    /// Creates a missing directory. `None` if the path cannot be used; the agent then does without it.
    pub fn open(&self) -> Option<WritablePath> {
        if let StatePath::Directory(path) = self {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(path);
        }
        WritablePath::resolve(self.path()).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    const PATHS: StatePaths = StatePaths {
        directories: &[
            StateDir { variable: Some("TOOL_HOME"), home: ".tool" },
            StateDir { variable: Some("XDG_DATA_HOME/tool"), home: ".local/share/tool" },
            StateDir { variable: None, home: ".cache/tool" },
        ],
        files: &[".tool.json"],
    };

    fn resolved(variables: &[(&str, &str)], configured: &[&str]) -> Vec<String> {
        let variables: Variables =
            variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let configured: Vec<PathBuf> = configured.iter().map(PathBuf::from).collect();
        let paths = PATHS.resolve(&configured, &variables);
        paths.iter().map(|path| path.path().display().to_string()).collect()
    }

    #[test]
    fn a_variable_names_a_directory_else_it_is_below_home() {
        let home = ("HOME", "/h");
        let expected = ["/h/.tool", "/h/.local/share/tool", "/h/.cache/tool", "/more", "/h/.tool.json"];
        assert_eq!(resolved(&[home], &["/more"]), expected);
        let named = [home, ("TOOL_HOME", "/t"), ("XDG_DATA_HOME", "/x")];
        assert_eq!(resolved(&named, &[]), ["/t", "/x/tool", "/h/.cache/tool", "/h/.tool.json"]);
        let relative = [("HOME", "h"), ("TOOL_HOME", "/t"), ("XDG_DATA_HOME", "x")];
        assert_eq!(resolved(&relative, &[]), ["/t"]);
    }

    #[test]
    fn a_nested_path_is_left_out() {
        let variables = [("HOME", "/h"), ("TOOL_HOME", "/h/.cache/tool/home")];
        assert_eq!(
            resolved(&variables, &["/h/.local/share/tool/x"]),
            ["/h/.local/share/tool", "/h/.cache/tool", "/h/.tool.json"]
        );
    }

    #[test]
    fn directories_are_created_and_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (directory, file) = (root.join("a/b"), root.join("file"));
        assert_eq!(StatePath::Directory(directory.clone()).real_path(), directory);
        assert_eq!(StatePath::Directory(directory.clone()).open().unwrap().path, directory);
        assert!(StatePath::File(file.clone()).open().is_none());
        std::fs::write(&file, "{}").unwrap();
        std::os::unix::fs::symlink(&file, root.join("link")).unwrap();
        let link = StatePath::File(root.join("link"));
        assert_eq!((link.real_path(), link.open().unwrap().path), (file.clone(), file));
    }
}
