//! The verify command runs in the same sandbox as the agent's commands. Submission probes the sandbox and
//! refuses a task without one, unless the user's configuration allows that. With `danger-full-access` nothing
//! is sandboxed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{Mode, RunSettings, TaskId};
use delegator_supervisor::agent::{
    Agent, LaunchRequest, Variables, VerifyCommand, VerifyRequest, VerifySandbox, allowed_variables,
    probe_sandbox, task_marker, variable,
};
use delegator_supervisor::run::VerifySpec;

use super::launch_file::Launch;
use crate::error::{EngineError, Result};

/// Time for the command even if the agent used up the hard limit.
const MIN_DURATION: Duration = Duration::from_secs(60);
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

impl Launch {
    /// Decides whether the verify command runs in a sandbox; an error if it needs one and there is none.
    pub(crate) fn decide_sandbox(&mut self, id: &TaskId, state_dir: &Path) -> Result<()> {
        let Some(verify) = &self.settings.verify else { return Ok(()) };
        if self.settings.run.effective_mode() == Mode::DangerFullAccess {
            return Ok(());
        }
        // The enclosure of the agent was found before.
        let probed = if self.enclosure.is_some() { Ok(()) } else { self.probe_sandbox(id, state_dir) };
        match (probed, verify.allow_unsandboxed) {
            (Err(problem), false) => return Err(EngineError::NoSandbox { problem }),
            (probed, _) => {
                if let Some(verify) = &mut self.settings.verify {
                    verify.is_sandboxed = probed.is_ok();
                }
            }
        }
        Ok(())
    }

    pub(crate) fn denied_dir(&self, state_dir: &Path) -> Option<PathBuf> {
        self.settings.hide_state_dir.then(|| state_dir.canonicalize().ok()).flatten()
    }

    fn probe_sandbox(&self, id: &TaskId, state_dir: &Path) -> Result<(), String> {
        let forbidden = forbidden_path(&self.variables, id.as_str());
        let marker = task_marker(id, self.settings.depth);
        let mut request = writing_request(&forbidden, VerifySandbox::Agent, marker);
        request.run.add_dirs = self.settings.writable_dirs();
        request.run.profile.clone_from(&self.settings.run.profile);
        request.denied_dir = self.denied_dir(state_dir);
        probe(&self.agent, &self.variables, &request, &forbidden)
    }

    /// The verify command as the supervisor runs it after the agent, which was started as `launched` says.
    /// `variables` are those of the agent.
    pub(crate) fn verify_spec(
        &self,
        launched: &LaunchRequest,
        variables: &Variables,
    ) -> Result<Option<VerifySpec>> {
        let Some(verify) = self.settings.verify.as_ref() else { return Ok(None) };
        let sandbox = match (verify.is_sandboxed, &self.enclosure) {
            (false, _) => VerifySandbox::None,
            (true, Some(_)) => VerifySandbox::Enclosure,
            (true, None) => VerifySandbox::Agent,
        };
        let request = VerifyRequest {
            command: verify.command.clone(),
            sandbox,
            run: launched.run.clone(),
            denied_dir: launched.denied_dir.clone(),
            marker: launched.marker.clone(),
        };
        let plan = self.agent.verify_plan(&request, variables)?;
        Ok(Some(VerifySpec { command: request.command, plan, min_time: MIN_DURATION }))
    }
}

/// Whether the sandbox of an agent can run a command and keeps it from writing; an error says why not.
pub fn probe_agent_sandbox(agent: &Agent, environment: &Variables) -> Result<(), String> {
    let variables = allowed_variables(agent.kind(), environment, &[]);
    let name = format!("process-{}", std::process::id());
    let forbidden = forbidden_path(&variables, &name);
    probe(agent, &variables, &writing_request(&forbidden, VerifySandbox::Agent, name), &forbidden)
}

fn probe(
    agent: &Agent,
    variables: &Variables,
    request: &VerifyRequest,
    forbidden: &Path,
) -> Result<(), String> {
    let plan = agent.verify_plan(request, variables).map_err(|error| error.to_string())?;
    probe_sandbox(&plan, forbidden, PROBE_TIMEOUT).map_err(|error| error.to_string())
}

/// A read-only run of a command that writes to a forbidden path.
pub(super) fn writing_request(forbidden: &Path, sandbox: VerifySandbox, marker: String) -> VerifyRequest {
    let script = ["/bin/sh", "-c", ": 2>/dev/null > \"$0\""].map(str::to_owned).into_iter();
    VerifyRequest {
        command: VerifyCommand::Program(script.chain([forbidden.display().to_string()]).collect()),
        sandbox,
        run: RunSettings { working_dir: "/".into(), ..RunSettings::default() },
        denied_dir: None,
        marker,
    }
}

/// A path in the temporary directory that no sandbox of a probe may write to.
pub(super) fn forbidden_path(variables: &Variables, name: &str) -> PathBuf {
    let temporary = variable(variables, "TMPDIR").unwrap_or(OsStr::new("/tmp"));
    PathBuf::from(temporary).join(format!("sandbox-of-{name}"))
}
