//! The thread id of a stream whose dialect has no threads.
//!
//! The id is stable: the same lines give the same id. A derived one begins with `derived-`, so that it is not
//! taken for an id that the agent can resume.

use crate::json::{Object, Text};

/// Longer ids are not ids.
const MAX_ID_BYTES: usize = 256;

/// The thread of a stream whose dialect has no threads.
#[derive(Clone, Debug, Default)]
pub enum AssumedThread {
    #[default]
    None,
    Known(String),
    /// The first `thread_id` or `session_id` in the lines up to the first that is more than `idle` or `done`,
    /// else an id derived from these lines: a live stream cannot be read ahead.
    Derived,
}

#[derive(Debug)]
pub(super) struct ThreadStart {
    known: Option<String>,
    /// FNV-1a of the lines so far: it must never change, so it does not depend on a library.
    hash: u64,
}

impl ThreadStart {
    pub(super) fn new(thread: AssumedThread) -> Option<Self> {
        let known = match thread {
            AssumedThread::None => return None,
            AssumedThread::Known(id) => Some(id),
            AssumedThread::Derived => None,
        };
        Some(Self { known, hash: 0xcbf2_9ce4_8422_2325 })
    }

    pub(super) fn read_line(&mut self, line: &str) {
        if self.known.is_some() {
            return;
        }
        for byte in line.trim_ascii().bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let line = Object::read(line);
        let id = line.text("thread_id").or_else(|| line.text("session_id"));
        let is_id = |id: &Text<'_>| !id.is_empty() && id.len() <= MAX_ID_BYTES;
        self.known = id.filter(is_id).map(|id| id.resolve().into_owned());
    }

    pub(super) fn into_thread_id(self) -> Text<'static> {
        Text::owned(self.known.unwrap_or_else(|| format!("derived-{:016x}", self.hash)))
    }
}
