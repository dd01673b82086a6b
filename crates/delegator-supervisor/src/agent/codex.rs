//! Builds Codex's command line: a pure function from validated values to arguments.
//!
//! The task text goes to standard input and nowhere else. Every caller-supplied value is attached to its flag
//! (`--model=…`) or quoted inside `-c key=…`, so that none can become a flag; a value that cannot be passed safely is
//! an error. Flags precede `resume`, because Codex rejects them after it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{EnvPolicy, Mode};

use super::environment::MARKER;
use super::permissions::Confinement;
use super::project::{ProjectTrust, projects_setting};
use super::toml_text;
use super::version::{Ability, CodexVersion};
use crate::run::ending::EndingRecipe;

/// Codex's core variables: those its commands need to work at all.
pub(super) const CORE_NAMES: [&str; 11] =
    ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"];

/// Prepended to the task text of a preview.
pub const PREVIEW_INSTRUCTION: &str = "This is a preview. Make a plan and do not act: read whatever you need, but do \
not change, create or delete files, and do not run commands that change anything. Answer with the steps you would \
take, the files you would touch and the risks you see.\n\nThe task:\n\n";

/// A task as passed to Codex. Values are validated before.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub program: PathBuf,
    pub task: String,
    pub mode: Mode,
    /// Read-only, with the instruction to plan and not act.
    pub preview: bool,
    /// Canonical working directory of the agent.
    pub workdir: PathBuf,
    pub model: Option<String>,
    pub profile: Option<String>,
    pub reasoning_effort: Option<String>,
    pub images: Vec<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    /// The file that contains the schema.
    pub output_schema: Option<PathBuf>,
    pub skip_git_repo_check: bool,
    pub env_policy: EnvPolicy,
    /// Value of the task marker, see [`super::environment::task_marker`].
    pub marker: String,
    /// The thread to continue.
    pub resume: Option<String>,
    /// A directory its commands must not read; enforced where this version supports it.
    pub denied_dir: Option<PathBuf>,
    pub project_trust: ProjectTrust,
}

/// How an agent is started, what it reads and how it is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to the agent's environment.
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
    pub ending: EndingRecipe,
    /// The thread the agent must announce.
    pub expected_thread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("codex {version} does not support {}; install codex {} or newer", ability.name(), ability.since())]
    TooOld { version: CodexVersion, ability: Ability },
    #[error("{field} cannot be passed to codex: {problem}")]
    Value { field: &'static str, problem: &'static str },
}

/// Builds the launch plan of one run.
pub fn plan(request: &LaunchRequest, version: CodexVersion) -> Result<LaunchPlan, PlanError> {
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
    push_settings(&mut args, request, version);
    if let Some(thread) = &request.resume {
        args.push(&["resume", thread]);
    }
    args.push(&["-"]);
    let prefix = if request.preview { PREVIEW_INSTRUCTION } else { "" };
    Ok(LaunchPlan {
        program: request.program.clone(),
        args: args.0,
        env: vec![(MARKER.to_owned(), request.marker.clone())],
        stdin: [prefix.as_bytes(), request.task.as_bytes()].concat(),
        ending: EndingRecipe::for_codex_exec(),
        expected_thread: request.resume.clone(),
    })
}

fn validate(request: &LaunchRequest, version: CodexVersion) -> Result<(), PlanError> {
    let needs = [
        (request.resume.is_some(), Ability::ExecResume),
        (request.output_schema.is_some(), Ability::OutputSchema),
        (!request.add_dirs.is_empty(), Ability::AddDir),
    ];
    for (is_requested, ability) in needs {
        if is_requested && !version.supports(ability) {
            return Err(PlanError::TooOld { version, ability });
        }
    }
    let invalid = |field, problem| Err(PlanError::Value { field, problem });
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

fn push_features(args: &mut ArgList, version: CodexVersion) {
    // Without a connection Codex would otherwise retry forever.
    if version.supports(Ability::UnboundedRetries) {
        args.push(&["--disable", "unbounded_connection_retries"]);
    }
    // A snapshot contains every exported variable and survives a forced end.
    if version.supports(Ability::ShellSnapshots) {
        args.push(&["--disable", "shell_snapshot"]);
    }
}

fn push_settings(args: &mut ArgList, request: &LaunchRequest, version: CodexVersion) {
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
        args.push_setting("projects", &projects_setting(&request.workdir, request.project_trust));
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

impl EndingRecipe {
    /// SIGINT lets Codex end its own commands. They run in their own sessions, so only signals to the whole process
    /// tree reach them otherwise.
    pub fn for_codex_exec() -> EndingRecipe {
        EndingRecipe::graceful(Duration::from_secs(5), Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests;
