//! What a capture leaves out, and the limits beyond which it does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits for copying files that git does not track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 10 << 20, total_bytes: 200 << 20, time: Duration::from_secs(5) }
    }
}

/// A file that is not in a restore point. A restore never touches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub reason: LeftOutReason,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    TooLarge,
    /// The total size limit was reached by earlier files.
    TooMuch,
    TooLate,
    Unreadable,
    /// A repository, not a file.
    Repository,
    /// git ignores it, and it is beyond the limits of what is examined.
    Ignored,
    /// Its content before or after the change is not stored.
    NoContent,
    /// A branch whose commits change no file.
    Commits,
}
