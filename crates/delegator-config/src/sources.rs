//! The inputs of a configuration, passed by the caller as plain values.
//!
//! This crate reads no global state: the program reads the process environment, its directory and the number
//! of cores once, at startup, and passes them on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

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
