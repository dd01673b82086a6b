//! A pool of open connections to the registry.
//!
//! Opening a connection (settings, schema version, query plans) costs more than most queries, so they are
//! reused. Before reuse, the pool checks that a connection still belongs to the current registry of its
//! directory, which may have been removed, set aside or migrated by a newer program. The default pool is
//! disabled: it closes every connection after use.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use delegator_domain::redact::Redactor;
use delegator_registry::{Registry, StateDir};

/// Idle connections that are retained; more calls than this rarely run at once.
const MAX_IDLE: usize = 4;

/// The default pool is disabled: it retains no connection.
#[derive(Debug, Clone, Default)]
pub struct ConnectionPool {
    idle: Option<Arc<Mutex<Vec<Registry>>>>,
    redactor: Option<Redactor>,
    is_long_running: bool,
}

impl ConnectionPool {
    pub fn of_command() -> ConnectionPool {
        ConnectionPool { idle: Some(Arc::default()), ..ConnectionPool::default() }
    }

    pub fn of_service() -> ConnectionPool {
        ConnectionPool { is_long_running: true, ..ConnectionPool::of_command() }
    }

    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> ConnectionPool {
        ConnectionPool { redactor: Some(redactor), ..self }
    }

    /// An idle connection to the current registry of this directory; closes the others that it meets.
    pub(crate) fn take(&self, dir: &StateDir) -> Option<Registry> {
        loop {
            let connection = self.idle.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if connection.dir().path() == dir.path() && connection.is_current() {
                return Some(connection);
            }
        }
    }

    pub(crate) fn guard(&self, mut registry: Registry) -> PooledConnection {
        registry.redact_with(self.redactor.clone());
        PooledConnection { registry: Some(registry), pool: self.clone() }
    }

    fn put_back(&self, registry: Registry) {
        let Some(idle) = &self.idle else { return };
        let mut connections = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if connections.len() < MAX_IDLE {
            connections.push(registry);
        }
    }
}

#[derive(Debug)]
pub(crate) struct PooledConnection {
    /// `None` only during drop.
    registry: Option<Registry>,
    pool: ConnectionPool,
}

impl PooledConnection {
    pub(crate) fn is_long_running(&self) -> bool {
        self.pool.is_long_running
    }
}

impl Deref for PooledConnection {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        match &self.registry {
            Some(registry) => registry,
            None => unreachable!("the connection is taken only during drop"),
        }
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Registry {
        match &mut self.registry {
            Some(registry) => registry,
            None => unreachable!("the connection is taken only during drop"),
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.take() {
            self.pool.put_back(registry);
        }
    }
}
