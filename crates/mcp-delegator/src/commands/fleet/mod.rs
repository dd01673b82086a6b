//! Commands for the operators of a fleet: its state, its tables, its tasks, and which workers claim them.
//!
//! Only `fleet status` and `fleet tasks` are tools, in the toolset `extra`. The others change the fleet for
//! all its users, so they are for people.

pub mod cancel;
pub mod claiming;
pub mod database;
pub mod grant;
pub mod migrate;
pub mod status;
pub mod tasks;
