//! One task: from the request to the result, in a git work tree and outside of one.

use std::process::Stdio;
use std::time::Instant;

use super::arena::{Arena, INSTANT, Place, REPLY, TIMED};
use super::metrics::Metric;
use super::participant::{Participant, check_reply, start_background, wait_background};
use super::peers::Inserted;
use super::results::Outcome;
use super::rounds::{Race, median};
use super::session::{ToolResponse, excerpt};
use crate::clock::milliseconds;
use crate::error::LoadError;

/// Returns the median of the agent alone, in milliseconds.
pub(crate) fn measure(race: &mut Race<'_>) -> Result<f64, LoadError> {
    // The start of a slow server would disturb the first samples of the others.
    for participant in race.participants.iter_mut().filter(|participant| participant.entry.problem.is_none())
    {
        for place in [Place::Git, Place::Plain] {
            race.deadline.check("opening the sessions")?;
            // The samples report a server that does not start.
            let _ = participant.session(race.arena, place);
        }
    }
    let mut alone = Vec::new();
    let run_agent = |arena: &Arena| {
        alone.push(arena.run_agent()?);
        Ok(())
    };
    let metrics = [Metric::BackgroundGit, Metric::BackgroundPlain, Metric::RunGit, Metric::RunPlain];
    race.measure_all(&metrics, race.rounds, run_agent, |metric, participant, arena| {
        let is_git = matches!(metric, Metric::BackgroundGit | Metric::RunGit);
        let is_background = matches!(metric, Metric::BackgroundGit | Metric::BackgroundPlain);
        timed_task(participant, arena, if is_git { Place::Git } else { Place::Plain }, is_background)
    })?;
    race.measure(Metric::EndToAnswer, race.rounds, |_| Ok(()), end_to_answer)?;
    race.measure(Metric::CommandLine, race.rounds, |_| Ok(()), command_line)?;
    let alone = median(alone).value().unwrap_or(f64::NAN);
    for participant in race.participants.iter_mut() {
        for (metric, outcome) in &mut participant.entry.outcomes {
            if let (true, Outcome::Median { value, .. }) = (metric.excludes_the_agent(), outcome) {
                *value -= alone;
            }
        }
    }
    Ok(alone)
}

fn timed_task(
    participant: &mut Participant,
    arena: &Arena,
    place: Place,
    is_background: bool,
) -> Result<Option<f64>, LoadError> {
    participant.session(arena, place)?;
    let started = Instant::now();
    complete_task(participant, arena, place, INSTANT, is_background)?;
    Ok(Some(milliseconds(started.elapsed())))
}

/// Runs a task with two calls if that is requested and offered, otherwise with one.
fn complete_task(
    participant: &mut Participant,
    arena: &Arena,
    place: Place,
    prompt: &str,
    is_background: bool,
) -> Result<ToolResponse, LoadError> {
    let tools = participant.tools;
    let directory = arena.place(place).display().to_string();
    let session = participant.session(arena, place)?;
    match tools.background.filter(|_| is_background) {
        Some(background) => {
            let id = start_background(session, background, arena, place, prompt)?;
            wait_background(session, background, &id)
        }
        None => {
            let inserted = Inserted { prompt, directory: &directory, task_id: "" };
            session.call(tools.run, inserted).and_then(check_reply)
        }
    }
}

/// The agent works for 200 ms, so that the wait is pending when it ends.
fn end_to_answer(participant: &mut Participant, arena: &Arena) -> Result<Option<f64>, LoadError> {
    let response = complete_task(participant, arena, Place::Git, TIMED, true)?;
    Ok(Some((response.at_ns - arena.agent_end_ns()?) as f64 / 1_000_000.0))
}

/// From the start of the command to its exit, with the agent.
fn command_line(participant: &mut Participant, arena: &Arena) -> Result<Option<f64>, LoadError> {
    if !participant.entry.is_ours() {
        return Ok(None);
    }
    let mut command = participant.command_line(arena, Place::Git);
    command.args(["local", "run", INSTANT]).stdin(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let output = command.output().map_err(LoadError::io("run a command"))?;
    let elapsed = milliseconds(started.elapsed());
    let text = String::from_utf8_lossy(&output.stdout);
    match text.contains(REPLY) {
        true => Ok(Some(elapsed)),
        false => Err(LoadError::Refused { response: excerpt(&text) }),
    }
}
