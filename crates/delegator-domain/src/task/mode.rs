//! The sandbox mode of an agent, and the environment of its commands.

/// Sandbox mode, in ascending order of permissions, so that it can be compared with `max_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::WorkspaceWrite => "workspace-write",
            Mode::DangerFullAccess => "danger-full-access",
        }
    }

    pub fn from_name(name: &str) -> Option<Mode> {
        [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

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
