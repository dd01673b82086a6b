//! Submitters and workers that write down what the database acknowledges.

use std::time::Duration;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{
    Database, FinishedTask, FleetClaim, FleetEnd, FleetError, FleetState, FleetTask, Listener, NewFleetTask,
    NewSession, OwnedTask, SessionId, Submitted,
};
use delegator_testkit::fleet_history::{Ack, Owner, result_of};
use delegator_testkit::stage::wait_until;

use crate::fleet::Log;

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) database: Database,
    pub(crate) log: Log,
}

impl Client {
    pub(crate) fn submit(&self, task: &NewFleetTask) -> Result<Submitted, FleetError> {
        let submitted = self.database.submit(task)?;
        self.record(Ack::Submitted { task: submitted.id.clone() });
        Ok(submitted)
    }

    pub(crate) fn task(&self, id: &str) -> FleetTask {
        self.database.tasks(&[id.to_owned()]).unwrap().remove(0).unwrap()
    }

    /// A worker on a machine of its own.
    pub(crate) fn worker(self, name: &str, lease: Duration) -> Worker {
        let opened = self.database.open_session(&new_session(name, lease)).unwrap();
        assert_eq!(opened.tasks, []);
        Worker { client: self, session: opened.id }
    }

    fn record(&self, ack: Ack) {
        self.log.lock().unwrap().push(ack);
    }

    /// Records that a claim was refused.
    fn fenced<T>(&self, claim: &FleetClaim, result: Result<T, FleetError>) -> Result<T, FleetError> {
        if let Err(FleetError::Fenced { task }) = &result {
            assert_eq!(*task, claim.task);
            self.record(Ack::Fenced(owner(claim)));
        }
        result
    }
}

pub(crate) fn new_session(name: &str, lease: Duration) -> NewSession {
    NewSession {
        worker: name.to_owned(),
        workspace: format!("workspace of {name}"),
        slots: 4,
        labels: [("os".to_owned(), "linux".to_owned())].into(),
        version: "3.6.0".to_owned(),
        lease,
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) client: Client,
    pub(crate) session: SessionId,
}

impl Worker {
    pub(crate) fn database(&self) -> &Database {
        &self.client.database
    }

    pub(crate) fn listener(&self) -> Listener {
        self.database().listener(&self.session, Duration::from_secs(15))
    }

    pub(crate) fn claim(&self, max: u32) -> Result<Vec<OwnedTask>, FleetError> {
        let claimed = self.database().claim(&self.session, max)?;
        for task in &claimed {
            self.client.record(Ack::Claimed(owner(&task.claim)));
        }
        Ok(claimed)
    }

    pub(crate) fn claim_one(&self) -> FleetClaim {
        let mut claimed = self.claim(1).unwrap();
        assert_eq!(claimed.len(), 1);
        claimed.remove(0).claim
    }

    /// A task that is claimed and running.
    pub(crate) fn run_one(&self) -> FleetClaim {
        let claim = self.claim_one();
        self.start(&claim).unwrap();
        claim
    }

    pub(crate) fn start(&self, claim: &FleetClaim) -> Result<(), FleetError> {
        self.client.fenced(claim, self.database().start(claim))?;
        self.client.record(Ack::Started(owner(claim)));
        Ok(())
    }

    pub(crate) fn append(&self, claim: &FleetClaim, offset: u64, bytes: &[u8]) -> Result<u64, FleetError> {
        let stored = self.client.fenced(claim, self.database().append_events(claim, offset, bytes));
        let event_bytes = stored?;
        self.client.record(Ack::Stored { owner: owner(claim), event_bytes });
        Ok(event_bytes)
    }

    pub(crate) fn finish(&self, claim: &FleetClaim, end: TaskEnd) -> Result<(), FleetError> {
        let state = end.state().name();
        let finished = self.database().finish(claim, &finished(claim, end));
        self.client.fenced(claim, finished)?;
        self.client.record(Ack::Finished { owner: owner(claim), state });
        Ok(())
    }

    /// One round of a worker: tasks that it owns, including those of a claim whose answer was lost, and new ones, from
    /// start to end. Returns how many it ended. An error leaves the rest for the next round.
    pub(crate) fn work(&self, max: u32) -> Result<usize, FleetError> {
        let owned = self.database().heartbeat(&self.session)?.tasks;
        let owned = owned.into_iter().map(|OwnedTask { claim, cancel, .. }| (claim, cancel.is_some()));
        let claimed = self.claim(max)?.into_iter().map(|OwnedTask { claim, .. }| (claim, false));
        let mut ended = 0;
        for (claim, is_cancelled) in owned.chain(claimed) {
            match self.run(&claim, is_cancelled) {
                Ok(()) => ended += 1,
                // Cancelled before it started.
                Err(FleetError::Fenced { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ended)
    }

    fn run(&self, claim: &FleetClaim, is_cancelled: bool) -> Result<(), FleetError> {
        self.start(claim)?;
        let events = format!("{{\"attempt\":{}}}\n", claim.attempt);
        self.append(claim, 0, events.as_bytes())?;
        let cancelled = TaskEnd::Cancelled { reason: None };
        self.finish(claim, if is_cancelled { cancelled } else { TaskEnd::Completed })
    }
}

/// The claim as the model names it.
fn owner(claim: &FleetClaim) -> Owner {
    Owner { task: claim.task.clone(), attempt: claim.attempt, session: claim.session.to_string() }
}

pub(crate) fn finished(claim: &FleetClaim, end: TaskEnd) -> FinishedTask {
    FinishedTask { end, result: result_of(claim.attempt, &claim.session.to_string()), blobs: Vec::new() }
}

/// Repeats a call while the database is away.
pub(crate) fn until_answered<T>(mut call: impl FnMut() -> Result<T, FleetError>) -> Result<T, FleetError> {
    let mut answer = call();
    wait_until("the database answers", || {
        if answer.as_ref().is_err_and(FleetError::is_transient) {
            answer = call();
        }
        !answer.as_ref().is_err_and(FleetError::is_transient)
    });
    answer
}

/// How a task ended.
pub(crate) fn end_of(task: FleetTask) -> TaskEnd {
    match task.state {
        FleetState::Ended(end) => {
            let FleetEnd { end, .. } = *end;
            end
        }
        state => panic!("the task has not ended: {state:?}"),
    }
}
