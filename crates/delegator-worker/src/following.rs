//! Follows the task of this machine that runs for an attempt: sends its events, and cancels it when the
//! attempt shall stop.
//!
//! The file of the local registry is the spool of the events: nothing is lost while the database is away. The
//! database knows how much it has, so an upload can be repeated and continued by another process.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_domain::task::{TaskEnd, TaskId};
use delegator_engine::{CONTACT_LOST, EngineError};
use delegator_fleet::FleetError;
use delegator_registry::{Task, TaskDir, TaskFile};

use crate::attempt_control::{AttemptControl, NOT_OWNED, Stop};
use crate::decisions::back_off;
use crate::local_tasks::repeat_local;
use crate::port::WorkerEvent;
use crate::worker_state::WorkerState;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often a lost supervisor is searched for.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(2_500);

pub(crate) enum Followed {
    Ended { end: TaskEnd, warnings: Vec<String> },
    GivenUp(String),
    Dropped,
}

/// Sends the events of the local task until it has ended, and cancels it when the attempt shall stop.
pub(crate) fn follow(shared: &WorkerState<'_>, control: &AttemptControl, local: &TaskId) -> Followed {
    let gone = || Followed::GivenUp(format!("the task {local} is gone from the worker"));
    let dir = match repeat_local(shared, control, || shared.engine.results().task_dir(local)) {
        Some(Some(dir)) => dir,
        Some(None) => return gone(),
        None => return Followed::Dropped,
    };
    let mut events = EventsUpload::new(shared, control, &dir);
    let mut next_upkeep = Instant::now() + UPKEEP_INTERVAL;
    let mut cancelled_for: Option<Stop> = None;
    let mut has_problem = false;
    let task = loop {
        let is_upkeep_due = Instant::now() >= next_upkeep;
        match poll(shared, control, local, is_upkeep_due, &mut cancelled_for) {
            Ok(task) if task.state.is_terminal() => break task,
            Ok(_) => has_problem = false,
            Err(EngineError::UnknownTask { .. }) => return gone(),
            // The agent still runs: a busy registry or a full disk is no reason to give it up.
            Err(error) if !has_problem => {
                has_problem = true;
                shared.report_problem(format!("could not read {local}: {error}; trying again"));
            }
            Err(_) => {}
        }
        if is_upkeep_due {
            next_upkeep = Instant::now() + UPKEEP_INTERVAL;
        }
        if shared.signals.is_abandoning() {
            return Followed::Dropped;
        }
        events.send_available();
        control.pause(POLL_INTERVAL);
    };
    let end = match task.ended.map(|ended| ended.end) {
        Some(end) if cancelled_for != Some(Stop::Lost) => end,
        _ => return Followed::Dropped,
    };
    if let Some(cause) = lost_contact(&end, shared.settings.cutoff) {
        return Followed::GivenUp(cause);
    }
    match events.send_rest() {
        Ok(warnings) => Followed::Ended { end, warnings },
        Err(_) => Followed::Dropped,
    }
}

/// Whether the worker or the supervisor ended the task because there was no contact with the fleet. A task
/// that had ended before, or that a user cancelled, is reported as it ended.
pub(crate) fn lost_contact(end: &TaskEnd, cutoff: Duration) -> Option<String> {
    let TaskEnd::Cancelled { reason: Some(reason) } = end else { return None };
    (reason == CONTACT_LOST).then(|| {
        let seconds = cutoff.as_secs();
        format!("the worker had no connection to the database for {seconds} s and stopped the agent")
    })
}

/// Reads the task, and cancels it if the attempt shall stop for a reason for which it is not cancelled yet.
fn poll(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    local: &TaskId,
    is_upkeep_due: bool,
    cancelled_for: &mut Option<Stop>,
) -> Result<Task, EngineError> {
    let results = shared.engine.results();
    let task = if is_upkeep_due { results.task(local)? } else { results.recorded_task(local)? };
    let stop = control.stop();
    if stop != *cancelled_for && !task.state.is_terminal() {
        cancel(shared, control, local, stop.as_ref())?;
        *cancelled_for = stop;
    }
    Ok(task)
}

