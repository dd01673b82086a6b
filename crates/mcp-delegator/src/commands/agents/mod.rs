//! The agents that tasks can name, and which of them runs tasks that name none.

pub mod choose;
pub mod list;
