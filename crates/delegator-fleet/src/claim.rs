//! Sessions, and the tasks that they own.
//!
//! Every change of a task is a function of the database that names task, attempt and the secret of the
//! session. One that comes too late matches no row.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::error::FleetError;
use crate::statements::Statements;
use crate::task::{TaskSpec, new_id, storable};

/// The id of a session, which everyone may know, and the secret of which it is the hash. The secret is the
/// right to write in the name of the session: only its worker has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl SessionId {
    pub fn random() -> SessionId {
        let secret = new_id();
        let id = Sha256::digest(&secret).iter().map(|byte| format!("{byte:02x}")).collect();
        SessionId { id, secret }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.id)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({self})")
    }
}

/// The right of a session to run an attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    pub task: String,
    pub attempt: i32,
    pub session: SessionId,
}

impl Claim {
    pub(crate) fn fenced(&self) -> FleetError {
        FleetError::Fenced { task: self.task.clone() }
    }

    /// An error unless the database has accepted a change in the name of this claim.
    pub(crate) fn require(&self, is_accepted: bool) -> Result<(), FleetError> {
        if is_accepted { Ok(()) } else { Err(self.fenced()) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTask {
    pub claim: Claim,
    pub spec: TaskSpec,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTask {
    pub claim: Claim,
    pub spec: TaskSpec,
    /// Otherwise it is claimed only.
    pub is_running: bool,
    pub cancel: Option<CancelRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    pub reason: Option<String>,
}

/// Ends the attempt as that of a lost worker, if the claim is still valid and the task in this state.
pub(crate) async fn lose_task(
    db: &mut Statements,
    claim: &Claim,
    only_state: Option<&str>,
    cause: &str,
) -> Result<(), FleetError> {
    sqlx::query!(
        "select delegator.give_up_task($1, $2, $3, $4, $5)",
        claim.session.secret,
        claim.task,
        claim.attempt,
        only_state,
        storable(cause),
    )
    .execute(&mut *db)
    .await?;
    Ok(())
}

pub(crate) fn parse_spec(text: &str) -> Result<TaskSpec, FleetError> {
    serde_json::from_str(text).map_err(|error| FleetError::Corrupt {
        what: "the specification of a task",
        problem: error.to_string(),
    })
}
