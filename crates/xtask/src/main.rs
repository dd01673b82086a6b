//! `cargo xtask`: what developers run beside the tests.

fn main() -> std::process::ExitCode {
    xtask::run(std::env::args_os().collect())
}
