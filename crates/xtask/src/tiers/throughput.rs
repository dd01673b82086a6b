//! L1: all agents print their events at the same moment; every event must be stored, once and in order.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Trial;
use super::bulk::{event_agent, submit_all, wait_all_ended, wait_all_started};
use crate::engine_calls::supervisors;
use crate::error::LoadError;
use crate::event_numbers::{EventNumbers, read_event_numbers};
use crate::figures::{Figure, percentile};
use crate::processes::{file_pages_kib, peak_kib, pss_kib};
use crate::testbed::Testbed;

const AGENTS: usize = 500;
const EVENTS: u64 = 2_000;
const EVENT_BYTES: usize = 160;
const LONGEST_LINE_BYTES: u64 = 8 << 20;
/// Number of supervisors whose memory is sampled while all are busy.
const SAMPLED_SUPERVISORS: usize = 25;

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let agents = trial.fit_to_machine(trial.scaled(AGENTS, 10), 3);
    let testbed = trial.testbed(agents)?;
    let (agent, go_file) = event_agent(&testbed, EVENTS, EVENT_BYTES)?;
    let server = testbed.server()?;
    let submitted = std::time::Instant::now();
    let ids = submit_all(&server, &vec![agent.as_path(); agents])?;
    wait_all_started(trial, &testbed, &ids)?;
    let started = submitted.elapsed();
    let (engine, registry) = (testbed.engine(), testbed.engine().registry()?);
    let pids = supervisors(&registry)?;
    let mut idle_pss: Vec<f64> = pids.iter().filter_map(|pid| pss_kib(*pid)).map(|kib| kib as f64).collect();
    let mut busy_pss: f64 = 0.0;
    let mut polls = 0_usize;
    touch(&go_file)?;
    let elapsed = wait_all_ended(trial, &engine, Duration::from_secs(240), || {
        polls += 1;
        if polls % 5 == 1 {
            let sample = pids.iter().step_by(pids.len().div_ceil(SAMPLED_SUPERVISORS).max(1));
            let sizes: Option<Vec<u64>> = sample.map(|pid| pss_kib(*pid)).collect();
            // Once some have exited, the others carry a larger share of the shared pages.
            busy_pss = sizes.into_iter().flatten().map(|kib| kib as f64).fold(busy_pss, f64::max);
        }
    })?;
    let server_peak = peak_kib(server.pid()).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    let stored = ids.iter().map(|id| read_event_numbers(&testbed.events_file(id)));
    let stored: Vec<EventNumbers> = stored.collect::<Result<_, _>>()?;
    let sum = |pick: fn(&EventNumbers) -> usize| stored.iter().map(pick).sum::<usize>();
    let not_completed = count_not_completed(&registry)?;
    let missing: usize = stored.iter().map(|numbers| numbers.missing_up_to(EVENTS)).sum();
    drop((server, registry));
    let (peak, own_peak) = measure_long_line(trial)?;
    Ok(vec![
        Figure::count("agents at once", agents),
        Figure::unbounded("submit → all agents started", started.as_secs_f64(), "s"),
        Figure::at_most(30.0, "events printed → all stored and all tasks ended", elapsed.as_secs_f64(), "s"),
        Figure::count("events stored", sum(|numbers| numbers.distinct)),
        Figure::must_be_zero("events missing", missing),
        Figure::must_be_zero("events duplicated", sum(|numbers| numbers.duplicates)),
        Figure::must_be_zero("events out of order", sum(|numbers| numbers.out_of_order)),
        Figure::must_be_zero("tasks not completed", not_completed),
        Figure::at_most(64.0, "server, peak memory (RSS)", server_peak, "MiB"),
        Figure::unbounded("supervisor before its events, median PSS", percentile(&mut idle_pss, 50.0), "KiB"),
        Figure::at_most(
            1024.0,
            "supervisor before its events, largest PSS",
            percentile(&mut idle_pss, 100.0),
            "KiB",
        ),
        Figure::at_most(
            1024.0,
            format!("supervisor during its events, largest PSS of {SAMPLED_SUPERVISORS}"),
            busy_pss,
            "KiB",
        ),
        Figure::unbounded("supervisor, peak memory for a line of 8 MiB (RSS)", peak, "MiB"),
        Figure::at_most(16.0, " without the pages of its program", own_peak, "MiB"),
    ])
}

fn count_not_completed(registry: &delegator_registry::Registry) -> Result<usize, LoadError> {
    let counts = registry.counts()?;
    let others = counts.iter().filter(|(state, _)| *state != delegator_domain::task::State::Completed);
    Ok(others.map(|(_, count)| count as usize).sum())
}

/// Peak memory of a supervisor for the longest line that is stored whole, in MiB: total, and without file pages.
fn measure_long_line(trial: &Trial) -> Result<(f64, f64), LoadError> {
    let testbed = trial.testbed(1)?;
    let go_file = testbed.root().join("go");
    let agent = testbed.agent(
        "long-line",
        &json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"big_line": {"bytes": LONGEST_LINE_BYTES}},
            {"wait_for_file": go_file}, {"turn_completed": {}}
        ]),
    )?;
    let server = testbed.server()?;
    let id = server.submit(&agent, "a long line", None)?;
    trial
        .deadline
        .wait_until("storing a long line", Duration::from_secs(60), || Ok(is_stored(&testbed, &id)))?;
    let registry = testbed.engine().registry()?;
    let pid = supervisors(&registry)?.first().copied();
    let (peak, files) = (pid.and_then(peak_kib), pid.and_then(file_pages_kib));
    touch(&go_file)?;
    server.wait(&id, Duration::from_secs(60))?;
    let mib = |kib: Option<u64>| kib.map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    Ok((mib(peak), mib(peak) - mib(files)))
}

fn is_stored(testbed: &Testbed, id: &str) -> bool {
    std::fs::metadata(testbed.events_file(id)).is_ok_and(|file| file.len() > LONGEST_LINE_BYTES)
}

fn touch(path: &Path) -> Result<(), LoadError> {
    std::fs::write(path, "").map_err(LoadError::io("create the go file"))
}
