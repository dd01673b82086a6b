//! The steps of a script.

use serde::Deserialize;
use serde_json::Value;

use super::behaviour::{
    BigLine, ChildProcess, Choice, Events, Flood, ProcessTree, RawBytes, Record, Repeat, StdinRead, Trap,
};
use super::codex_events::{Command, PlanSteps, Replacement, ThreadStarted, Usage, WrittenFile};
use super::signal::SignalName;

/// One thing an agent does. In JSON the name in `snake_case`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    // What Codex says.
    /// `thread.started`.
    ThreadStarted(ThreadStarted),
    /// `turn.started`.
    TurnStarted,
    /// A message of the agent.
    Message(String),
    /// A thought of the agent.
    Reasoning(String),
    /// The agent's plan; a later one replaces it.
    Plan(PlanSteps),
    /// The first so many steps of the plan are done.
    PlanDone(usize),
    /// An item `error`: a warning.
    Warning(String),
    /// A top-level `error`, which by itself ends nothing.
    Error(String),
    /// Runs a command for real, between `item.started` and `item.completed`.
    Command(Command),
    /// Writes a file for real, with its `file_change` items.
    WriteFile(WrittenFile),
    /// Replaces a text in a file for real, with its `file_change` items.
    ReplaceInFile(Replacement),
    /// Removes a file for real, with its `file_change` items.
    DeleteFile(String),
    /// `turn.completed`; an open plan is completed first.
    TurnCompleted(Usage),
    /// `turn.failed` with this message; the exit code becomes 1.
    TurnFailed(String),

    // What nobody should say.
    /// Any JSON value as a line.
    Event(Value),
    /// This text as a line.
    Line(String),
    /// This text as a line on stderr.
    StderrLine(String),
    /// These bytes, no newline added.
    Raw(RawBytes),
    /// A line of any length; it is never in memory as a whole.
    BigLine(BigLine),
    /// Bytes in lines, many or without end.
    Flood(Flood),
    /// Messages, many or without end. Their texts are `event 1 xxx…`, `event 2 xxx…`.
    Events(Events),
    /// Closes stdout for real. What is said afterwards ends the agent with 101.
    CloseStdout,

    // Input and evidence.
    /// Reads from stdin. A script without this step never does.
    ReadStdin(StdinRead),
    /// Writes down how the agent was started.
    Record(Record),
    /// Creates an empty file.
    TouchFile(String),
    /// Waits until a file exists.
    WaitForFile(String),

    // Time.
    /// Does nothing for so many milliseconds.
    DelayMs(u64),
    /// Does nothing for a random time: at least, at most.
    DelayBetweenMs(u64, u64),
    /// Burns CPU for so many milliseconds.
    SpinMs(u64),
    /// Does nothing ever after.
    Silent,

    // Processes and signals.
    /// Catches signals.
    Trap(Trap),
    /// Starts a process and goes on.
    Child(ChildProcess),
    /// Starts a tree of processes and goes on.
    ForkTree(ProcessTree),
    /// Ends with this code.
    Exit(u8),
    /// Sends itself a signal; goes on if it is not a deadly one.
    Raise(SignalName),

    // Flow.
    /// Does one of several things.
    Choose(Choice),
    /// Does something again and again.
    Repeat(Repeat),
}
