//! The only crate that runs `codex cloud` and knows what it prints.
//!
//! `client` has one method per call. It starts Codex (`run`), and parses what it printed: `parse` on success, `failure`
//! otherwise. Both are pure and tested with recorded output. The only JSON is that of `list --json`; the rest is text
//! for people, so parsing is strict: an output that is not understood is an error that contains it.
//!
//! `diff` reads the diff of a task, `back_off` says when to poll again. Nothing here waits, stores or applies.

mod back_off;
mod client;
mod diff;
mod error;
mod failure;
mod parse;
mod run;
mod task;

pub use back_off::back_off;
pub use client::CodexCloud;
pub use diff::{FileDiff, FileDiffKind, NotADiff, parse_diff};
pub use error::CloudError;
pub use task::{DiffSize, HostedPage, HostedState, HostedStatus, HostedTask, HostedTaskRef, NewHostedTask};
