//! Connections to the database, and the transaction in which every call runs.
//!
//! The crate is used by synchronous code: a private runtime drives the connections. Every statement runs
//! inside an explicit transaction and is not named, because a pooler in transaction mode gives each
//! transaction another server connection.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::timeout;

use crate::database_url::{DatabaseUrl, UrlProblem};
use crate::error::FleetError;
use crate::schema;
use crate::statements::Statements;

/// A call without an answer for this long fails. Far less than the lease, so that a worker can repeat a
/// heartbeat.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Servers and poolers close idle connections after minutes; a connection that was idle for longer than this
/// is not used.
const MAX_IDLE: Duration = Duration::from_secs(60);
/// The server ends what the client has given up, so that no lock outlives its caller. The search path
/// contains no schema in which another role could define a function or an operator.
const BEGIN: &str = "begin; set local search_path = pg_catalog, pg_temp; set local statement_timeout = '5s'; set local lock_timeout = '4s'; \
    set local idle_in_transaction_session_timeout = '10s'";

/// The database of a fleet. Clones share their connections; nothing is connected before the first call. The
/// calls block and must not be made inside an asynchronous runtime.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    url: DatabaseUrl,
    /// Built at the first call: most processes with a configured fleet never make one.
    runtime: OnceLock<Runtime>,
    idle: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    connection: PgConnection,
    since: Instant,
}

impl Database {
    pub fn new(url: &DatabaseUrl) -> Database {
        let shared = Shared { url: url.clone(), runtime: OnceLock::new(), idle: Mutex::default() };
        Database { shared: Arc::new(shared) }
    }

    pub fn url(&self) -> &DatabaseUrl {
        &self.shared.url
    }

    /// Runs one transaction on tables that fit this program.
    pub(crate) fn transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut Statements) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        self.long_transaction(CALL_TIMEOUT, work)
    }

    /// Runs one transaction whose statements may take longer than usual.
    pub(crate) fn long_transaction<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Statements) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        self.bounded(limit, async {
            let connection = match self.take_idle().await? {
                Some(connection) => connection,
                None => {
                    let mut connection = self.begin().await?;
                    schema::check(&mut connection).await?;
                    connection
                }
            };
            self.run_and_commit(connection, work).await
        })
    }

    pub(crate) fn transaction_without_check<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut Statements) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        self.bounded(limit, async {
            let connection = self.begin().await?;
            self.run_and_commit(connection, work).await
        })
    }

    /// Waits for a future in the private runtime. A connection that is in use when the time is over is
    /// closed.
    pub(crate) fn bounded<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let late = || FleetError::Unreachable { message: format!("no answer within {} s", limit.as_secs()) };
        self.runtime()?.block_on(async { timeout(limit, work).await.unwrap_or_else(|_| Err(late())) })
    }

    fn runtime(&self) -> Result<&Runtime, FleetError> {
        if let Some(runtime) = self.shared.runtime.get() {
            return Ok(runtime);
        }
        let built = Builder::new_current_thread().enable_io().enable_time().build();
        let built = built.map_err(|error| FleetError::Unreachable { message: error.to_string() })?;
        Ok(self.shared.runtime.get_or_init(|| built))
    }

    /// For what needs the private runtime outside of a call; `None` before the first one.
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.shared.runtime.get().map(Runtime::enter)
    }

    pub(crate) async fn connect(&self) -> Result<PgConnection, FleetError> {
        Ok(self.shared.url.options.clone().disable_statement_logging().connect().await?)
    }

    async fn begin(&self) -> Result<Statements, FleetError> {
        let mut connection = self.connect().await?;
        connection.execute(BEGIN).await?;
        Ok(Statements { connection })
    }

    /// An idle connection with an open transaction. One that the server has closed meanwhile is dropped. The
    /// tables may have been migrated meanwhile, so they are checked again.
    async fn take_idle(&self) -> Result<Option<Statements>, FleetError> {
        let begin = format!("{BEGIN}; {}", schema::VERSIONS);
        while let Some(IdleConnection { mut connection, since }) = self.pop_idle() {
            if since.elapsed() < MAX_IDLE
                && let Ok(row) = connection.fetch_one(AssertSqlSafe(begin.clone())).await
            {
                schema::check_row(&row)?;
                return Ok(Some(Statements { connection }));
            }
        }
        Ok(None)
    }

    fn pop_idle(&self) -> Option<IdleConnection> {
        self.idle().pop()
    }

    /// Commits what `work` has done, or rolls it back if it fails.
    async fn run_and_commit<T>(
        &self,
        mut statements: Statements,
        work: impl AsyncFnOnce(&mut Statements) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let result = work(&mut statements).await;
        let mut connection = statements.connection;
        // After a failover the server may have become read-only: another connection may reach another server.
        if matches!(result, Err(FleetError::Unreachable { .. } | FleetError::Unavailable { .. })) {
            return result;
        }
        let ended = connection.execute(if result.is_ok() { "commit" } else { "rollback" }).await;
        ended.map_err(|error| match FleetError::from(error) {
            // The connection broke, so it is unknown whether the server has committed.
            FleetError::NotAdmitted { message } => FleetError::Unreachable { message },
            error => error,
        })?;
        self.idle().push(IdleConnection { connection, since: Instant::now() });
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection>> {
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Database({})", self.shared.url)
    }
}

/// A runtime must not wait for its threads where the last clone may be dropped: in another runtime.
impl Drop for Shared {
    fn drop(&mut self) {
        self.idle.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The last database that was used. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct DatabasePool(Arc<Mutex<Option<PooledDatabase>>>);

/// The URL may contain a password and is not stored.
#[derive(Debug)]
struct PooledDatabase {
    url_hash: u64,
    database: Database,
}

impl DatabasePool {
    /// The database with this URL. Nothing connects before the first call.
    pub fn database(&self, url: &str) -> Result<Database, UrlProblem> {
        let mut hasher = DefaultHasher::new();
        url.hash(&mut hasher);
        let url_hash = hasher.finish();
        let mut pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pooled.as_ref().filter(|known| known.url_hash == url_hash) {
            return Ok(known.database.clone());
        }
        let database = Database::new(&DatabaseUrl::parse(url)?);
        *pooled = Some(PooledDatabase { url_hash, database: database.clone() });
        Ok(database)
    }
}
