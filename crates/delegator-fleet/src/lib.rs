//! The database of the fleet: queue, leases, events and results in PostgreSQL. The only code that knows
//! PostgreSQL.
//!
//! ```text
//! submitter                        worker
//! submit ─▶ queued ─▶ claim ─▶ claimed ─▶ start ─▶ running ─▶ finish ─▶ completed, failed, timeout, cancelled
//!              ▲                  │release            │lost
//!              └──────────────────┴── on_lost: retry ─┴── on_lost: fail ─▶ failed (worker_lost)
//! ```
//!
//! Every call is one transaction (a file is stored in several), bounded in time, and can be repeated after a
//! lost answer. Only the database's clock counts. Queries are checked at compile time against `.sqlx/`, which
//! `scripts/prepare-queries` writes from a real server.

mod attempt;
mod blobs;
mod database;
mod database_url;
mod error;
mod events;
mod grant;
mod listen;
mod migrate;
mod operator;
mod retention;
mod schema;
mod session;
mod statements;
mod status;
mod submit;
mod task;

pub use attempt::FinishedTask;
pub use blobs::BlobName;
pub use database::{Database, DatabasePool};
pub use database_url::{DatabaseUrl, UrlProblem};
pub use delegator_domain::environment::OnLost;
pub use delegator_domain::event_page::{EventPage, EventPosition};
pub use error::{FleetError, SchemaProblem};
pub use grant::grant_sql;
pub use listen::{Hints, Listener};
pub use migrate::Migrated;
pub use operator::{CancelledTask, ListedTask, TaskFilter, TaskList, TaskPhase};
pub use retention::{Pruned, Retention};
pub use session::{
    FleetCancelRequest, FleetClaim, Heartbeat, NewSession, OpenedSession, OwnedTask, SessionId,
};
pub use status::{FleetStatus, WorkerStatus};
pub use task::{FleetEnd, FleetState, FleetTask, IdempotencyKey, NewFleetTask, Submitted, TaskSpec, new_id};