fn cancel(
    shared: &WorkerState<'_>,
    control: &AttemptControl,
    local: &TaskId,
    stop: Option<&Stop>,
) -> Result<(), EngineError> {
    let reason = match stop {
        None | Some(Stop::Release) => return Ok(()),
        Some(Stop::Cancel { reason }) => reason.clone(),
        Some(Stop::CutOff) => Some(CONTACT_LOST.to_owned()),
        Some(Stop::Lost) => Some(NOT_OWNED.to_owned()),
    };
    shared.report(&WorkerEvent::Cancelling { task: control.log_name.clone() });
    match shared.engine.cancellations().request(local, reason.as_deref()) {
        // The next poll finds its end.
        Err(EngineError::AlreadyEnded { .. }) => Ok(()),
        outcome => outcome,
    }
}

const CHUNK_BYTES: u64 = 256 * 1024;
/// Two uploads are at least this far apart.
const INTERVAL: Duration = Duration::from_millis(250);
/// After this many errors of the file in a row, over about ten seconds, the rest is not sent.
const MAX_READ_FAILURES: u32 = 6;

pub(crate) struct EventsUpload<'a> {
    shared: &'a WorkerState<'a>,
    control: &'a AttemptControl,
    path: PathBuf,
    /// How much the database has, as far as is known.
    offset: u64,
    not_before: Instant,
    failures: u32,
}

impl<'a> EventsUpload<'a> {
    pub(crate) fn new(
        shared: &'a WorkerState<'a>,
        control: &'a AttemptControl,
        dir: &TaskDir,
    ) -> EventsUpload<'a> {
        let path = dir.file(TaskFile::Events);
        EventsUpload { shared, control, path, offset: 0, not_before: Instant::now(), failures: 0 }
    }

    /// Sends one chunk, if there is one and an upload is due. Errors are repeated later.
    pub(crate) fn send_available(&mut self) {
        if Instant::now() < self.not_before {
            return;
        }
        let Ok(bytes) = read_chunk(&self.path, self.offset) else {
            self.fail();
            return;
        };
        if bytes.is_empty() {
            self.failures = 0;
            return;
        }
        match self.send(&bytes) {
            Ok(()) => {
                self.failures = 0;
                self.not_before = Instant::now() + INTERVAL;
            }
            Err(_) => self.fail(),
        }
    }

    fn fail(&mut self) {
        self.failures += 1;
        self.not_before = Instant::now() + back_off(self.failures);
    }

    /// Sends everything, after the file is complete. Returns a warning if the file cannot be read: that is no
    /// reason to withhold the end of the task.
    pub(crate) fn send_rest(&mut self) -> Result<Vec<String>, FleetError> {
        let (shared, control) = (self.shared, self.control);
        let mut failures = 0;
        loop {
            match read_chunk(&self.path, self.offset) {
                Ok(bytes) if bytes.is_empty() => return Ok(Vec::new()),
                Ok(bytes) => {
                    failures = 0;
                    shared.persist(control, || self.send(&bytes))?;
                }
                Err(error) if failures == MAX_READ_FAILURES => {
                    return Ok(vec![format!("The events of the task could not be read: {error}")]);
                }
                Err(_) => {
                    failures += 1;
                    control.pause(back_off(failures));
                }
            }
        }
    }

    /// Appends the bytes at the offset, or finds out where the stored events end.
    fn send(&mut self, bytes: &[u8]) -> Result<(), FleetError> {
        match self.shared.database.append_events(&self.control.claim, self.offset, bytes) {
            Ok(end) => self.offset = end,
            Err(FleetError::Gap { stored }) => self.offset = stored,
            Err(error) => {
                if matches!(error, FleetError::Fenced { .. }) {
                    self.control.request(Stop::Lost);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

fn read_chunk(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(CHUNK_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
