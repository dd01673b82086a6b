//! The program `scripted-agent`: a stand-in for `codex` that does what a script says.

fn main() -> std::process::ExitCode {
    delegator_scripted_agent::start(std::env::args_os().collect()).into()
}
