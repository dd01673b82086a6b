//! The kill loop: kills servers, supervisors and command-line calls at seeded moments while tasks are submitted.
//!
//! Invariants: an acknowledged task is never lost and never started twice, its events are stored without a gap, and no
//! process is left at the end. A client that got no response submits again with the same key, as a careful client does.
//! Agents record every start; everything else is read from the registry and the tasks' files at the end.

mod calls;
mod rounds;
mod tally;

use std::collections::BTreeMap;
use std::time::Duration;

use delegator_domain::task::{TaskEnd, TaskId};
use delegator_registry::{Filter, LeftoverKind, Registry};
use serde_json::json;

use self::rounds::{KillLog, KillLoop};
use self::tally::{Tally, TaskFacts};
use crate::deadline::Deadline;
use crate::engine_calls::leftovers;
use crate::error::LoadError;
use crate::event_numbers::read_event_numbers;
use crate::figures::{Figure, Report, percentile};
use crate::machine;
use crate::programs::Programs;
use crate::testbed::{Testbed, TestbedOptions};

/// Number of events every agent prints, unless it is stopped.
const EVENTS: u64 = 30;
const EVENTS_PER_SECOND: f64 = 200.0;
const SLOTS: usize = 4;
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy)]
pub struct KillOptions {
    pub rounds: u32,
    pub seed: u64,
    pub keep: bool,
}

pub fn run(programs: &Programs, options: KillOptions, deadline: &Deadline) -> Result<Report, LoadError> {
    let load1_before = machine::load1();
    let testbed_options = TestbedOptions {
        name: "kills",
        slots: SLOTS,
        interrupt_grace_sec: 1,
        terminate_grace_sec: 1,
        keep: options.keep,
    };
    let testbed = Testbed::new(programs, testbed_options)?;
    let agent = testbed.start_recording_agent(
        "counting",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started",
            {"events": {"count": EVENTS, "per_second": EVENTS_PER_SECOND}}, {"turn_completed": {}}
        ]),
    )?;
    let mut kill_loop = KillLoop::new(&testbed, &agent, options.seed, deadline);
    for _ in 0..options.rounds {
        kill_loop.run_round()?;
    }
    let log = kill_loop.finish()?;
    let figures = collect_figures(&testbed, deadline, &log)?;
    Ok(Report {
        title: format!("kills: {} rounds", options.rounds),
        scale: 1.0,
        runs: 1,
        seed: options.seed,
        cores: machine::cores(),
        load1_before,
        load1_after: machine::load1(),
        figures,
        notes: Vec::new(),
    })
}

