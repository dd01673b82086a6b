//! The contact of a worker with its fleet, as the supervisors of its tasks see it.
//!
//! A worker that loses its lease loses its tasks: they may run elsewhere then. It stops them in time, but it
//! may be killed or suspended itself. So each supervisor watches a file with the time of the worker's last
//! successful heartbeat, and ends its task when that is too long ago.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A cancellation for this reason is reported as lost, not as cancelled.
pub const CONTACT_LOST: &str = "the worker had no contact with the fleet for too long";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerContact {
    pub file: PathBuf,
    pub limit: Duration,
}

/// Time since the machine was started, also while it was suspended. It is the same for all processes, and
/// cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

impl BootInstant {
    pub fn now() -> BootInstant {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        BootInstant(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default()))
    }

    pub fn elapsed(self) -> Duration {
        BootInstant::now().0.saturating_sub(self.0)
    }

    fn parse(text: &str) -> Option<BootInstant> {
        Some(BootInstant(Duration::from_millis(text.trim().parse().ok()?)))
    }
}

/// Records a heartbeat that was sent at this time and succeeded. The file is overwritten in place, with one
/// write of the same length, so that a full disk does not end the tasks.
pub fn record_contact(file: &Path, sent_at: BootInstant) -> io::Result<()> {
    let file = File::options().create(true).truncate(false).write(true).open(file)?;
    file.write_all_at(format!("{:020}", sent_at.0.as_millis()).as_bytes(), 0)
}

#[derive(Debug)]
pub(crate) struct ContactWatch {
    contact: WorkerContact,
    last: Cell<BootInstant>,
}

impl ContactWatch {
    pub(crate) fn new(contact: WorkerContact) -> ContactWatch {
        ContactWatch { contact, last: Cell::new(BootInstant::now()) }
    }

    /// Whether the last heartbeat is too long ago. A file that cannot be read counts as unchanged.
    pub(crate) fn is_lost(&self) -> bool {
        if let Some(at) =
            fs::read_to_string(&self.contact.file).ok().and_then(|text| BootInstant::parse(&text))
        {
            self.last.set(at);
        }
        self.last.get().elapsed() >= self.contact.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(by: Duration) -> BootInstant {
        BootInstant(BootInstant::now().0.saturating_sub(by))
    }

    #[test]
    fn contact_is_lost_when_the_last_heartbeat_is_older_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contact");
        let limit = Duration::from_secs(100);
        let watch = ContactWatch::new(WorkerContact { file: file.clone(), limit });
        assert!(!watch.is_lost(), "there is no file yet");
        record_contact(&file, earlier(Duration::from_secs(99))).unwrap();
        assert!(!watch.is_lost());
        record_contact(&file, earlier(Duration::from_secs(101))).unwrap();
        assert!(watch.is_lost());
        record_contact(&file, BootInstant::now()).unwrap();
        assert!(!watch.is_lost());
    }

    #[test]
    fn a_file_that_cannot_be_read_does_not_renew_the_contact() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contact");
        let limit = Duration::from_secs(100);
        let watch = ContactWatch::new(WorkerContact { file: file.clone(), limit });
        record_contact(&file, earlier(Duration::from_secs(101))).unwrap();
        assert!(watch.is_lost());
        fs::write(&file, "damaged").unwrap();
        assert!(watch.is_lost());
        fs::remove_file(&file).unwrap();
        assert!(watch.is_lost());
    }
}
