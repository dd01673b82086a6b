//! How Codex is called: a pure function from validated values to words.
//!
//! The task text goes to standard input and nowhere else. Every value that came from a caller is attached to its flag
//! (`--model=…`) or quoted inside `-c key=…`, so none can become a flag of its own; what cannot be said safely is an
//! error. Flags come before `resume`, where Codex refuses them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{EnvPolicy, Mode};

use super::environment::MARKER;
use super::permissions::Confinement;
use super::project::{ProjectTrust, projects};
use super::toml_text;
use super::version::{Ability, CodexVersion};
use crate::run::ending::EndingRecipe;

/// What Codex calls the core variables: what its commands need to work at all.
pub(super) const CORE_NAMES: [&str; 11] =
    ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"];

/// Before the task text of a preview.
pub const PREVIEW_INSTRUCTION: &str = "This is a preview. Make a plan and do not act: read whatever you need, but do \
not change, create or delete files, and do not run commands that change anything. Answer with the steps you would \
take, the files you would touch and the risks you see.\n\nThe task:\n\n";

/// A task as it is handed to Codex. Values are validated before they come here.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub program: PathBuf,
    pub task: String,
    pub mode: Mode,
    /// Read-only, with the instruction to plan and not act.
    pub preview: bool,
    /// Where it works, canonical: the directory the agent will find itself in.
    pub workdir: PathBuf,
    pub model: Option<String>,
    pub profile: Option<String>,
    pub reasoning_effort: Option<String>,
    pub images: Vec<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    /// The file the schema was written to.
    pub output_schema: Option<PathBuf>,
    pub skip_git_repo_check: bool,
    pub env_policy: EnvPolicy,
    /// The value of the marker, see [`super::environment::task_marker`].
    pub marker: String,
    /// The thread to go on with.
    pub resume: Option<String>,
    /// A directory its commands must not read, where this version can see to that.
    pub hidden: Option<PathBuf>,
    pub project_trust: ProjectTrust,
}

/// How an agent is started, fed and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Set on top of the agent's environment.
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
    pub ending: EndingRecipe,
    /// The thread that must be announced.
    pub expected_thread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("codex {version} cannot do this: {} needs {} or newer", ability.name(), ability.since())]
    TooOld { version: CodexVersion, ability: Ability },
    #[error("{field} cannot be passed to codex: {problem}")]
    Value { field: &'static str, problem: &'static str },
}

/// The words for one run.
pub fn plan(request: &LaunchRequest, version: CodexVersion) -> Result<LaunchPlan, PlanError> {
    check(request, version)?;
    let mut words = Words::default();
    words.plain(&["exec", "--json"]);
    if request.skip_git_repo_check {
        words.plain(&["--skip-git-repo-check"]);
    }
    let mode = if request.preview { Mode::ReadOnly } else { request.mode };
    let confinement = Confinement::of(mode, request.hidden.as_deref(), version);
    if confinement == Confinement::Mode(mode) {
        words.plain(&["--sandbox", mode.name()]);
    }
    words.plain(&["--cd", "."]);
    words.option("--model", request.model.as_deref());
    words.option("--profile", request.profile.as_deref());
    for image in &request.images {
        words.path("--image", image);
    }
    for directory in &request.add_dirs {
        words.path("--add-dir", directory);
    }
    if let Some(schema) = &request.output_schema {
        words.path("--output-schema", schema);
    }
    confinement.settings(&[], &mut words);
    features(&mut words, version);
    settings(&mut words, request, version);
    if let Some(thread) = &request.resume {
        words.plain(&["resume", thread]);
    }
    words.plain(&["-"]);
    let prefix = if request.preview { PREVIEW_INSTRUCTION } else { "" };
    Ok(LaunchPlan {
        program: request.program.clone(),
        args: words.0,
        env: vec![(MARKER.to_owned(), request.marker.clone())],
        stdin: [prefix.as_bytes(), request.task.as_bytes()].concat(),
        ending: EndingRecipe::codex_exec(),
        expected_thread: request.resume.clone(),
    })
}

