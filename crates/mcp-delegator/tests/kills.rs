//! `kill -9` at random moments, a few rounds of it: `cargo xtask kills` is the same loop for longer.
//!
//! The loop needs a server, a process that embeds the engine; this very program becomes one when it is asked to. That is
//! why it has a `main` of its own, and answers what test runners ask: which tests there are, and to run one.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "test runners read what is printed")]
#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use xtask::kills::{KillOptions, run};
use xtask::{Deadline, Programs};

const NAME: &str = "whatever_is_killed_nothing_is_lost_doubled_or_left";
const ROUNDS: u32 = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |word: &str| words.iter().any(|given| given == word);
    if words.first().is_some_and(|word| word == xtask::SERVE) {
        return xtask::serve();
    }
    if is_asked("--list") {
        if !is_asked("--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    // A filter that means other tests.
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    if is_asked("--ignored")
        || !(filters.is_empty() || filters.iter().any(|filter| NAME.contains(filter.as_str())))
    {
        return ExitCode::SUCCESS;
    }
    let temporary = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_mcp-delegator");
    let programs = Programs {
        delegator: PathBuf::from(program),
        agent: vec![program.to_owned(), "scripted-agent".to_owned()],
        server: std::env::current_exe().unwrap(),
        testbeds: temporary.path().to_owned(),
    };
    let patience = Deadline::new(Duration::from_secs(300)).unwrap();
    let report = run(&programs, KillOptions { rounds: ROUNDS, seed: 1, keep: false }, &patience).unwrap();
    eprintln!("{}", report.table());
    if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
