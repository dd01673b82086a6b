//! Publishes a complete release in npm and PyPI with their own clients, which are signed in already.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs npm and twine")]

use std::path::PathBuf;
use std::process::Command;

use super::output::Output;
use crate::error::LoadError;

/// Checks everything before the first package is published: a published version cannot be replaced.
pub(crate) fn publish(output: &Output) -> Result<(), LoadError> {
    let missing = output.missing_files();
    if !missing.is_empty() {
        return Err(LoadError::Incomplete { missing });
    }
    if !output.is_unchanged()? {
        return Err(LoadError::ChangedPackages);
    }
    for package in output.npm_packages() {
        run("npm", &["publish", "--access", "public"], vec![package])?;
    }
    run("twine", &["upload", "--skip-existing"], output.wheels())
}

fn run(program: &str, args: &[&str], files: Vec<PathBuf>) -> Result<(), LoadError> {
    let status = Command::new(program)
        .args(args)
        .args(files)
        .status()
        .map_err(LoadError::io(format!("run {program}")))?;
    if status.success() {
        return Ok(());
    }
    Err(LoadError::Program { program: program.to_owned(), output: status.to_string() })
}
