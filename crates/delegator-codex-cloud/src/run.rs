//! Runs one `codex cloud` process with a time limit and bounded output.
//!
//! Codex runs in a private scratch directory, because it writes `error.log` where it runs, and its git finds
//! no repository, also not around that directory: Codex would send its remotes to the backend and take its
//! branch. At the end of the call, and at the time limit, the whole process group is killed. This module
//! interprets nothing that Codex prints.

#![expect(clippy::disallowed_methods, reason = "this is the module that runs codex cloud")]

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use delegator_subprocess::{Capture, Finished, Limits};

use crate::error::CloudError;

/// A diff of this size cannot be reviewed, and one call holds it in memory.
pub(crate) const MAX_STDOUT: usize = 32 << 20;
/// The beginning of the error output is enough: it holds the message, and bodies of responses.
const MAX_STDERR: usize = 64 << 10;

/// Variables that change what Codex prints: colours (`NO_COLOR` does not win against them) and backtraces.
const REMOVED_VARIABLES: [&str; 5] =
    ["CLICOLOR_FORCE", "FORCE_COLOR", "RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_LOG"];

pub(crate) struct Runner {
    pub(crate) program: PathBuf,
    pub(crate) leading_args: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) scratch: PathBuf,
    pub(crate) limit: Duration,
}

impl Runner {
    pub(crate) fn run(&self, args: &[OsString], input: &str) -> Result<Finished, CloudError> {
        let folder = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.scratch);
        let path = &self.scratch;
        folder.map_err(|source| CloudError::Io { doing: "create", path: path.clone(), source })?;
        let limits = Limits {
            input: Some(input.as_bytes()),
            time: self.limit,
            stdout: Capture::AtMost(MAX_STDOUT),
            stderr: Some(Capture::Beginning(MAX_STDERR)),
            cancel: None,
            leaves_children: false,
        };
        let finished = delegator_subprocess::run(self.command(args), &limits)
            .map_err(|error| CloudError::Start { program: self.program.clone(), source: error.into() })?;
        // Codex appends to it at each call. It holds nothing that Codex does not also print.
        let _ = std::fs::remove_file(self.scratch.join("error.log"));
        Ok(finished)
    }

    fn command(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading_args).arg("cloud").args(args).current_dir(&self.scratch).env_clear();
        let is_passed = |name: &OsStr| {
            !name.as_encoded_bytes().starts_with(b"GIT_")
                && !REMOVED_VARIABLES.iter().any(|removed| name == *removed)
        };
        let variables = self.variables.iter().filter(|(name, _)| is_passed(name));
        command.envs(variables.map(|(name, value)| (name, value))).env("NO_COLOR", "1");
        command.env("GIT_DIR", "/dev/null");
        command
    }
}
