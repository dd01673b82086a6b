//! One run, from start to end.

pub mod ending;
mod feed;
pub mod limits;
mod output;
pub mod ports;
mod spawn;
mod store;
mod supervise;
pub(crate) mod wait;
mod witness;

pub use ending::{EndSignal, EndingRecipe, EndingStep, Target};
pub use limits::{IdleCounts, LimitWarning, Limits};
pub use ports::{
    CancelRequest, Checked, Ended, Partial, Ports, RunSpec, Snapshot, Stream, StreamSummary, VerifySpec,
};
pub use supervise::supervise;
