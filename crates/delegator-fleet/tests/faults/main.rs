//! Faults around the database of the fleet. Every history of a task is recorded and checked by a model: legal changes only,
//! one owner per attempt, one accepted end, nothing acknowledged lost.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod actors;
mod cancel;
mod claims;
mod crashes;
mod disk;
mod fleet;
mod hints;
mod leases;
mod lost_replies;
mod pooler;
mod retention;
mod roles;
mod submits;
mod tls;
mod versions;
