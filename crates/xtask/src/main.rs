//! `cargo xtask`: load tests and the kill loop for developers.

fn main() -> std::process::ExitCode {
    xtask::run(std::env::args_os().collect())
}
