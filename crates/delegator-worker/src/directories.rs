//! Copies whole directories.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::Path;

/// Copies files, directories and symbolic links with their modes and times; other files are left out. `to`
/// must not exist.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_directory(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            copy_file(&source, &target)?;
        }
    }
    // Last: the mode may forbid to write, and every entry changes the time.
    let found = fs::metadata(from)?;
    fs::set_permissions(to, found.permissions())?;
    File::open(to)?.set_times(FileTimes::new().set_modified(found.modified()?))
}

/// The times must be equal: by them git recognises unchanged files.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let found = fs::metadata(from)?;
    File::open(to)?.set_times(FileTimes::new().set_modified(found.modified()?))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use delegator_engine::remove_directory;

    #[test]
    fn a_copy_has_the_same_content_modes_times_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/tool"), "x").unwrap();
        fs::set_permissions(from.join("sub/tool"), Permissions::from_mode(0o755)).unwrap();
        fs::write(from.join("sub/fixed"), "y").unwrap();
        fs::set_permissions(from.join("sub/fixed"), Permissions::from_mode(0o444)).unwrap();
        std::os::unix::fs::symlink("sub/tool", from.join("link")).unwrap();
        fs::set_permissions(from.join("sub"), Permissions::from_mode(0o555)).unwrap();
        copy_directory(&from, &to).unwrap();
        let (a, b) =
            (fs::metadata(from.join("sub/tool")).unwrap(), fs::metadata(to.join("sub/tool")).unwrap());
        assert_eq!((a.modified().unwrap(), a.permissions()), (b.modified().unwrap(), b.permissions()));
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("sub/tool"));
        assert_eq!(fs::metadata(to.join("sub")).unwrap().permissions().mode() & 0o777, 0o555);
        for dir in [from, to] {
            remove_directory(&dir).unwrap();
            assert!(!dir.exists());
            remove_directory(&dir).unwrap();
        }
    }
}
