//! The server for the conformance suite: the program itself, built with test fixtures in front of its tools.

use mcp_delegator::app::process::current_process;

fn main() -> std::process::ExitCode {
    let process = current_process();
    mcp_delegator::app::internal_modes::run_if_requested(&process)
        .unwrap_or_else(|| mcp_delegator::app::run::run(process).into())
}
