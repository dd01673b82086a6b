//! Guarantees of the store, tested through the program with a scripted agent in place of
//! Codex. The registry's own tests cover what does not need the program.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]
#![expect(
    clippy::disallowed_methods,
    reason = "external programs inject errors, and variables choose how many"
)]

mod cleanup;
mod damage;
mod database_locks;
mod disk_errors;
mod hostile_ids;
mod leaks;
mod old_tasks;
mod permissions;
mod power_cut;
mod restore_point_retention;
mod retention;
mod stage;
