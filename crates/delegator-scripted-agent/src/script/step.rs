//! The steps of a script.

use serde::Deserialize;
use serde_json::Value;

use super::behaviour::{
    BigLine, ChildProcess, Events, Flood, ProcessTree, RawBytes, Record, StdinRead, Trap,
};
use super::codex_events::{PlanSteps, Program, ThreadStarted, Usage};
use super::signal::SignalName;

/// One action of the agent. Its JSON name is in `snake_case`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    // What Codex does.
    /// `thread.started`.
    ThreadStarted(ThreadStarted),
    /// `turn.started`.
    TurnStarted,
    /// An agent message.
    Message(String),
    /// Reasoning of the agent.
    Reasoning(String),
    /// The agent's plan; a later one replaces it.
    Plan(PlanSteps),
    /// Marks the first steps of the plan as completed.
    PlanDone(usize),
    /// An `error` item, which is a warning.
    Warning(String),
    /// A top-level `error`, which does not end the turn.
    Error(String),
    /// Really runs a command, between `item.started` and `item.completed`.
    Command(Command),
    /// Really writes a file, with its `file_change` items.
    WriteFile(WrittenFile),
    /// Really replaces text in a file, with its `file_change` items.
    ReplaceInFile(Replacement),
    /// Really deletes a file, with its `file_change` items.
    DeleteFile(String),
    /// `turn.completed`; an open plan is completed first.
    TurnCompleted(Usage),
    /// `turn.failed` with this message; the exit code becomes 1.
    TurnFailed(String),

    // Invalid and excessive output.
    /// Any JSON value as a line.
    Event(Value),
    /// This text as a line.
    Line(String),
    /// This text as a line on stderr.
    StderrLine(String),
    /// These bytes, no newline added.
    Raw(RawBytes),
    /// A line of any length, which is never in memory as a whole.
    BigLine(BigLine),
    /// Lines of bytes, many or without end.
    Flood(Flood),
    /// Messages, many or without end, with the texts `event 1 xxx…`, `event 2 xxx…`.
    Events(Events),
    /// Really closes stdout. Any later output ends the agent with 101.
    CloseStdout,

    // Input and synchronisation files.
    /// Reads from stdin. Without this step, stdin is never read.
    ReadStdin(StdinRead),
    /// Records how the agent was started.
    Record(Record),
    /// Creates an empty file.
    TouchFile(String),
    /// Waits until a file exists.
    WaitForFile(String),

    // Time.
    /// Waits this many milliseconds.
    DelayMs(u64),
    /// Waits a random time: minimum and maximum in milliseconds.
    DelayBetweenMs(u64, u64),
    /// Uses CPU for this many milliseconds.
    SpinMs(u64),
    /// Waits forever.
    Silent,

    // Processes and signals.
    /// Traps signals.
    Trap(Trap),
    /// Starts a process and continues.
    Child(ChildProcess),
    /// Starts a tree of processes and continues.
    ForkTree(ProcessTree),
    /// Exits with this code.
    Exit(u8),
    /// Sends itself a signal; continues if the signal is not fatal.
    Raise(SignalName),

    // Control flow.
    /// Runs one of several lists of steps.
    Choose(Choice),
    /// Runs steps repeatedly.
    Repeat(Repeat),
}

/// A random choice of steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Seed that makes this choice reproducible.
    pub seed: Option<u64>,
    /// Lists of steps with equal probability.
    pub among: Vec<Vec<Step>>,
}

/// Repeated steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Number of repetitions; unlimited by default.
    pub times: Option<u64>,
    pub steps: Vec<Step>,
}

/// A command to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub run: Program,
    /// Steps to run if its exit code is not 0.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}

/// A file to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// Missing directories are created.
    pub path: String,
    pub text: String,
    /// Steps to run if the file cannot be written.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}

/// A replacement of text in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    pub path: String,
    /// The text to replace, at its first occurrence.
    pub old: String,
    pub new: String,
    /// Steps to run if the file cannot be read or written, or does not contain the text.
    #[serde(default)]
    pub if_failed: Vec<Step>,
}
