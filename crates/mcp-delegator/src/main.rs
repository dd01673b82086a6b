//! The program: reads the process it is in, runs, and ends with the exit code.

use mcp_delegator::process::Process;

/// The first descriptor that is not a standard stream.
const FIRST_NON_STDIO_FD: i32 = 3;

fn main() -> std::process::ExitCode {
    // Tasks outlive whoever asks for them: what the caller has open, a lock or a pipe perhaps, is not theirs to hold.
    close_fds::set_fds_cloexec(FIRST_NON_STDIO_FD, &[]);
    let process = Process::current();
    mcp_delegator::internal_modes::run_if_requested(&process)
        .unwrap_or_else(|| mcp_delegator::run::run(process).into())
}
