//! Reserved disk space, so that an end can be recorded on a full disk.
//!
//! The reserve is a file with allocated blocks. When recording an end fails for lack of space, one slice is
//! released and the operation is retried. It is released in slices because the task that filled the disk
//! takes whatever becomes free; later ends still need space. A submit fills the reserve again once there is
//! enough free space.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use rustix::fs::FallocateFlags;

use super::durable;

/// Enough for the transaction of an end (about ten pages), the shared-memory index, and a report.
const SLICE_BYTES: u64 = 256 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct ReserveFile {
    path: PathBuf,
    target_bytes: u64,
}

impl ReserveFile {
    pub(crate) fn new(path: PathBuf, target_bytes: u64) -> ReserveFile {
        ReserveFile { path, target_bytes }
    }

    pub(crate) fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn missing_bytes(&self) -> u64 {
        self.target_bytes.saturating_sub(self.size())
    }

    /// Allocates up to the target size. Running out of space is not an error: the reserve then stays as it
    /// is.
    pub(crate) fn fill(&self) -> io::Result<()> {
        let file = self.lock()?;
        let size = file.metadata()?.len();
        match allocate(&file, size, self.target_bytes.saturating_sub(size)) {
            Err(error) if durable::is_out_of_space(&error) => file.set_len(size),
            other => other,
        }
    }

    /// Releases one slice; false if nothing is left.
    pub(crate) fn release_slice(&self) -> io::Result<bool> {
        // Without a reserve, do not create its file on a full disk.
        if self.size() == 0 {
            return Ok(false);
        }
        let file = self.lock()?;
        let size = file.metadata()?.len();
        file.set_len(size.saturating_sub(SLICE_BYTES))?;
        Ok(size > 0)
    }

    /// Serialises fill and release between processes.
    fn lock(&self) -> io::Result<File> {
        let file = durable::open_lock_file(&self.path)?;
        file.lock()?;
        Ok(file)
    }
}

fn allocate(mut file: &File, from: u64, length: u64) -> io::Result<()> {
    // `fallocate` refuses a length of 0.
    if length == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), from, length) {
        // Where blocks cannot be allocated, write zeros.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            io::Seek::seek(&mut file, io::SeekFrom::Start(from))?;
            io::copy(&mut io::Read::take(io::repeat(0), length), &mut file)?;
            Ok(())
        }
        allocated => Ok(allocated?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_reserve_holds_real_blocks_and_is_released_in_slices() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("held-back");
        let reserve = ReserveFile::new(path.clone(), 2 * SLICE_BYTES);
        reserve.fill().unwrap();
        assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 2 * SLICE_BYTES);
        assert!(reserve.release_slice().unwrap());
        assert_eq!(reserve.size(), SLICE_BYTES);
        assert!(reserve.release_slice().unwrap());
        assert!(!reserve.release_slice().unwrap());
        reserve.fill().unwrap();
        assert_eq!(reserve.missing_bytes(), 0);
    }
}
