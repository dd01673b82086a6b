//! Finds the git program of the submitter.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use delegator_git::Git;
use delegator_supervisor::agent::{Variables, locate, variable};

use super::work_tree::untrusted_trees;
use crate::error::{EngineError, Result};

/// git from the submitter's PATH, but never an executable inside the repository of the directory.
pub fn git(environment: &Variables, workdir: &Path, timeout: Duration) -> Result<Git> {
    let path = variable(environment, "PATH");
    let program = locate(OsStr::new("git"), path, &untrusted_trees([workdir])).map_err(EngineError::NoGit)?;
    let given = environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    Ok(Git::new(program, given, timeout))
}
