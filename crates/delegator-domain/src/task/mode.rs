//! The sandbox mode of an agent, and the environment of its commands.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

named_enum! {
    /// Sandbox mode, in ascending order of permissions, so that it can be compared with `max_mode`.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Mode {
        #[default]
        ReadOnly = "read-only",
        WorkspaceWrite = "workspace-write",
        DangerFullAccess = "danger-full-access",
    }
}

impl Mode {
    pub fn writes(self) -> bool {
        self > Mode::ReadOnly
    }

    /// Whether a task in this mode can write: the mode allows it, or no sandbox enforces the mode.
    pub fn may_write(self, is_enforced: bool) -> bool {
        self.writes() || !is_enforced
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SandboxKind {
        /// The agent's own sandbox.
        Agent = "agent",
        /// We enclose the agent and everything it starts.
        Enforced = "enforced",
        /// Nothing: the mode needs no sandbox, or the user waived it.
        None = "none",
    }
}

named_enum! {
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EnclosureChoice {
        /// Landlock, or else bubblewrap.
        #[default]
        Auto = "auto",
        Landlock = "landlock",
        Bubblewrap = "bubblewrap",
    }
}

impl SandboxKind {
    pub fn enforces_mode(self) -> bool {
        self != SandboxKind::None
    }
}

/// Which environment variables the commands of an agent receive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "EnvPolicyFields", into = "EnvPolicyFields")]
pub enum EnvPolicy {
    #[default]
    InheritNone,
    InheritAll,
    AllowList(Vec<String>),
}

named_enum! {
    /// An [`EnvPolicy`] without its list.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EnvPolicyName {
        #[default]
        InheritNone = "inherit-none",
        InheritAll = "inherit-all",
        AllowList = "allow-list",
    }
}

impl EnvPolicyName {
    /// The policy of this name; only an allow list uses `variables`.
    pub fn with(self, variables: Vec<String>) -> EnvPolicy {
        match self {
            EnvPolicyName::InheritNone => EnvPolicy::InheritNone,
            EnvPolicyName::InheritAll => EnvPolicy::InheritAll,
            EnvPolicyName::AllowList => EnvPolicy::AllowList(variables),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct EnvPolicyFields {
    env_policy: EnvPolicyName,
    env_allow_list: Vec<String>,
}

impl From<EnvPolicyFields> for EnvPolicy {
    fn from(fields: EnvPolicyFields) -> EnvPolicy {
        fields.env_policy.with(fields.env_allow_list)
    }
}

impl From<EnvPolicy> for EnvPolicyFields {
    fn from(policy: EnvPolicy) -> EnvPolicyFields {
        let (env_policy, env_allow_list) = match policy {
            EnvPolicy::InheritNone => (EnvPolicyName::InheritNone, Vec::new()),
            EnvPolicy::InheritAll => (EnvPolicyName::InheritAll, Vec::new()),
            EnvPolicy::AllowList(variables) => (EnvPolicyName::AllowList, variables),
        };
        EnvPolicyFields { env_policy, env_allow_list }
    }
}
