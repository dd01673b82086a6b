//! L10: a registry of a hundred thousand finished tasks must not be noticed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use serde_json::{Value, json};

use super::Trial;
use super::crowd::{all_have_spoken, submit_all};
use crate::clock::{milliseconds, pause, wall_ms};
use crate::engine_calls::{database_files, fill};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::server::handle::Server;
use crate::stage::Stage;

const TASKS: usize = 100_000;
const EVENTS_EACH: usize = 50;
const CALLS: usize = 200;
const CALLS_AT_LEAST: usize = 20;
const CALLS_MAY_TAKE: Duration = Duration::from_secs(20);
const HOUR_MS: i64 = 60 * 60 * 1000;
/// Half of the tasks ended so long ago, the others within the last day.
const OLD_HOURS: i64 = 720;
const FORGET_AFTER_HOURS: i64 = 240;
const SLOTS: usize = 2;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let tasks = trial.scaled(TASKS, 200);
    let stage = trial.stage(SLOTS)?;
    furnish(trial, &stage, tasks)?;
    let size = fs::metadata(stage.state_dir().join("registry.db")).map_or(f64::NAN, |file| file.len() as f64);
    let agent = stage.agent("silent", &json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]))?;
    let begun = Instant::now();
    let server = stage.server()?;
    server.status()?;
    let start = begun.elapsed();
    let mut warm = again(trial, || server.status().map(drop))?;
    let mut cold = again(trial, || cold_status(&stage, &agent))?;
    // The slots are taken: a submit writes the task down and that is all.
    let holders = submit_all(&server, &[agent.as_path(); SLOTS])?;
    all_have_spoken(trial, &stage, &holders)?;
    let mut calm = again(trial, || server.submit(&agent, "wait", None).map(drop))?;
    let (cleaning, mut meanwhile) = clean(trial, &stage, &server, &agent)?;
    let left = stage.door().registry()?.old(wall_ms() - FORGET_AFTER_HOURS * HOUR_MS, u32::MAX)?.len();
    let directories = fs::read_dir(stage.state_dir().join("tasks")).map_or(0, Iterator::count);
    let expected = tasks - tasks / 2 + SLOTS + calm.len() + meanwhile.len();
    Ok(vec![
        Figure::count("finished tasks", tasks),
        Figure::told("size of the database", size / f64::from(1 << 20), "MiB"),
        Figure::at_most(2.0, "a server's start, to its first status", start.as_secs_f64(), "s"),
        Figure::at_most(50.0, "status of a server, p99", percentile(&mut warm, 99.0), "ms"),
        Figure::at_most(50.0, "status as a cold call, p50", percentile(&mut cold, 50.0), "ms"),
        Figure::at_most(50.0, "status as a cold call, p99", percentile(&mut cold, 99.0), "ms"),
        Figure::told("submit before the cleanup, longest", percentile(&mut calm, 100.0), "ms"),
        Figure::at_most(30.0, format!("cleanup of {}", tasks / 2), cleaning, "s"),
        Figure::count("submits meanwhile", meanwhile.len()),
        Figure::told("submit meanwhile, p99", percentile(&mut meanwhile, 99.0), "ms"),
        Figure::at_most(100.0, "submit meanwhile, longest", percentile(&mut meanwhile, 100.0), "ms"),
        Figure::none_of("old tasks left", left),
        Figure::none_of("directories too many or too few", directories.abs_diff(expected)),
    ])
}

