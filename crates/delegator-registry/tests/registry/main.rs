//! The registry with real SQLite and real files.

#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

mod agent_pauses;
mod chains;
mod concurrent_writers;
mod damage;
mod files;
mod full_disk;
mod groups;
mod history;
mod invariants;
mod lifecycle;
mod listing;
mod live_notifications;
mod messages;
mod notification_subjects;
mod notifications;
mod questions;
mod queue;
mod races;
mod remote;
mod state_dir;
mod submitting;
mod support;
