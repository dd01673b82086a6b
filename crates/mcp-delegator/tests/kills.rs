//! `kill -9` at random moments: of whoever submits, and of the supervisor.
//!
//! Whatever is killed whenever, an acknowledged task is never lost, never started twice, and what it left is ended.
//! `KILLS=100` makes more rounds; `KILL_SEED` repeats a run.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as expected")]
#![expect(clippy::disallowed_methods, reason = "developers choose how many rounds, and which")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use delegator_testkit::program::{World, finished};
use delegator_testkit::stage::{Stage, pids};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A small generator: the same seed, the same moments.
struct Moments(u64);

impl Moments {
    fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        most.mul_f64((self.0 >> 33) as f64 / (1_u64 << 31) as f64)
    }
}

/// Passes time without giving the processor away: the moment is the point.
fn until(moment: Instant) {
    while Instant::now() < moment {
        std::hint::spin_loop();
    }
}

/// A stage on which every start of the agent is counted.
struct Counted {
    world: World,
    starts: PathBuf,
    _folder: tempfile::TempDir,
}

impl Counted {
    /// Every start of the agent is written down with its mark, then it works for a moment.
    fn new(work_ms: u64) -> Counted {
        // Where it writes them is known before the world is.
        let folder = tempfile::tempdir().unwrap();
        let starts = folder.path().join("starts");
        let prelude = format!("echo \"$DELEGATOR_TASK\" >> {}", starts.display());
        let steps = json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"delay_ms": work_ms},
            {"message": "done"}, {"turn_completed": {}}
        ]);
        let stage = Stage::playing_after(&prelude, env!("CARGO_BIN_EXE_mcp-delegator"), steps);
        Counted { world: stage.world, starts, _folder: folder }
    }

    fn starts(&self) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for line in std::fs::read_to_string(&self.starts).unwrap_or_default().lines() {
            *counted.entry(line.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        counted
    }

    fn end_of(&self, id: &str) -> Value {
        self.world.run(["local", "wait", id, "--timeout-sec", "60"]).json()["data"].clone()
    }

    /// The supervisors that run now.
    fn supervisors(&self) -> Vec<i32> {
        pids()
            .into_iter()
            .filter(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let home = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("\0supervise\0T-local-")
                    && String::from_utf8_lossy(&home).contains(self.world.home().to_str().unwrap())
            })
            .collect()
    }
}

#[test]
fn a_killed_submitter_loses_nothing_it_acknowledged() {
    let (rounds, seed) = (number("KILLS", 20), number("KILL_SEED", 1));
    let (stage, mut moments) = (Counted::new(30), Moments(seed));
    // Ask once beforehand, so that the version is known and the moments fall into the submission itself.
    stage.world.run(["local", "run", "first"]);
    let mut acknowledged = Vec::new();
    for _ in 0..rounds {
        let mut command = stage.world.command(["local", "exec", "do it"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        until(Instant::now() + moments.up_to(Duration::from_millis(120)));
        let _ = child.kill();
        let run = finished(child);
        if let Ok(answer) = serde_json::from_str::<Value>(&run.stdout) {
            acknowledged.push(answer["data"]["task_id"].as_str().unwrap().to_owned());
        }
    }
    for id in &acknowledged {
        assert_eq!(stage.end_of(id)["state"], "completed", "seed {seed}");
    }
    // Also those whose submitter never got to say so: they are there, and they end.
    let status = stage.world.run(["local", "status", "--limit", "1000"]).json();
    for task in
        status["data"]["tasks"].as_array().unwrap().iter().chain(status["data"]["queue"].as_array().unwrap())
    {
        assert_eq!(stage.end_of(task["task_id"].as_str().unwrap())["state"], "completed", "seed {seed}");
    }
    assert!(stage.starts().values().all(|count| *count == 1), "seed {seed}: {:?}", stage.starts());
    eprintln!("submitters killed: {rounds}, acknowledged: {}, lost: 0, started twice: 0", acknowledged.len());
}

#[test]
fn a_killed_supervisor_is_one_start_and_a_visible_end() {
    let (rounds, seed) = (number("KILLS", 20), number("KILL_SEED", 1));
    let (stage, mut moments) = (Counted::new(120), Moments(seed));
    stage.world.run(["local", "run", "first"]);
    let (mut lost, mut completed) = (0, 0);
    for _ in 0..rounds {
        let answer =
            stage.world.run(["local", "exec", "do it", "--idempotency-key", &format!("{lost}-{completed}")]);
        let id = answer.json()["data"]["task_id"].as_str().unwrap().to_owned();
        until(Instant::now() + moments.up_to(Duration::from_millis(200)));
        for pid in stage.supervisors() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        let data = stage.end_of(&id);
        match (data["state"].as_str(), data["metadata"]["error_context"]["failure_kind"].as_str()) {
            (Some("completed"), _) => completed += 1,
            (Some("failed"), Some("supervisor_lost")) => lost += 1,
            other => panic!("seed {seed}: {other:?} {data}"),
        }
        assert!(stage.starts().get(&id).copied().unwrap_or(0) <= 1, "seed {seed}: started twice");
    }
    eprintln!(
        "supervisors killed: {rounds}, ended as lost: {lost}, completed before: {completed}, started twice: 0"
    );
}
