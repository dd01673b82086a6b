//! Supervises one run of an agent, from its start to the sweep after its end.

mod dialogue;
pub mod limits;
mod output;
pub mod ports;
mod sentinel;
mod spawn;
mod stream_store;
mod supervise;

pub use crate::ending::{EndSignal, EndingRecipe};
pub use limits::{LimitWarning, Limits};
pub use ports::{
    ActionPhase, AgentAction, CancelRequest, ClosedQuestion, LogAction, MessageOutcome, Percent,
    PercentSource, Ports, QuestionEnd, RunResult, RunSpec, Snapshot, Stream, StreamSummary,
    VerificationResult, VerifySpec,
};
pub use stream_store::omitted_bytes;
pub use supervise::{changed_files, last_message, next_percent, redact_record, redacted_report, supervise};