/// Waits until every task has ended, then counts.
fn collect_figures(testbed: &Testbed, deadline: &Deadline, log: &KillLog) -> Result<Vec<Figure>, LoadError> {
    let engine = testbed.engine();
    deadline.wait_until("the last recovery", RECOVERY_TIMEOUT, || {
        if let Some(id) = log.acknowledged.first().and_then(|id| id.parse::<TaskId>().ok()) {
            // Reading one task runs the upkeep of all.
            engine.run_upkeep(&id)?;
        }
        Ok(engine.open_tasks()? == 0)
    })?;
    // A supervisor records the end before it exits.
    let mut alive = 0;
    let ended = deadline.wait_until("the last processes", Duration::from_secs(10), || {
        alive = testbed.processes().len();
        Ok(alive == 0)
    });
    match ended {
        Err(LoadError::OutOfTime { .. }) | Ok(()) => {}
        Err(error) => return Err(error),
    }
    let registry = engine.registry()?;
    let tasks = task_facts(testbed, &registry, log)?;
    let tally = Tally::of(&tasks, EVENTS);
    let damage = usize::from(registry.check().is_err());
    let (unsubmitted, launches) = count_crash_leftovers(&registry)?;
    let mut recoveries = recovery_seconds(&registry, log)?;
    Ok(vec![
        Figure::count("servers killed", log.servers_killed),
        Figure::count("supervisors killed", log.supervisors_killed.len()),
        Figure::count("command-line calls killed", log.calls_killed),
        Figure::count("submissions", log.submissions),
        Figure::count("  submitted again with the same key after no response", log.resubmitted),
        Figure::count("  acknowledged", log.acknowledged.len()),
        Figure::count("tasks completed", tally.completed),
        Figure::count("tasks cancelled", tally.cancelled),
        Figure::count("tasks recorded as lost with their supervisor", tally.lost_visibly),
        Figure::must_be_zero("acknowledged, but lost", tally.acknowledged_but_lost),
        Figure::must_be_zero("started twice", tally.started_twice),
        Figure::must_be_zero("two tasks for one key", tally.two_for_one_key),
        Figure::must_be_zero("never started, and not recorded as lost", tally.never_started),
        Figure::must_be_zero(
            "recorded as lost although its supervisor was not killed",
            tally.lost_without_a_kill,
        ),
        Figure::must_be_zero("ended otherwise", tally.ended_otherwise),
        Figure::must_be_zero("events missing", tally.events_missing),
        Figure::must_be_zero("events duplicated", tally.events_duplicated),
        Figure::unbounded(
            "supervisor killed → loss recorded, longest",
            percentile(&mut recoveries, 100.0),
            "s",
        ),
        Figure::must_be_zero("processes left", alive),
        Figure::must_be_zero("registry damaged", damage),
        Figure::count("directories of submits killed before the registry insert", unsubmitted),
        Figure::count("launch files of tasks lost with their supervisor", launches),
    ])
}

fn count_crash_leftovers(registry: &Registry) -> Result<(usize, usize), LoadError> {
    let leftovers = leftovers(registry)?;
    let count = |kind| leftovers.iter().filter(|leftover| leftover.kind == kind).count();
    Ok((count(LeftoverKind::NeverSubmitted), count(LeftoverKind::LaunchOfEnded)))
}

/// Every task of the registry, and the acknowledged ones that it lacks.
fn task_facts(testbed: &Testbed, registry: &Registry, log: &KillLog) -> Result<Vec<TaskFacts>, LoadError> {
    let mut starts: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(testbed.starts_file()).unwrap_or_default().lines() {
        let task = line.split_once(' ').and_then(|(_, marker)| marker.split(':').next()).unwrap_or_default();
        *starts.entry(task.to_owned()).or_default() += 1;
    }
    let (mut tasks, mut from) = (Vec::new(), None);
    loop {
        let page = registry.list(&Filter::default(), 500, from)?;
        for task in page.tasks {
            let id = task.id.to_string();
            tasks.push(TaskFacts {
                starts: starts.get(&id).copied().unwrap_or(0),
                end: task.ended.map(|ended| ended.end),
                supervisor_killed: log.supervisors_killed.contains_key(&id),
                stored: read_event_numbers(&testbed.events_file(&id))?,
                key: task.title,
                known: true,
                id,
            });
        }
        match page.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    for id in &log.acknowledged {
        if !tasks.iter().any(|task| task.id == *id) {
            tasks.push(TaskFacts::unknown(id));
        }
    }
    Ok(tasks)
}

/// Seconds from killing a supervisor to the recorded failure of its task, if the task failed.
fn recovery_seconds(registry: &Registry, log: &KillLog) -> Result<Vec<f64>, LoadError> {
    let mut seconds = Vec::new();
    for (id, killed_at_ms) in &log.supervisors_killed {
        let Ok(id) = id.parse::<TaskId>() else { continue };
        let ended = registry.get(&id)?.and_then(|task| task.ended);
        let ended = ended.filter(|ended| matches!(ended.end, TaskEnd::Failed { .. }));
        seconds.extend(ended.map(|ended| (ended.at_ms - killed_at_ms).max(0) as f64 / 1000.0));
    }
    Ok(seconds)
}
