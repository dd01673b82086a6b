//! The database file: how it is opened, created, brought up to date and, when asked, set aside.

mod busy_handler;
pub(crate) mod migrations;
pub(crate) mod open;
pub(crate) mod set_aside;
