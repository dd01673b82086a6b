//! Hints that something has changed, so that a worker need not wait for its next poll or heartbeat.
//!
//! A notification is [`QUEUED`], [`ALL_SESSIONS`], or the id of the one session that it is for. A hint may be
//! missing, so every listener also polls. Behind a pooler in transaction mode there are none: a `listen`
//! would stay with a connection of the pooler, and the hints would disturb other clients that get this
//! connection later.

use std::fmt;
use std::future::pending;
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{Instant, timeout, timeout_at};

use crate::database::{CALL_TIMEOUT, Database};
use crate::error::FleetError;
use crate::session::SessionId;
use crate::task::new_id;

const CHANNEL: &str = "delegator";
/// A task was queued.
const QUEUED: &str = "queued";
/// All workers were resumed.
const ALL_SESSIONS: &str = "sessions";
/// A setting of the connection, given when it is opened. A pooler refuses or ignores it.
const MARK: &str = "delegator.listener";
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// What a worker should look at. The default is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// The queue: a task was added.
    pub queue: bool,
    /// The session: a task of it was cancelled, or the worker was drained or resumed.
    pub session: bool,
}

impl Hints {
    /// When a connection is opened or lost: hints before it, or at its end, did not arrive.
    const UNKNOWN: Hints = Hints { queue: true, session: true };
}

pub struct Listener {
    database: Database,
    session: SessionId,
    check_interval: Duration,
    /// `None` before the first wait, behind a pooler, and after an error.
    connection: Option<PgListener>,
    is_pooled: bool,
    /// When the connection is opened or checked next.
    next_check: Option<Instant>,
}

impl Database {
    /// A listener for a session. Connects at the first wait. A connection that was lost without an error is
    /// noticed within the interval, and a failed one is opened again after it.
    pub fn listener(&self, session: &SessionId, check_interval: Duration) -> Listener {
        Listener {
            database: self.clone(),
            session: session.clone(),
            check_interval,
            connection: None,
            is_pooled: false,
            next_check: None,
        }
    }
}

impl Listener {
    /// Whether hints arrive, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Waits for hints at most this long, or a little longer if the connection must be opened or checked.
    pub fn wait(&mut self, limit: Duration) -> Hints {
        let database = self.database.clone();
        let hints = database.bounded(limit + 2 * CALL_TIMEOUT, async {
            let deadline = Instant::now() + limit;
            if !self.is_pooled && self.next_check.is_none_or(|at| at <= Instant::now()) {
                let was_connected = self.is_connected();
                self.check().await;
                if self.is_connected() != was_connected {
                    return Ok(Hints::UNKNOWN);
                }
            }
            Ok(timeout_at(deadline, self.next_hints()).await.unwrap_or_default())
        });
        hints.unwrap_or_default()
    }

    /// Opens the connection if there is none. Otherwise sends a query: an answer proves that the server still
    /// knows it.
    async fn check(&mut self) {
        let limit = self.check_interval.min(CALL_TIMEOUT);
        match &mut self.connection {
            Some(connection) => {
                if !matches!(timeout(limit, connection.execute("select 1")).await, Ok(Ok(_))) {
                    self.lose();
                    return;
                }
            }
            None => {
                if let Ok(Ok(connection)) = timeout(limit, listen(&self.database)).await {
                    self.is_pooled = connection.is_none();
                    self.connection = connection;
                }
            }
        }
        self.next_check = Some(Instant::now() + self.check_interval);
    }

    /// The connection is opened again a little later, when the caller knows whether the database is there at
    /// all.
    fn lose(&mut self) {
        self.connection = None;
        self.next_check = Some(Instant::now() + RECONNECT_DELAY.min(self.check_interval));
    }

    async fn next_hints(&mut self) -> Hints {
        let Some(connection) = &mut self.connection else { return pending().await };
        let mut hints = Hints::default();
        while hints == Hints::default() {
            // Not `recv`, which opens a lost connection again and does not report that hints are missing.
            let Ok(Some(notification)) = connection.try_recv().await else {
                self.lose();
                return Hints::UNKNOWN;
            };
            hints = hints_of(notification.payload(), &self.session);
        }
        hints
    }
}

fn hints_of(payload: &str, session: &SessionId) -> Hints {
    Hints { queue: payload == QUEUED, session: payload == ALL_SESSIONS || payload == session.id }
}

/// `None`: there is a pooler between this process and the server.
async fn listen(database: &Database) -> Result<Option<PgListener>, FleetError> {
    let mark = new_id();
    let options = database.url().options.clone().options([(MARK, &mark)]);
    let pool =
        PgPoolOptions::new().max_connections(1).acquire_timeout(CALL_TIMEOUT).connect_lazy_with(options);
    let mut connection = match PgListener::connect_with(&pool).await {
        // Only a pooler reports a violation of the protocol.
        Err(sqlx::Error::Database(answer)) if answer.code().as_deref() == Some("08P01") => return Ok(None),
        connected => connected?,
    };
    connection.eager_reconnect(false);
    let found: Option<String> =
        sqlx::query_scalar("select current_setting($1, true)").bind(MARK).fetch_one(&mut connection).await?;
    if found.as_ref() != Some(&mark) {
        return Ok(None);
    }
    connection.listen(CHANNEL).await?;
    Ok(Some(connection))
}

/// The connection is closed by a task of the runtime.
impl Drop for Listener {
    fn drop(&mut self) {
        let _runtime = self.database.enter();
        self.connection = None;
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Listener({:?})", self.database)
    }
}
