//! Links the program at a fixed address.
//!
//! Every running task has a supervisor process of its own, and each is this program started anew. A program that can be
//! loaded anywhere has to adjust its tables of addresses when it is, and the adjusted pages, some hundred KiB, are no longer
//! shared: with 500 tasks that is a large part of all the memory we take. Libraries, stack and heap still lie anywhere.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes values to a build script in environment variables"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
