//! Codex: everything that is specific to it. What it prints is decoded by `delegator-transcript`, like the
//! output of every agent.

pub(super) mod app_server;
mod command_line;
mod error_message;
mod failures;
mod features;
mod home;
mod permissions;
mod profile;
mod project_trust;
mod sandbox;
mod sessions;
mod sign_in;
mod stderr;

pub(super) use command_line::{args, validate};
pub(crate) use error_message::{ErrorMessage, Link};
pub(super) use failures::reported_failure;
pub(super) use features::{NEWEST_MEASURED, tested_versions, version_warning};
pub use home::ShellSnapshots;
pub(super) use home::check_home;
pub(super) use profile::{APP_SERVER_PROFILE, PROFILE};
pub(super) use project_trust::project_trust;
pub(super) use sandbox::sandboxed;
pub(super) use sessions::find_thread;
pub use sessions::{StoredSession, stored_sessions};
pub(super) use sign_in::check_sign_in;
pub(crate) use stderr::{Message, NO_SANDBOX_HELPER, StderrLine, parse_line};
pub use stderr::{is_refused_write, sandbox_advice};
