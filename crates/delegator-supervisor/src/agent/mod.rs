//! Agents: how a program is found, started, understood, ended and cleaned up after.
//!
//! [`Agent`] is all that the engine and the commands know of an agent. It is data; what differs between
//! agents is in their tables (`profile.rs`, `codex/`, `claude/`, `acp/`), or else a `match` on
//! [`AgentProtocol`] in this file. Nothing below uses this file. `docs/adding-an-agent.md` walks through
//! adding an agent.

mod acp;
mod arg_list;
mod capabilities;
mod claude;
mod codex;
mod environment;
pub mod health;
mod launch;
mod profile;
mod profiles;
mod state_dir;
mod verification;

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use delegator_domain::agents::{
    AgentKind, AgentProtocol, ConfiguredAgent, DEFAULT_AGENT, DEFAULT_PROTOCOL, built_in_agent,
};
use delegator_domain::task::{FailureKind, Mode, SandboxKind};
use delegator_transcript::{Dialect, ErrorCode};
use serde::{Deserialize, Serialize};

pub use capabilities::{AgentInput, Capabilities, MessageSupport, UsageScope};
pub(crate) use codex::{ErrorMessage, Link, Message, NO_SANDBOX_HELPER, StderrLine};
pub use codex::{ShellSnapshots, StoredSession, is_refused_write, sandbox_advice, stored_sessions};
pub use environment::{VariableAccess, agent_environment, allowed_variables, variable_access};
pub use health::ThreadLookup;
use health::{HealthCheck, HealthStatus};
pub use launch::{LaunchPlan, LaunchRequest, PlanError};
use profile::Profile;
pub use state_dir::StatePath;
pub use verification::{
    VerifyCommand, VerifyPlan, VerifyRequest, VerifySandbox, probe_enclosure, probe_sandbox,
};

use crate::conversation::ConversationPlan;
use crate::ending::EndingRecipe;
pub use crate::program::{LocateError, ProbeError, UntrustedTrees, locate};
use crate::program::{Version, probe_version, resolve, version_text};
pub use crate::variables::{MARKER, Variables, parse_task_marker, task_marker, variable};

/// An agent whose program was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub name: String,
    pub protocol: AgentProtocol,
    pub program: PathBuf,
    /// Arguments before those of the protocol.
    pub args: Vec<OsString>,
    /// `None` if the program does not report it, or the protocol does not depend on it.
    pub version: Option<Version>,
    /// The user accepts that no sandbox enforces the mode of its tasks.
    pub unsandboxed: bool,
    /// Directories of the user's configuration in which it may write in every mode.
    #[serde(default)]
    pub state_dirs: Vec<PathBuf>,
    /// How long it may wait for another message after its last turn.
    pub linger: Duration,
    /// Answers its tool calls: an absolute path and arguments. Empty: the user does.
    #[serde(default)]
    pub tool_command: Vec<OsString>,
}

impl Agent {
    /// The built-in agent with another program.
    pub fn built_in(program: impl Into<PathBuf>, version: Option<Version>) -> Agent {
        Agent {
            name: DEFAULT_AGENT.to_owned(),
            protocol: DEFAULT_PROTOCOL,
            program: program.into(),
            args: Vec::new(),
            version,
            unsandboxed: false,
            state_dirs: Vec::new(),
            linger: Duration::ZERO,
            tool_command: Vec::new(),
        }
    }

    /// Finds the program of a configured agent on the submitter's PATH, never in a work tree of the task.
    pub fn locate(
        configured: &ConfiguredAgent,
        path: Option<&OsStr>,
        untrusted: &UntrustedTrees,
    ) -> Result<Agent, LocateError> {
        let found = locate(configured.program.as_os_str(), path, untrusted)?;
        let kind = AgentKind { name: &configured.name, protocol: configured.protocol };
        let (program, first_args) = resolve(found, &profiles::profile(kind).program, path, untrusted);
        let tool_command = configured.tool_command.split_first().map(|(program, args)| {
            let program = locate(OsStr::new(program), path, untrusted)?.into_os_string();
            Ok(std::iter::once(program).chain(args.iter().map(OsString::from)).collect())
        });
        let tool_command: Option<Vec<OsString>> = tool_command.transpose()?;
        Ok(Agent {
            name: configured.name.clone(),
            protocol: configured.protocol,
            program,
            args: first_args.into_iter().chain(configured.args.iter().map(OsString::from)).collect(),
            version: None,
            unsandboxed: configured.unsandboxed,
            state_dirs: configured.state_dirs.clone(),
            linger: configured.linger,
            tool_command: tool_command.unwrap_or_default(),
        })
    }

    /// Runs the program with its configured arguments to learn its version. `None` if it does not report one,
    /// or if nothing is known about its versions.
    pub fn probe_version(&self, environment: &Variables, limit: Duration) -> Option<Version> {
        let Profile { tested_version, set_variables, .. } = self.profile();
        if tested_version.is_empty() {
            return None;
        }
        let set = set_variables.iter().map(|(name, value)| (name.into(), value.into()));
        let environment = environment.iter().cloned().chain(set).collect();
        probe_version(&self.program, &self.args, &environment, limit).ok()
    }

