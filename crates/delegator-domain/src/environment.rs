//! An environment: a named place where cloud tasks run. `delegator-config` reads it from the environments
//! file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;
use crate::task::{Mode, Provider};

named_enum! {
    /// What happens to a started task whose worker is lost.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum OnLost {
        Fail = "fail",
        Retry = "retry",
    }
}

named_enum! {
    /// What keeps a queued task of the fleet from being claimed until an operator changes it.
    pub enum FleetObstacle {
        FleetPaused = "fleet_paused",
        /// No live worker has the labels that the task requires.
        NoWorker = "no_worker",
        /// Every live worker with the labels is draining.
        WorkersDraining = "workers_draining",
        /// Every live worker with the labels is paused or draining.
        WorkersPaused = "workers_paused",
    }
}

/// One environment, with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    pub id: String,
    pub name: String,
    #[serde(rename = "repoUrl")]
    pub repo_url: String,
    pub stack: String,
    pub description: Option<String>,
    pub provider: Provider,
    pub branch: Option<String>,
    /// A script that prepares a checkout.
    pub setup: Option<String>,
    pub mode: Mode,
    /// Labels that a worker must have.
    pub labels: BTreeMap<String, String>,
    pub priority: i64,
    pub on_lost: OnLost,
    pub max_claims: u64,
    pub push: bool,
    #[serde(rename = "createdAt")]
    pub created_at: Option<String>,
}
