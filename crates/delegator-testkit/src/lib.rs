//! Test support shared by several crates: an isolated world for the program, scripted agents, a pseudo terminal, a
//! fake model server, a fake backend of hosted Codex, a private PostgreSQL, the validation of every answer, and the
//! comparison of generated files. Development only.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot set up its world must stop")]

pub mod answers;
pub mod asking_agent;
mod certificates;
pub mod cloud_script;
pub mod codex;
pub mod declared_errors;
pub mod fake_cloud;
pub mod fake_model;
pub mod fleet_history;
pub mod generated;
pub mod postgres;
pub mod program;
pub mod remedies;
pub mod scripted_model;
pub mod stage;
pub mod terminal;
pub mod tmux;
