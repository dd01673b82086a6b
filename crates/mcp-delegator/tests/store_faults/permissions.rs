//! Permissions of the state directory: an open one is tightened, a foreign one is refused, and under any umask every
//! file is 0600 and every directory 0700, including sockets and the files of SQLite.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use delegator_registry::TaskFile;
use delegator_testkit::program::RunOutput;
use serde_json::json;

use crate::stage::{Stage, successful_turn, write_program};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// The paths that `find -perm /077` would print.
fn open_to_others(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        if mode(&path) & 0o077 != 0 {
            found.push((path.clone(), mode(&path)));
        }
    }
    found
}

/// Runs the program under umask 000.
fn run_with_umask_000(stage: &Stage, args: &[&str]) -> RunOutput {
    let text = format!("#!/bin/sh\numask 000\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_mcp-delegator"));
    let open = write_program(&stage.world, "bin/open", &text);
    stage.world.run_as(&open, args)
}

/// Runs a task and checks all permissions while it runs and after it ended; returns its control socket.
fn assert_all_private(stage: &Stage) -> PathBuf {
    let schema = json!({"type": "object"}).to_string();
    let run = run_with_umask_000(stage, &["local", "exec", "do it", "--output-schema", &schema]);
    let id = run.json()["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{run:?}")).to_owned();
    stage.wait_for_project_file("ready");
    // `doctor` caches the agent's version in the state directory, once it exists.
    let doctor = run_with_umask_000(stage, &["doctor"]);
    assert!(doctor.stdout.contains("version 0.166.0"), "{doctor:?}");
    let registry = stage.registry();
    let dir = registry.dir().task(&id.parse().unwrap());
    crate::stage::wait_until(|| dir.file(TaskFile::Snapshot).exists());
    let socket = dir.published_socket().unwrap().unwrap();
    assert_eq!(mode(&socket), 0o600, "{}", socket.display());
    assert_eq!(mode(socket.parent().unwrap()), 0o700, "{}", socket.display());
    for name in ["registry.db", "registry.db-wal", "registry.db-shm", "held-back", "agents.json"] {
        assert!(stage.state_dir().join(name).exists(), "{name} does not exist");
    }
    assert_eq!(open_to_others(stage.state_dir()), [], "while the task runs");
    assert_eq!(open_to_others(socket.parent().unwrap()), [], "in the directory of the socket");
    assert_eq!(
        mode(&stage.world.project().join("ready")),
        0o666,
        "the agent must have the umask of the submitter"
    );
    stage.touch("go");
    assert_eq!(stage.wait_for_end(&id)["state"], "completed");
    assert_eq!(open_to_others(stage.state_dir()), [], "after the task ended");
    socket
}

fn waiting_turn() -> serde_json::Value {
    successful_turn(&[
        json!({"message": "so far"}),
        json!({"touch_file": "ready"}),
        json!({"wait_for_file": "go"}),
    ])
}

#[test]
fn f38_everything_is_private_under_umask_000() {
    let stage = Stage::with_script(waiting_turn());
    let socket = assert_all_private(&stage);
    assert!(socket.starts_with(stage.state_dir()), "{}", socket.display());
}

/// If the path is too long for a socket, the socket is in a directory outside of the state directory.
#[test]
fn f38_a_socket_outside_the_state_directory_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::with_state_dir(waiting_turn(), Some(&folder.path().join("d".repeat(100))), "");
    let socket = assert_all_private(&stage);
    assert!(!socket.starts_with(stage.state_dir()), "{}", socket.display());
    assert!(!socket.exists(), "the socket was left behind");
    // There is one such directory per state directory; it must be empty now.
    fs::remove_dir(socket.parent().unwrap()).unwrap();
}

#[test]
fn f38_permissions_of_the_state_directory_are_tightened() {
    let stage = Stage::with_script(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait_for_end(&id);
    for name in ["", "tasks", "registry.db"] {
        fs::set_permissions(stage.state_dir().join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    // A read-only command tightens them.
    stage.run_json(&["local", "status"]);
    assert_eq!(open_to_others(stage.state_dir()), []);
}

#[track_caller]
fn assert_refused(stage: &Stage, why: &str) {
    for args in [&["local", "exec", "do it"][..], &["local", "status"], &["cleanup-registry"]] {
        let run = stage.run(args);
        let message = run.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(run.exit, Some(4), "{args:?}: {run:?}");
        assert!(message.contains(stage.state_dir().to_str().unwrap()) && message.contains(why), "{message}");
    }
}

#[test]
fn f38_a_symlinked_state_directory_is_refused() {
    let stage = Stage::with_script(successful_turn(&[]));
    let real = stage.world.home().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, stage.state_dir()).unwrap();
    assert_refused(&stage, "symbolic link");
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "something was written through the link");
}

#[test]
fn f38_a_state_directory_of_another_user_is_refused() {
    let stage = Stage::with_script(successful_turn(&[]));
    fs::create_dir(stage.state_dir()).unwrap();
    fs::set_permissions(stage.state_dir(), fs::Permissions::from_mode(0o777)).unwrap();
    if std::os::unix::fs::chown(stage.state_dir(), Some(65_534), None).is_err() {
        eprintln!("f38 was not run for a foreign directory: only root can change its owner");
        return;
    }
    assert_refused(&stage, "belongs to user 65534");
    assert_eq!((mode(stage.state_dir()), fs::read_dir(stage.state_dir()).unwrap().count()), (0o777, 0));
}
