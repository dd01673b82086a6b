//! Crashes around files outside the registry: restore points, and the temporary directory of an enclosed agent.

use std::path::PathBuf;

use delegator_domain::crash::CrashPoint;
use delegator_registry::TaskFile;
use delegator_testkit::program::read_text;

use super::{Stage, git};
use crate::scripted::wait_until;

/// The undo point is recorded before the first change; neither is lost.
pub(super) fn crash_during_restore(stage: &mut Stage, name: &str) {
    let git = |args: &[&str]| stage.world.run_as(&PathBuf::from("/usr/bin/git"), args);
    assert_eq!(git(&["init", "--quiet"]).exit, Some(0));
    stage.world.write("project/code.txt", "mine\n");
    stage.release_agent();
    let response = stage.run_json(&["local", "exec", "do it", "--mode", "workspace-write"]);
    let id = stage.acknowledge(&response);
    stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
    stage.world.write("project/code.txt", "later\n");
    stage.crash(name, &["restore", &id, "--all", "--confirm-destructive"]);
    let code = || read_text(&stage.world.project().join("code.txt"));
    assert_eq!(code(), "later\n", "nothing was changed before the crash");
    for (args, expected) in [(&["--all"], "mine\n"), (&["--undo"], "later\n")] {
        let args = [&["restore", &id, "--confirm-destructive"], args.as_slice()].concat();
        assert_eq!(stage.run_json(&args)["data"]["is_restored"], true);
        assert_eq!(code(), expected);
    }
}

/// A supervisor that crashes after it created a restore point leaves the files unchanged, and the point is listed.
pub(super) fn crash_writing_supervisor(stage: &mut Stage, name: &str, point: CrashPoint) {
    git(stage, &["init", "--quiet"]);
    stage.release_agent();
    stage.world.write("project/code.txt", "mine\n");
    let output = stage.run_with_crash_point(name, &["local", "exec", "do it", "--mode", "workspace-write"]);
    let response =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let id = stage.acknowledge(&response);
    wait_until("the supervisor has crashed", || stage.crashes() > 0);
    let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
    assert_eq!(waited["data"]["state"], "failed", "{waited}");
    assert_eq!(read_text(&stage.world.project().join("code.txt")), "mine\n");
    let listed = stage.run_json(&["restore", "--list"]);
    assert!(listed.to_string().contains(&id), "{listed}");
    // Only the whole tree can be restored without the state after the task.
    let changes = stage.run_json(&["restore", &id, "--dry-run"]);
    assert_eq!(changes["ok"], point == CrashPoint::EndStateStored, "{name}: {changes}");
    assert_eq!(stage.run_json(&["restore", &id, "--all", "--dry-run"])["ok"], true, "{name}");
}

/// The rescue removes the temporary directory of the agent.
pub(super) fn crash_enclosing_supervisor(stage: &mut Stage, name: &str) {
    let agents = "[agents.helper]\nprotocol = \"plain\"\ncommand = [\"/bin/cat\"]\n";
    stage.world.write("home/.config/mcp-delegator/config.toml", agents);
    let output = stage.run_with_crash_point(name, &["local", "exec", "do it", "--agent", "helper"]);
    let response =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let id = stage.acknowledge(&response);
    wait_until("the supervisor has crashed", || stage.crashes() > 0);
    let recorded = stage.state_dir().task(&id.parse().unwrap()).file(TaskFile::TemporaryDir);
    let temporary = PathBuf::from(read_text(&recorded));
    assert!(temporary.is_dir(), "{}", temporary.display());
    let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "60"]);
    assert_eq!(waited["data"]["state"], "failed", "{waited}");
    assert!(!temporary.exists(), "{}", temporary.display());
}
