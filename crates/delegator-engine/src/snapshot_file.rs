//! The progress of a live run, stored as `snapshot.json`.
//!
//! The supervisor replaces the file about once a second. Nothing is decided by it, so a snapshot that cannot be written is
//! skipped, and one that cannot be decoded counts as missing.

use delegator_registry::{RegistryError, TaskDir, TaskFile};
use delegator_supervisor::run::Snapshot;
use serde::{Deserialize, Serialize};

use crate::format_version::FormatVersion;

/// The content of `snapshot.json`.
#[derive(Serialize, Deserialize)]
struct SnapshotFile<S> {
    version: FormatVersion<1>,
    snapshot: S,
}

pub(crate) fn write_snapshot(dir: &TaskDir, snapshot: &Snapshot) {
    if let Ok(bytes) = serde_json::to_vec(&SnapshotFile { version: FormatVersion, snapshot }) {
        let _ = dir.write(TaskFile::Snapshot, &bytes);
    }
}

pub(crate) fn read_snapshot(dir: &TaskDir) -> Result<Option<Snapshot>, RegistryError> {
    let file = dir.read(TaskFile::Snapshot)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok(file.map(|SnapshotFile { snapshot, .. }| snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_snapshots_of_the_known_version_are_read() {
        let snapshot = serde_json::json!({
            "turn": "running", "plan": [], "events": 1, "stdout_bytes": 2, "stderr_bytes": 3, "elapsed_ms": 4,
            "hard_limit_sec": 1200, "quiet_ms": 5, "processes": 6, "commands": 7, "files": 8,
            "percent": {"value": 50, "source": "history"},
        });
        for (version, percent) in [(1, Some(50)), (2, None)] {
            let text = serde_json::json!({"version": version, "snapshot": snapshot}).to_string();
            let stored = serde_json::from_str::<SnapshotFile<Snapshot>>(&text).ok();
            let stored = stored.and_then(|stored| stored.snapshot.percent);
            assert_eq!(stored.map(|percent| percent.value), percent);
        }
    }
}
