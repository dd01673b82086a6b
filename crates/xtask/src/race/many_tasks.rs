//! Many tasks: twenty at once, and the processor time of each of many.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::arena::{Arena, INSTANT, Place};
use super::metrics::Metric;
use super::participant::{Participant, SLOTS, check_reply, task_id};
use super::peers::{Inserted, Tools};
use super::rounds::{Race, median};
use super::session::Session;
use crate::clock::milliseconds;
use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::processes::total_cpu_seconds;

/// Until the processes of the last task have exited.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the median of twenty agents alone, in milliseconds.
pub(crate) fn measure(race: &mut Race<'_>) -> Result<f64, LoadError> {
    let mut alone = Vec::new();
    let run_agents = |arena: &Arena| {
        alone.push(arena.run_agents(SLOTS)?);
        Ok(())
    };
    race.measure(Metric::TwentyAtOnce, race.few_rounds(), run_agents, |participant, arena| {
        let tools = participant.tools;
        let session = participant.session(arena, Place::Plain)?;
        let started = Instant::now();
        run_at_once(session, tools, arena, SLOTS)?;
        Ok(Some(milliseconds(started.elapsed())))
    })?;
    // The processes of these sessions would count for the next ones.
    for participant in race.participants.iter_mut() {
        participant.close(race.arena);
    }
    let tasks = cpu_tasks(race.rounds);
    let deadline = race.deadline;
    for (metric, place) in [(Metric::CpuGit, Place::Git), (Metric::CpuPlain, Place::Plain)] {
        race.measure(
            metric,
            1,
            |_| Ok(()),
            |participant, arena| cpu_per_task(participant, arena, deadline, place, tasks),
        )?;
    }
    Ok(median(alone).value().unwrap_or(f64::NAN))
}

/// The kernel reports hundredths of a second, so one task alone cannot be measured.
pub(crate) fn cpu_tasks(rounds: usize) -> usize {
    (rounds * 5).clamp(20, 200)
}

/// Sends all tasks, then each wait as soon as its task is accepted. A peer without a blocking wait gets one call per
/// task.
fn run_at_once(session: &mut Session, tools: Tools, arena: &Arena, count: usize) -> Result<(), LoadError> {
    let directory = arena.place(Place::Plain).display().to_string();
    let task = Inserted { prompt: INSTANT, directory: &directory, task_id: "" };
    let background = tools.background.filter(|background| background.running.is_none());
    let call = background.map_or(tools.run, |background| background.start);
    let mut starting = HashSet::new();
    for _ in 0..count {
        starting.insert(session.send_call(call, task)?);
    }
    let mut ended = 0;
    while ended < count {
        let (id, response) = session.next_response()?;
        match background.filter(|_| starting.remove(&id)) {
            Some(background) => {
                let task = task_id(background, &response)?;
                session.send_call(background.wait, Inserted { task_id: &task, ..Inserted::default() })?;
            }
            None => {
                check_reply(response)?;
                ended += 1;
            }
        }
    }
    Ok(())
}

/// User and system time of the server, of its supervisors and of the agents, in milliseconds per task.
fn cpu_per_task(
    participant: &mut Participant,
    arena: &Arena,
    deadline: &Deadline,
    place: Place,
    tasks: usize,
) -> Result<Option<f64>, LoadError> {
    let mut session = participant.open_reaped(arena, place)?;
    let idle = settled_processes(participant, arena, deadline, None)?;
    let before = total_cpu_seconds(&arena.pids(&participant.dir));
    for _ in 0..tasks {
        participant.run_task(&mut session, arena, place, INSTANT)?;
    }
    settled_processes(participant, arena, deadline, Some(idle))?;
    let after = total_cpu_seconds(&arena.pids(&participant.dir));
    session.close();
    arena.kill_processes(&participant.dir);
    Ok(Some((after - before) * 1000.0 / tasks as f64))
}

/// Waits until no more processes are left than that; without a number, until their number does not change.
fn settled_processes(
    participant: &Participant,
    arena: &Arena,
    deadline: &Deadline,
    idle: Option<usize>,
) -> Result<usize, LoadError> {
    let mut previous = usize::MAX;
    let mut equal = 0;
    deadline.wait_until("waiting for the processes of a task", SETTLE_TIMEOUT, || {
        let count = arena.pids(&participant.dir).len();
        equal = if count == previous { equal + 1 } else { 0 };
        previous = count;
        Ok(idle.map_or(equal >= 10, |idle| count <= idle))
    })?;
    Ok(previous)
}
