//! The program: reads the process it is in, runs, and ends with the exit code.

fn main() -> std::process::ExitCode {
    mcp_delegator::run::run(mcp_delegator::process::Process::current()).into()
}
