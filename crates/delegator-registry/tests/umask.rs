//! All files are private under any umask. A umask applies to the whole process, so this is a test binary of its own.

#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

#[path = "registry/support.rs"]
mod support;

use delegator_domain::task::TaskEnd;
use delegator_registry::{LockAttempt, TaskFile};
use rustix::fs::Mode;
use support::{World, ended, modes_below, working};

#[test]
fn everything_is_private_under_any_umask() {
    for umask in [0o000, 0o022, 0o777] {
        rustix::process::umask(Mode::from_raw_mode(0o022));
        let world = World::new();
        rustix::process::umask(Mode::from_raw_mode(umask));
        let mut registry = world.registry();
        ended(&mut registry, TaskEnd::Completed, 2_000);
        let claim = working(&mut registry);
        let dir = registry.dir().task(&claim.task.id);
        dir.open_append(TaskFile::Events).unwrap();
        dir.open_append(TaskFile::Stderr).unwrap();
        dir.write(TaskFile::Snapshot, b"{}").unwrap();
        dir.write_report(b"{}").unwrap();
        dir.publish_socket("/tmp/x.sock".as_ref()).unwrap();
        let _lock = dir.try_lock().unwrap();
        assert!(matches!(_lock, LockAttempt::Locked(_)));
        let modes = modes_below(&world.path());
        for name in [
            "registry.db",
            "registry.db-wal",
            "registry.db-shm",
            "held-back",
            "launch",
            "lock",
            "report.json",
        ] {
            assert!(modes.iter().any(|(path, _)| path.ends_with(name)), "{name} was not checked");
        }
        for (path, mode) in modes {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{} under umask {umask:03o}", path.display());
        }
    }
}
