//! Reads and replaces configuration files: the only I/O on file contents in this crate.
//!
//! Only regular files are opened, because opening a pipe would wait for a writer that may never come.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Far above the size of any real configuration file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of symbolic links to follow.
const MAX_LINKS: usize = 16;

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the file does not exist")]
    Missing,
    #[error("this is a directory, not a file")]
    Directory,
    #[error("this is not a regular file")]
    Special,
    #[error("the file is larger than 1 MiB")]
    TooLarge,
    #[error("the file is not UTF-8 text: byte {at} is invalid")]
    NotUtf8 { at: usize },
    #[error("the file cannot be read: {0}")]
    Io(#[source] io::Error),
}

/// Whether there is no file at this path. Other errors are left for [`read_text`] to report.
pub(crate) fn is_missing(path: &Path) -> bool {
    path.metadata().is_err_and(|error| matches!(ReadError::from(error), ReadError::Missing))
}

/// The text of a file, without a byte order mark.
pub(crate) fn read_text(path: &Path) -> Result<String, ReadError> {
    let kind = path.metadata()?.file_type();
    if kind.is_dir() {
        return Err(ReadError::Directory);
    }
    if !kind.is_file() {
        return Err(ReadError::Special);
    }
    let mut bytes = Vec::new();
    // Reads one byte more than allowed to detect a larger file; the size in the metadata may be wrong.
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > MAX_FILE_BYTES) {
        return Err(ReadError::TooLarge);
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| ReadError::NotUtf8 { at: error.utf8_error().valid_up_to() + 1 })?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text))
}

/// Replaces a file atomically: a reader sees either the old or the new text. A symbolic link is followed, not
/// replaced.
pub fn replace_text(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let target = resolve_links(path)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    // The temporary file is private; it gets its final mode only when it is complete.
    let mut new = tempfile::Builder::new().prefix(".mcp-delegator-").tempfile_in(directory)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(&target).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Locks the directory of a file until the returned handle is dropped.
pub(crate) fn lock(directory: &Path) -> io::Result<File> {
    let handle = File::open(directory)?;
    handle.lock()?;
    Ok(handle)
}

/// The target of a chain of symbolic links, whether or not it exists.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(to) => target = target.parent().unwrap_or(Path::new("/")).join(to),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::Missing,
            _ => ReadError::Io(error),
        }
    }
}

#[cfg(test)]
mod tests;
