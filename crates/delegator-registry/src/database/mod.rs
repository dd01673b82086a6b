//! The database file: how it is opened, created, brought up to date and, when asked, set aside.

pub(crate) mod aside;
pub(crate) mod migrations;
pub(crate) mod open;
mod patience;
