//! What can go wrong with the database of the fleet.

use std::io;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// There was no answer. A change may have been made nevertheless; every change can be repeated.
    #[error("the fleet's database did not answer: {message}")]
    Unreachable { message: String },
    /// The server does not accept the credentials, or its certificate is not valid.
    #[error("the fleet's database refused the connection: {message}")]
    NotAdmitted { message: String },
    #[error("the role of the database URL lacks a right: {message}")]
    PermissionDenied { message: String },
    /// It answered that it cannot do that now, for example because its disk is full.
    #[error("the fleet's database cannot do that now: {message}")]
    Unavailable { message: String },
    /// It answered with an error that a repetition does not change.
    #[error("the fleet's database reported an error: {message}")]
    Refused { message: String },
    #[error(transparent)]
    Schema(#[from] SchemaProblem),
    /// The task now belongs to another attempt or session, or it has ended. Nothing was changed.
    #[error("the task {task} no longer belongs to this worker")]
    Fenced { task: String },
    /// The lease passed, or another process opened a session for the same workspace.
    #[error("the session of this worker has ended")]
    SessionEnded,
    #[error(
        "a worker named '{worker}' is running elsewhere; its last heartbeat was {heartbeat_age_sec} s ago"
    )]
    NameInUse { worker: String, heartbeat_age_sec: i64 },
    #[error("the fleet has no worker named '{worker}'")]
    UnknownWorker { worker: String, known: Vec<String> },
    #[error("the fleet does not have the task {id}")]
    UnknownTask { id: String },
    #[error("the idempotency key was used for a different task")]
    KeyConflict,
    /// Events must be appended where the stored ones end.
    #[error("the stored events end at byte {stored}")]
    Gap { stored: u64 },
    /// A result refers to a blob that is not complete.
    #[error("the {name} of the task is not stored completely")]
    NotSealed { name: &'static str },
    #[error("the fleet's database contains {what} that cannot be read: {problem}")]
    Corrupt { what: &'static str, problem: String },
}

/// The tables do not fit this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    #[error("the database has no tables of a fleet")]
    Missing,
    #[error("the tables of the fleet have version {found}, this program needs {needed}")]
    Outdated { found: i32, needed: i32 },
    #[error("the tables of the fleet have version {found}, which needs a newer program")]
    TooNew { found: i32 },
}

impl FleetError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, FleetError::Unreachable { .. } | FleetError::Unavailable { .. })
    }

    /// Whether a repetition has the same result, until the program or the data is changed.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            FleetError::Refused { .. }
                | FleetError::Corrupt { .. }
                | FleetError::NotSealed { .. }
                | FleetError::KeyConflict
                | FleetError::UnknownTask { .. }
        )
    }
}

impl From<sqlx::Error> for FleetError {
    fn from(error: sqlx::Error) -> FleetError {
        match &error {
            sqlx::Error::Database(answer) => from_answer(answer.as_ref()),
            sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) => {
                FleetError::NotAdmitted { message: error.to_string() }
            }
            // What TLS reports about the certificate of the server.
            sqlx::Error::Io(problem) if problem.kind() == io::ErrorKind::InvalidData => {
                FleetError::NotAdmitted { message: problem.to_string() }
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::RowNotFound => {
                FleetError::Corrupt { what: "a row", problem: error.to_string() }
            }
            _ => FleetError::Unreachable { message: error.to_string() },
        }
    }
}

/// By the error codes of PostgreSQL, appendix A of its manual.
fn from_answer(answer: &dyn sqlx::error::DatabaseError) -> FleetError {
    let code = answer.code().unwrap_or_default();
    let message = answer.message().to_owned();
    let answer = answer.try_downcast_ref::<sqlx::postgres::PgDatabaseError>();
    let is_panic = answer.is_some_and(|answer| answer.severity() == sqlx::postgres::PgSeverity::Panic);
    match code.as_ref() {
        // The server ends and is started again.
        _ if is_panic => FleetError::Unavailable { message },
        // A missing schema or table.
        "3F000" | "42P01" => SchemaProblem::Missing.into(),
        "42501" => FleetError::PermissionDenied { message },
        "28000" | "28P01" | "3D000" => FleetError::NotAdmitted { message },
        // Shutdown, restart, too many connections, a pooler without a server, cancelled by a timeout; a
        // serialization failure or a deadlock, after which the transaction can be repeated.
        "53300" | "57014" => FleetError::Unreachable { message },
        code if ["57P", "08", "40"].iter().any(|class| code.starts_with(class)) => {
            FleetError::Unreachable { message }
        }
        // A read-only server, a lock that another transaction holds, no disk space or memory, an input/output
        // error.
        "25006" | "55P03" => FleetError::Unavailable { message },
        code if code.starts_with("53") || code.starts_with("58") => FleetError::Unavailable { message },
        _ => FleetError::Refused { message },
    }
}
