//! A case: a project, what an agent does in it, how the task is asked for, and what is true afterwards.
//!
//! `cases/NAME.json` is one case. A key that is not known is an error, so that nothing is stated in vain.

use std::collections::BTreeMap;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What it is there for.
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) project: Project,
    pub(crate) agent: Agent,
    #[serde(default)]
    pub(crate) way: CallSequence,
    /// Further words of the call.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// By the names of [`crate::fields`]; what the case does not care about is left out.
    pub(crate) truth: Map<String, Value>,
    /// Fields of the truth that are known not to be extracted, and why. They count as wrong, and as soon as one of them is
    /// right the case fails until it is taken off, unless Codex itself is played, which prints some things on some days.
    #[serde(default)]
    pub(crate) missed: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Project {
    /// Whether it is a repository, with `files` and `recorded` committed.
    pub(crate) git: bool,
    /// A text that begins with `#!` can be run.
    pub(crate) files: BTreeMap<String, String>,
    /// What real compilers and test runners printed: a file of the recordings of `delegator-transcript`.
    pub(crate) recorded: BTreeMap<String, String>,
    /// Written after the commit.
    pub(crate) dirty: BTreeMap<String, String>,
    /// For a shell, after all that.
    pub(crate) prepare: Option<String>,
    /// The folder of the project the task is given.
    pub(crate) folder: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Agent {
    /// Steps of the scripted agent, after its thread and turn have begun.
    Scripted(Vec<Value>),
    /// Steps of the scripted agent from its start.
    Stream(Vec<Value>),
    /// What the model answers to the real Codex, one after the other.
    Codex(Vec<ModelStep>),
}

/// One answer of the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ModelStep {
    Command(String),
    Patch(String),
    /// Steps of a plan; those before the first unfinished one are done.
    Plan {
        steps: Vec<String>,
        done: usize,
    },
    Message(String),
    /// Several calls in one answer.
    Together(Vec<ModelStep>),
    Refuse {
        status: u16,
        body: Value,
    },
}

/// How the task is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallSequence {
    /// `exec`, `wait`, `results`.
    #[default]
    Exec,
    /// `run`, `results`.
    Run,
    /// `exec`, and `cancel` as soon as this file is in the project.
    CancelWhenThere(String),
    /// An earlier task with these steps, then `resume`.
    Resume(Vec<Value>),
}

pub(crate) fn folder() -> std::path::PathBuf {
    workspace().join("crates/mcp-delegator/tests/corpus/cases")
}

pub(crate) fn read(name: &str) -> Case {
    let text = read_text(&folder().join(format!("{name}.json")));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text of a recording.
pub(crate) fn recording(path: &str) -> String {
    read_text(&workspace().join("crates/delegator-transcript/tests").join(path))
}
