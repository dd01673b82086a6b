//! L1: every agent tells its events at the same moment; all of them must be stored, once and in order.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Trial;
use super::crowd::{all_have_ended, all_have_spoken, chatter, submit_all};
use crate::engine_calls::supervisors;
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::numbered::{Numbered, read_numbered};
use crate::processes::{file_pages_kib, peak_kib, pss_kib};
use crate::stage::Stage;

const AGENTS: usize = 500;
const EVENTS: u64 = 2_000;
const EVENT_BYTES: usize = 160;
const LONGEST_LINE_BYTES: u64 = 8 << 20;
/// How many supervisors are looked at while all of them are busy.
const SAMPLE: usize = 25;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.with_room(trial.scaled(AGENTS, 10), 3);
    let stage = trial.stage(agents)?;
    let (agent, go) = chatter(&stage, EVENTS, EVENT_BYTES)?;
    let server = stage.server()?;
    let begun = std::time::Instant::now();
    let ids = submit_all(&server, &vec![agent.as_path(); agents])?;
    all_have_spoken(trial, &stage, &ids)?;
    let started = begun.elapsed();
    let (door, registry) = (stage.door(), stage.door().registry()?);
    let pids = supervisors(&registry)?;
    let mut waiting: Vec<f64> = pids.iter().filter_map(|pid| pss_kib(*pid)).map(|kib| kib as f64).collect();
    let mut busy: f64 = 0.0;
    let mut looks = 0_usize;
    touch(&go)?;
    let took = all_have_ended(trial, &door, Duration::from_secs(240), || {
        looks += 1;
        if looks % 5 == 1 {
            let sample = pids.iter().step_by(pids.len().div_ceil(SAMPLE).max(1));
            let sizes: Option<Vec<u64>> = sample.map(|pid| pss_kib(*pid)).collect();
            // Once some have left, the others carry a larger part of what all share.
            busy = sizes.into_iter().flatten().map(|kib| kib as f64).fold(busy, f64::max);
        }
    })?;
    let server_peak = peak_kib(server.pid()).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    let stored = ids.iter().map(|id| read_numbered(&stage.events_file(id)));
    let stored: Vec<Numbered> = stored.collect::<Result<_, _>>()?;
    let sum = |pick: fn(&Numbered) -> usize| stored.iter().map(pick).sum::<usize>();
    let not_completed = not_completed(&registry)?;
    let missing: usize = stored.iter().map(|numbers| numbers.missing_up_to(EVENTS)).sum();
    drop((server, registry));
    let (peak, own) = long_line(trial)?;
    Ok(vec![
        Figure::count("agents at once", agents),
        Figure::told("submit → all agents started", started.as_secs_f64(), "s"),
        Figure::at_most(30.0, "events told → all stored and all tasks ended", took.as_secs_f64(), "s"),
        Figure::count("events stored", sum(|numbers| numbers.distinct)),
        Figure::none_of("events missing", missing),
        Figure::none_of("events doubled", sum(|numbers| numbers.doubled)),
        Figure::none_of("events out of order", sum(|numbers| numbers.out_of_order)),
        Figure::none_of("tasks not completed", not_completed),
        Figure::at_most(64.0, "server, most memory (RSS)", server_peak, "MiB"),
        Figure::told("supervisor before its events, median PSS", percentile(&mut waiting, 50.0), "KiB"),
        Figure::at_most(
            1024.0,
            "supervisor before its events, largest PSS",
            percentile(&mut waiting, 100.0),
            "KiB",
        ),
        Figure::at_most(1024.0, format!("supervisor amid its events, largest PSS of {SAMPLE}"), busy, "KiB"),
        Figure::told("supervisor, most memory for a line of 8 MiB (RSS)", peak, "MiB"),
        Figure::at_most(16.0, " of it its own, without the pages of its program", own, "MiB"),
    ])
}

fn not_completed(registry: &delegator_registry::Registry) -> Result<usize, LoadError> {
    let counts = registry.counts()?;
    let others = counts.iter().filter(|(state, _)| *state != delegator_domain::task::State::Completed);
    Ok(others.map(|(_, count)| count as usize).sum())
}

/// What a supervisor needed at most for the longest line that is taken whole, in MiB: in all, and of its own.
fn long_line(trial: &Trial) -> Result<(f64, f64), LoadError> {
    let stage = trial.stage(1)?;
    let go = stage.root().join("go");
    let agent = stage.agent(
        "long-line",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"big_line": {"bytes": LONGEST_LINE_BYTES}},
            {"wait_for_file": go}, {"turn_completed": {}}
        ]),
    )?;
    let server = stage.server()?;
    let id = server.submit(&agent, "a long line", None)?;
    trial.patience.until("storing a long line", Duration::from_secs(60), || Ok(is_stored(&stage, &id)))?;
    let registry = stage.door().registry()?;
    let pid = supervisors(&registry)?.first().copied();
    let (peak, files) = (pid.and_then(peak_kib), pid.and_then(file_pages_kib));
    touch(&go)?;
    server.wait(&id, Duration::from_secs(60))?;
    let mib = |kib: Option<u64>| kib.map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    Ok((mib(peak), mib(peak) - mib(files)))
}

fn is_stored(stage: &Stage, id: &str) -> bool {
    std::fs::metadata(stage.events_file(id)).is_ok_and(|file| file.len() > LONGEST_LINE_BYTES)
}

fn touch(path: &Path) -> Result<(), LoadError> {
    std::fs::write(path, "").map_err(LoadError::io("give the sign"))
}
