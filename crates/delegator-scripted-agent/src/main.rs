//! The program `scripted-agent`: a stand-in for `codex` that runs a script.

fn main() -> std::process::ExitCode {
    delegator_scripted_agent::start(std::env::args_os().collect()).into()
}
