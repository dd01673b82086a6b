//! Builds the program for a release and checks what was built.
//!
//! Zig links it against the symbols of an old glibc; its version of clang also compiles the C code of SQLite and ring. The
//! paths of this machine are replaced, so that the same sources give the same program in every directory.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs cargo and reads its environment")]

use std::path::{Path, PathBuf};
use std::process::Command;

use super::product::{GLIBC, NAME, Platform};
use crate::error::LoadError;

/// What scripts/install-zig installs.
const TOOLS: &str = ".tools/zig-1/bin";

/// Builds the program. Returns its path.
pub(crate) fn build(
    workspace: &Path,
    platform: &Platform,
    profile: &str,
    seconds: u64,
) -> Result<PathBuf, LoadError> {
    let tools = workspace.join(TOOLS);
    if !tools.join("cargo-zigbuild").exists() {
        let output = format!("{} is missing: run scripts/install-zig", tools.display());
        return Err(LoadError::Program { program: "cargo-zigbuild".to_owned(), output });
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let status = Command::new(tools.join("cargo-zigbuild"))
        .args(["zigbuild", "--profile", profile, "--locked", "--package", NAME, "--bin", NAME])
        .args(["--target", &format!("{}.{}.{}", platform.target, GLIBC.0, GLIBC.1)])
        .arg("--target-dir")
        .arg(&target)
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(workspace, &target))
        .env("SOURCE_DATE_EPOCH", seconds.to_string())
        .env("CARGO_INCREMENTAL", "0")
        // Lints are those of the tests, and a wrapper is no part of the release.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .current_dir(workspace)
        .status()
        .map_err(LoadError::io("run cargo-zigbuild"))?;
    if !status.success() {
        return Err(LoadError::Program { program: "cargo zigbuild".to_owned(), output: status.to_string() });
    }
    let program = target.join(platform.target).join(profile).join(NAME);
    check(&program)?;
    Ok(program)
}

/// Paths in panic messages, separated as cargo expects them.
fn rust_flags(workspace: &Path, target: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    // The last one that fits counts.
    [(cargo.as_path(), "/cargo"), (workspace, "/mcp-delegator"), (target, "/mcp-delegator/target")]
        .map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()))
        .join("\u{1f}")
}

/// The program has no symbol table and no debug information, and needs no newer glibc than the oldest one supported.
fn check(program: &Path) -> Result<(), LoadError> {
    let output = Command::new("readelf")
        .args(["--wide", "--section-headers", "--version-info"])
        .arg(program)
        .output()
        .map_err(LoadError::io("run readelf"))?;
    let problems = problems(&String::from_utf8_lossy(&output.stdout));
    if problems.is_empty() {
        return Ok(());
    }
    Err(LoadError::Program { program: program.display().to_string(), output: problems.join("; ") })
}

/// Reads what readelf prints: `[28] .symtab SYMTAB …` and `0x0010: Name: GLIBC_2.28 …`.
fn problems(listing: &str) -> Vec<String> {
    let sections = listing.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'));
    let sections: Vec<&str> = sections.filter_map(|(_, rest)| rest.split_whitespace().next()).collect();
    let mut problems = Vec::new();
    if !sections.contains(&".text") {
        problems.push("readelf listed no sections".to_owned());
    }
    let unwanted = sections.iter().filter(|name| **name == ".symtab" || name.starts_with(".debug"));
    problems.extend(unwanted.map(|name| format!("it still has the section {name}")));
    let versions = listing.split("Name: GLIBC_").skip(1).filter_map(|rest| {
        let mut numbers = rest.split_whitespace().next()?.split('.').map(|number| number.parse::<u32>());
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    if let Some(newest) = versions.max().filter(|newest| *newest > GLIBC) {
        problems.push(format!("it needs glibc {}.{}", newest.0, newest.1));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_a_newer_glibc_are_problems() {
        let good = "  [14] .text  PROGBITS\n  0x0010:   Name: GLIBC_2.28  Flags: none\n Name: GLIBC_2.2.5 ";
        assert_eq!(problems(good), [""; 0]);
        let bad = format!("{good}\n  [30] .symtab  SYMTAB\n  [31] .debug_info  PROGBITS\n Name: GLIBC_2.34");
        let expected = [
            "it still has the section .symtab",
            "it still has the section .debug_info",
            "it needs glibc 2.34",
        ];
        assert_eq!(problems(&bad), expected);
        assert_eq!(problems(""), ["readelf listed no sections"]);
    }
}
