//! The registry with real SQLite and real files.

#![expect(clippy::unwrap_used, reason = "what the tests share stops them")]

mod damage;
mod files;
mod full_disk;
mod law;
mod lifecycle;
mod listing;
mod meanwhile;
mod queue;
mod races;
mod state_dir;
mod submitting;
mod support;
