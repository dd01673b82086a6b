//! Space held back, so that an end can be recorded on a full disk.
//!
//! A file with real blocks. When recording an end fails for want of space, one slice of it is given up and the step is
//! tried again. Slices, because the task that filled the disk takes whatever becomes free: the next end still finds
//! something. Once there is room again, a submit fills it up.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, FlockOperation};

use super::durable;

/// Enough for the transaction of an end (some ten pages), its index in shared memory, and a report.
const SLICE: u64 = 256 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Ballast {
    path: PathBuf,
    wanted: u64,
}

impl Ballast {
    pub(crate) fn new(path: PathBuf, wanted: u64) -> Ballast {
        Ballast { path, wanted }
    }

    pub(crate) fn held(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn missing(&self) -> u64 {
        self.wanted.saturating_sub(self.held())
    }

    /// Fills up to what is wanted. Running out of space is no error: there is then nothing to hold back.
    pub(crate) fn fill(&self) -> io::Result<()> {
        if self.missing() == 0 {
            return Ok(());
        }
        let file = self.lock()?;
        let held = file.metadata()?.len();
        match allocate(&file, held, self.wanted.saturating_sub(held)) {
            Err(error) if durable::is_out_of_space(&error) => file.set_len(held),
            other => other,
        }
    }

    /// Gives up one slice; false when nothing is left to give.
    pub(crate) fn release_slice(&self) -> io::Result<bool> {
        if self.held() == 0 {
            return Ok(false);
        }
        let file = self.lock()?;
        let held = file.metadata()?.len();
        if held == 0 {
            return Ok(false);
        }
        file.set_len(held.saturating_sub(SLICE))?;
        Ok(true)
    }

    /// Two that give up at once give up two slices, and nobody fills what another is giving up.
    fn lock(&self) -> io::Result<File> {
        let options = &mut fs::OpenOptions::new();
        let file =
            durable::open_private(&self.path, options.read(true).write(true).create(true).truncate(false))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }
}

fn allocate(mut file: &File, from: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), from, length) {
        Ok(()) => Ok(()),
        // Where blocks cannot be reserved they are written.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            io::Seek::seek(&mut file, io::SeekFrom::Start(from))?;
            io::copy(&mut io::Read::take(io::repeat(0), length), &mut file)?;
            file.flush()
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn it_holds_real_blocks_gives_them_up_in_slices_and_fills_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("held-back");
        let ballast = Ballast::new(path.clone(), 2 * SLICE);
        ballast.fill().unwrap();
        assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 2 * SLICE);
        assert!(ballast.release_slice().unwrap());
        assert_eq!(ballast.held(), SLICE);
        assert!(ballast.release_slice().unwrap());
        assert!(!ballast.release_slice().unwrap());
        ballast.fill().unwrap();
        assert_eq!(ballast.missing(), 0);
    }
}
