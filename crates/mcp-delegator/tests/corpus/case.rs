//! The format of a corpus case: a project, what the agent does in it, how the task is submitted, and the expected values.
//!
//! `cases/NAME.json` is one case. Unknown keys are errors, so that no expectation is silently ignored.

use std::collections::BTreeMap;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The purpose of the case, one sentence.
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) project: Project,
    pub(crate) agent: Agent,
    #[serde(default)]
    pub(crate) calls: CallSequence,
    /// Further CLI arguments.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// Expected values, keyed by the field names in [`crate::fields`]. Fields that are left out are not compared.
    pub(crate) truth: Map<String, Value>,
    /// Fields of `truth` that are known to be extracted wrongly, and why. They count as wrong. When such a field becomes
    /// right, the case fails until the entry is removed, except for cases with the real Codex, whose output varies between runs.
    #[serde(default)]
    pub(crate) missed: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Project {
    /// Whether the project is a repository with `files` and `recorded` committed.
    pub(crate) git: bool,
    /// Text files by path. A text that begins with `#!` is made executable.
    pub(crate) files: BTreeMap<String, String>,
    /// Recorded output of real compilers and test runners, by path: a file below `delegator-transcript/tests`.
    pub(crate) recorded: BTreeMap<String, String>,
    /// Written after the commit.
    pub(crate) dirty: BTreeMap<String, String>,
    /// A shell script that runs after everything above.
    pub(crate) prepare: Option<String>,
    /// The working directory of the task, relative to the project.
    pub(crate) folder: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Agent {
    /// Steps of the scripted agent, after it has started its thread and turn.
    Scripted(Vec<Value>),
    /// All steps of the scripted agent.
    Stream(Vec<Value>),
    /// Responses of the fake model to the real Codex, in order.
    Codex(Vec<ModelStep>),
}

/// One response of the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ModelStep {
    Command(String),
    Patch(String),
    /// A plan; the first `done` steps are completed.
    Plan {
        steps: Vec<String>,
        done: usize,
    },
    Message(String),
    /// Several calls in one response.
    Together(Vec<ModelStep>),
    Refuse {
        status: u16,
        body: Value,
    },
}

/// The CLI calls that submit the task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallSequence {
    /// `exec`, `wait`, `results`.
    #[default]
    Exec,
    /// `run`, `results`.
    Run,
    /// `exec`, then `cancel` as soon as this file exists in the project.
    CancelWhenExists(String),
    /// A first task with these steps, then `resume`.
    Resume(Vec<Value>),
}

pub(crate) fn folder() -> std::path::PathBuf {
    workspace().join("crates/mcp-delegator/tests/corpus/cases")
}

pub(crate) fn read(name: &str) -> Case {
    let text = read_text(&folder().join(format!("{name}.json")));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn recording(path: &str) -> String {
    read_text(&workspace().join("crates/delegator-transcript/tests").join(path))
}
