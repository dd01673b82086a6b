//! The only crate that runs `codex cloud` and knows what it prints.
//!
//! `client` has one method per call. It starts Codex (`run`), and parses what it printed (`parse`, which is
//! pure and tested with recorded output). The only JSON is that of `list --json`; the rest is text for
//! people, so parsing is strict: an output that is not understood is an error that contains it.
//!
//! `back_off` says when to poll again. Nothing here waits, stores, reads a diff or applies it.

mod back_off;
mod client;
mod error;
mod parse;
mod run;
mod task;

pub use back_off::back_off;
pub use client::CodexCloud;
pub use error::CloudError;
pub use task::{DiffSize, HostedPage, HostedState, HostedStatus, HostedTask, HostedTaskRef, NewHostedTask};
