//! The only room that runs git.
//!
//! A repository is somebody else's program: its configuration names commands (fsmonitor, hooks, filters, external diffs,
//! signing, credential helpers) that git runs on the most harmless question. So nothing here lets git read a repository's
//! configuration where a command could come from it:
//!
//! - Work on files and indexes is done in a **git directory of our own** ([`scratch`]): empty configuration, no hooks, the
//!   repository's object store, a copy of its index, its work tree. An attributes file of ours, which outranks the
//!   repository's, turns every conversion off, so what is stored and what is written back are the bytes themselves.
//! - Only refs and HEAD are asked and changed in the repository itself, by plumbing that runs nothing but hooks, and
//!   those are off.
//!
//! git gets an environment made here, a deadline and bounded output. It never gets a caller's `GIT_*`.
//!
//! ```text
//! find ─▶ Repository ─▶ capture (index, work tree) ─▶ RestorePoint ─▶ ref
//!                               restore: look ─▶ Prospect ─▶ keep_undo ─▶ apply
//!                   └▶ Baseline ── somebody works ──▶ compare ─▶ Comparison
//! ```

mod apply;
mod baseline;
mod capture;
mod compare;
mod diff;
mod error;
mod gather;
mod ignored;
mod index_file;
mod listing;
mod point;
mod record;
mod repository;
mod restore_plan;
mod run;
mod saved_state;
mod scratch;
mod stamp;
mod state;
mod store;
mod survey;
mod tracked;
mod unique;

pub use baseline::Baseline;
pub use capture::{LeftOut, LeftOutReason, Limits};
pub use compare::{Commits, Comparison};
pub use diff::{ChangeKind, FileChange};
pub use error::{GitError, RestoreError};
pub use ignored::TOOL_DIRECTORIES;
pub use point::{
    CreatedPoint, RestorePoint, StoredIndex, StoredPoint, create_restore_point, drop_point, stored_points,
};
pub use repository::{Head, Repository, find_repository, top_level};
pub use restore_plan::{Plan, PreparedRestore, prepare_restore};
pub use run::Git;
pub use unique::holds_unique_content;
