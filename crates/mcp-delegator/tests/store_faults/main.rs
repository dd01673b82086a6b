//! What must hold when the store is in trouble: the rows F33 to F39 and F16 of the table of faults, through the program
//! itself and with a scripted agent in Codex's place. What the registry alone can show is shown in its own tests.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]
#![expect(
    clippy::disallowed_methods,
    reason = "faults are made by other programs, and developers choose how many"
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
