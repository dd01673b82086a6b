//! The sandbox mode of an agent, and the environment of its commands.

use crate::named_enum::named_enum;

named_enum! {
    /// Sandbox mode, in ascending order of permissions, so that it can be compared with `max_mode`.
    pub enum Mode {
        ReadOnly = "read-only",
        WorkspaceWrite = "workspace-write",
        DangerFullAccess = "danger-full-access",
    }
}

impl Mode {
    pub fn writes(self) -> bool {
        self > Mode::ReadOnly
    }
}

/// Which environment variables the commands of an agent receive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EnvPolicy {
    InheritNone,
    InheritAll,
    AllowList(Vec<String>),
}
