//! Writes a ref of a repository whose refs are plain files, the way git does: a lock file that is renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::store::safe_name;

/// Sets the ref to `id`. Returns false if it could not, and then changed nothing: git must do it or report the problem.
/// Only the names of restore points are written.
pub(crate) fn write_ref_file(common_dir: &Path, reference: &str, id: &str) -> bool {
    let is_valid = safe_name(reference).is_some_and(|name| !name.ends_with(".lock") && !name.ends_with('.'));
    is_valid && try_write(common_dir, reference, id).is_ok()
}

fn try_write(common_dir: &Path, reference: &str, id: &str) -> io::Result<()> {
    let path = common_dir.join(reference);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for part in [folder.parent().ok_or(io::ErrorKind::InvalidInput)?, folder] {
        // git itself follows no link here.
        if !fs::symlink_metadata(part)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    let lock_path = common_dir.join(format!("{reference}.lock"));
    let mut lock = File::options().write(true).create_new(true).open(&lock_path)?;
    let written = lock.write_all(format!("{id}\n").as_bytes()).and_then(|()| lock.sync_all());
    let renamed = written.and_then(|()| fs::rename(&lock_path, &path));
    if renamed.is_err() {
        let _ = fs::remove_file(&lock_path);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "refs/mcp-delegator/T-1";

    #[test]
    fn a_ref_is_written_unless_it_is_locked() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        assert!(!write_ref_file(dir, REFERENCE, "aa"), "there is no directory for refs");
        fs::create_dir(dir.join("refs")).unwrap();
        for id in ["aa", "bb"] {
            assert!(write_ref_file(dir, REFERENCE, id));
            assert_eq!(fs::read_to_string(dir.join(REFERENCE)).unwrap(), format!("{id}\n"));
        }
        fs::write(dir.join("refs/mcp-delegator/T-1.lock"), "").unwrap();
        assert!(!write_ref_file(dir, REFERENCE, "cc"));
        fs::remove_file(dir.join("refs/mcp-delegator/T-1.lock")).unwrap();
        fs::create_dir_all(dir.join("refs/mcp-delegator/T-2")).unwrap();
        assert!(!write_ref_file(dir, "refs/mcp-delegator/T-2", "aa"), "a directory is in its place");
        for invalid in ["refs/heads/main", "refs/mcp-delegator/../x", "refs/mcp-delegator/x.lock"] {
            assert!(!write_ref_file(dir, invalid, "aa"), "{invalid}");
        }
        let names = fs::read_dir(dir.join("refs/mcp-delegator")).unwrap();
        assert_eq!(names.count(), 2, "no lock is left");
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::create_dir_all(dir.join("elsewhere")).unwrap();
        fs::create_dir(dir.join("refs")).unwrap();
        std::os::unix::fs::symlink(dir.join("elsewhere"), dir.join("refs/mcp-delegator")).unwrap();
        assert!(!write_ref_file(dir, REFERENCE, "aa"));
        assert_eq!(fs::read_dir(dir.join("elsewhere")).unwrap().count(), 0);
    }
}
