//! Power cuts: nothing that was acknowledged is lost.
//!
//! The state directory is on an ext4 image mounted through a loop device. At a random moment every process is killed and
//! the image is copied while it is still mounted, so data that was only in memory is not in the copy. This models a disk
//! that keeps everything it reported as written; losses of a disk with a volatile cache are not tested. `CUTS=20` makes
//! more cuts, `CUT_SEED` repeats a run.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use delegator_registry::{IntegrityCheck, LockAttempt, OpenOptions, Registry, StateDir, TaskFile};
use delegator_testkit::program::{read_text, wait_for_output};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::old_tasks;
use crate::stage::{Stage, env_number, stage_processes, successful_turn, wait_until};

const INNER_RUN_VARIABLE: &str = "STORE_TEST_OWN_MOUNTS";
const IMAGE_BYTES: u64 = 64 * 1024 * 1024;

/// Mounts are made in a mount namespace of their own, which ends with the test.
#[test]
fn f33_a_power_cut_loses_nothing_that_was_acknowledged() {
    let (cuts, seed) = (env_number("CUTS", 4), env_number("CUT_SEED", 1));
    if std::env::var_os(INNER_RUN_VARIABLE).is_some() {
        for round in 0..cuts {
            let summary = cut_once(seed.wrapping_mul(1_000).wrapping_add(round));
            eprintln!("cut {round}: {summary}");
        }
        return;
    }
    assert!(may_mount(), "this process cannot mount a loop device; `scripts/test` leaves this test out then");
    let name = "power_cut::f33_a_power_cut_loses_nothing_that_was_acknowledged";
    let output = Command::new("unshare")
        .arg("--mount")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INNER_RUN_VARIABLE, "1")
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}");
    eprintln!("{output_text}");
}

fn may_mount() -> bool {
    if !rustix::process::geteuid().is_root() {
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = create_image(&folder.path().join("image"));
    let script = "mount -o loop \"$1\" \"$2\"";
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([&image, folder.path()])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

fn run_successfully(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn create_image(path: &Path) -> PathBuf {
    std::fs::File::create(path).unwrap().set_len(IMAGE_BYTES).unwrap();
    run_successfully(Command::new("mkfs.ext4").args(["-q", "-J", "size=4"]).arg(path));
    path.to_owned()
}

/// A mounted image; unmounted when dropped.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(image: &Path, at: &Path) -> Disk {
        std::fs::create_dir_all(at).unwrap();
        run_successfully(Command::new("mount").args(["-o", "loop"]).args([image, at]));
        Disk { at: at.to_owned() }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

/// Tasks whose submit or completion was acknowledged before the cut.
#[derive(Default)]
struct Acknowledged {
    submitted: Vec<String>,
    completed: Vec<String>,
}

fn cut_once(seed: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let original = create_image(&folder.path().join("image"));
    let disk = Disk::mount(&original, &folder.path().join("disk"));
    let state = disk.at.join("state");
    // Many small writes, so that the last line can be torn.
    let steps = successful_turn(&[json!({"events": {"count": 40, "per_second": 400}})]);
    let stage = Stage::with_state_dir(steps, Some(&state), "").variable("MCP_DELEGATOR_MAX_CONCURRENT", "3");
    let acknowledged = Mutex::new(Acknowledged::default());
    let (is_done, cut) = (Mutex::new(false), folder.path().join("cut"));
    let moment = Duration::from_millis(300 + mix_seed(seed) % 1_500);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| submit_until_cut(&stage, &is_done, &acknowledged));
        }
        let start = Instant::now();
        // Cut at the chosen moment, but not before some tasks were acknowledged.
        wait_until(|| start.elapsed() >= moment && acknowledged.lock().unwrap().submitted.len() >= 3);
        *is_done.lock().unwrap() = true;
        kill_everything(&stage);
        std::fs::write(disk.at.join("unsynced"), "x".repeat(10_000)).unwrap();
        std::fs::write(&cut, image_content(&original)).unwrap();
    });
    // Responses that were in the pipe when the caller was killed were acknowledged before the cut, too.
    let acknowledged = acknowledged.into_inner().unwrap();
    drop(disk);
    check_recovery(&stage, &cut, &folder.path().join("disk"), &acknowledged)
}

/// Spreads consecutive seeds.
fn mix_seed(seed: u64) -> u64 {
    (seed ^ (seed >> 3)).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 33
}

