//! The log of a supervisor, `supervisor.jsonl`: when its agent was idle, and when it was done. The log is
//! limited, because an agent may report that it is idle as often as it likes. Errors never fail a run.

use std::cell::Cell;
use std::io::Write;

use delegator_registry::{TaskDir, TaskFile};
use delegator_supervisor::run::LogAction;
use jiff::Timestamp;
use serde::Serialize;

/// Later entries are not written; about 1 MiB.
const MAX_ENTRIES: u32 = 10_000;

#[derive(Debug, Default)]
pub(crate) struct SupervisorLog {
    entries: Cell<u32>,
}

#[derive(Serialize)]
struct Entry<'a> {
    action: LogAction,
    task_id: &'a str,
    /// RFC 3339, UTC, milliseconds.
    ts: String,
}

impl SupervisorLog {
    pub(crate) fn append(&self, dir: &TaskDir, action: LogAction, now_ms: i64) {
        if self.entries.get() == MAX_ENTRIES {
            return;
        }
        self.entries.set(self.entries.get() + 1);
        let Ok(now) = Timestamp::from_millisecond(now_ms) else { return };
        let entry = Entry { action, task_id: dir.id().as_str(), ts: format!("{now:.3}") };
        let Ok(mut line) = serde_json::to_vec(&entry) else { return };
        line.push(b'\n');
        if let Ok(mut file) = dir.open_append(TaskFile::SupervisorLog) {
            let _ = file.write_all(&line);
        }
    }
}
