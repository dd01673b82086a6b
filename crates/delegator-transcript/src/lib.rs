//! Decodes the output of coding agents.
//!
//! ```text
//! bytes ─ framer ─▶ line ─ decode ─▶ event ─ map ─▶ Codex exec event ─ fold ─▶ report
//!                                                           └─ normalize ─▶ JSONL
//! ```
//!
//! Everything is a pure function of the bytes: no clock, no files, no threads. A report can therefore be
//! computed again from stored lines. Only this crate knows the keys of an agent's JSON.
//!
//! No input stops the stream: a line that is not understood is counted, and memory is bounded for any input.

mod control_sequences;
mod decode;
mod error_body;
mod error_locations;
mod event;
mod file_diff;
mod fold;
mod framer;
mod headline;
mod json;
mod longline;
mod map;
mod normalize;
mod patch;
mod protocol;
mod rollout;
pub mod shell;
mod test_runs;
mod values;
pub mod wire;

pub use decode::{Event, IdleEvent, decode, decode_text};
pub use error_body::{ErrorBody, ResetTime};
pub use error_locations::ErrorLocation;
pub use event::{
    AgentError, ChangeKind, CollabToolCall, CommandExecution, ErrorCode, FileChange, Item, ItemDetails,
    ItemPhase, ItemStatus, McpToolCall, ThreadEvent, Todo, TurnOutcome, Usage,
};
pub use fold::{
    AgentTexts, CommandFailure, CommandReport, Commands, CostReport, Counts, FileOperations, FinalMessage,
    FoldOptions, LineEffect, LineSummarizer, McpCalls, Notice, OpenItem, PlanStep, PlanSteps, Progress,
    RecentLine, Report, StreamOutcome, Summarizer, TestReport, TestRunReport, ToolCalls, TurnState,
    UsageReport, test_report,
};
pub use framer::{Framer, Line, LineBody, LineLimits, LineText};
pub use headline::{Headlines, LogDetail};
pub use json::Text;
pub use json::unique::without_repeated_keys;
pub use longline::{ScannedLine, ScannedObject};
pub use map::{AssumedThread, Dialect, Effect, MapWarning, Translator, UnmappedReason};
pub use normalize::{MARK, NormalizeOptions, NormalizeSummary, Normalizer};
pub use protocol::{ProtocolEvent, ResponseItem, RolloutHead, RolloutLine, RolloutPayload};
pub use rollout::RolloutReader;
pub use test_runs::Runner;
pub use test_runs::command::looks_like_test_run;
