//! L4: a burst of submissions while all slots are taken. Acknowledgements must be quick, durable and in order.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::Registry;
use serde_json::{Value, json};

use super::Trial;
use super::bulk::{run_parallel, submit_all, wait_all_ended, wait_all_started};
use crate::clock::{milliseconds, sleep_until};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::testbed::Testbed;

const SUBMITS: usize = 2_000;
const BURST_DURATION: Duration = Duration::from_secs(10);
const PARALLEL_SUBMITS: usize = 50;
const SLOTS: usize = 4;
/// Each call is a process; a core starts far fewer of them.
const COLD_CALLS: usize = 200;

/// One acknowledged submission, timed by the monotonic clock.
struct Acknowledgement {
    task: String,
    sent_at: Instant,
    acknowledged_at: Instant,
}

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let submits = trial.scaled(SUBMITS, 50);
    let testbed = trial.testbed(SLOTS)?;
    let go_file = testbed.root().join("go");
    let holder = testbed.agent(
        "holder",
        &json!([{"read_stdin": "all"}, {"thread_started": {}}, {"wait_for_file": go_file}, {"turn_completed": {}}]),
    )?;
    let quick = testbed
        .agent("quick", &json!([{"read_stdin": "all"}, {"thread_started": {}}, {"turn_completed": {}}]))?;
    let server = testbed.server()?;
    let holders = submit_all(&server, &[holder.as_path(); SLOTS])?;
    wait_all_started(trial, &testbed, &holders)?;
    let interval = BURST_DURATION.div_f64(SUBMITS as f64);
    let started = Instant::now();
    let numbers: Vec<u32> = (0..).take(submits).collect();
    let acks = run_parallel(&numbers, PARALLEL_SUBMITS, |number| {
        trial.deadline.check("submitting")?;
        sleep_until(started + interval * *number);
        let sent_at = Instant::now();
        let task = server.submit(&quick, "do it", None)?;
        Ok(Acknowledgement { task, sent_at, acknowledged_at: Instant::now() })
    })?;
    let elapsed = started.elapsed();
    // What it had not written to disk is lost now.
    server.kill();
    let mut latencies: Vec<f64> =
        acks.iter().map(|ack| milliseconds(ack.acknowledged_at - ack.sent_at)).collect();
    let registry = testbed.engine().registry()?;
    let lost = acks.iter().filter(|ack| !is_known(&registry, &ack.task)).count();
    let mut cold_ms = cold_calls(trial, &testbed, &quick)?;
    std::fs::write(&go_file, "").map_err(LoadError::io("create the go file"))?;
    let run_time = wait_all_ended(trial, &testbed.engine(), Duration::from_secs(400), || {})?;
    Ok(vec![
        Figure::count("submits", submits),
        Figure::unbounded("time for all submits", elapsed.as_secs_f64(), "s"),
        Figure::unbounded("ack through a server, p50", percentile(&mut latencies, 50.0), "ms"),
        Figure::at_most(100.0, "ack through a server, p99", percentile(&mut latencies, 99.0), "ms"),
        Figure::unbounded("ack through a server, longest", percentile(&mut latencies, 100.0), "ms"),
        Figure::unbounded(
            "ack of a cold command line (20 a second), p50",
            percentile(&mut cold_ms, 50.0),
            "ms",
        ),
        Figure::at_most(
            100.0,
            "ack of a cold command line (20 a second), p99",
            percentile(&mut cold_ms, 99.0),
            "ms",
        ),
        Figure::must_be_zero("acknowledged, but unknown after the server was killed", lost),
        Figure::must_be_zero(
            "acknowledged before another was sent, but queued behind it",
            count_out_of_order(&registry, &acks)?,
        ),
        Figure::must_be_zero("started before an older one", count_started_early(&registry, &acks)?),
        Figure::unbounded("time to run all tasks", run_time.as_secs_f64(), "s"),
    ])
}

fn is_known(registry: &Registry, task: &str) -> bool {
    let id = task.parse::<TaskId>().ok();
    id.is_some_and(|id| registry.get(&id).is_ok_and(|found| found.is_some()))
}

/// Calls `local exec` at a rate the machine sustains. Returns the duration of each call, including the process start.
fn cold_calls(trial: &Trial, testbed: &Testbed, agent: &Path) -> Result<Vec<f64>, LoadError> {
    let numbers: Vec<u32> = (0..).take(trial.scaled(COLD_CALLS, 20)).collect();
    let started = Instant::now();
    run_parallel(&numbers, PARALLEL_SUBMITS, |number| {
        trial.deadline.check("calling")?;
        sleep_until(started + Duration::from_millis(50) * *number);
        let sent = Instant::now();
        let output = testbed
            .cli_call(agent, &["local", "exec", "do it"])
            .stderr(Stdio::piped())
            .output()
            .map_err(LoadError::io("call the program"))?;
        let elapsed = milliseconds(sent.elapsed());
        let response: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match response["data"]["task_id"].as_str() {
            Some(_) => Ok(elapsed),
            None => Err(LoadError::Program {
                program: "local exec".to_owned(),
                output: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
            }),
        }
    })
}

/// Position of each task in the submission order, and of its start in the history.
fn positions(registry: &Registry, acks: &[Acknowledgement]) -> Result<Vec<(i64, Option<i64>)>, LoadError> {
    let mut positions = Vec::new();
    for ack in acks {
        let id = ack.task.parse::<TaskId>().ok();
        let task = id.map(|id| registry.get(&id)).transpose()?.flatten();
        let Some(task) = task else {
            positions.push((i64::MAX, None));
            continue;
        };
        let history = registry.history_of(&task.id)?;
        let start = history.iter().find(|entry| entry.to == State::Starting).map(|entry| entry.order);
        positions.push((task.seq, start));
    }
    Ok(positions)
}

/// A task acknowledged before another was sent must precede it in the queue.
fn count_out_of_order(registry: &Registry, acks: &[Acknowledgement]) -> Result<usize, LoadError> {
    let positions = positions(registry, acks)?;
    let mut by_acknowledged: Vec<usize> = (0..acks.len()).collect();
    by_acknowledged.sort_by_key(|index| acks[*index].acknowledged_at);
    let mut by_sent: Vec<usize> = (0..acks.len()).collect();
    by_sent.sort_by_key(|index| acks[*index].sent_at);
    let (mut acknowledged_before, mut furthest, mut wrong) = (by_acknowledged.iter().peekable(), i64::MIN, 0);
    for index in by_sent {
        while let Some(before) =
            acknowledged_before.next_if(|before| acks[**before].acknowledged_at < acks[index].sent_at)
        {
            furthest = furthest.max(positions[*before].0);
        }
        wrong += usize::from(positions[index].0 < furthest);
    }
    Ok(wrong)
}

/// Counts tasks that were started before the one submitted before them. All have the same priority.
fn count_started_early(registry: &Registry, acks: &[Acknowledgement]) -> Result<usize, LoadError> {
    let mut positions = positions(registry, acks)?;
    positions.sort_unstable();
    Ok(positions.windows(2).filter(|pair| pair[1].1.is_none() || pair[1].1 < pair[0].1).count())
}
