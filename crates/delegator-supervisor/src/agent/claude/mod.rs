//! Claude Code: everything that is specific to it.
//!
//! It is started with `-p` and `stream-json` in both directions. Its permission prompts come to us
//! (`conversation::claude`), so its own permission modes are not used. It has no sandbox: the supervisor
//! encloses it.

mod command_line;
mod profile;
mod sessions;

pub(super) use command_line::{args, conversation, validate};
pub(super) use profile::{PROFILE, check_sign_in};
pub(super) use sessions::find_thread;
