//! Deletes old tasks from the database, beside the heartbeats: deleting many takes longer than a heartbeat may wait.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use delegator_fleet::FleetError;

use super::port::WorkerEvent;
use super::shared::Shared;

#[derive(Debug, Default)]
pub(super) struct Pruning {
    /// The result of the thread that runs.
    running: Option<Receiver<Result<(), FleetError>>>,
    has_failed: bool,
}

impl Pruning {
    /// Begins to prune, unless that is under way. The worker does not wait for the thread, not even when it exits.
    pub(super) fn go_on(&mut self, shared: &Shared<'_>) {
        if let Some(running) = &self.running {
            match running.try_recv() {
                Err(TryRecvError::Empty) => return,
                Ok(Err(error)) => self.note_failure(shared, &error.to_string()),
                Ok(Ok(())) => self.has_failed = false,
                Err(TryRecvError::Disconnected) => {}
            }
        }
        let (sender, receiver) = channel();
        let (database, retention) = (shared.database.clone(), shared.settings.retention);
        let spawned = std::thread::Builder::new().name("prune".to_owned()).spawn(move || {
            let pruned = database.prune(&retention).map(drop);
            // The session may have ended meanwhile.
            let _ = sender.send(pruned);
        });
        match spawned {
            Ok(_) => self.running = Some(receiver),
            Err(error) => {
                self.running = None;
                self.note_failure(shared, &error.to_string());
            }
        }
    }

    /// Another worker, or this one later, deletes what is due; but the operator should know.
    fn note_failure(&mut self, shared: &Shared<'_>, problem: &str) {
        if !self.has_failed {
            let message = format!("could not delete old tasks from the fleet's database: {problem}");
            shared.report(&WorkerEvent::Problem { message });
        }
        self.has_failed = true;
    }
}
