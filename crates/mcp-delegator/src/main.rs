//! The program: reads the process it is in, runs, and ends with the exit code.

use mcp_delegator::process::Process;

fn main() -> std::process::ExitCode {
    let process = Process::current();
    mcp_delegator::other_lives::live(&process).unwrap_or_else(|| mcp_delegator::run::run(process).into())
}
