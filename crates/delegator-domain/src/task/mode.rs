//! How far an agent may go, and what its commands may see.

/// The sandbox mode, in rising order of power: `max_mode` compares with it.
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

/// What the commands an agent runs see of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EnvPolicy {
    InheritNone,
    InheritAll,
    AllowList(Vec<String>),
}
