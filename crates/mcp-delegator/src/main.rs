//! Entry point: runs an internal mode or a command, and returns its exit code.

use mcp_delegator::app::process::current_process;
use mcp_delegator::app::{command_list, completion, internal_modes, run};

fn main() -> std::process::ExitCode {
    // Tasks outlive the caller, so they must not inherit its descriptors (locks, pipes).
    close_fds::set_fds_cloexec(3, &[]);
    let process = current_process();
    internal_modes::run_if_requested(&process).unwrap_or_else(|| {
        let commands = command_list::commands();
        completion::run_if_requested(&process, commands.catalog)
            .unwrap_or_else(|| run::run(process, commands).into())
    })
}
