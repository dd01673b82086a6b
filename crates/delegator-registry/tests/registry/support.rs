//! A separate state directory for each test, and helpers that move a task through its states.

#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use delegator_domain::task::{Mode, TaskEnd, TaskId, TaskLocation, WorkTree};
use delegator_registry::{
    Attempt, BeginOutcome, Cas, Claim, Finish, Identity, NewTask, Nonce, OpenOptions, Promotion, Registry,
    StateDir, Task,
};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World { folder: tempfile::tempdir().unwrap() }
    }

    /// In memory if possible, for a test with so many writes that syncing them would take long.
    pub(crate) fn in_memory() -> World {
        World { folder: tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn dir(&self) -> StateDir {
        StateDir::open(&self.path(), &OpenOptions::default()).unwrap()
    }

    pub(crate) fn registry(&self) -> Registry {
        registry_at(&self.path())
    }
}

pub(crate) fn registry_at(path: &Path) -> Registry {
    Registry::open(&StateDir::open(path, &OpenOptions::default()).unwrap()).unwrap()
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Sixteen unique bytes: the process id and a counter.
fn fresh_bits() -> [u8; 16] {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    bits[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    bits
}

/// The digits of a counter, the lowest first, so that prefixes differ, too.
pub(crate) fn fresh_id() -> TaskId {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let digits = std::array::from_fn(|at| if at < 12 { (number >> (5 * at)).to_be_bytes()[7] } else { 0 });
    TaskId::from_random(TaskLocation::Local, digits)
}

pub(crate) fn fresh_nonce() -> Nonce {
    Nonce::from_random(fresh_bits())
}

pub(crate) fn new_task() -> NewTask {
    NewTask {
        work_trees: vec![WorkTree::from_text("/home/me/project")],
        // Most tests are about a single task; tests about sharing a tree set this to false.
        allow_parallel_writes: true,
        mode: Mode::WorkspaceWrite,
        title: "fix the parser".to_owned(),
        input: serde_json::json!({"mode": "workspace-write"}),
        ..NewTask::reading(fresh_id(), "/home/me/project", "fix the parser\nand test it")
    }
}

pub(crate) fn slots(max_concurrent: usize) -> Promotion<'static> {
    Promotion { max_concurrent, fresh_nonce: &fresh_nonce }
}

pub(crate) fn identity(pid: u32) -> Identity {
    Identity { boot_id: "b00t".to_owned(), pid, start_time: 4711, pid_ns: 4_026_531_836 }
}

pub(crate) fn submit(registry: &mut Registry) -> Task {
    registry.submit(&new_task(), b"launch", 1_000).unwrap().task
}

pub(crate) fn submit_and_claim(registry: &mut Registry) -> Claim {
    submit(registry);
    registry.claim_next(&slots(usize::MAX), 1_001).unwrap().unwrap()
}

/// Submits, claims and begins a task.
pub(crate) fn working(registry: &mut Registry) -> Claim {
    let claim = submit_and_claim(registry);
    begin(registry, &claim);
    claim
}

pub(crate) fn begin(registry: &mut Registry, claim: &Claim) {
    let began = registry.begin_work(&claim.task.id, &claim.nonce, &identity(7), Some("subreaper"), 1_002);
    assert_eq!(began.unwrap(), BeginOutcome::Working);
}

/// Runs a task to its end.
pub(crate) fn ended(registry: &mut Registry, end: TaskEnd, now_ms: i64) -> TaskId {
    let claim = working(registry);
    finish(registry, &claim, end, now_ms);
    claim.task.id
}

pub(crate) fn finish(registry: &mut Registry, claim: &Claim, end: TaskEnd, now_ms: i64) {
    let attempt = Attempt::working(claim.nonce.clone());
    let done = registry.finish(&claim.task.id, &attempt, &Finish::bare(end), &slots(0), now_ms);
    assert!(matches!(done, Ok(Cas::Applied(_))), "{done:?}");
}

/// Every file and directory below `folder`, with its mode.
pub(crate) fn modes_below(folder: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.push((path, metadata.permissions().mode() & 0o777));
    }
    found
}
