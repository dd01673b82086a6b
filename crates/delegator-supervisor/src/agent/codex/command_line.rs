//! Builds Codex's command line: a pure function from validated values to arguments.
//!
//! Every caller-supplied value is attached to its flag (`--model=…`) or quoted inside `-c key=…`, so that
//! none can become a flag; a value that cannot be passed safely is an error. Flags precede `resume`, because
//! Codex rejects them after it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use delegator_domain::task::EnvPolicy;

use super::features;
use super::permissions::Confinement;
use super::project_trust::{ProjectTrust, projects_setting};
use crate::agent::arg_list::{ArgList, toml_array, toml_string};
use crate::agent::launch::{LaunchRequest, PlanError};
use crate::program::Version;
use crate::variables::{CORE_NAMES, MARKER};

pub(in crate::agent) fn args(
    request: &LaunchRequest,
    version: Version,
    trust: ProjectTrust,
) -> Result<Vec<OsString>, PlanError> {
    validate(request, version)?;
    let run = &request.run;
    let mut args = ArgList::default();
    args.push(&["exec", "--json"]);
    if run.skip_git_repo_check {
        args.push(&["--skip-git-repo-check"]);
    }
    let mode = run.effective_mode();
    let confinement = Confinement::of(mode, request.denied_dir.as_deref(), version);
    if confinement == Confinement::Mode(mode) {
        args.push(&["--sandbox", mode.name()]);
    }
    args.push(&["--cd", "."]);
    args.push_option("--model", run.model.as_deref());
    args.push_option("--profile", run.profile.as_deref());
    for image in &run.images {
        args.push_path("--image", image);
    }
    for directory in &run.add_dirs {
        args.push_path("--add-dir", directory);
    }
    if let Some(schema) = &request.output_schema {
        args.push_path("--output-schema", schema);
    }
    confinement.push_settings(&[], &mut args);
    push_features(&mut args, version);
    push_settings(&mut args, request, version, trust);
    if let Some(thread) = &run.resume {
        args.push(&["resume", thread]);
    }
    args.push(&["-"]);
    Ok(args.0)
}

pub(in crate::agent) fn validate(request: &LaunchRequest, version: Version) -> Result<(), PlanError> {
    let run = &request.run;
    let needs = [
        (run.resume.is_some(), "resume", features::EXEC_RESUME),
        (request.output_schema.is_some(), "output_schema", features::OUTPUT_SCHEMA),
        (!run.add_dirs.is_empty(), "add_dirs", features::ADD_DIR),
    ];
    for (is_requested, feature, since) in needs {
        if is_requested && version < since {
            return Err(PlanError::TooOld { version, feature, since });
        }
    }
    let invalid = |field, problem| Err(PlanError::Value { field, recipient: "codex", problem });
    if run.resume.as_deref().is_some_and(|thread| thread.starts_with('-') || thread.trim().is_empty()) {
        return invalid("thread_id", "it is empty or starts with a dash");
    }
    // Codex splits the value at commas, even quoted ones.
    if run.images.iter().any(|image| image.as_os_str().as_bytes().contains(&b',')) {
        return invalid("images", "codex splits paths at commas; rename the file");
    }
    let texts = [
        ("model", &run.model),
        ("profile", &run.profile),
        ("reasoning_effort", &run.reasoning_effort),
        ("thread_id", &run.resume),
    ];
    for (field, text) in texts {
        if text.as_deref().is_some_and(|text| text.contains('\0')) {
            return invalid(field, "it contains a NUL character");
        }
    }
    let paths = run.images.iter().chain(&run.add_dirs).chain(&request.output_schema);
    if paths.into_iter().any(|path| path.as_os_str().as_bytes().contains(&0)) {
        return invalid("paths", "one contains a NUL character");
    }
    // Codex itself (0.166) does not start in such a directory.
    if run.working_dir.to_str().is_none() && version >= features::UNTRUSTED_PROJECTS {
        return invalid("working_dir", "the path is not valid UTF-8");
    }
    Ok(())
}

pub(super) fn push_features(args: &mut ArgList, version: Version) {
    // Without a connection Codex would otherwise retry forever.
    if version >= features::UNBOUNDED_RETRIES {
        args.push(&["--disable", "unbounded_connection_retries"]);
    }
    // A snapshot contains every exported variable and survives a forced end.
    if version >= features::SHELL_SNAPSHOTS {
        args.push(&["--disable", "shell_snapshot"]);
    }
}

pub(super) fn push_settings(
    args: &mut ArgList,
    request: &LaunchRequest,
    version: Version,
    trust: ProjectTrust,
) {
    let run = &request.run;
    if version >= features::PLAN_SETTING {
        args.push_setting("tools.update_plan.enabled", "true");
    }
    if let Some(effort) = &run.reasoning_effort {
        args.push_setting("model_reasoning_effort", &toml_string(effort));
    }
    let inherit = match &run.env_policy {
        // With "none" there is no PATH, and every command fails.
        EnvPolicy::InheritNone => "core",
        EnvPolicy::InheritAll | EnvPolicy::AllowList(_) => "all",
    };
    args.push_setting("shell_environment_policy.inherit", &toml_string(inherit));
    if let EnvPolicy::AllowList(names) = &run.env_policy {
        // Codex applies this filter after `set`: without its name here the marker would be lost.
        let included = CORE_NAMES.into_iter().chain([MARKER]).chain(names.iter().map(String::as_str));
        args.push_setting("shell_environment_policy.include_only", &toml_array(included));
    }
    let marker = format!("shell_environment_policy.set.{MARKER}");
    args.push_setting(&marker, &toml_string(&request.marker));
    if version >= features::UNTRUSTED_PROJECTS {
        args.push_setting("projects", &projects_setting(&run.working_dir, trust));
    }
}

#[cfg(test)]
mod tests;
