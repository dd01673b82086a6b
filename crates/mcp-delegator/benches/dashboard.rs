//! The pages in Chromium: bytes and time of the first page, a list of 5,000 tasks, a diff of 20,000 lines, 500 running
//! tasks, 20 open pages. `cargo bench --bench dashboard` prints the figures. Needs `scripts/install-browser`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails as tests do, and prints its figures"
)]

#[path = "../tests/dashboard/world.rs"]
mod world;

fn main() {
    // A test run builds benchmarks and starts them with this argument.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    println!("{}", world::run(&world::stage(), "figures"));
}
