//! Commands for the operators of a fleet: its state, its tables, and which workers claim tasks.
//!
//! Only `fleet status` is a tool, in the toolset `extra`. The others change the fleet for all its users, so they are for
//! people.

pub mod database;
pub mod drain;
pub mod grant;
pub mod migrate;
pub mod pause;
pub mod resume;
pub mod status;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::fleet::database::DatabaseInput;
use crate::error::ErrorCode;
use crate::output::documents::document::{Block, Document};
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Shape, Toolset};

/// What a call can fail with that uses the database.
pub const DATABASE_FAILURES: &[ErrorCode] = &[
    ErrorCode::NetworkError,
    ErrorCode::Unauthenticated,
    ErrorCode::PermissionDenied,
    ErrorCode::ResourceShortage,
    ErrorCode::DependencyMissing,
    ErrorCode::DependencyVersion,
    ErrorCode::NotFound,
];

/// Input of the commands that concern one worker, or the whole fleet.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct FleetOrWorker {
    /// Only this worker
    #[schemars(length(min = 1, max = 128), extend("x-positional" = true))]
    pub worker: Option<String>,
    #[serde(flatten)]
    pub database: DatabaseInput,
}

/// Which workers claim tasks, after a command.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClaimingChange {
    /// The worker; null for the whole fleet.
    pub worker: Option<String>,
    pub is_paused: bool,
    /// Whether this call changed it.
    pub is_changed: bool,
}

/// The spec of `fleet pause` and `fleet resume`, without its path and its action.
const fn claiming_spec(
    path: &'static [&'static str],
    about: &'static str,
    action: &'static str,
) -> CommandSpec {
    CommandSpec {
        shape: Shape::Action(action),
        idempotent: true,
        network: true,
        toolset: Toolset::Hidden,
        failures: DATABASE_FAILURES,
        ..CommandSpec::new::<FleetOrWorker, ClaimingChange>(path, about)
    }
}

fn claiming_output(worker: Option<String>, is_paused: bool, is_changed: bool) -> CommandOutput {
    CommandOutput::done(ClaimingChange { worker, is_paused, is_changed })
}

fn describe_claiming(data: &Value) -> Document {
    let subject =
        data["worker"].as_str().map_or("The fleet".to_owned(), |worker| format!("The worker {worker}"));
    let already = if data["is_changed"] == false { "already " } else { "" };
    match data["is_paused"] == true {
        true => Document::titled(format!("{subject} is {already}paused"))
            .block(Block::Text("It claims no more tasks; running tasks continue.".to_owned())),
        false => Document::titled(format!("{subject} is {already}open for tasks")),
    }
}
