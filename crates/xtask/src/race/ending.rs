//! Endings: what a cancelled task leaves behind, and what is lost when the server is killed.

use std::fs;
use std::time::{Duration, Instant};

use super::arena::{Arena, HANGING, INSTANT, Place, TIMED};
use super::metrics::Metric;
use super::participant::{Participant, start_background, wait_background};
use super::peers::{Inserted, ToolCall};
use super::results::Outcome;
use super::rounds::{Race, median};
use super::session::Session;
use crate::deadline::Deadline;
use crate::error::LoadError;

/// After the response to a cancel, until processes are counted.
const GRACE: Duration = Duration::from_secs(2);
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// After a cancel, until its processes count as left for good. The agent itself sleeps for a minute.
const GONE_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn measure(race: &mut Race<'_>) -> Result<(), LoadError> {
    let deadline = race.deadline;
    for participant in race.participants.iter_mut() {
        participant.close(race.arena);
    }
    race.measure(
        Metric::ProcessesLeft,
        1,
        |_| Ok(()),
        |participant, arena| {
            let left = cancel_hanging_task(participant, arena, deadline);
            // Also those that the cancel left.
            arena.kill_processes(&participant.dir);
            left
        },
    )?;
    race.measure(
        Metric::ResultsLost,
        1,
        |_| Ok(()),
        |participant, arena| {
            let lost = kill_server(participant, arena);
            arena.kill_processes(&participant.dir);
            lost
        },
    )
}

/// Cancels a task whose agent ignores signals and has a detached child. Returns the number of its processes that are
/// alive two seconds after the cancel was answered.
fn cancel_hanging_task(
    participant: &mut Participant,
    arena: &Arena,
    deadline: &Deadline,
) -> Result<Option<f64>, LoadError> {
    let (mut session, _) = participant.open(arena, Place::Plain)?;
    participant.run_task(&mut session, arena, Place::Plain, INSTANT)?;
    let idle: Vec<u32> = arena.pids(&participant.dir);
    let left = |participant: &Participant| {
        arena.pids(&participant.dir).into_iter().filter(|pid| !idle.contains(pid)).count()
    };
    let running = start_hanging_task(participant, &mut session, arena, deadline)?;
    let cancelled = Instant::now();
    cancel(&mut session, &running)?;
    let answered = Instant::now();
    let (mut gone_after, mut left_after_grace) = (None, None);
    deadline.wait_until("counting processes", GONE_TIMEOUT + GRACE * 10, || {
        let count = left(participant);
        if count == 0 && gone_after.is_none() {
            gone_after = Some(cancelled.elapsed());
        }
        if answered.elapsed() >= GRACE && left_after_grace.is_none() {
            left_after_grace = Some(count);
        }
        let is_over = gone_after.is_some() || cancelled.elapsed() >= GONE_TIMEOUT;
        Ok(is_over && left_after_grace.is_some())
    })?;
    let seconds = match gone_after {
        Some(time) => median(vec![time.as_secs_f64()]),
        None => Outcome::Failed { reason: format!("not within {} s", GONE_TIMEOUT.as_secs()) },
    };
    participant.entry.outcomes.insert(Metric::CancelSeconds, seconds);
    Ok(left_after_grace.map(|count| count as f64))
}

/// What a cancel refers to.
enum Running {
    /// A task in the background, and the call that cancels it.
    Task(String, ToolCall),
    Request(u64),
}

fn start_hanging_task(
    participant: &Participant,
    session: &mut Session,
    arena: &Arena,
    deadline: &Deadline,
) -> Result<Running, LoadError> {
    // It does not exist unless an earlier participant hung.
    let _ = fs::remove_file(arena.hanging_file());
    let cancellable = participant.tools.background.and_then(|tools| Some((tools, tools.cancel?)));
    let running = match cancellable {
        Some((background, cancel)) => {
            let id = start_background(session, background, arena, Place::Plain, HANGING)?;
            Running::Task(id, cancel)
        }
        None => {
            let directory = arena.place(Place::Plain).display().to_string();
            let task = Inserted { prompt: HANGING, directory: &directory, task_id: "" };
            Running::Request(session.send_call(participant.tools.run, task)?)
        }
    };
    deadline
        .wait_until("the start of a hanging agent", START_TIMEOUT, || Ok(arena.hanging_file().exists()))?;
    Ok(running)
}

/// Returns when the cancel was answered; a notification has no answer.
fn cancel(session: &mut Session, running: &Running) -> Result<(), LoadError> {
    match running {
        Running::Task(id, call) => {
            session.call(*call, Inserted { task_id: id, ..Inserted::default() })?.text().map(drop)
        }
        Running::Request(id) => session.cancel_request(*id),
    }
}

/// Kills the server while a task runs, then requests the result from a new one. Returns the number of lost results.
fn kill_server(participant: &mut Participant, arena: &Arena) -> Result<Option<f64>, LoadError> {
    let Some(background) = participant.tools.background else { return Ok(None) };
    let (mut session, _) = participant.open(arena, Place::Plain)?;
    let id = start_background(&mut session, background, arena, Place::Plain, TIMED)?;
    session.kill();
    let (mut session, _) = participant.open(arena, Place::Plain)?;
    let result = wait_background(&mut session, background, &id);
    session.close();
    match result {
        Ok(_) => Ok(Some(0.0)),
        Err(LoadError::Refused { .. }) => Ok(Some(1.0)),
        Err(error) => Err(error),
    }
}
