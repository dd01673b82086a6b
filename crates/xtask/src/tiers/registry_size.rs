//! L10: a registry of a hundred thousand finished tasks must not slow anything down.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use serde_json::{Value, json};

use super::Trial;
use super::bulk::{submit_all, wait_all_started};
use crate::clock::{milliseconds, sleep, wall_ms};
use crate::engine_calls::{database_files, import_ended_tasks};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::server::handle::Server;
use crate::testbed::Testbed;

const TASKS: usize = 100_000;
const EVENTS_EACH: usize = 50;
const CALLS: usize = 200;
const MIN_CALLS: usize = 20;
const CALLS_TIMEOUT: Duration = Duration::from_secs(20);
const HOUR_MS: i64 = 60 * 60 * 1000;
/// Half of the tasks ended that long ago, the others within the last day.
const OLD_HOURS: i64 = 720;
const MAX_AGE_HOURS: i64 = 240;
const SLOTS: usize = 2;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let tasks = trial.scaled(TASKS, 200);
    let testbed = trial.testbed(SLOTS)?;
    fill_registry(trial, &testbed, tasks)?;
    let size =
        fs::metadata(testbed.state_dir().join("registry.db")).map_or(f64::NAN, |file| file.len() as f64);
    let agent = testbed.agent("silent", &json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]))?;
    let started = Instant::now();
    let server = testbed.server()?;
    server.status()?;
    let start = started.elapsed();
    let mut server_status = measure_repeatedly(trial, || server.status().map(drop))?;
    let mut cold_status_ms = measure_repeatedly(trial, || cold_status(&testbed, &agent))?;
    // With all slots taken, a submit only writes the task to the registry.
    let holders = submit_all(&server, &[agent.as_path(); SLOTS])?;
    wait_all_started(trial, &testbed, &holders)?;
    let mut submits_before = measure_repeatedly(trial, || server.submit(&agent, "wait", None).map(drop))?;
    let (cleanup_seconds, mut submits_during) = clean_while_submitting(trial, &testbed, &server, &agent)?;
    let left =
        testbed.engine().registry()?.ended_before(wall_ms() - MAX_AGE_HOURS * HOUR_MS, u32::MAX)?.len();
    let directories = fs::read_dir(testbed.state_dir().join("tasks")).map_or(0, Iterator::count);
    let expected = tasks - tasks / 2 + SLOTS + submits_before.len() + submits_during.len();
    Ok(vec![
        Figure::count("finished tasks", tasks),
        Figure::unbounded("size of the database", size / f64::from(1 << 20), "MiB"),
        Figure::at_most(2.0, "server start to its first status", start.as_secs_f64(), "s"),
        Figure::at_most(50.0, "status of a server, p99", percentile(&mut server_status, 99.0), "ms"),
        Figure::at_most(50.0, "status as a cold call, p50", percentile(&mut cold_status_ms, 50.0), "ms"),
        Figure::at_most(50.0, "status as a cold call, p99", percentile(&mut cold_status_ms, 99.0), "ms"),
        Figure::unbounded("submit before the cleanup, longest", percentile(&mut submits_before, 100.0), "ms"),
        Figure::at_most(30.0, format!("cleanup of {}", tasks / 2), cleanup_seconds, "s"),
        Figure::count("submits meanwhile", submits_during.len()),
        Figure::unbounded("submit meanwhile, p99", percentile(&mut submits_during, 99.0), "ms"),
        Figure::at_most(100.0, "submit meanwhile, longest", percentile(&mut submits_during, 100.0), "ms"),
        Figure::must_be_zero("old tasks left", left),
        Figure::must_be_zero(
            "difference from the expected number of directories",
            directories.abs_diff(expected),
        ),
    ])
}

