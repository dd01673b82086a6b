//! Settings of the steps that say what Codex says.

use serde::Deserialize;

use super::Step;

/// Which thread is announced: the one of `resume ID`, else a new one, unless told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadStarted {
    /// This one, whatever was asked for.
    pub id: Option<String>,
    /// A new one, even when another was to be resumed.
    pub new: bool,
}

/// A plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSteps {
    /// What is to be done.
    pub steps: Vec<String>,
    /// How many of them are.
    #[serde(default)]
    pub done: usize,
}

/// A command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What is run.
    pub run: Program,
    /// What is done when its exit code is not 0.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}

/// What is run: a text for `/bin/sh -c`, or a list of words.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Program {
    /// Through a shell.
    Shell(String),
    /// Without one.
    Args(Vec<String>),
}

/// A file as it shall be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// Where; missing directories are made.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// What is done when it cannot be written.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}

/// A change of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// Which file.
    pub path: String,
    /// The text that goes, at its first occurrence.
    pub old: String,
    /// The text that comes.
    pub new: String,
    /// What is done when the file cannot be read or written, or the text is not in it.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}

/// Tokens of a thread.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// In.
    pub input_tokens: u64,
    /// Of these from a cache.
    pub cached_input_tokens: u64,
    /// Of these put into a cache.
    pub cache_write_input_tokens: u64,
    /// Out.
    pub output_tokens: u64,
    /// Of these for reasoning.
    pub reasoning_output_tokens: u64,
}
