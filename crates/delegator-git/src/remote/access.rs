//! How git reaches other repositories: with the user's own configuration and variables, and without any
//! prompt.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use super::url::{RemoteError, RemoteUrl};
use crate::error::{GitError, Result};
use crate::records::output_text;
use crate::run::{Call, Git};
use crate::scratch::Scratch;

/// The name under which git gets the URL. It must not be a remote in the user's configuration.
pub(super) const REMOTE: &str = "mcp-delegator-remote";

/// The git program for one operation on a repository elsewhere, and the variables that it may use.
#[derive(Debug, Clone)]
pub struct RemoteAccess {
    git: Git,
    variables: Vec<(OsString, OsString)>,
    limit: Duration,
}

impl RemoteAccess {
    /// git gets those variables of `environment` that do not change which repository it uses. Each operation
    /// must end within `limit`.
    pub fn new<'a>(
        git: &Git,
        environment: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
        limit: Duration,
    ) -> RemoteAccess {
        let passed = environment.into_iter().filter(|(name, _)| is_passed(&name.to_string_lossy()));
        let variables = passed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        RemoteAccess { git: git.clone(), variables, limit }
    }

    /// git for one operation: its time limit starts now.
    pub(crate) fn git(&self) -> Git {
        self.git.with_limit(self.limit)
    }

    /// Runs a call that reaches the repository at `url`, which the arguments name [`REMOTE`].
    pub(crate) fn run(
        &self,
        git: &Git,
        dir: &Path,
        doing: &'static str,
        url: &RemoteUrl,
        call: Call<'_>,
    ) -> Result<Vec<u8>, RemoteError> {
        let mut variables = self.variables.clone();
        let mut ssh = self.ssh_command(git)?;
        // ssh would read a password or a confirmation from the terminal.
        ssh.push(" -oBatchMode=yes");
        variables.push(("GIT_SSH_COMMAND".into(), ssh));
        for (name, value) in [
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", format!("remote.{REMOTE}.url")),
            ("GIT_CONFIG_VALUE_0", url.expose().to_owned()),
        ] {
            variables.push((name.into(), value.into()));
        }
        let outcome = git.run(dir, Call { remote: Some(&variables), ..call });
        outcome.map_err(|error| match error {
            GitError::Failed { stderr, .. } => RemoteError::Failed {
                doing,
                url: url.to_string(),
                message: url.hide_credentials(stderr.trim()).replace(REMOTE, "the repository"),
            },
            error => error.into(),
        })
    }

    /// Pushes a refspec of a scratch directory.
    pub(crate) fn push(&self, scratch: &Scratch, url: &RemoteUrl, refspec: &str) -> Result<(), RemoteError> {
        let call = scratch.call("none", ["push", "--quiet", "--no-recurse-submodules", REMOTE, refspec]);
        self.run(&self.git(), scratch.top(), "push to", url, call).map(drop)
    }

    fn ssh_command(&self, git: &Git) -> Result<OsString> {
        if let Some((_, command)) = self.variables.iter().find(|(name, _)| name == "GIT_SSH_COMMAND") {
            return Ok(command.clone());
        }
        let call = Call::new(["config", "--get", "core.sshCommand"]);
        let configured = git.run_optional(
            Path::new("/"),
            Call { variables: vec![("GIT_DIR", "/dev/null".into())], reads_user_config: true, ..call },
        )?;
        let command = configured.as_deref().map(output_text).filter(|command| !command.is_empty());
        Ok(command.unwrap_or_else(|| "ssh".to_owned()).into())
    }
}

/// Variables of git that choose credentials and certificates are passed on, those that choose a repository
/// are not. The program's own variables can contain passwords that git does not need.
fn is_passed(name: &str) -> bool {
    const GIT_VARIABLES: [&str; 4] =
        ["GIT_ASKPASS", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
    match name {
        _ if name.starts_with("GIT_SSL_") || name.starts_with("GIT_HTTP_") => true,
        _ if name.starts_with("GIT_") => GIT_VARIABLES.contains(&name),
        _ => !name.starts_with("MCP_DELEGATOR_") && name != "DELEGATOR_TASK" && name != "LC_ALL",
    }
}
