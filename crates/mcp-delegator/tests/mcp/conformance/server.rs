//! The server for the conformance suite: the program itself, built with test fixtures in front of its tools.

use mcp_delegator::process::Process;

fn main() -> std::process::ExitCode {
    let process = Process::current();
    mcp_delegator::internal_modes::run_if_requested(&process)
        .unwrap_or_else(|| mcp_delegator::run::run(process).into())
}
