//! What the tests of several crates share: a clean world to run the program in, an agent that does what it is told, a
//! terminal to run it on, and the comparison of generated files with the committed ones. Development only.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot set up its world must stop")]

pub mod codex;
pub mod fake_model;
pub mod generated;
pub mod program;
pub mod stage;
pub mod terminal;
