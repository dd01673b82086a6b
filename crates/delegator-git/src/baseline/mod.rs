//! The state of a work tree before a task, and what has changed since.

mod compare;
mod create_point;
mod end_state;
mod take;

pub use compare::{Commits, Comparison};
pub use create_point::{CreatedPoint, create_restore_point};
pub use take::Baseline;
