//! A verification: a command that checks the agent's work.
//!
//! It runs like the agent's own commands: in the task's sandbox mode and with the environment that its
//! `env_policy` allows. The sandbox is that of the agent: its own, or the enclosure that we put it in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{EnvPolicy, RunSettings};
use delegator_transcript::shell;
use serde::{Deserialize, Serialize};

use crate::enclosure::Enclosure;
use crate::program::{ProbeError, exit_and_output};
use crate::variables::{CORE_NAMES, MARKER, Variables};

pub(super) const SHELL: &str = "/bin/sh";
/// Prints its name and becomes the command in its arguments.
pub(super) const SENTINEL_SCRIPT: &str = r#"printf '%s\n' "$0"; exec "$@""#;

/// A command as the caller gave it: in JSON a string or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VerifyCommand {
    /// A command line for a POSIX shell.
    Shell(String),
    /// A program and its arguments, started without a shell; never empty.
    Program(Vec<String>),
}

impl VerifyCommand {
    pub fn argv(&self) -> Vec<String> {
        match self {
            VerifyCommand::Shell(line) => [SHELL, "-c", line].map(str::to_owned).to_vec(),
            VerifyCommand::Program(words) => words.clone(),
        }
    }

    /// The command as text: a command line unchanged, the words of a list quoted where necessary.
    pub fn text(&self) -> String {
        match self {
            VerifyCommand::Shell(line) => line.clone(),
            VerifyCommand::Program(words) => shell::join(words),
        }
    }
}

#[derive(Debug, Clone)]
pub struct VerifyRequest {
    pub command: VerifyCommand,
    pub sandbox: VerifySandbox,
    /// As for the agent.
    pub run: RunSettings,
    /// A directory that the command must not read; enforced where the agent supports it.
    pub denied_dir: Option<PathBuf>,
    /// Value of the task marker, see [`crate::variables::task_marker`].
    pub marker: String,
}

#[derive(Debug, Clone, Copy)]
pub enum VerifySandbox {
    /// The task has no sandbox, or the user permits running without one.
    None,
    Agent,
    /// The enclosure of the agent, which the supervisor applies.
    Enclosure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyPlan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Complete: nothing is inherited.
    pub environment: Variables,
    /// First line printed from inside the sandbox.
    pub sentinel: Option<String>,
}

pub(super) fn unsandboxed(request: &VerifyRequest, agent: &Variables) -> VerifyPlan {
    let environment = command_environment(request, agent);
    let mut args = request.command.argv().into_iter().map(OsString::from);
    let program = args.next().map(PathBuf::from).unwrap_or_default();
    VerifyPlan { program, args: args.collect(), environment, sentinel: None }
}

/// The command for an enclosure. A constant script prints a sentinel line first, because an enclosure that
/// failed to start looks like a failed command.
pub(super) fn enclosed(request: &VerifyRequest, agent: &Variables) -> VerifyPlan {
    let sentinel = sentinel(request);
    let script = ["-c", SENTINEL_SCRIPT, &sentinel].map(OsString::from);
    VerifyPlan {
        program: SHELL.into(),
        args: script.into_iter().chain(request.command.argv().into_iter().map(OsString::from)).collect(),
        environment: command_environment(request, agent),
        sentinel: Some(sentinel),
    }
}

pub(super) fn sentinel(request: &VerifyRequest) -> String {
    format!("verifying {}", request.marker)
}

pub(super) fn command_environment(request: &VerifyRequest, agent: &Variables) -> Variables {
    let is_core = |name: &str| CORE_NAMES.contains(&name);
    let is_inherited = |name: &str| match &request.run.env_policy {
        EnvPolicy::InheritNone => is_core(name),
        EnvPolicy::AllowList(names) => is_core(name) || names.iter().any(|listed| listed == name),
        EnvPolicy::InheritAll => true,
    };
    let inherited =
        agent.iter().filter(|(name, _)| name != MARKER && name.to_str().is_some_and(is_inherited));
    let mut environment: Variables = inherited.cloned().collect();
    environment.push((MARKER.into(), request.marker.as_str().into()));
    environment
}

/// Runs a plan that creates `forbidden`. Succeeds if the command ran and the file does not exist.
pub fn probe_sandbox(plan: &VerifyPlan, forbidden: &Path, limit: Duration) -> Result<(), ProbeError> {
    let args = plan.args.iter().map(OsString::as_os_str);
    let (_, output) = exit_and_output(&plan.program, args, &plan.environment, limit)?;
    let is_sentinel = |line: &str| plan.sentinel.as_deref() == Some(line);
    if std::fs::remove_file(forbidden).is_ok() {
        return Err(ProbeError::SandboxNotEnforced);
    }
    if output.lines().any(is_sentinel) { Ok(()) } else { Err(ProbeError::NoSandbox { output }) }
}

/// Does that with a command in an enclosure.
pub fn probe_enclosure(
    enclosure: &Enclosure,
    request: &VerifyRequest,
    environment: &Variables,
    forbidden: &Path,
    limit: Duration,
) -> Result<(), ProbeError> {
    let plan = enclosed(request, environment);
    let args = enclosure.wrap(&plan.program, &plan.args);
    probe_sandbox(&VerifyPlan { program: enclosure.launcher.clone(), args, ..plan }, forbidden, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_sandbox_the_command_runs_unchanged() {
        let request = VerifyRequest {
            command: VerifyCommand::Program(["cargo", "test", "-- $(x)"].map(str::to_owned).to_vec()),
            sandbox: VerifySandbox::None,
            run: RunSettings::default(),
            denied_dir: None,
            marker: "T:0".to_owned(),
        };
        let agent: Variables = [("PATH", "/bin"), ("MY_FLAG", "1"), (MARKER, "old")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        let plan = unsandboxed(&request, &agent);
        assert_eq!((plan.program.to_str(), plan.sentinel.as_deref()), (Some("cargo"), None));
        assert_eq!(plan.args, ["test", "-- $(x)"]);
        let names: Vec<_> = plan.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", MARKER]);
        assert_eq!(plan.environment[1].1, "T:0", "the mark of this task, whatever stood there");
    }

    #[test]
    fn a_command_line_is_one_argument_of_a_shell() {
        let command = VerifyCommand::Shell("a 'b c' | d\ne".to_owned());
        assert_eq!(command.argv(), ["/bin/sh", "-c", "a 'b c' | d\ne"]);
        assert_eq!(command.text(), "a 'b c' | d\ne");
        assert_eq!(VerifyCommand::Program(vec!["a".to_owned(), "b c".to_owned()]).text(), "a 'b c'");
    }
}
