//! Settings of the steps that write Codex exec events.

use serde::Deserialize;

/// The thread to announce: by default that of `resume ID`, else a new one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadStarted {
    /// This thread, whatever was requested.
    pub id: Option<String>,
    /// A new thread, even if another should be resumed.
    pub new: bool,
}

/// A plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSteps {
    pub steps: Vec<String>,
    /// Number of completed steps.
    #[serde(default)]
    pub done: usize,
}

/// What to run: a text for `/bin/sh -c`, or a list of arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Program {
    /// With a shell.
    Shell(String),
    /// Without a shell.
    Args(Vec<String>),
}

/// Token usage of a thread.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub input_tokens: u64,
    /// Part of `input_tokens` read from a cache.
    pub cached_input_tokens: u64,
    /// Part of `input_tokens` written to a cache.
    pub cache_write_input_tokens: u64,
    pub output_tokens: u64,
    /// Part of `output_tokens` used for reasoning.
    pub reasoning_output_tokens: u64,
}