    /// Whether a run is planned by the version of the program.
    pub fn depends_on_version(&self) -> bool {
        is_codex(self.protocol) || self.protocol == AgentProtocol::ClaudeStream
    }

    pub fn kind(&self) -> AgentKind<'_> {
        AgentKind { name: &self.name, protocol: self.protocol }
    }

    fn profile(&self) -> &'static Profile {
        profiles::profile(self.kind())
    }

    pub fn capabilities(&self) -> Capabilities {
        self.profile().capabilities
    }

    pub fn sandbox(&self, mode: Mode) -> SandboxKind {
        self.capabilities().sandbox_of(mode, self.unsandboxed)
    }

    /// Whether its tasks in this mode can write; see [`Mode::may_write`].
    pub fn may_write(&self, mode: Mode) -> bool {
        mode.may_write(self.sandbox(mode).enforces_mode())
    }

    pub fn state_paths(&self, environment: &Variables) -> Vec<StatePath> {
        state_dir::resolve(self.profile().state, &self.state_dirs, environment)
    }

    /// How the agent is started, fed and ended for one run. `workdir` is the open working directory.
    pub fn plan(&self, request: &LaunchRequest, workdir: impl AsFd) -> Result<LaunchPlan, PlanError> {
        let (sandbox, version) = (self.sandbox(request.run.mode), self.codex_version());
        let finish = match self.protocol {
            AgentProtocol::Acp => acp::finish(&self.name, request),
            _ => EndingRecipe::close(request.terminate_grace),
        };
        let stop_turn = EndingRecipe::stop_turn(finish.clone());
        let once = || ConversationPlan::Once { stdin: request.prompt().into_bytes() };
        let (args, conversation, ending) = match self.protocol {
            AgentProtocol::CodexExec => (
                codex::args(request, version, codex::project_trust(workdir))?,
                once(),
                EndingRecipe::graceful(request.interrupt_grace, request.terminate_grace),
            ),
            AgentProtocol::CodexAppServer => {
                let args = codex::app_server::args(request, version, codex::project_trust(workdir))?;
                (args, codex::app_server::conversation(request, version)?, stop_turn)
            }
            AgentProtocol::Plain => (Vec::new(), once(), EndingRecipe::terminate(request.terminate_grace)),
            AgentProtocol::IdleJsonl => {
                let conversation = ConversationPlan::IdleQueue {
                    prompt: request.prompt(),
                    tool_command: self.tool_command.clone(),
                };
                (Vec::new(), conversation, EndingRecipe::close(request.terminate_grace))
            }
            AgentProtocol::ClaudeStream => {
                let conversation = claude::conversation(request, sandbox == SandboxKind::Enforced);
                (claude::args(request)?, conversation, stop_turn)
            }
            AgentProtocol::Acp => {
                let args = acp::acp_profile(&self.name).args.iter().map(OsString::from).collect();
                (args, acp::conversation(&self.name, request, sandbox)?, stop_turn)
            }
        };
        Ok(LaunchPlan {
            program: self.program.clone(),
            args: self.args.iter().cloned().chain(args).collect(),
            env: self.set_variables(request, sandbox),
            conversation,
            ending,
            finish,
            linger: self.linger,
            expected_thread: request.run.resume.clone(),
        })
    }

    fn set_variables(&self, request: &LaunchRequest, sandbox: SandboxKind) -> Vec<(String, String)> {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let own = match self.protocol {
            AgentProtocol::Acp => acp::set_variables(&self.name, &request.run, sandbox),
            _ => self.profile().set_variables.iter().copied().map(owned).collect(),
        };
        own.into_iter().chain([owned((MARKER, &request.marker))]).collect()
    }

    /// Fails as [`Agent::plan`] would, without a working directory.
    pub fn validate(&self, request: &LaunchRequest) -> Result<(), PlanError> {
        match self.protocol {
            AgentProtocol::CodexExec | AgentProtocol::CodexAppServer => {
                codex::validate(request, self.codex_version())
            }
            AgentProtocol::ClaudeStream => claude::validate(&request.run),
            AgentProtocol::Acp => acp::validate(&request.run),
            AgentProtocol::Plain | AgentProtocol::IdleJsonl => Ok(()),
        }
    }

    /// A program that does not report its version is treated like the newest measured one.
    fn codex_version(&self) -> Version {
        self.version.unwrap_or(codex::NEWEST_MEASURED)
    }

    /// What it may leave behind after a forced end.
    pub fn leftovers(&self, environment: &Variables) -> Option<ShellSnapshots> {
        ShellSnapshots::of(environment).filter(|_| is_codex(self.protocol))
    }

    pub fn verify_plan(
        &self,
        request: &VerifyRequest,
        environment: &Variables,
    ) -> Result<VerifyPlan, PlanError> {
        match (request.sandbox, self.protocol) {
            (VerifySandbox::None, _) => Ok(verification::unsandboxed(request, environment)),
            (VerifySandbox::Enclosure, _) => Ok(verification::enclosed(request, environment)),
            // Without a version, or with other arguments first, it is not Codex and has no `sandbox` command.
            (VerifySandbox::Agent, protocol)
                if is_codex(protocol) && self.args.is_empty() && self.version.is_some() =>
            {
                Ok(codex::sandboxed(&self.program, self.codex_version(), request, environment))
            }
            (VerifySandbox::Agent, _) => Err(PlanError::NoSandbox { program: self.program.clone() }),
        }
    }

    /// Whether the agent can authenticate, as far as that is known without using the network; instead a
    /// problem of its configuration, if there is one. `environment` are the variables that it gets, `caller`
    /// those of the caller.
    pub fn check_sign_in(
        &self,
        environment: &Variables,
        caller: &Variables,
        limit: Duration,
    ) -> Option<HealthCheck> {
        let check = match self.protocol {
            AgentProtocol::CodexExec | AgentProtocol::CodexAppServer => codex::check_sign_in,
            AgentProtocol::ClaudeStream => claude::check_sign_in,
            AgentProtocol::Acp => return acp::check_sign_in(acp::acp_profile(&self.name), environment),
            AgentProtocol::Plain | AgentProtocol::IdleJsonl => return None,
        };
        Some(check(&self.program, &self.args, environment, caller, limit))
    }

    pub fn describe_program(&self) -> (HealthStatus, String) {
        let (program, tested) = (self.program.display(), self.profile().tested_version);
        let is_codex = is_codex(self.protocol);
        let tested = if is_codex { codex::tested_versions() } else { tested.to_owned() };
        let Some(version) = self.version.filter(|_| !tested.is_empty()) else {
            return self.describe_unknown_version();
        };
        let text = version_text(version);
        match codex::version_warning(version).filter(|_| is_codex) {
            Some(warning) => (HealthStatus::Warning, format!("{program} is version {text}, {warning}")),
            None => (HealthStatus::Ok, format!("{program}, version {text} (tested: {tested})")),
        }
    }

    fn describe_unknown_version(&self) -> (HealthStatus, String) {
        let program = self.program.display();
        if self.profile().tested_version.is_empty() {
            return (HealthStatus::Ok, program.to_string());
        }
        let min_node = match self.protocol {
            AgentProtocol::Acp => acp::acp_profile(&self.name).min_node,
            _ => None,
        };
        let needs = min_node.map(|node| format!("; it needs Node.js {node} or newer")).unwrap_or_default();
        (HealthStatus::Warning, format!("{program} does not report its version{needs}"))
    }
}

