//! The state of a work tree before a task, and what has changed since.

mod compare;
mod take;

pub use compare::{Commits, Comparison};
pub use take::{Baseline, CreatedPoint, create_restore_point};
