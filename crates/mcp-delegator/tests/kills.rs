//! SIGKILL at random moments, for a few rounds; `cargo xtask kills` runs the same loop for longer.
//!
//! The loop needs a server process that embeds the engine, and this program becomes one when started with `xtask::SERVE`.
//! Therefore it has its own `main` and implements the part of the test harness protocol that runners use (`--list`, filters).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "test runners read the output")]
#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use xtask::kills::{KillOptions, run};
use xtask::{Deadline, Programs};

const NAME: &str = "random_kills_lose_no_task_and_start_none_twice";
const ROUNDS: u32 = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has_arg = |word: &str| arguments.iter().any(|given| given == word);
    if arguments.first().is_some_and(|word| word == xtask::SERVE) {
        return xtask::serve();
    }
    if has_arg("--list") {
        if !has_arg("--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    // A filter that selects other tests.
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    if has_arg("--ignored")
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
    let deadline = Deadline::new(Duration::from_secs(300)).unwrap();
    let report = run(&programs, KillOptions { rounds: ROUNDS, seed: 1, keep: false }, &deadline).unwrap();
    eprintln!("{}", report.table());
    if report.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
