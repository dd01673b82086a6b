//! Sends the stored events of a local task to the fleet.
//!
//! The file of the local registry is the spool: nothing is lost while the database is away. The database
//! knows how much it has, so an upload can be repeated and continued by another process.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_fleet::FleetError;
use delegator_registry::{TaskDir, TaskFile};

use crate::attempt_control::{AttemptControl, Stop};
use crate::decisions::back_off;
use crate::shared::Shared;

const CHUNK_BYTES: u64 = 256 * 1024;
/// Two uploads are at least this far apart.
const INTERVAL: Duration = Duration::from_millis(250);
/// After this many errors of the file in a row, over about ten seconds, the rest is not sent.
const MAX_READ_FAILURES: u32 = 6;

pub(crate) struct EventsUpload<'a> {
    shared: &'a Shared<'a>,
    control: &'a AttemptControl,
    path: PathBuf,
    /// How much the database has, as far as is known.
    offset: u64,
    not_before: Instant,
    failures: u32,
}

impl<'a> EventsUpload<'a> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
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

/// The next bytes; none at the end of the file, or before it exists.
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
