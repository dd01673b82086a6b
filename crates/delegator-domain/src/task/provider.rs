//! Which service runs the tasks of an environment.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Provider {
        /// Hosted Codex.
        CodexCloud = "codex-cloud",
        /// Our own workers.
        Fleet = "fleet",
    }
}

impl Provider {
    /// How a sentence names it.
    pub fn description(self) -> &'static str {
        match self {
            Provider::CodexCloud => "hosted Codex",
            Provider::Fleet => "the fleet",
        }
    }
}
