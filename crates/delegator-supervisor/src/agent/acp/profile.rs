//! What differs between agents of the Agent Client Protocol. Data.

use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::StatePaths;
use crate::conversation::AcpSetting;

/// One agent. Measured with the version in its table.
#[derive(Debug)]
pub(in crate::agent) struct Profile {
    /// The name of the built-in agent.
    pub(in crate::agent) name: &'static str,
    /// The version that was measured.
    pub(in crate::agent) tested_version: &'static str,
    pub(super) program: ProgramBehind,
    /// Make it speak the protocol.
    pub(super) args: &'static [&'static str],
    pub(super) set_variables: &'static [(&'static str, &'static str)],
    /// Set in addition if permissions are requested of us: `ask`, or a mode that nothing else enforces.
    pub(super) asking_variables: &'static [(&'static str, &'static str)],
    /// Variables of the submitter that it gets in addition to those of every agent: keys, endpoints, directories.
    pub(in crate::agent) own_variables: &'static [&'static str],
    pub(in crate::agent) state: StatePaths,
    pub(super) modes: Modes,
    pub(super) model: ModelInput,
    pub(super) has_reasoning_effort: bool,
    /// It enforces the mode of a task with a sandbox of its own.
    pub(super) has_sandbox: bool,
    /// It takes messages into the running turn.
    pub(super) can_steer: bool,
    pub(super) usage: UsageScope,
    pub(super) has_cost: bool,
    pub(super) has_plan: bool,
    pub(super) has_exit_codes: bool,
    /// It ends its turn when a permission is refused.
    pub(super) refusal_ends_turn: bool,
    /// It does not exit when its input is closed.
    pub(super) ignores_end_of_input: bool,
    /// It replays the history of a loaded session after it has answered.
    pub(super) replays_late: bool,
    /// The oldest Node.js that it runs on, if not every supported one.
    pub(in crate::agent) min_node: Option<u32>,
    pub(in crate::agent) sign_in: SignIn,
}

/// The program to supervise, if what is installed only starts it: ending the wrapper would leave the agent running.
#[derive(Debug)]
pub(super) enum ProgramBehind {
    /// It is the program itself.
    None,
    /// A native program in another npm package. `ARCH` stands for npm's name of the architecture.
    Package(&'static [&'static str]),
    /// A script beside the installed one, for Node.js.
    Script(&'static str),
}

/// Settings of the session for the modes of tasks.
#[derive(Debug)]
pub(super) struct Modes {
    /// The agent requests permission for edits and commands.
    pub(super) asking: &'static [AcpSetting],
    /// The agent changes nothing by itself.
    pub(super) read_only: &'static [AcpSetting],
    /// The agent requests nothing.
    pub(super) full_access: &'static [AcpSetting],
}

#[derive(Debug)]
pub(super) enum ModelInput {
    /// A setting of the session.
    Session,
    Variable(&'static str),
}

/// How a user signs in, and what shows without the network that this happened.
#[derive(Debug)]
pub(in crate::agent) struct SignIn {
    pub(in crate::agent) command: Option<&'static str>,
    /// Any of these variables is enough.
    pub(super) variables: &'static [&'static str],
    /// Any of these files below HOME is enough. Empty if the agent has other ways that cannot be seen.
    pub(super) files: &'static [&'static str],
}
