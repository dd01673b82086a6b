//! Any agent of the user's configuration: its command makes it speak the protocol, and nothing else is known.

use super::super::profile::{ModelInput, Modes, Profile, ProgramBehind, SignIn};
use crate::agent::capabilities::UsageScope;
use crate::agent::state_dir::StatePaths;

pub(super) const PROFILE: Profile = Profile {
    name: "",
    tested_version: "",
    program: ProgramBehind::None,
    args: &[],
    set_variables: &[],
    asking_variables: &[],
    own_variables: &[],
    state: StatePaths::NONE,
    modes: Modes { asking: &[], read_only: &[], full_access: &[] },
    model: ModelInput::Session,
    has_reasoning_effort: false,
    has_sandbox: false,
    can_steer: false,
    usage: UsageScope::Turn,
    has_cost: false,
    has_plan: true,
    has_exit_codes: false,
    refusal_ends_turn: false,
    ignores_end_of_input: false,
    replays_late: false,
    min_node: None,
    sign_in: SignIn { command: None, variables: &[], files: &[] },
};
