//! Connections to the registry, kept between two uses by a process that stays.
//!
//! Opening one costs more than most questions: its settings are made, its version is read, its tables are understood, its
//! queries are planned. A server is asked again and again, so it puts them on a shelf. Whoever takes one down looks
//! whether it still is the registry of its directory: that may have been set aside, removed, or brought up to date by a
//! newer program meanwhile. Everybody else has no shelf, and closes what it opened.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use delegator_domain::redact::Redactor;
use delegator_registry::{Registry, StateDir};

/// More calls than this are seldom at work at once, and a connection is not nothing.
const MAX_IDLE: usize = 4;

/// Where connections lie; without a place for them nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct ConnectionPool {
    idle: Option<Arc<Mutex<Vec<Registry>>>>,
    /// What connections hide from the database.
    redactor: Option<Redactor>,
}

impl ConnectionPool {
    /// For a process that stays.
    pub fn enabled() -> ConnectionPool {
        ConnectionPool { idle: Some(Arc::default()), redactor: None }
    }

    /// The same, with connections that hide what this redactor hides.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> ConnectionPool {
        ConnectionPool { redactor: Some(redactor), ..self }
    }

    /// A connection to the registry of this directory, if one is there and good. The others are closed.
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

/// A registry for one use.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    /// Gone only while it is dropped.
    registry: Option<Registry>,
    pool: ConnectionPool,
}

impl Deref for PooledConnection {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        match &self.registry {
            Some(registry) => registry,
            None => unreachable!("it is taken away only while this is dropped"),
        }
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Registry {
        match &mut self.registry {
            Some(registry) => registry,
            None => unreachable!("it is taken away only while this is dropped"),
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
