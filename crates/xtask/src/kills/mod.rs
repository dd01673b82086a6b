//! The kill loop: servers, supervisors and command-line calls die at seeded moments while tasks are submitted.
//!
//! Whatever is killed whenever, an acknowledged task is never lost and never started twice, what its agent said is
//! stored without a gap, and in the end nothing is left alive. Whoever was not answered submits again with the same
//! key, as a careful client does. Agents write every start down; everything else is read from the registry and the
//! tasks' files when the dust has settled.

mod calls;
mod judgement;
mod rounds;

use std::collections::BTreeMap;
use std::time::Duration;

use delegator_domain::task::{End, TaskId};
use delegator_registry::{Filter, LeftoverKind, Registry};
use serde_json::json;

use self::judgement::{Life, Tally};
use self::rounds::{Deeds, Rounds};
use crate::engine_calls::leftovers;
use crate::error::LoadError;
use crate::figures::{Figure, Report, percentile};
use crate::machine;
use crate::numbered::read_numbered;
use crate::patience::Patience;
use crate::programs::Programs;
use crate::stage::{Plan, Stage};

/// What every agent says, unless it is stopped.
const EVENTS: u64 = 30;
const EVENTS_PER_SECOND: f64 = 200.0;
const SLOTS: usize = 4;
const RECOVERY_MAY_TAKE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub rounds: u32,
    pub seed: u64,
    pub keep: bool,
}

pub fn run(programs: &Programs, order: Order, patience: &Patience) -> Result<Report, LoadError> {
    let load1_before = machine::load1();
    let plan = Plan {
        name: "kills",
        slots: SLOTS,
        interrupt_grace_sec: 1,
        terminate_grace_sec: 1,
        keep: order.keep,
    };
    let stage = Stage::new(programs, plan)?;
    let agent = stage.recorded_agent(
        "counting",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started",
            {"events": {"count": EVENTS, "per_second": EVENTS_PER_SECOND}}, {"turn_completed": {}}
        ]),
    )?;
    let mut rounds = Rounds::new(&stage, &agent, order.seed, patience);
    for _ in 0..order.rounds {
        rounds.play_one()?;
    }
    let deeds = rounds.end()?;
    let figures = settle(&stage, patience, &deeds)?;
    Ok(Report {
        title: format!("kills: {} rounds", order.rounds),
        scale: 1.0,
        runs: 1,
        seed: order.seed,
        cores: machine::cores(),
        load1_before,
        load1_after: machine::load1(),
        figures,
        notes: Vec::new(),
    })
}

/// Lets everything that is there come to its end, then counts.
fn settle(stage: &Stage, patience: &Patience, deeds: &Deeds) -> Result<Vec<Figure>, LoadError> {
    let door = stage.door();
    patience.until("the last recovery", RECOVERY_MAY_TAKE, || {
        if let Some(id) = deeds.acknowledged.first().and_then(|id| id.parse::<TaskId>().ok()) {
            // Whoever looks, looks after all of them.
            door.look_after(&id)?;
        }
        Ok(door.open_tasks()? == 0)
    })?;
    // A supervisor records the end, then leaves.
    let mut alive = 0;
    let gone = patience.until("the last processes", Duration::from_secs(10), || {
        alive = stage.processes().len();
        Ok(alive == 0)
    });
    match gone {
        Err(LoadError::OutOfTime { .. }) | Ok(()) => {}
        Err(error) => return Err(error),
    }
    let registry = door.registry()?;
    let lives = lives(stage, &registry, deeds)?;
    let tally = Tally::of(&lives, EVENTS);
    let damage = usize::from(registry.check().is_err());
    let (unsubmitted, launches) = crash_leftovers(&registry)?;
    let mut recoveries = recoveries(&registry, deeds)?;
    Ok(vec![
        Figure::count("servers killed", deeds.servers_killed),
        Figure::count("supervisors killed", deeds.supervisors_killed.len()),
        Figure::count("command-line calls killed", deeds.calls_killed),
        Figure::count("submissions", deeds.submissions),
        Figure::count("  submitted again with the same key, for want of an answer", deeds.again),
        Figure::count("  acknowledged", deeds.acknowledged.len()),
        Figure::count("tasks completed", tally.completed),
        Figure::count("tasks cancelled", tally.cancelled),
        Figure::count("tasks lost visibly with their supervisor", tally.lost_visibly),
        Figure::none_of("acknowledged, but lost", tally.acknowledged_but_lost),
        Figure::none_of("started twice", tally.started_twice),
        Figure::none_of("two tasks for one key", tally.two_for_one_key),
        Figure::none_of("never started, and nothing says so", tally.never_started),
        Figure::none_of("called lost although nobody killed its supervisor", tally.lost_without_a_kill),
        Figure::none_of("ended in any other way", tally.ended_otherwise),
        Figure::none_of("events missing", tally.events_missing),
        Figure::none_of("events doubled", tally.events_doubled),
        Figure::told("supervisor killed → loss recorded, longest", percentile(&mut recoveries, 100.0), "s"),
        Figure::none_of("processes left", alive),
        Figure::none_of("registry damaged", damage),
        Figure::count("directories of submits that died before their row", unsubmitted),
        Figure::count("launch files of tasks lost with their supervisor", launches),
    ])
}

fn crash_leftovers(registry: &Registry) -> Result<(usize, usize), LoadError> {
    let left = leftovers(registry)?;
    let of = |kind| left.iter().filter(|leftover| leftover.kind == kind).count();
    Ok((of(LeftoverKind::NeverSubmitted), of(LeftoverKind::LaunchOfEnded)))
}

/// Every task the registry knows, and those it ought to know.
fn lives(stage: &Stage, registry: &Registry, deeds: &Deeds) -> Result<Vec<Life>, LoadError> {
    let mut starts: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(stage.starts_file()).unwrap_or_default().lines() {
        let task = line.split_once(' ').and_then(|(_, mark)| mark.split(':').next()).unwrap_or_default();
        *starts.entry(task.to_owned()).or_default() += 1;
    }
    let (mut lives, mut from) = (Vec::new(), None);
    loop {
        let page = registry.list(&Filter::default(), 500, from)?;
        for task in page.tasks {
            let id = task.id.to_string();
            lives.push(Life {
                starts: starts.get(&id).copied().unwrap_or(0),
                end: task.ended.map(|ended| ended.end),
                supervisor_killed: deeds.supervisors_killed.contains_key(&id),
                stored: read_numbered(&stage.events_file(&id))?,
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
    for id in &deeds.acknowledged {
        if !lives.iter().any(|life| life.id == *id) {
            lives.push(Life::unknown(id));
        }
    }
    Ok(lives)
}

/// Seconds from the kill of a supervisor to the recorded end of its task, if that was the end of it.
fn recoveries(registry: &Registry, deeds: &Deeds) -> Result<Vec<f64>, LoadError> {
    let mut took = Vec::new();
    for (id, killed_at_ms) in &deeds.supervisors_killed {
        let Ok(id) = id.parse::<TaskId>() else { continue };
        let ended = registry.get(&id)?.and_then(|task| task.ended);
        let ended = ended.filter(|ended| matches!(ended.end, End::Failed { .. }));
        took.extend(ended.map(|ended| (ended.at_ms - killed_at_ms).max(0) as f64 / 1000.0));
    }
    Ok(took)
}
