//! On a full disk no task is accepted, and every end is recorded. Uses a small file system in a mount namespace.

#![expect(clippy::disallowed_methods, reason = "mounting a small disk needs another process")]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use delegator_domain::task::{State, TaskEnd};
use delegator_registry::{Attempt, Cas, Finish, OpenOptions, Registry, RegistryError, StateDir, TaskFile};

use crate::support::{new_task, slots, submit, working};

const SMALL_DISK: &str = "REGISTRY_TEST_SMALL_DISK";
const RESERVE_BYTES: u64 = 1024 * 1024;

/// Runs the test `inner` of this binary on a disk of 8 MiB. Skips it where mounting is not permitted.
#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
fn run_on_small_disk(inner: &str) {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let namespaces: &[&str] = if rustix::process::geteuid().is_root() {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let probe =
        Command::new("unshare").args(namespaces).args(["mount", "-t", "tmpfs", "none"]).arg(&disk).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("{inner} was skipped: mounting is not permitted here");
        return;
    }
    let script = "mount -t tmpfs -o size=8m none \"$1\" && exec \"$2\" --exact \"$3\" --nocapture";
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(std::env::current_exe().unwrap())
        .arg(inner)
        .env(SMALL_DISK, &disk)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn fill(disk: &Path) {
    let mut file = fs::File::create(disk.join("junk")).unwrap();
    let block = vec![1; 4_096];
    let error = loop {
        if let Err(error) = file.write_all(&block) {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
}

fn open(disk: &Path, reserve_bytes: u64) -> Registry {
    let options = OpenOptions { reserve_bytes, min_free_bytes: 1024 * 1024, ..OpenOptions::default() };
    Registry::open(&StateDir::open(&disk.join("state"), &options).unwrap()).unwrap()
}

fn reserve_size(disk: &Path) -> u64 {
    fs::metadata(disk.join("state/held-back")).unwrap().len()
}

fn finish_all(registry: &mut Registry, tasks: &[delegator_registry::Claim]) -> Result<(), RegistryError> {
    for claim in tasks {
        let attempt = Attempt::working(claim.nonce.clone());
        let finish = Finish { summary: Some("x".repeat(500)), ..Finish::bare(TaskEnd::Completed) };
        let done = registry.finish(&claim.task.id, &attempt, &finish, &slots(0), 5)?;
        assert_eq!(done, Cas::Applied(vec![]));
    }
    Ok(())
}

#[test]
fn ends_with_reserve() {
    let Some(disk) = std::env::var_os(SMALL_DISK) else { return };
    let disk = Path::new(&disk);
    let mut registry = open(disk, RESERVE_BYTES);
    assert_eq!(reserve_size(disk), RESERVE_BYTES);
    let tasks: Vec<_> = (0..10).map(|_| working(&mut registry)).collect();
    let waiting = submit(&mut registry).id;
    fill(disk);
    let refused = registry.submit(&new_task(), b"launch", 1);
    assert!(matches!(refused, Err(RegistryError::DiskFull { .. })), "{refused:?}");
    let report = registry.dir().task(&tasks[0].task.id);
    report.write_report(&[b'x'; 100_000]).unwrap();
    finish_all(&mut registry, &tasks).unwrap();
    registry.request_cancel(&waiting, None, 6).unwrap();
    assert!(reserve_size(disk) < RESERVE_BYTES, "no reserve was released");
    assert!(reserve_size(disk) > 0, "the whole reserve was released at once");
    // Opening also takes space: the shared-memory index of the log.
    drop(registry);
    fill(disk);
    let mut registry = open(disk, RESERVE_BYTES);
    assert_eq!(registry.counts().unwrap().of(State::Completed), 10);
    assert_eq!(registry.get(&waiting).unwrap().unwrap().state, State::Cancelled);
    assert_eq!(report.read(TaskFile::Report).unwrap().unwrap().len(), 100_000);
    fs::remove_file(disk.join("junk")).unwrap();
    submit(&mut registry);
    assert_eq!(reserve_size(disk), RESERVE_BYTES, "the reserve was not filled again");
    registry.check().unwrap();
}

/// Without a reserve the same steps fail, which shows that the reserve is what helps.
#[test]
fn ends_without_reserve() {
    let Some(disk) = std::env::var_os(SMALL_DISK) else { return };
    let disk = Path::new(&disk);
    let mut registry = open(disk, 0);
    let tasks: Vec<_> = (0..10).map(|_| working(&mut registry)).collect();
    fill(disk);
    let failed = finish_all(&mut registry, &tasks);
    assert!(matches!(failed, Err(RegistryError::DiskFull { .. })), "{failed:?}");
    fs::remove_file(disk.join("junk")).unwrap();
    // A failed operation has changed nothing and can be repeated.
    let left =
        tasks.iter().filter(|claim| registry.get(&claim.task.id).unwrap().unwrap().state == State::Working);
    let left: Vec<_> = left.cloned().collect();
    assert!(!left.is_empty());
    finish_all(&mut registry, &left).unwrap();
    registry.check().unwrap();
}

#[test]
fn an_end_is_recorded_on_a_full_disk() {
    run_on_small_disk("full_disk::ends_with_reserve");
}

#[test]
fn without_a_reserve_recording_an_end_fails_with_disk_full() {
    run_on_small_disk("full_disk::ends_without_reserve");
}