fn is_codex(protocol: AgentProtocol) -> bool {
    matches!(protocol, AgentProtocol::CodexExec | AgentProtocol::CodexAppServer)
}

pub fn check_environment(protocol: AgentProtocol, environment: &Variables) -> Option<HealthCheck> {
    is_codex(protocol).then(|| codex::check_home(environment))
}

/// Whether an agent of this protocol, in that environment, has a thread to resume. Does not run the agent.
pub fn find_thread(protocol: AgentProtocol, environment: &Variables, thread_id: &str) -> ThreadLookup {
    match protocol {
        _ if is_codex(protocol) => codex::find_thread(environment, thread_id),
        AgentProtocol::ClaudeStream => claude::find_thread(environment, thread_id),
        _ => ThreadLookup::NotSearchable,
    }
}

/// The dialect of the output of agents of this protocol, if its lines do not show it.
pub fn dialect_of(protocol: AgentProtocol) -> Option<Dialect> {
    match protocol {
        AgentProtocol::CodexExec => None,
        AgentProtocol::Plain => Some(Dialect::Plain),
        AgentProtocol::IdleJsonl => Some(Dialect::Idle),
        AgentProtocol::ClaudeStream => Some(Dialect::ClaudeStream),
        AgentProtocol::Acp => Some(Dialect::Acp),
        AgentProtocol::CodexAppServer => Some(Dialect::AppServer),
    }
}

/// What an error that the agent reported in an event is about, if that is certain. Agents pass on the words
/// of model providers, so the same words mean the same from each of them.
pub fn reported_failure(
    protocol: AgentProtocol,
    message: &str,
    code: Option<ErrorCode>,
) -> Option<FailureKind> {
    match protocol {
        AgentProtocol::Plain | AgentProtocol::IdleJsonl => None,
        _ => codex::reported_failure(message, code),
    }
}

pub(crate) fn parse_stderr_line(protocol: AgentProtocol, line: &str) -> StderrLine<'_> {
    if is_codex(protocol) { codex::parse_line(line) } else { StderrLine::Message(Message::default()) }
}

/// The command that signs in to an agent, for messages. Only known for built-in agents.
pub fn sign_in_command(agent: &str) -> Option<&'static str> {
    let protocol = built_in_agent(agent)?.protocol;
    profiles::profile(AgentKind { name: agent, protocol }).sign_in_command
}
