//! Hints that something has changed, so that a worker need not wait for its next poll.
//!
//! A hint may be missing, so every listener also polls. Behind a pooler in transaction mode there are none: a `listen` would
//! stay with a connection of the pooler, and the hints would disturb other clients that get this connection later.

use std::fmt;
use std::future::pending;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::database::{CALL_TIMEOUT, Database};
use crate::error::FleetError;
use crate::task::new_id;

const CHANNEL: &str = "delegator";
/// A setting of the connection, given when it is opened. A pooler refuses or ignores it.
const MARK: &str = "delegator.listener";

pub struct Listener {
    database: Database,
    /// `None` before the first wait and after an error.
    connection: Option<PgListener>,
    is_pooled: bool,
}

impl Database {
    /// Connects at the first wait.
    pub fn listener(&self) -> Listener {
        Listener { database: self.clone(), connection: None, is_pooled: false }
    }
}

impl Listener {
    /// Waits until something was queued, cancelled or drained, at most this long. Returns whether a hint came.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let database = self.database.clone();
        let hinted = database.bounded(limit + CALL_TIMEOUT, async {
            let deadline = Instant::now() + limit;
            let hint = timeout_at(deadline, self.next_hint()).await;
            if let Ok(Err(_)) = &hint {
                self.connection = None;
                sleep_until(deadline).await;
            }
            Ok(matches!(hint, Ok(Ok(()))))
        });
        hinted.unwrap_or(false)
    }

    async fn next_hint(&mut self) -> Result<(), FleetError> {
        if self.connection.is_none() && !self.is_pooled {
            self.connection = listen(&self.database).await?;
            self.is_pooled = self.connection.is_none();
            if !self.is_pooled {
                // Hints before the connection were lost, so the connection counts as one.
                return Ok(());
            }
        }
        let Some(connection) = &mut self.connection else { return pending().await };
        connection.recv().await?;
        // One hint stands for all that have arrived.
        while connection.next_buffered().is_some() {}
        Ok(())
    }
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
