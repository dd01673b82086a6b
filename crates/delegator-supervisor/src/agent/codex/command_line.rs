//! Builds Codex's command line: a pure function from validated values to arguments.
//!
//! Every caller-supplied value is attached to its flag
//! (`--model=…`) or quoted inside `-c key=…`, so that none can become a flag; a value that cannot be passed safely is
//! an error. Flags precede `resume`, because Codex rejects them after it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use delegator_domain::task::{EnvPolicy, Mode};

use super::permissions::Confinement;
use super::project_trust::{ProjectTrust, projects_setting};
use super::toml_text;
use super::version::{Ability, CodexVersion};
use crate::agent::environment::{CORE_NAMES, MARKER};
use crate::agent::launch::LaunchRequest;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("codex {version} does not support {}; install codex {} or newer", ability.name(), ability.since())]
    TooOld { version: CodexVersion, ability: Ability },
    #[error("{field} cannot be passed to codex: {problem}")]
    Value { field: &'static str, problem: &'static str },
}

/// Builds the arguments of one run.
pub(super) fn args(
    request: &LaunchRequest,
    version: CodexVersion,
    trust: ProjectTrust,
) -> Result<Vec<OsString>, ArgsError> {
    validate(request, version)?;
    let mut args = ArgList::default();
    args.push(&["exec", "--json"]);
    if request.skip_git_repo_check {
        args.push(&["--skip-git-repo-check"]);
    }
    let mode = if request.preview { Mode::ReadOnly } else { request.mode };
    let confinement = Confinement::of(mode, request.denied_dir.as_deref(), version);
    if confinement == Confinement::Mode(mode) {
        args.push(&["--sandbox", mode.name()]);
    }
    args.push(&["--cd", "."]);
    args.push_option("--model", request.model.as_deref());
    args.push_option("--profile", request.profile.as_deref());
    for image in &request.images {
        args.push_path("--image", image);
    }
    for directory in &request.add_dirs {
        args.push_path("--add-dir", directory);
    }
    if let Some(schema) = &request.output_schema {
        args.push_path("--output-schema", schema);
    }
    confinement.push_settings(&[], &mut args);
    push_features(&mut args, version);
    push_settings(&mut args, request, version, trust);
    if let Some(thread) = &request.resume {
        args.push(&["resume", thread]);
    }
    args.push(&["-"]);
    Ok(args.0)
}

/// An error if this version cannot honour the request.
pub(super) fn validate(request: &LaunchRequest, version: CodexVersion) -> Result<(), ArgsError> {
    let needs = [
        (request.resume.is_some(), Ability::ExecResume),
        (request.output_schema.is_some(), Ability::OutputSchema),
        (!request.add_dirs.is_empty(), Ability::AddDir),
    ];
    for (is_requested, ability) in needs {
        if is_requested && !version.supports(ability) {
            return Err(ArgsError::TooOld { version, ability });
        }
    }
    let invalid = |field, problem| Err(ArgsError::Value { field, problem });
    if request.resume.as_deref().is_some_and(|thread| thread.starts_with('-') || thread.trim().is_empty()) {
        return invalid("thread_id", "it is empty or starts with a dash");
    }
    // Codex splits the value at commas, even quoted ones.
    if request.images.iter().any(|image| image.as_os_str().as_bytes().contains(&b',')) {
        return invalid("images", "codex splits paths at commas; rename the file");
    }
    let texts = [
        ("model", &request.model),
        ("profile", &request.profile),
        ("reasoning_effort", &request.reasoning_effort),
        ("thread_id", &request.resume),
    ];
    for (field, text) in texts {
        if text.as_deref().is_some_and(|text| text.contains('\0')) {
            return invalid(field, "it contains a NUL character");
        }
    }
    let paths = request.images.iter().chain(&request.add_dirs).chain(&request.output_schema);
    if paths.into_iter().any(|path| path.as_os_str().as_bytes().contains(&0)) {
        return invalid("paths", "one contains a NUL character");
    }
    // Codex itself (0.166) does not start in such a directory.
    if request.workdir.to_str().is_none() && version.supports(Ability::UntrustedProjects) {
        return invalid("working_dir", "the path is not valid UTF-8");
    }
    Ok(())
}

pub(super) fn push_features(args: &mut ArgList, version: CodexVersion) {
    // Without a connection Codex would otherwise retry forever.
    if version.supports(Ability::UnboundedRetries) {
        args.push(&["--disable", "unbounded_connection_retries"]);
    }
    // A snapshot contains every exported variable and survives a forced end.
    if version.supports(Ability::ShellSnapshots) {
        args.push(&["--disable", "shell_snapshot"]);
    }
}

pub(super) fn push_settings(
    args: &mut ArgList,
    request: &LaunchRequest,
    version: CodexVersion,
    trust: ProjectTrust,
) {
    if version.supports(Ability::PlanSetting) {
        args.push_setting("tools.update_plan.enabled", "true");
    }
    if let Some(effort) = &request.reasoning_effort {
        args.push_setting("model_reasoning_effort", &toml_text::string(effort));
    }
    let inherit = match &request.env_policy {
        // With "none" there is no PATH, and every command fails.
        EnvPolicy::InheritNone => "core",
        EnvPolicy::InheritAll | EnvPolicy::AllowList(_) => "all",
    };
    args.push_setting("shell_environment_policy.inherit", &toml_text::string(inherit));
    if let EnvPolicy::AllowList(names) = &request.env_policy {
        // Codex applies this filter after `set`: without its name here the marker would be lost.
        let included = CORE_NAMES.into_iter().chain([MARKER]).chain(names.iter().map(String::as_str));
        args.push_setting("shell_environment_policy.include_only", &toml_text::array(included));
    }
    let marker = format!("shell_environment_policy.set.{MARKER}");
    args.push_setting(&marker, &toml_text::string(&request.marker));
    if version.supports(Ability::UntrustedProjects) {
        args.push_setting("projects", &projects_setting(&request.workdir, trust));
    }
}

#[derive(Default)]
pub(super) struct ArgList(pub(super) Vec<OsString>);

impl ArgList {
    pub(super) fn push(&mut self, args: &[&str]) {
        self.0.extend(args.iter().map(OsString::from));
    }

    /// `--flag=value`: a value that starts with a dash stays a value.
    pub(super) fn push_option(&mut self, flag: &str, value: Option<&str>) {
        self.0.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
    }

    fn push_path(&mut self, flag: &str, path: &Path) {
        let mut arg = OsString::from(format!("{flag}="));
        arg.push(path);
        self.0.push(arg);
    }

    pub(super) fn push_setting(&mut self, key: &str, value: &str) {
        self.0.push(OsString::from("-c"));
        self.0.push(OsString::from(format!("{key}={value}")));
    }
}

#[cfg(test)]
mod tests;