fn check(request: &LaunchRequest, version: CodexVersion) -> Result<(), PlanError> {
    let needs = [
        (request.resume.is_some(), Ability::ExecResume),
        (request.output_schema.is_some(), Ability::OutputSchema),
        (!request.add_dirs.is_empty(), Ability::AddDir),
    ];
    for (wanted, ability) in needs {
        if wanted && !version.can(ability) {
            return Err(PlanError::TooOld { version, ability });
        }
    }
    let value = |field, problem| Err(PlanError::Value { field, problem });
    if request.resume.as_deref().is_some_and(|thread| thread.starts_with('-') || thread.trim().is_empty()) {
        return value("thread_id", "it would be read as an option");
    }
    // Codex splits the value at commas, whatever stands around them.
    if request.images.iter().any(|image| image.as_os_str().as_bytes().contains(&b',')) {
        return value("images", "a path with a comma is taken for two");
    }
    let texts = [
        ("model", &request.model),
        ("profile", &request.profile),
        ("reasoning_effort", &request.reasoning_effort),
        ("thread_id", &request.resume),
    ];
    for (field, text) in texts {
        if text.as_deref().is_some_and(|text| text.contains('\0')) {
            return value(field, "it contains NUL");
        }
    }
    let paths = request.images.iter().chain(&request.add_dirs).chain(&request.output_schema);
    if paths.into_iter().any(|path| path.as_os_str().as_bytes().contains(&0)) {
        return value("paths", "one contains NUL");
    }
    // Nor does Codex itself (0.166) come up in such a directory.
    if request.workdir.to_str().is_none() && version.can(Ability::UntrustedProjects) {
        return value("working_dir", "its name is not UTF-8");
    }
    Ok(())
}

fn features(words: &mut Words, version: CodexVersion) {
    // Without a connection it would otherwise wait for one for ever.
    if version.can(Ability::UnboundedRetries) {
        words.plain(&["--disable", "unbounded_connection_retries"]);
    }
    // A snapshot has every exported variable in it and outlives a forced end.
    if version.can(Ability::ShellSnapshots) {
        words.plain(&["--disable", "shell_snapshot"]);
    }
}

fn settings(words: &mut Words, request: &LaunchRequest, version: CodexVersion) {
    if version.can(Ability::PlanSetting) {
        words.setting("tools.update_plan.enabled", "true");
    }
    if let Some(effort) = &request.reasoning_effort {
        words.setting("model_reasoning_effort", &toml_text::string(effort));
    }
    let inherit = match &request.env_policy {
        // With "none" there is no PATH, and every command fails.
        EnvPolicy::InheritNone => "core",
        EnvPolicy::InheritAll | EnvPolicy::AllowList(_) => "all",
    };
    words.setting("shell_environment_policy.inherit", &toml_text::string(inherit));
    if let EnvPolicy::AllowList(names) = &request.env_policy {
        // The filter is applied after `set`: without its name there the marker would be lost.
        let kept = CORE_NAMES.into_iter().chain([MARKER]).chain(names.iter().map(String::as_str));
        words.setting("shell_environment_policy.include_only", &toml_text::array(kept));
    }
    let marker = format!("shell_environment_policy.set.{MARKER}");
    words.setting(&marker, &toml_text::string(&request.marker));
    if version.can(Ability::UntrustedProjects) {
        words.setting("projects", &projects(&request.workdir, request.project_trust));
    }
}

#[derive(Default)]
pub(super) struct Words(pub(super) Vec<OsString>);

impl Words {
    pub(super) fn plain(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// `--flag=value`: whatever the value begins with, it is one.
    pub(super) fn option(&mut self, flag: &str, value: Option<&str>) {
        self.0.extend(value.map(|value| OsString::from(format!("{flag}={value}"))));
    }

    fn path(&mut self, flag: &str, path: &Path) {
        let mut word = OsString::from(format!("{flag}="));
        word.push(path);
        self.0.push(word);
    }

    pub(super) fn setting(&mut self, key: &str, value: &str) {
        self.0.push(OsString::from("-c"));
        self.0.push(OsString::from(format!("{key}={value}")));
    }
}

impl EndingRecipe {
    /// SIGINT lets Codex end its commands itself; they have sessions of their own, so nothing else reaches them but
    /// the tree.
    pub fn codex_exec() -> EndingRecipe {
        EndingRecipe::gentle(Duration::from_secs(5), Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests;
