//! Reuses the connections to the database between the calls of a process.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use crate::database::Database;
use crate::database_url::{DatabaseUrl, UrlProblem};

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