/// Fills the registry in memory, where syncing is free, then copies it to the disk and writes every task's files.
fn fill_registry(trial: &Trial, testbed: &Testbed, tasks: usize) -> Result<(), LoadError> {
    let memory = Path::new("/dev/shm");
    let scratch = ScratchDir(
        if memory.is_dir() { memory } else { testbed.root() }.join(format!("load-{}", std::process::id())),
    );
    let now_ms = wall_ms();
    let ended_at = |index: usize| {
        let spread_ms = i64::try_from(index % 1000).unwrap_or(0) * HOUR_MS / 50;
        if index < tasks / 2 { now_ms - OLD_HOURS * HOUR_MS - spread_ms } else { now_ms - spread_ms }
    };
    let ended_at_ms: Vec<i64> = (0..tasks).map(ended_at).collect();
    let ids = import_ended_tasks(&scratch.0, &testbed.project(), &ended_at_ms, &mut trial.random())?;
    let move_error = || LoadError::io("move the registry to the disk");
    fs::create_dir_all(testbed.state_dir().join("tasks")).map_err(move_error())?;
    for file in database_files(&scratch.0) {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, testbed.state_dir().join(name)).map_err(move_error())?;
    }
    let events: String = (1..=EVENTS_EACH)
        .map(|number| {
            let item = json!({"id": format!("item_{number}"), "type": "agent_message", "text": format!("event {number}")});
            format!("{}\n", json!({"type": "item.completed", "item": item}))
        })
        .collect();
    for id in &ids {
        trial.deadline.check("writing the tasks' files")?;
        write_task_files(testbed, id, &events).map_err(move_error())?;
    }
    rustix::fs::sync();
    Ok(())
}

fn write_task_files(testbed: &Testbed, id: &TaskId, events: &str) -> std::io::Result<()> {
    let folder = testbed.state_dir().join("tasks").join(id.as_str());
    fs::create_dir(&folder)?;
    fs::write(folder.join("events.jsonl"), events)?;
    fs::write(folder.join("stderr.log"), "")?;
    fs::write(folder.join("lock"), "")
}

/// A directory that is removed on drop.
struct ScratchDir(PathBuf);

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Durations of repeated calls in milliseconds, bounded in count and time.
fn measure_repeatedly(
    trial: &Trial,
    mut action: impl FnMut() -> Result<(), LoadError>,
) -> Result<Vec<f64>, LoadError> {
    let (started, mut latencies) = (Instant::now(), Vec::new());
    while latencies.len() < CALLS && (started.elapsed() < CALLS_TIMEOUT || latencies.len() < MIN_CALLS) {
        trial.deadline.check("measuring calls")?;
        latencies.push(measure_ms(&mut action)?);
    }
    Ok(latencies)
}

fn measure_ms(action: impl FnOnce() -> Result<(), LoadError>) -> Result<f64, LoadError> {
    let started = Instant::now();
    action()?;
    Ok(milliseconds(started.elapsed()))
}

fn cold_status(testbed: &Testbed, agent: &Path) -> Result<(), LoadError> {
    let output =
        testbed.cli_call(agent, &["local", "status"]).output().map_err(LoadError::io("call the program"))?;
    if output.status.success() { Ok(()) } else { Err(program_error("local status", &output.stdout)) }
}

fn program_error(program: &str, output: &[u8]) -> LoadError {
    LoadError::Program { program: program.to_owned(), output: String::from_utf8_lossy(output).into_owned() }
}

/// Duration of the cleanup in seconds, and of every submit meanwhile in milliseconds. A failed cleanup took forever.
fn clean_while_submitting(
    trial: &Trial,
    testbed: &Testbed,
    server: &Server,
    agent: &Path,
) -> Result<(f64, Vec<f64>), LoadError> {
    let done = AtomicBool::new(false);
    let deadline = &trial.deadline;
    std::thread::scope(|scope| {
        let submits = scope.spawn(|| -> Result<Vec<f64>, LoadError> {
            let mut latencies = Vec::new();
            while !done.load(Ordering::Relaxed) {
                deadline.check("submitting meanwhile")?;
                latencies.push(measure_ms(|| server.submit(agent, "wait", None).map(drop))?);
                sleep(Duration::from_millis(10));
            }
            Ok(latencies)
        });
        let started = Instant::now();
        let hours = MAX_AGE_HOURS.to_string();
        let args = ["cleanup-registry", "--old-task-max-age-hours", &hours];
        let output = testbed.cli_call(agent, &args).stderr(Stdio::piped()).output();
        let elapsed = started.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let latencies = submits.join().unwrap_or(Err(LoadError::ServerGone))?;
        let output = output.map_err(LoadError::io("run the cleanup"))?;
        if output.status.success() {
            return Ok((elapsed, latencies));
        }
        let response: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        trial.note(format!("cleanup-registry failed: {}", response["error"]["message"]));
        Ok((f64::INFINITY, latencies))
    })
}
