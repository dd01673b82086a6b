//! Settings of the steps for streams, input, processes and control flow.

use serde::Deserialize;

use super::SignalName;

/// The stream to write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    #[default]
    Stdout,
    Stderr,
}

/// Raw bytes: `text`, then `hex`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawBytes {
    pub text: String,
    /// Two digits per byte; white space is ignored.
    pub hex: String,
    pub stream: Stream,
}

/// A long line.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BigLine {
    /// Length without the newline; never less than its JSON needs.
    pub bytes: u64,
    #[serde(default)]
    pub shape: LineShape,
    #[serde(default)]
    pub stream: Stream,
}

/// Content of a long line.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineShape {
    /// An agent message event.
    #[default]
    Message,
    /// A command event with long output and exit code 7; status and exit code come after the output.
    Command,
    /// Plain text.
    Plain,
}

/// Lines of `x`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Flood {
    pub stream: Stream,
    /// Total number of bytes; unlimited by default.
    pub bytes: Option<u64>,
    /// As fast as possible by default.
    pub bytes_per_second: Option<f64>,
    /// Length of a line including the newline; 80 by default, 0 for no newlines at all.
    pub line_bytes: Option<usize>,
}

/// Many message events.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Events {
    /// Number of events; unlimited by default.
    pub count: Option<u64>,
    /// Length of each line including the newline; never less than its JSON needs.
    pub bytes: usize,
    /// Events per second; as fast as possible by default.
    pub per_second: Option<f64>,
    /// Whether each event contains its time: `event 1 at MICROSECONDS …`, by the monotonic clock of the machine.
    pub timed: bool,
}

/// How much of stdin to read.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinRead {
    /// Everything, to the end of file.
    All,
    /// The next line.
    Line,
    /// One byte; then stdin is really closed.
    OneByte,
    /// Nothing; stdin is really closed.
    Close,
    /// Nothing; stdin stays open.
    Never,
}

/// Records argv, environment, directory, umask, process ids, signal masks, limits, inherited descriptors, and the
/// stdin read so far. The file appears atomically.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The file for the JSON object.
    pub file: String,
    /// The file for the raw bytes of stdin.
    pub stdin_file: Option<String>,
}

/// How to handle signals.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trap {
    pub signals: Vec<SignalName>,
    /// A file that gets a line `NAME MILLISECONDS-SINCE-START` per signal.
    pub log: Option<String>,
    /// The exit code; without it the signals are ignored.
    pub exit: Option<u8>,
    /// Delay before the exit.
    #[serde(default)]
    pub exit_after_ms: u64,
}

/// A process that is started and not waited for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChildProcess {
    pub work: ChildWork,
    /// How long it sleeps; 600 by default.
    pub seconds: Option<u32>,
    pub session: Session,
    /// Whether its parent exits at once (a double fork).
    pub orphan: bool,
    /// Whether it keeps the stdout and stderr of the agent open.
    pub hold_output: bool,
    /// Whether it starts with an empty environment.
    pub clear_env: bool,
    /// Signals that it and its children ignore.
    pub ignore: Vec<SignalName>,
    /// The file for its process id; the agent waits for it.
    pub pid_file: Option<String>,
}

/// What a child process does.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildWork {
    #[default]
    Sleep,
    /// Uses CPU forever.
    Spin,
    /// Prints a line ten times per second forever.
    Chatter,
}

/// Session and process group of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// The process group of the agent.
    #[default]
    Same,
    /// A separate process group.
    OwnGroup,
    /// A separate session, created by the program `setsid`.
    Own,
}

/// A tree of sleeping processes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTree {
    /// Total number of processes.
    pub processes: u32,
    /// Maximum number of children of each process; 2 by default.
    pub width: Option<u32>,
    /// How long they sleep; 600 by default.
    pub seconds: Option<u32>,
}
