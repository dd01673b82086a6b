//! Creates old tasks through the registry, with timestamps in the past.

use std::sync::atomic::{AtomicU64, Ordering};

use delegator_domain::task::{TaskEnd, TaskId, TaskLocation};
use delegator_registry::{
    BeginOutcome, Claim, Finish, Identity, ImportedSession, NewTask, Nonce, Promotion, Registry, TaskFile,
};
use jiff::Timestamp;

pub(crate) const HOUR_MS: i64 = 60 * 60 * 1000;

pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

static NEXT: AtomicU64 = AtomicU64::new(1);

fn fresh_bits() -> [u8; 16] {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    bits[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    bits
}

pub(crate) fn fresh_id() -> TaskId {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let digits = std::array::from_fn(|at| if at < 12 { (number >> (5 * at)).to_be_bytes()[7] } else { 0 });
    TaskId::from_random(TaskLocation::Local, digits)
}

fn fresh_nonce() -> Nonce {
    Nonce::from_random(fresh_bits())
}

pub(crate) fn new_task() -> NewTask {
    NewTask { allow_parallel_writes: true, ..NewTask::reading(fresh_id(), "/home/me/project", "long ago") }
}

/// A task that started at that time and has no supervisor.
pub(crate) fn abandoned_task(registry: &mut Registry, at_ms: i64) -> Claim {
    registry.submit(&new_task(), b"{}", at_ms).unwrap();
    let all = Promotion { max_concurrent: usize::MAX, fresh_nonce: &fresh_nonce };
    let claimed = registry.claim_next(&all, at_ms).unwrap().unwrap();
    let dead_process = Identity { boot_id: "b00t".to_owned(), pid: 1, start_time: 1, pid_ns: 1 };
    let began = registry.begin_work(&claimed.task.id, &claimed.nonce, &dead_process, None, at_ms).unwrap();
    assert_eq!(began, BeginOutcome::Working);
    claimed
}

/// A task that ended at that time and has an events file. It never ran, so it cannot count as stuck.
pub(crate) fn ended_task(registry: &mut Registry, at_ms: i64) -> TaskId {
    let past = ImportedSession {
        thread_id: "a thread".to_owned(),
        started_at_ms: at_ms,
        ended_at_ms: at_ms,
        imported_at_ms: at_ms,
    };
    // The files come with the task: a concurrent cleanup may remove it as soon as it exists.
    let files: [(TaskFile, &[u8]); 1] = [(TaskFile::Events, b"{}\n")];
    registry.import(&new_task(), &past, &Finish::bare(TaskEnd::Completed), &files).unwrap().task.id
}

/// The same, with a restore point in a repository.
pub(crate) fn ended_task_with_restore_point(
    registry: &mut Registry,
    at_ms: i64,
    repository: &std::path::Path,
) -> TaskId {
    let id = ended_task(registry, at_ms);
    let commit = "0123456789012345678901234567890123456789";
    let point = serde_json::json!({"version": 1, "points": [{
        "reference": format!("refs/mcp-delegator/{id}"), "commit": commit, "tree": commit,
        "index_tree": commit, "head": null, "branch": null, "staged": false, "modified": 0,
        "untracked": 0, "left_out": [], "top_level": repository, "repository": repository,
        "store": repository, "created_at": 0, "index": "tree", "index_time": null, "under_way": [], "is_partial": false,
    }], "problems": [], "undo": []});
    let dir = registry.dir().task(&id);
    dir.write(TaskFile::RestorePoint, point.to_string().as_bytes()).unwrap();
    id
}
