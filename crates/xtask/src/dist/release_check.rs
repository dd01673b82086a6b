//! The steps of docs/releasing.md that a machine can do, from a clean checkout to packages that can be published.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs git, cargo and the tests")]
#![expect(clippy::print_stdout, reason = "a developer tool prints its progress")]

use std::path::Path;
use std::process::Command;

use super::build::build;
use super::output::Output;
use super::product::{Platform, Product};
use super::versions::version_problems;
use crate::error::LoadError;

#[derive(Debug)]
pub(crate) struct ReleaseCheck<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) output: &'a Output,
    pub(crate) platform: &'a Platform,
    pub(crate) profile: &'a str,
    pub(crate) seconds: u64,
    pub(crate) runs_tests: bool,
}

impl ReleaseCheck<'_> {
    /// Does all steps, also after one has failed, and prints the result of each. Returns whether all succeeded.
    pub(crate) fn run(&self) -> bool {
        let results = [
            step("the checkout has no changes", || self.uncommitted()),
            step("versions agree", || version_problems(self.workspace)),
            step("the changelog has a date", || self.undated()),
            step("the tag is free", || self.taken_tag()),
            step("licences and advisories", || self.command("cargo", &["deny", "check"])),
            !self.runs_tests || step("scripts/test", || self.command("scripts/test", &[])),
            step("packages of this platform", || self.pack()),
            step("packages of all platforms", || Ok(self.missing())),
        ];
        results.iter().all(|succeeded| *succeeded)
    }

    fn uncommitted(&self) -> Result<Vec<String>, LoadError> {
        Ok(self.git(&["status", "--porcelain"])?.lines().map(str::to_owned).collect())
    }

    fn undated(&self) -> Result<Vec<String>, LoadError> {
        let text = std::fs::read_to_string(self.workspace.join("CHANGELOG.md"))
            .map_err(LoadError::io("read CHANGELOG.md"))?;
        let heading = text.lines().find(|line| line.starts_with("## ")).unwrap_or("no version").to_owned();
        Ok(Some(heading)
            .filter(|heading| !heading.ends_with(|last: char| last.is_ascii_digit()))
            .into_iter()
            .collect())
    }

    fn taken_tag(&self) -> Result<Vec<String>, LoadError> {
        let tag = format!("v{}", Product::read(self.workspace)?.version);
        let tags = self.git(&["tag", "--list", &tag])?;
        Ok(tags.lines().map(|tag| format!("{tag} exists: raise the version")).collect())
    }

    fn pack(&self) -> Result<Vec<String>, LoadError> {
        let program = build(self.workspace, self.platform, self.profile, self.seconds)?;
        self.output.pack(self.platform, &program)?;
        self.output.index()?;
        Ok(Vec::new())
    }

    fn missing(&self) -> Vec<String> {
        let missing = self.output.missing_files();
        missing
            .into_iter()
            .map(|name| format!("{name}: another machine makes it, or .github/workflows/release.yml"))
            .collect()
    }

    fn git(&self, args: &[&str]) -> Result<String, LoadError> {
        let output = Command::new("git").args(args).current_dir(self.workspace).output();
        let output = output.map_err(LoadError::io("run git"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, program: &str, args: &[&str]) -> Result<Vec<String>, LoadError> {
        let status = Command::new(program).args(args).current_dir(self.workspace).status();
        let status = status.map_err(LoadError::io(format!("run {program}")))?;
        let problem = (!status.success()).then(|| format!("{program} {}: {status}", args.join(" ")));
        Ok(problem.into_iter().collect())
    }
}

/// Does a step and prints its problems. An error is one, too.
fn step(name: &str, check: impl FnOnce() -> Result<Vec<String>, LoadError>) -> bool {
    let problems = check().unwrap_or_else(|error| vec![error.to_string()]);
    println!("{} {name}", if problems.is_empty() { "ok     " } else { "FAILED " });
    problems.iter().for_each(|problem| println!("        {problem}"));
    problems.is_empty()
}
