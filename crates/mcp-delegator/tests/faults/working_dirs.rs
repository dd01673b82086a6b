//! Working directories: the directory a task runs in is the one that was checked, even if its name changes meanwhile.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use delegator_testkit::stage::{Stage, successful_turn};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::{PROGRAM, scripted_stage};

/// A stage with one allowed root, and a directory outside of it.
fn with_allowed_root(stage: Stage) -> Stage {
    for folder in ["roots/inside", "outside"] {
        std::fs::create_dir_all(stage.root().join(folder)).unwrap();
    }
    let roots = stage.root().join("roots").display().to_string();
    stage.variable("MCP_DELEGATOR_ALLOWED_ROOTS", &roots)
}

#[test]
fn f52_an_invalid_working_directory_is_refused() {
    let stage = with_allowed_root(scripted_stage(successful_turn(&[])));
    let root = stage.root();
    std::fs::write(root.join("roots/file"), "").unwrap();
    symlink(root.join("outside"), root.join("roots/link")).unwrap();
    symlink("nowhere", root.join("roots/dangling")).unwrap();
    let cases = [
        ("roots/missing", 2),
        ("roots/file", 2),
        ("roots/dangling", 2),
        ("roots/inside\n", 2),
        ("roots/link", 7),
        ("roots/../outside", 7),
        ("roots/inside/../../outside", 7),
        ("outside", 7),
    ];
    for (path, exit) in cases {
        let path = root.join(path).display().to_string();
        let run = stage.world.run(["local", "exec", "x", "--working-dir", &path]);
        assert_eq!(run.exit, Some(exit), "{path}: {run:?}");
    }
    let nul = json!({"task": "x", "working_dir": "/tmp/a\u{0}b"}).to_string();
    let run = stage.world.run_with_input(["local", "exec", "--input-json", "-"], nul.as_bytes());
    assert_eq!(run.exit, Some(2), "{run:?}");
    let inside = root.join("roots/inside").display().to_string();
    let outside = root.join("outside").display().to_string();
    let run = stage.world.run(["local", "exec", "x", "--working-dir", &inside, "--add-dirs", &outside]);
    assert_eq!(run.exit, Some(7), "an additional directory is checked too: {run:?}");
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"], 0);
    assert_eq!(stage.world.run(["local", "run", "x", "--working-dir", &inside]).exit, Some(0));
}

#[test]
fn f52_a_deleted_working_directory_fails_only_its_task() {
    let stage =
        with_allowed_root(scripted_stage(successful_turn(&[json!({"command": {"run": "rm -rf \"$PWD\""}})])));
    let inside = stage.root().join("roots/inside");
    let run = stage.world.run(["local", "run", "x", "--working-dir", inside.to_str().unwrap()]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(!inside.exists());
    // The directory is deleted between submit and start.
    std::fs::create_dir(&inside).unwrap();
    let stage = stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    stage.set_script(successful_turn(&[json!({"wait_for_file": "go"})]));
    let roots = inside.parent().unwrap().to_str().unwrap().to_owned();
    let first = stage.exec(&["--working-dir", &roots]);
    let second = stage.exec(&["--working-dir", inside.to_str().unwrap()]);
    std::fs::remove_dir(&inside).unwrap();
    std::fs::write(inside.parent().unwrap().join("go"), "").unwrap();
    assert_eq!(stage.wait(&first)["data"]["state"], "completed");
    let data = stage.wait(&second)["data"].clone();
    assert_eq!(data["state"], "failed", "{data}");
    assert_eq!(stage.world.run(["local", "run", "x", "--working-dir", &roots]).exit, Some(0));
}

#[test]
fn f52_a_swapped_directory_starts_no_agent_outside_the_roots() {
    const STARTS: usize = 120;
    let agent = "pwd -P >> ../../dirs\npwd -P >> ../dirs\n\
        echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; echo '{\"type\":\"turn.started\"}'\n\
        echo '{\"type\":\"turn.completed\",\"usage\":{}}'";
    let stage = with_allowed_root(Stage::with_shell_agent(PROGRAM, agent))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "4");
    let root = stage.root();
    // The requested path alternates between the directory and a symlink that leads out of the root.
    symlink(root.join("outside"), root.join("roots/other")).unwrap();
    let (name, other) = (root.join("roots/inside"), root.join("roots/other"));
    let requested = name.display().to_string();
    let (is_done, swaps, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                renameat_with(CWD, &name, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let lanes = [(); 2].map(|()| {
            scope.spawn(|| {
                for _ in 0..STARTS / 2 {
                    let run = stage.world.run(["local", "run", "x", "--working-dir", &requested]);
                    refused.fetch_add(u64::from(run.exit != Some(0)), Ordering::Relaxed);
                }
            })
        });
        for lane in lanes {
            lane.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let (swaps, refused) = (swaps.into_inner(), refused.into_inner());
    assert!(swaps > 10_000, "{swaps} swaps are too few");
    assert!(refused > 0 && refused < STARTS as u64, "{refused} of {STARTS} were refused: there was no race");
    // Each agent wrote its directory one level and two levels up.
    let recorded =
        ["dirs", "roots/dirs"].map(|file| std::fs::read_to_string(root.join(file)).unwrap_or_default());
    for line in recorded.concat().lines() {
        assert!(std::path::Path::new(line).starts_with(root.join("roots").canonicalize().unwrap()), "{line}");
    }
    assert!(recorded.concat().lines().count() > 0, "no agent was started");
}
