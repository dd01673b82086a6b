//! A command that checks the agent's work: where it may run, and what is kept of it.
//!
//! It runs in the sandbox the agent's own commands ran in. Whether there is one is found out at submission, by trying
//! it: so a check that could not be run as meant is refused before anything is started, or runs in the open if the user
//! said that it may. A task that has no sandbox at all (`danger-full-access`) has none for its check either.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{EnvPolicy, Mode, TaskId};
use delegator_supervisor::agent::{
    Confinement, Enclosure, VerifyRequest, probe_sandbox, task_marker, verify_plan,
};
use delegator_supervisor::run::VerifySpec;
use serde::{Deserialize, Serialize};

use super::launch::Launch;
use crate::error::EngineError;

/// However little the agent left of the hard limit.
const MIN_DURATION: Duration = Duration::from_secs(60);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The check of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The user lets it run in the open where there is no sandbox.
    pub may_be_open: bool,
    /// Decided at submission.
    pub is_sandboxed: bool,
}

impl Verify {
    /// Nothing where no words were given.
    pub fn from_command(command: &[String], may_be_open: bool) -> Option<Verify> {
        let command = command.to_vec();
        (!command.is_empty()).then_some(Verify { command, may_be_open, is_sandboxed: false })
    }
}

impl Launch {
    /// Decides where the check runs, if there is one.
    pub(crate) fn decide_sandbox(&mut self, id: &TaskId, state_dir: &Path) -> Result<(), EngineError> {
        let Some(verify) = &self.settings.verify else { return Ok(()) };
        if self.effective_mode() == Mode::DangerFullAccess {
            return Ok(());
        }
        let found = self.try_sandbox(id, state_dir);
        match (found, verify.may_be_open) {
            (Err(problem), false) => return Err(EngineError::NoSandbox { problem }),
            (found, _) => {
                if let Some(verify) = &mut self.settings.verify {
                    verify.is_sandboxed = found.is_ok();
                }
            }
        }
        Ok(())
    }

    /// How far the agent's commands may go.
    fn effective_mode(&self) -> Mode {
        if self.settings.preview { Mode::ReadOnly } else { self.settings.mode() }
    }

    /// The state directory, where its commands must not read it.
    pub(crate) fn hidden(&self, state_dir: &Path) -> Option<PathBuf> {
        self.settings.hide_state_dir.then(|| state_dir.canonicalize().ok()).flatten()
    }

    fn sandbox(&self, mode: Mode, workdir: &Path, state_dir: &Path) -> Enclosure {
        let hidden = self.hidden(state_dir);
        Enclosure::CodexSandbox {
            program: self.agent.program.clone(),
            confinement: Confinement::of(mode, hidden.as_deref(), self.agent.version()),
            workdir: workdir.to_owned(),
            add_dirs: self.settings.add_dirs.clone(),
            profile: self.settings.profile.clone(),
        }
    }

    /// Tries to write where nothing may be written.
    fn try_sandbox(&self, id: &TaskId, state_dir: &Path) -> Result<(), String> {
        // One that does not tell its version, or needs words before its own, is another program.
        if self.agent.version.is_none() || !self.agent.leading_args.is_empty() {
            return Err(format!("{} has none", self.agent.program.display()));
        }
        let temporary = self.variables.iter().find(|(name, _)| name == "TMPDIR");
        let temporary = temporary.map_or(OsStr::new("/tmp"), |(_, value)| value);
        let forbidden = PathBuf::from(temporary).join(format!("sandbox-of-{id}"));
        let script = ["/bin/sh", "-c", ": 2>/dev/null > \"$0\""].map(str::to_owned).into_iter();
        let request = VerifyRequest {
            command: script.chain([forbidden.display().to_string()]).collect(),
            enclosure: self.sandbox(Mode::ReadOnly, Path::new("/"), state_dir),
            env_policy: EnvPolicy::InheritNone,
            marker: task_marker(id, self.settings.depth),
        };
        let plan = verify_plan(&request, &self.variables);
        probe_sandbox(&plan, &forbidden, PROBE_TIMEOUT).map_err(|error| error.to_string())
    }

    /// The check as the supervisor takes it.
    pub(crate) fn verify_spec(&self, id: &TaskId, workdir: &Path, state_dir: &Path) -> Option<VerifySpec> {
        let verify = self.settings.verify.as_ref()?;
        let enclosure = match verify.is_sandboxed {
            true => self.sandbox(self.effective_mode(), workdir, state_dir),
            false => Enclosure::Unsandboxed,
        };
        let request = VerifyRequest {
            command: verify.command.clone(),
            enclosure,
            env_policy: self.settings.env_policy(),
            marker: task_marker(id, self.settings.depth),
        };
        Some(VerifySpec { plan: verify_plan(&request, &self.variables), min_time: MIN_DURATION })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_command_is_no_check() {
        assert_eq!(Verify::from_command(&[], true), None);
    }
}