/// Submits and waits until the cut; records what was acknowledged.
fn submit_until_cut(stage: &Stage, is_done: &Mutex<bool>, acknowledged: &Mutex<Acknowledged>) {
    // The lock is held during spawn, so that the thread that ends the round finds every child process.
    let call = |args: &[&str]| {
        let is_done = is_done.lock().unwrap();
        let mut command = stage.world.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = (!*is_done).then(|| command.spawn().unwrap());
        drop(is_done);
        let data: Value = serde_json::from_str(&wait_for_output(child?).stdout).ok()?;
        Some(data["data"].clone())
    };
    while let Some(data) = call(&["local", "exec", "do it"]) {
        let id = data["task_id"].as_str().unwrap().to_owned();
        acknowledged.lock().unwrap().submitted.push(id.clone());
        if call(&["local", "wait", &id]).is_some_and(|data| data["state"] == "completed") {
            acknowledged.lock().unwrap().completed.push(id);
        }
    }
}

/// Kills all processes of the stage until two scans in a row find none. A dead process has no environment, so it does
/// not count.
fn kill_everything(stage: &Stage) {
    let mut empty_scans = 0;
    wait_until(|| {
        let alive = stage_processes(stage);
        for pid in &alive {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        empty_scans = if alive.is_empty() { empty_scans + 1 } else { 0 };
        empty_scans == 2
    });
}

/// The content of the image: read until two readings are equal, because the kernel may still be writing.
fn image_content(image: &Path) -> Vec<u8> {
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(image).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let mut last = read();
    loop {
        let again = read();
        if again == last {
            return again;
        }
        last = again;
    }
}

/// Mounts the copy and compares its state, through the program, with what was acknowledged.
fn check_recovery(stage: &Stage, cut: &Path, at: &Path, acknowledged: &Acknowledged) -> String {
    let disk = Disk::mount(cut, at);
    let unsynced = std::fs::read(disk.at.join("unsynced")).unwrap_or_default();
    assert!(unsynced.is_empty(), "unsynced data is in the image: this is not a power cut");
    let found = StateDir::find(
        stage.state_dir(),
        &OpenOptions { check: IntegrityCheck::Full, ..OpenOptions::default() },
    );
    let registry = Registry::find(&found.unwrap().unwrap()).unwrap().unwrap();
    registry.check().unwrap();
    for id in &acknowledged.completed {
        let task = registry.get(&id.parse().unwrap()).unwrap();
        let state = task.map(|task| task.state.name());
        assert_eq!(state, Some("completed"), "a terminal state was lost: {id}");
    }
    drop(registry);
    let mut lost = 0;
    for id in &acknowledged.submitted {
        let end = stage.wait_for_end(id);
        match (end["state"].as_str(), end["metadata"]["error_context"]["failure_kind"].as_str()) {
            (Some("completed"), _) => {}
            (Some("failed"), Some("supervisor_lost")) => lost += 1,
            other => panic!("{id}: {other:?} {end}"),
        }
        let events = std::fs::read(stage.task_dir(id).join("events.jsonl")).unwrap_or_default();
        assert!(events.is_empty() || events.ends_with(b"\n"), "{id}: half a line was left");
    }
    assert_eq!(stage.run(&["local", "run", "after the cut"]).exit, Some(0));
    let (submitted, completed) = (acknowledged.submitted.len(), acknowledged.completed.len());
    format!("{submitted} acknowledged, {completed} had completed, {lost} ended as lost by the cut, 0 missing")
}

/// A torn last event line is truncated when the lost task is rescued; readers accept it before and after.
#[test]
fn f33_a_torn_last_event_is_truncated_on_rescue() {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    let claimed = old_tasks::abandoned_task(&mut registry, old_tasks::now_ms());
    let id = claimed.task.id.as_str().to_owned();
    let dir = registry.dir().task(&claimed.task.id);
    let whole_lines = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    dir.write(TaskFile::Events, format!("{whole_lines}{{\"type\":\"item.comp").as_bytes()).unwrap();
    // While the lock is held the task counts as live, and its files are not changed.
    let LockAttempt::Locked(lock) = dir.try_lock().unwrap() else { panic!("the task lock is held") };
    let before = stage.run_json(&["events", "summarize", &id]);
    assert_eq!(before["ok"], true, "{before}");
    assert!(stage.run_json(&["logs", &id])["data"]["stdout"].as_str().unwrap().contains("turn.started"));
    assert!(
        read_text(&dir.file(TaskFile::Events)).ends_with("item.comp"),
        "a file of a live task was changed"
    );
    drop(lock);
    let followed = stage.run(&["events", "follow", &id]);
    assert_eq!(followed.exit, Some(0), "{followed:?}");
    assert_eq!(read_text(&dir.file(TaskFile::Events)), whole_lines);
    let results = stage.run_json(&["local", "results", &id, "--include-events", "--include-output"]);
    assert_eq!(results["data"]["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{results}");
    assert_eq!(results["data"]["events"]["items"].as_array().unwrap().len(), 2, "{results}");
}
