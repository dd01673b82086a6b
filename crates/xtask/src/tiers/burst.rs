//! L4: everybody submits at once while all slots are taken. Acknowledgements must be quick, true and in order.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use delegator_domain::task::{State, TaskId};
use delegator_registry::Registry;
use serde_json::{Value, json};

use super::Trial;
use super::crowd::{all_have_ended, all_have_spoken, side_by_side, submit_all};
use crate::clock::{milliseconds, pause_until};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::stage::Stage;

const SUBMITS: usize = 2_000;
const WITHIN: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 50;
const SLOTS: usize = 4;
/// A command line is a process: a core starts far fewer of them.
const COLD_CALLS: usize = 200;

/// One acknowledged submission, by one clock.
struct Acknowledged {
    task: String,
    sent: Instant,
    heard: Instant,
}

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let submits = trial.scaled(SUBMITS, 50);
    let stage = trial.stage(SLOTS)?;
    let go = stage.root().join("go");
    let holder = stage.agent(
        "holder",
        &json!([{"read_stdin": "all"}, {"thread_started": {}}, {"wait_for_file": go}, {"turn_completed": {}}]),
    )?;
    let quick = stage
        .agent("quick", &json!([{"read_stdin": "all"}, {"thread_started": {}}, {"turn_completed": {}}]))?;
    let server = stage.server()?;
    let holders = submit_all(&server, &[holder.as_path(); SLOTS])?;
    all_have_spoken(trial, &stage, &holders)?;
    let every = WITHIN.div_f64(SUBMITS as f64);
    let begun = Instant::now();
    let numbers: Vec<u32> = (0..).take(submits).collect();
    let acknowledged = side_by_side(&numbers, AT_ONCE, |number| {
        trial.patience.check("submitting")?;
        pause_until(begun + every * *number);
        let sent = Instant::now();
        let task = server.submit(&quick, "do it", None)?;
        Ok(Acknowledged { task, sent, heard: Instant::now() })
    })?;
    let took = begun.elapsed();
    // Whatever it had not written down is gone now.
    server.kill();
    let mut latencies: Vec<f64> = acknowledged.iter().map(|one| milliseconds(one.heard - one.sent)).collect();
    let registry = stage.door().registry()?;
    let lost = acknowledged.iter().filter(|one| !is_known(&registry, &one.task)).count();
    let mut cold = cold_calls(trial, &stage, &quick)?;
    std::fs::write(&go, "").map_err(LoadError::io("give the sign"))?;
    let ran = all_have_ended(trial, &stage.door(), Duration::from_secs(400), || {})?;
    Ok(vec![
        Figure::count("submits", submits),
        Figure::told("time for all of them", took.as_secs_f64(), "s"),
        Figure::told("ack through a server, p50", percentile(&mut latencies, 50.0), "ms"),
        Figure::at_most(100.0, "ack through a server, p99", percentile(&mut latencies, 99.0), "ms"),
        Figure::told("ack through a server, longest", percentile(&mut latencies, 100.0), "ms"),
        Figure::told("ack of a cold command line (20 a second), p50", percentile(&mut cold, 50.0), "ms"),
        Figure::at_most(
            100.0,
            "ack of a cold command line (20 a second), p99",
            percentile(&mut cold, 99.0),
            "ms",
        ),
        Figure::none_of("acknowledged, and unknown after the server was killed", lost),
        Figure::none_of(
            "acknowledged before another was sent, but queued behind it",
            out_of_turn(&registry, &acknowledged)?,
        ),
        Figure::none_of("started before an older one", started_early(&registry, &acknowledged)?),
        Figure::told("all of them run, one after the other", ran.as_secs_f64(), "s"),
    ])
}

fn is_known(registry: &Registry, task: &str) -> bool {
    let id = task.parse::<TaskId>().ok();
    id.is_some_and(|id| registry.get(&id).is_ok_and(|found| found.is_some()))
}

/// `local exec` at a rate the machine keeps up with, and how long each took, process and all.
fn cold_calls(trial: &Trial, stage: &Stage, agent: &Path) -> Result<Vec<f64>, LoadError> {
    let numbers: Vec<u32> = (0..).take(trial.scaled(COLD_CALLS, 20)).collect();
    let begun = Instant::now();
    side_by_side(&numbers, AT_ONCE, |number| {
        trial.patience.check("calling")?;
        pause_until(begun + Duration::from_millis(50) * *number);
        let sent = Instant::now();
        let output = stage
            .call(agent, &["local", "exec", "do it"])
            .stderr(Stdio::piped())
            .output()
            .map_err(LoadError::io("call the program"))?;
        let took = milliseconds(sent.elapsed());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match answer["data"]["task_id"].as_str() {
            Some(_) => Ok(took),
            None => Err(LoadError::Program {
                program: "local exec".to_owned(),
                said: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
            }),
        }
    })
}

/// Where each stands in the order of submissions, and where its start stands in the order of everything.
fn places(registry: &Registry, acknowledged: &[Acknowledged]) -> Result<Vec<(i64, Option<i64>)>, LoadError> {
    let mut found = Vec::new();
    for one in acknowledged {
        let id = one.task.parse::<TaskId>().ok();
        let task = id.map(|id| registry.get(&id)).transpose()?.flatten();
        let Some(task) = task else {
            found.push((i64::MAX, None));
            continue;
        };
        let history = registry.history_of(&task.id)?;
        let start = history.iter().find(|entry| entry.to == State::Starting).map(|entry| entry.order);
        found.push((task.seq, start));
    }
    Ok(found)
}

/// Who was told "it is taken" before another even asked must stand before it.
fn out_of_turn(registry: &Registry, acknowledged: &[Acknowledged]) -> Result<usize, LoadError> {
    let places = places(registry, acknowledged)?;
    let mut by_heard: Vec<usize> = (0..acknowledged.len()).collect();
    by_heard.sort_by_key(|index| acknowledged[*index].heard);
    let mut by_sent: Vec<usize> = (0..acknowledged.len()).collect();
    by_sent.sort_by_key(|index| acknowledged[*index].sent);
    let (mut heard, mut furthest, mut wrong) = (by_heard.iter().peekable(), i64::MIN, 0);
    for index in by_sent {
        while let Some(before) =
            heard.next_if(|before| acknowledged[**before].heard < acknowledged[index].sent)
        {
            furthest = furthest.max(places[*before].0);
        }
        wrong += usize::from(places[index].0 < furthest);
    }
    Ok(wrong)
}

/// In the order of submission nobody was claimed earlier than the one before. All of them have the same right to start.
fn started_early(registry: &Registry, acknowledged: &[Acknowledged]) -> Result<usize, LoadError> {
    let mut places = places(registry, acknowledged)?;
    places.sort_unstable();
    Ok(places.windows(2).filter(|pair| pair[1].1.is_none() || pair[1].1 < pair[0].1).count())
}
