//! Entry point: runs an internal mode or a command, and returns its exit code.

use mcp_delegator::app::process::current_process;

/// The first file descriptor after the standard streams.
const FIRST_NON_STDIO_FD: i32 = 3;

fn main() -> std::process::ExitCode {
    // Tasks outlive the caller: its open descriptors, such as locks and pipes, must not be inherited.
    close_fds::set_fds_cloexec(FIRST_NON_STDIO_FD, &[]);
    let process = current_process();
    mcp_delegator::app::internal_modes::run_if_requested(&process).unwrap_or_else(|| {
        mcp_delegator::app::run::run(process, mcp_delegator::app::command_list::commands()).into()
    })
}
