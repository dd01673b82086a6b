//! The progress of a live run, stored as `snapshot.json`, which the supervisor replaces about once a second.
//! Nothing is decided by it, so one that cannot be written is skipped, and one that cannot be decoded counts
//! as missing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use delegator_registry::{RegistryError, TaskDir, TaskFile};
use delegator_supervisor::run::Snapshot;
use serde::{Deserialize, Serialize};

use crate::shared::directories::{FileStamp, file_stamp};
use crate::shared::format_version::FormatVersion;

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

/// How long a running task has been without activity. A snapshot is written only when there is news, so the time
/// since then was quiet, too.
pub(crate) fn quiet_ms(snapshot: &Snapshot, started_ms: i64, now_ms: i64) -> u64 {
    let since_start_ms = u64::try_from(now_ms - started_ms).unwrap_or(0);
    snapshot.quiet_ms + since_start_ms.saturating_sub(snapshot.elapsed_ms)
}

/// A cache with this many snapshots is emptied.
const MAX_CACHED: usize = 1000;

static CACHE: Mutex<BTreeMap<PathBuf, (FileStamp, Snapshot)>> = Mutex::new(BTreeMap::new());

/// Like [`read_snapshot`], but reads the file only if it was replaced since the last call in this process.
/// For calls that list many tasks, and come many times a second.
pub(crate) fn read_cached_snapshot(dir: &TaskDir) -> Option<Snapshot> {
    let file = dir.file(TaskFile::Snapshot);
    // Before the file is read: one that is replaced in between is read again by the next call.
    let stamp = file_stamp(&std::fs::metadata(&file).ok()?);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((cached, snapshot)) = cache.get(&file)
        && *cached == stamp
    {
        return Some(snapshot.clone());
    }
    let snapshot = read_snapshot(dir).ok().flatten()?;
    if cache.len() >= MAX_CACHED {
        cache.clear();
    }
    cache.insert(file, (stamp, snapshot.clone()));
    Some(snapshot)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::{TaskId, TaskLocation};
    use serde_json::{Value, json};

    use super::*;

    fn snapshot(events: u64) -> Value {
        json!({
            "turn": "running", "plan": [], "events": events, "stdout_bytes": 2, "stderr_bytes": 3, "elapsed_ms": 4,
            "hard_limit_sec": 1200, "quiet_ms": 5, "processes": 6, "commands": 7, "files": 8,
            "percent": {"value": 50, "source": "history"},
        })
    }

    #[test]
    fn only_snapshots_of_the_known_version_are_read() {
        for (version, percent) in [(1, Some(50)), (2, None)] {
            let text = json!({"version": version, "snapshot": snapshot(1)}).to_string();
            let stored = serde_json::from_str::<SnapshotFile<Snapshot>>(&text).ok();
            let stored = stored.and_then(|stored| stored.snapshot.percent);
            assert_eq!(stored.map(|percent| percent.value), percent);
        }
    }

    #[test]
    fn a_replaced_snapshot_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let engine = crate::Engine::new(folder.path().join("state"), "/bin/true");
        let registry = engine.open_registry().unwrap();
        let dir = registry.dir().task(&TaskId::from_random(TaskLocation::Local, [1; 16]));
        assert!(read_cached_snapshot(&dir).is_none());
        std::fs::create_dir_all(dir.path()).unwrap();
        for events in [1, 2, 2, 3] {
            write_snapshot(&dir, &serde_json::from_value(snapshot(events)).unwrap());
            for _ in 0..2 {
                assert_eq!(read_cached_snapshot(&dir).unwrap().events, events);
            }
        }
        std::fs::write(dir.file(TaskFile::Snapshot), "{").unwrap();
        assert!(read_cached_snapshot(&dir).is_none());
    }
}
