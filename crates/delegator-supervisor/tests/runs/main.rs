//! Supervises real agents (shell scripts), each in a supervisor process of its own.
//!
//! `supervise` takes over its process, so the tests start this program again as the supervisor: the test
//! `as_supervisor` does nothing unless an environment variable names a folder, and then runs the cases in it.

#![expect(clippy::disallowed_methods, reason = "tests start programs and read their environment")]
#![expect(clippy::unwrap_used, reason = "a test setup that fails is a test failure")]

mod endings;
mod environment;
mod limits;
mod streams;
mod supervisor;
mod sweeping;
mod verification;
mod world;

#[test]
fn as_supervisor() {
    if let Some(folder) = std::env::var_os(world::FOLDER_VARIABLE) {
        supervisor::run_cases(std::path::Path::new(&folder));
    }
}
