//! Where agents keep state of their own: settings, sign-in, threads, caches. An enclosed agent may write
//! there in every mode.
//!
//! An agent's table lists these places; `state_dirs` in the user's configuration adds directories. No project
//! and no caller can add one.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::enclosure::WritablePath;
use crate::variables::{Variables, variable};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateDir {
    /// The variable that names it, optionally with a path below it: `CLAUDE_CONFIG_DIR`,
    /// `XDG_DATA_HOME/opencode`.
    pub(super) variable: Option<&'static str>,
    /// Its path below HOME if the variable is not set.
    pub(super) home: &'static str,
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

pub(super) fn resolve(own: &[StateDir], configured: &[PathBuf], environment: &Variables) -> Vec<StatePath> {
    let own = own.iter().filter_map(|directory| directory.path(environment));
    let paths: Vec<PathBuf> = own.chain(configured.iter().cloned()).collect();
    // A nested path adds nothing, and is not trusted: an earlier task may have replaced it by a symbolic
    // link, because it could write to the directory around it.
    let is_nested = |path: &PathBuf| paths.iter().any(|outer| outer != path && path.starts_with(outer));
    paths.iter().filter(|path| !is_nested(path)).cloned().map(StatePath).collect()
}

/// A directory of an agent on this machine. It may be missing, and it may be a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatePath(PathBuf);

impl StatePath {
    /// The path without symbolic links. What does not exist yet has none.
    pub fn real_path(&self) -> PathBuf {
        let StatePath(path) = self;
        let (mut existing, mut missing) = (path.as_path(), Vec::new());
        loop {
            if let Ok(real) = existing.canonicalize() {
                return missing.iter().rev().fold(real, |real, name: &&OsStr| real.join(name));
            }
            let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                return path.clone();
            };
            missing.push(name);
            existing = parent;
        }
    }

    /// Creates a missing directory. `None` if the path cannot be used; the agent then does without it.
    pub fn open(&self) -> Option<WritablePath> {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        WritablePath::resolve(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    const DIRECTORIES: &[StateDir] = &[
        StateDir { variable: Some("TOOL_HOME"), home: ".tool" },
        StateDir { variable: Some("XDG_DATA_HOME/tool"), home: ".local/share/tool" },
        StateDir { variable: None, home: ".cache/tool" },
    ];

    fn resolved(variables: &[(&str, &str)], configured: &[&str]) -> Vec<String> {
        let variables: Variables =
            variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let configured: Vec<PathBuf> = configured.iter().map(PathBuf::from).collect();
        let paths = resolve(DIRECTORIES, &configured, &variables);
        paths.iter().map(|path| path.0.display().to_string()).collect()
    }

    #[test]
    fn a_variable_names_a_directory_else_it_is_below_home() {
        let home = ("HOME", "/h");
        let expected = ["/h/.tool", "/h/.local/share/tool", "/h/.cache/tool", "/more"];
        assert_eq!(resolved(&[home], &["/more"]), expected);
        let named = [home, ("TOOL_HOME", "/t"), ("XDG_DATA_HOME", "/x")];
        assert_eq!(resolved(&named, &[]), ["/t", "/x/tool", "/h/.cache/tool"]);
        let relative = [("HOME", "h"), ("TOOL_HOME", "/t"), ("XDG_DATA_HOME", "x")];
        assert_eq!(resolved(&relative, &[]), ["/t"]);
    }

    #[test]
    fn a_nested_path_is_left_out() {
        let variables = [("HOME", "/h"), ("TOOL_HOME", "/h/.cache/tool/home")];
        assert_eq!(
            resolved(&variables, &["/h/.local/share/tool/x"]),
            ["/h/.local/share/tool", "/h/.cache/tool"]
        );
    }

    #[test]
    fn directories_are_created_and_links_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let directory = root.join("a/b");
        let state_path = StatePath(directory.clone());
        assert_eq!(state_path.real_path(), directory);
        assert_eq!(state_path.open().unwrap().path, directory);
        std::os::unix::fs::symlink(&directory, root.join("link")).unwrap();
        let link = StatePath(root.join("link"));
        assert_eq!((link.real_path(), link.open().unwrap().path), (directory.clone(), directory));
    }
}
