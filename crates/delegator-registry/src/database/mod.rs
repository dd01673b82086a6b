//! The database file: opening, creating, taking its write lock, and setting a damaged one aside.
//!
//! Only this module opens the file. It never creates an empty registry in place of a damaged one unless the
//! user requests it.

pub(crate) mod begin_write;
pub(crate) mod open;
pub(crate) mod schema;
pub(crate) mod set_aside;
