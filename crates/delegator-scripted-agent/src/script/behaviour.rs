//! Settings of the steps that behave: streams, input, processes, flow.

use serde::Deserialize;

use super::{SignalName, Step};

/// Where something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// To stdout.
    #[default]
    Stdout,
    /// To stderr.
    Stderr,
}

/// Bytes: `text`, then `hex`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawBytes {
    /// As UTF-8.
    pub text: String,
    /// Two digits each; blanks between bytes are skipped.
    pub hex: String,
    /// To where.
    pub stream: Stream,
}

/// A long line.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BigLine {
    /// Its length without the newline; never less than its JSON needs.
    pub bytes: u64,
    /// What it is.
    #[serde(default)]
    pub shape: LineShape,
    /// To where.
    #[serde(default)]
    pub stream: Stream,
}

/// What a long line is.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineShape {
    /// A message of the agent.
    #[default]
    Message,
    /// A command that printed much and ended with 7: status and exit code come after the output.
    Command,
    /// No JSON.
    Plain,
}

/// Lines of `x`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Flood {
    /// To where.
    pub stream: Stream,
    /// How much in all; without end unless told.
    pub bytes: Option<u64>,
    /// Of these in a second; as fast as they are taken unless told.
    pub bytes_per_second: Option<f64>,
    /// The length of a line with its newline; 80 unless told, 0 for no newlines at all.
    pub line_bytes: Option<usize>,
}

/// Many messages.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    /// How many in all; without end unless told.
    pub count: Option<u64>,
    /// The length of each line with its newline, at least what its JSON needs.
    pub bytes: usize,
    /// How many in a second; as fast as they are taken unless told.
    pub per_second: Option<f64>,
    /// Whether each tells when it was said: `event 1 at MICROSECONDS …`, by the machine's monotonic clock.
    pub timed: bool,
}

/// How much of stdin is read.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinRead {
    /// All, to its end.
    All,
    /// The next line.
    Line,
    /// One byte; then stdin is closed for real.
    OneByte,
    /// Nothing; it is closed for real.
    Close,
    /// Nothing; it stays open.
    Never,
}

/// What is written down: argv, environment, directory, umask, process ids, signal masks, limits, inherited
/// descriptors, and what was read from stdin so far. The file appears at once and whole.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Where, as a JSON object.
    pub file: String,
    /// Where the bytes of stdin go as they are.
    pub stdin_file: Option<String>,
}

/// What becomes of signals.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trap {
    /// Which.
    pub signals: Vec<SignalName>,
    /// A file that gets a line `NAME MILLISECONDS-SINCE-START` for each.
    pub log: Option<String>,
    /// The code to end with; they are ignored unless told.
    pub exit: Option<u8>,
    /// How long the end takes.
    #[serde(default)]
    pub exit_after_ms: u64,
}

/// A process that is left to itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChildProcess {
    /// What it does.
    pub work: ChildWork,
    /// For how many seconds it sleeps; 600 unless told.
    pub seconds: Option<u32>,
    /// Where it belongs.
    pub session: Session,
    /// Whether its parent is gone at once (a double fork).
    pub orphan: bool,
    /// Whether it holds the agent's stdout and stderr open.
    pub hold_output: bool,
    /// Whether it starts without a single variable.
    pub clear_env: bool,
    /// Signals it ignores, as everything it starts does.
    pub ignore: Vec<SignalName>,
    /// Where it writes its process id; the agent waits for that.
    pub pid_file: Option<String>,
}

/// What a process does.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildWork {
    /// It sleeps.
    #[default]
    Sleep,
    /// It burns CPU without end.
    Spin,
    /// It prints a line ten times a second without end.
    Chatter,
}

/// Where a process belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// To the agent's process group.
    #[default]
    Same,
    /// To a process group of its own.
    OwnGroup,
    /// To a session of its own, by the program `setsid`.
    Own,
}

/// A tree of processes that sleep.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTree {
    /// How many in all.
    pub processes: u32,
    /// How many children each has at most; 2 unless told.
    pub width: Option<u32>,
    /// For how many seconds they sleep; 600 unless told.
    pub seconds: Option<u32>,
}

/// One of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Makes this choice the same in every run.
    pub seed: Option<u64>,
    /// Lists of steps, each as likely as the others.
    pub among: Vec<Vec<Step>>,
}

/// Again and again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often; without end unless told.
    pub times: Option<u64>,
    /// What.
    pub steps: Vec<Step>,
}
