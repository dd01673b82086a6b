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
const KEPT: usize = 4;

/// Where connections lie; without a place for them nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    place: Option<Arc<Mutex<Vec<Registry>>>>,
    /// What connections hide from the database.
    redactor: Option<Redactor>,
}

impl Shelf {
    /// For a process that stays.
    pub fn keeping() -> Shelf {
        Shelf { place: Some(Arc::default()), redactor: None }
    }

    /// The same, with connections that hide what this redactor hides.
    #[must_use]
    pub fn redacting(self, redactor: Redactor) -> Shelf {
        Shelf { redactor: Some(redactor), ..self }
    }

    /// A connection to the registry of this directory, if one is there and good. The others are closed.
    pub(crate) fn take(&self, dir: &StateDir) -> Option<Registry> {
        loop {
            let kept = self.place.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if kept.dir().path() == dir.path() && kept.is_current() {
                return Some(kept);
            }
        }
    }

    pub(crate) fn lend(&self, mut registry: Registry) -> Lent {
        registry.redact_with(self.redactor.clone());
        Lent { registry: Some(registry), shelf: self.clone() }
    }

    fn put_back(&self, registry: Registry) {
        let Some(place) = &self.place else { return };
        let mut kept = place.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(registry);
        }
    }
}

/// A registry for one use.
#[derive(Debug)]
pub(crate) struct Lent {
    /// Gone only while it is dropped.
    registry: Option<Registry>,
    shelf: Shelf,
}

impl Deref for Lent {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        match &self.registry {
            Some(registry) => registry,
            None => unreachable!("it is taken away only while this is dropped"),
        }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Registry {
        match &mut self.registry {
            Some(registry) => registry,
            None => unreachable!("it is taken away only while this is dropped"),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.take() {
            self.shelf.put_back(registry);
        }
    }
}
