//! What a run tells and asks, connected to the registry and the task's files.
//!
//! Nothing here may fail a run: what cannot be written is noted and the agent goes on.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::TaskId;
use delegator_registry::{Attempt, ChangeMark, TaskDir, TaskFile};
use delegator_supervisor::process::Owner;
use delegator_supervisor::run::{CancelRequest, Ports, Snapshot, Stream};
use delegator_transcript::Report;

use super::end_signals::EndSignals;
use super::evidence::{EvidenceAndFindings, Observation};
use crate::Engine;
use crate::connection_pool::PooledConnection;
use crate::upkeep::leftovers;
use crate::upkeep::process_owner::owner_of;

/// A little less than how often each of them would.
const UPKEEP_INTERVAL_MS: i64 = 25_000;

pub(crate) struct TaskPorts {
    pub(crate) registry: RefCell<PooledConnection>,
    pub(crate) id: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) dir: TaskDir,
    pub(crate) socket: Option<UnixDatagram>,
    pub(crate) signals: EndSignals,
    pub(crate) engine: Engine,
    /// Where the registry stood when the row was last read.
    pub(crate) last_read_mark: Cell<Option<ChangeMark>>,
    /// How the files were before the agent came, until they are looked at again.
    pub(crate) observation: RefCell<Option<Observation>>,
    /// What had become of them when the agent was gone.
    pub(crate) observed: RefCell<Option<EvidenceAndFindings>>,
}

impl TaskPorts {
    fn path(&self, stream: Stream, part: u32) -> PathBuf {
        let path = self.dir.file(match stream {
            Stream::Events => TaskFile::Events,
            Stream::Stderr => TaskFile::Stderr,
            Stream::Verify => TaskFile::Verify,
        });
        match part {
            0 => path,
            part => path.with_added_extension(part.to_string()),
        }
    }

    /// Looks at the files again, unless that was done already.
    pub(crate) fn observe_changes(&self, report: &Report) {
        if let Some(watch) = self.observation.take() {
            let other_writers = || self.registry.borrow().concurrent_writers(&self.id).unwrap_or_default();
            self.observed.replace(Some(watch.finish(report, other_writers)));
        }
    }

    fn drain_socket(&self) {
        let mut byte = [0; 16];
        while self.socket.as_ref().is_some_and(|socket| socket.recv(&mut byte).is_ok()) {}
    }
}

impl Ports for TaskPorts {
    fn create(&self, stream: Stream, part: u32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600).open(self.path(stream, part))
    }

    fn remove(&self, stream: Stream, part: u32) -> io::Result<()> {
        std::fs::remove_file(self.path(stream, part))
    }

    /// Asked every second by every supervisor: the row is read only if somebody has written since.
    fn cancel_requested(&self) -> Option<CancelRequest> {
        self.drain_socket();
        if let Some(reason) = self.signals.reason() {
            return Some(CancelRequest { reason: Some(reason) });
        }
        let registry = self.registry.borrow();
        let mark = registry.change_mark().ok();
        if mark.is_some() && self.last_read_mark.get() == mark {
            return None;
        }
        let cancel = registry.get(&self.id).ok()??.cancel;
        // A request stands: whatever runs after the agent is asked to end by it, too.
        self.last_read_mark.set(mark.filter(|_| cancel.is_none()));
        cancel.map(|request| CancelRequest { reason: request.reason })
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    fn on_stdin_delivered(&self) {
        crash_point(CrashPoint::StdinDelivered);
        let _ = self.dir.remove_launch();
        crash_point(CrashPoint::LaunchRemoved);
    }

    /// What a check writes is not the agent's doing.
    fn before_verification(&self, report: &Report) {
        self.observe_changes(report);
    }

    /// One of all the supervisors looks for all of them. What the look may ask for must not hold up the run.
    fn periodic_upkeep(&self) {
        let turn = self.registry.borrow_mut().claim_periodic_job(
            "rounds",
            UPKEEP_INTERVAL_MS,
            crate::clock::now_ms(),
        );
        if *turn.as_ref().unwrap_or(&false) {
            leftovers::remove_dead_submits(&mut self.registry.borrow_mut());
        }
        if turn.unwrap_or(false) && self.engine.is_rescue_due(&self.registry.borrow()).unwrap_or(false) {
            let engine = self.engine.clone();
            let _ = std::thread::Builder::new().spawn(move || engine.rescue());
        }
    }

    fn owner_of(&self, pid: i32) -> Owner {
        owner_of(&self.registry.borrow(), &self.id, pid)
    }

    fn on_thread(&self, thread_id: &str) {
        let _ = self.registry.borrow_mut().set_thread(
            &self.id,
            &self.attempt.nonce,
            thread_id,
            crate::clock::now_ms(),
        );
    }

    fn on_snapshot(&self, snapshot: &Snapshot) {
        if let Ok(bytes) = serde_json::to_vec(snapshot) {
            let _ = self.dir.write_snapshot(&bytes);
            crash_point(CrashPoint::SnapshotWritten);
        }
    }
}
