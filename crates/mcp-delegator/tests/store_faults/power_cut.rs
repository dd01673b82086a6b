//! F33, L8: a power cut loses nothing that was acknowledged.
//!
//! The state directory is on an ext4 image of its own, mounted through a loop device. At a random moment everything that
//! runs is killed, and what the image holds *then* is taken: the mount stays, so whatever was only in memory is not in
//! it. That is a disk whose power failed, and which keeps what it has reported as written; what a disk with a cache of
//! its own may lose between two flushes is not shown. `CUTS=20` makes more cuts, `CUT_SEED` repeats a run.

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

/// Mounts are made in a namespace of their own: whatever becomes of the test, they go with it.
#[test]
fn f33_a_power_cut_loses_nothing_that_was_acknowledged() {
    let (cuts, seed) = (env_number("CUTS", 4), env_number("CUT_SEED", 1));
    if std::env::var_os(INNER_RUN_VARIABLE).is_some() {
        for round in 0..cuts {
            let told = cut_once(seed.wrapping_mul(1_000).wrapping_add(round));
            eprintln!("cut {round}: {told}");
        }
        return;
    }
    if !may_mount() {
        eprintln!("f33 was not run: no loop device may be mounted here");
        return;
    }
    let name = "power_cut::f33_a_power_cut_loses_nothing_that_was_acknowledged";
    let output = Command::new("unshare")
        .arg("--mount")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INNER_RUN_VARIABLE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    eprintln!("{said}");
}

fn may_mount() -> bool {
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

/// What was promised before the cut.
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
    // Words in several writes, so that there is a line to be torn.
    let steps = successful_turn(&[json!({"events": {"count": 40, "per_second": 400}})]);
    let stage = Stage::with_state_dir(steps, Some(&state), "").variable("MCP_DELEGATOR_MAX_CONCURRENT", "3");
    let promised = Mutex::new(Acknowledged::default());
    let (over, cut) = (Mutex::new(false), folder.path().join("cut"));
    let moment = Duration::from_millis(300 + mix_seed(seed) % 1_500);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| submit_until_cut(&stage, &over, &promised));
        }
        let begun = Instant::now();
        // The moment is the point; and there must be something to lose.
        wait_until(|| begun.elapsed() >= moment && promised.lock().unwrap().submitted.len() >= 3);
        *over.lock().unwrap() = true;
        kill_everything(&stage);
        std::fs::write(disk.at.join("unsynced"), "x".repeat(10_000)).unwrap();
        std::fs::write(&cut, image_content(&original)).unwrap();
    });
    // A caller that had its answer in the pipe when it was killed was given it before the cut, too.
    let promised = promised.into_inner().unwrap();
    drop(disk);
    check_recovery(&stage, &cut, &folder.path().join("disk"), &promised)
}

/// Spreads seeds that follow each other.
fn mix_seed(seed: u64) -> u64 {
    (seed ^ (seed >> 3)).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 33
}

/// Submits and waits until it is over; notes what was answered.
fn submit_until_cut(stage: &Stage, over: &Mutex<bool>, promised: &Mutex<Acknowledged>) {
    // Whoever is started has become the program when this returns, and can be found by whoever says that it is over.
    let call = |args: &[&str]| {
        let over = over.lock().unwrap();
        let mut command = stage.world.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = (!*over).then(|| command.spawn().unwrap());
        drop(over);
        let told: Value = serde_json::from_str(&wait_for_output(child?).stdout).ok()?;
        Some(told["data"].clone())
    };
    while let Some(told) = call(&["local", "exec", "do it"]) {
        let id = told["task_id"].as_str().unwrap().to_owned();
        promised.lock().unwrap().submitted.push(id.clone());
        if call(&["local", "wait", &id]).is_some_and(|told| told["state"] == "completed") {
            promised.lock().unwrap().completed.push(id);
        }
    }
}

/// All at once, as far as that goes: until nobody is found twice. One that is dead has no environment to be found by.
fn kill_everything(stage: &Stage) {
    let mut found_nobody = 0;
    wait_until(|| {
        let alive = stage_processes(stage);
        for pid in &alive {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        found_nobody = if alive.is_empty() { found_nobody + 1 } else { 0 };
        found_nobody == 2
    });
}

/// What the image holds at one moment: read until two readings agree, because the kernel may be writing.
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

/// Looks at what the cut left with the program, and holds it to what was promised.
fn check_recovery(stage: &Stage, cut: &Path, at: &Path, promised: &Acknowledged) -> String {
    let disk = Disk::mount(cut, at);
    let unsynced = std::fs::read(disk.at.join("unsynced")).unwrap_or_default();
    assert!(unsynced.is_empty(), "what was only in memory is in the image: this is no power cut");
    let found = StateDir::find(
        stage.state_dir(),
        &OpenOptions { check: IntegrityCheck::Full, ..OpenOptions::default() },
    );
    let registry = Registry::find(&found.unwrap().unwrap()).unwrap().unwrap();
    registry.check().unwrap();
    for id in &promised.completed {
        let task = registry.get(&id.parse().unwrap()).unwrap();
        let state = task.map(|task| task.state.name());
        assert_eq!(state, Some("completed"), "a terminal state was lost: {id}");
    }
    drop(registry);
    let mut lost = 0;
    for id in &promised.submitted {
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
    let (submitted, completed) = (promised.submitted.len(), promised.completed.len());
    format!("{submitted} acknowledged, {completed} had completed, {lost} ended as lost by the cut, 0 missing")
}

/// Half a line at the end of the events: whoever ends the lost task cuts it, and every reader copes before and after.
#[test]
fn f33_a_torn_last_event_is_truncated_on_rescue() {
    let stage = Stage::with_script(successful_turn(&[]));
    let mut registry = stage.registry();
    let claimed = old_tasks::abandoned_task(&mut registry, old_tasks::now_ms());
    let id = claimed.task.id.as_str().to_owned();
    let dir = registry.dir().task(&claimed.task.id);
    let whole = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    dir.write(TaskFile::Events, format!("{whole}{{\"type\":\"item.comp").as_bytes()).unwrap();
    // While somebody holds its lock it lives, and nobody touches its files.
    let LockAttempt::Locked(life) = dir.try_lock().unwrap() else { panic!("its lock is free") };
    let before = stage.run_json(&["events", "summarize", &id]);
    assert_eq!(before["ok"], true, "{before}");
    assert!(stage.run_json(&["logs", &id])["data"]["stdout"].as_str().unwrap().contains("turn.started"));
    assert!(read_text(&dir.file(TaskFile::Events)).ends_with("item.comp"), "a living task was touched");
    drop(life);
    let followed = stage.run(&["events", "follow", &id]);
    assert_eq!(followed.exit, Some(0), "{followed:?}");
    assert_eq!(read_text(&dir.file(TaskFile::Events)), whole);
    let results = stage.run_json(&["local", "results", &id, "--include-events", "--include-output"]);
    assert_eq!(results["data"]["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{results}");
    assert_eq!(results["data"]["events"]["items"].as_array().unwrap().len(), 2, "{results}");
}
