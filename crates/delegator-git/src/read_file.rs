//! Reads small files that others may replace at any time: by a link, by a pipe, by a large file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// The content of a regular file of at most `max_bytes`; `None` if it is anything else. A symbolic link is followed only
/// if `follows_link`.
pub(crate) fn read_regular(path: &Path, max_bytes: u64, follows_link: bool) -> Option<Vec<u8>> {
    // Opening a pipe must not block.
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if !follows_link {
        flags |= OFlags::NOFOLLOW;
    }
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= max_bytes).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        // Opening this would block until a writer comes.
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), 0o600.into()).unwrap();
        assert_eq!(read_regular(&at("file"), 5, false).unwrap(), b"12345");
        assert_eq!(read_regular(&at("link"), 5, true).unwrap(), b"12345");
        assert_eq!(read_regular(&at("file"), 4, false), None);
        for name in ["link", "fifo", "none", "."] {
            assert_eq!(read_regular(&at(name), 5, false), None, "{name}");
        }
    }
}