/// Fills the registry where syncing costs nothing, then moves it to the disk and gives every task its files.
fn furnish(trial: &Trial, stage: &Stage, tasks: usize) -> Result<(), LoadError> {
    let memory = Path::new("/dev/shm");
    let quick = Workshop(
        if memory.is_dir() { memory } else { stage.root() }.join(format!("load-{}", std::process::id())),
    );
    let now_ms = wall_ms();
    let ended = |index: usize| {
        let spread_ms = i64::try_from(index % 1000).unwrap_or(0) * HOUR_MS / 50;
        if index < tasks / 2 { now_ms - OLD_HOURS * HOUR_MS - spread_ms } else { now_ms - spread_ms }
    };
    let ended: Vec<i64> = (0..tasks).map(ended).collect();
    let ids = fill(&quick.0, &stage.project(), &ended, &mut trial.random())?;
    let failed = || LoadError::io("move the registry to the disk");
    fs::create_dir_all(stage.state_dir().join("tasks")).map_err(failed())?;
    for file in database_files(&quick.0) {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, stage.state_dir().join(name)).map_err(failed())?;
    }
    let events: String = (1..=EVENTS_EACH)
        .map(|number| {
            let item = json!({"id": format!("item_{number}"), "type": "agent_message", "text": format!("event {number}")});
            format!("{}\n", json!({"type": "item.completed", "item": item}))
        })
        .collect();
    for id in &ids {
        trial.patience.check("writing the tasks' files")?;
        give_files(stage, id, &events).map_err(failed())?;
    }
    rustix::fs::sync();
    Ok(())
}

fn give_files(stage: &Stage, id: &TaskId, events: &str) -> std::io::Result<()> {
    let folder = stage.state_dir().join("tasks").join(id.as_str());
    fs::create_dir(&folder)?;
    fs::write(folder.join("events.jsonl"), events)?;
    fs::write(folder.join("stderr.log"), "")?;
    fs::write(folder.join("lock"), "")?;
    fs::write(folder.join("report.json"), "{}")
}

/// A directory that is gone with whoever made it.
struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How long something takes, in milliseconds: often, but not for ever.
fn again(trial: &Trial, mut act: impl FnMut() -> Result<(), LoadError>) -> Result<Vec<f64>, LoadError> {
    let (begun, mut taken) = (Instant::now(), Vec::new());
    while taken.len() < CALLS && (begun.elapsed() < CALLS_MAY_TAKE || taken.len() < CALLS_AT_LEAST) {
        trial.patience.check("measuring calls")?;
        taken.push(timed(&mut act)?);
    }
    Ok(taken)
}

fn timed(act: impl FnOnce() -> Result<(), LoadError>) -> Result<f64, LoadError> {
    let begun = Instant::now();
    act()?;
    Ok(milliseconds(begun.elapsed()))
}

fn cold_status(stage: &Stage, agent: &Path) -> Result<(), LoadError> {
    let output = stage.call(agent, &["local", "status"]).output().map_err(LoadError::io("ask"))?;
    if output.status.success() { Ok(()) } else { Err(failed("local status", &output.stdout)) }
}

fn failed(program: &str, said: &[u8]) -> LoadError {
    LoadError::Program { program: program.to_owned(), said: String::from_utf8_lossy(said).into_owned() }
}

/// How long the cleanup took in seconds, and every submit meanwhile in milliseconds. A cleanup that fails took for ever.
fn clean(trial: &Trial, stage: &Stage, server: &Server, agent: &Path) -> Result<(f64, Vec<f64>), LoadError> {
    let done = AtomicBool::new(false);
    let patience = &trial.patience;
    std::thread::scope(|scope| {
        let submits = scope.spawn(|| -> Result<Vec<f64>, LoadError> {
            let mut taken = Vec::new();
            while !done.load(Ordering::Relaxed) {
                patience.check("submitting meanwhile")?;
                taken.push(timed(|| server.submit(agent, "wait", None).map(drop))?);
                pause(Duration::from_millis(10));
            }
            Ok(taken)
        });
        let begun = Instant::now();
        let hours = FORGET_AFTER_HOURS.to_string();
        let words = ["cleanup-registry", "--old-task-max-age-hours", &hours];
        let output = stage.call(agent, &words).stderr(Stdio::piped()).output();
        let took = begun.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let taken = submits.join().unwrap_or(Err(LoadError::ServerGone))?;
        let output = output.map_err(LoadError::io("clean"))?;
        if output.status.success() {
            return Ok((took, taken));
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        trial.note(format!("cleanup-registry failed: {}", answer["error"]["message"]));
        Ok((f64::INFINITY, taken))
    })
}
