//! Scans a directory outside of git: names, sizes and modification times of its files.
//!
//! The scan is bounded in number, depth and time, because a working directory may be a home directory or a
//! whole file system. A large state before the run is stored in an unnamed temporary file, not in memory.
//! Tool directories (such as `node_modules`), links and other file systems are not entered.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_git::{ChangeKind, FileChange, TOOL_DIRECTORIES};
use tempfile::SpooledTempFile;

use crate::shared::directories::{FileStamp, file_stamp};

const MAX_COUNTED_BYTES: u64 = 16 << 20;
/// A longer list of files is stored on disk.
const MAX_BYTES_IN_MEMORY: usize = 256 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries: usize,
    pub(super) depth: usize,
    pub(super) time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { entries: 20_000, depth: 32, time: Duration::from_secs(2) }
    }
}

#[derive(Debug)]
pub(super) struct Scan {
    root: PathBuf,
    entries: SpooledTempFile,
    is_whole: bool,
    /// Top levels of git repositories below the root.
    pub(super) repositories: Vec<PathBuf>,
}

#[derive(Debug)]
pub(super) struct ScanChanges {
    pub(super) files: Vec<FileChange>,
    pub(super) is_whole: bool,
}

impl Scan {
    /// `scratch` is the directory for the temporary file.
    pub(super) fn take(root: &Path, scratch: &Path, bounds: Bounds) -> io::Result<Scan> {
        let mut entries = BufWriter::new(tempfile::spooled_tempfile_in(MAX_BYTES_IN_MEMORY, scratch));
        let mut repositories = Vec::new();
        let is_whole = walk(root, bounds, &mut |path, stamp| {
            if let Some(repository) = repository_of(path) {
                repositories.push(root.join(repository));
            }
            let Some(stamp) = stamp else { return Ok(()) };
            let length = u32::try_from(path.len()).map_err(io::Error::other)?;
            entries.write_all(&length.to_le_bytes())?;
            entries.write_all(path)?;
            stamp.iter().try_for_each(|part| entries.write_all(&part.to_le_bytes()))
        })?;
        let entries = entries.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Scan { root: root.to_owned(), entries, is_whole, repositories })
    }

    /// Compares with the current files; `since` is when the scan was taken, in milliseconds since 1970.
    pub(super) fn compare(&mut self, bounds: Bounds, since: i64) -> io::Result<ScanChanges> {
        self.entries.rewind()?;
        let mut before = read_back(&mut self.entries)?;
        let mut files = Vec::new();
        let mut counter = LineCounter { bytes_left: MAX_COUNTED_BYTES };
        let mut record = |kind, path: &[u8]| {
            // The previous number of lines of an existing file is unknown.
            let is_new = kind == ChangeKind::Added;
            let lines = is_new.then(|| counter.count(&self.root.join(OsStr::from_bytes(path)))).flatten();
            files.push(FileChange { kind, path: path.to_vec(), lines: lines.map(|added| (added, 0)) });
        };
        let is_whole = walk(&self.root, bounds, &mut |path, now| {
            let Some(now) = now else { return Ok(()) };
            match before.remove(path) {
                Some(then) if then == now => {}
                Some(_) => record(ChangeKind::Modified, path),
                None if self.is_whole => record(ChangeKind::Added, path),
                // The first scan may have missed it; a newer modification time shows a change.
                None if milliseconds(now) >= since => record(ChangeKind::Modified, path),
                None => {}
            }
            Ok(())
        })?;
        for (path, then) in before {
            match fs::symlink_metadata(self.root.join(OsStr::from_bytes(&path))) {
                Ok(now) if file_stamp(&now) == then => {}
                // A file that cannot be examined is not necessarily deleted.
                Err(error)
                    if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Ok(_) => record(ChangeKind::Modified, &path),
                Err(_) => record(ChangeKind::Deleted, &path),
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(ScanChanges { files, is_whole: is_whole && self.is_whole })
    }
}

/// Counts the lines of new files as git does, within a total byte limit.
struct LineCounter {
    bytes_left: u64,
}

impl LineCounter {
    /// `None` if the file is too large or cannot be read.
    fn count(&mut self, path: &Path) -> Option<u64> {
        let found = fs::symlink_metadata(path).ok()?;
        if found.is_symlink() {
            return Some(1);
        }
        self.bytes_left = self.bytes_left.checked_sub(found.len())?;
        let content = fs::read(path).ok()?;
        // Like git: a NUL byte in the first 8000 bytes means binary.
        if content.iter().take(8_000).any(|byte| *byte == 0) {
            return Some(0);
        }
        let line_ends = content.iter().filter(|byte| **byte == b'\n').count() as u64;
        let has_open_end = content.last().is_some_and(|byte| *byte != b'\n');
        Some(line_ends + u64::from(has_open_end))
    }
}

pub(super) fn is_in_tool_directory(path: &Path) -> bool {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let mut folders = folders.map(|folder| folder.as_os_str());
    folders.any(|folder| TOOL_DIRECTORIES.iter().any(|name| *name == folder))
}

fn milliseconds(stamp: FileStamp) -> i64 {
    let [_, _, seconds, nanoseconds] = stamp.map(u64::cast_signed);
    seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
}

fn read_back(found: &mut SpooledTempFile) -> io::Result<BTreeMap<Vec<u8>, FileStamp>> {
    let mut found = BufReader::new(found);
    let mut read = BTreeMap::new();
    let mut length = [0; 4];
    loop {
        match found.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(read),
            outcome => outcome?,
        }
        let mut path = vec![0; u32::from_le_bytes(length) as usize];
        found.read_exact(&mut path)?;
        let mut stamp = FileStamp::default();
        for part in &mut stamp {
            let mut bytes = [0; 8];
            found.read_exact(&mut bytes)?;
            *part = u64::from_le_bytes(bytes);
        }
        read.insert(path, stamp);
    }
}

/// Called with the path of an entry and, unless it is a `.git` directory, its stamp.
type Visit<'a> = dyn FnMut(&[u8], Option<FileStamp>) -> io::Result<()> + 'a;

/// The directory whose `.git` a path is; not the root itself.
fn repository_of(path: &[u8]) -> Option<&OsStr> {
    path.strip_suffix(b"/.git").map(OsStr::from_bytes)
}

/// In a fixed order, `.git` directories without a stamp; false if a limit was reached.
fn walk(root: &Path, bounds: Bounds, visit: &mut Visit<'_>) -> io::Result<bool> {
    let until = Instant::now() + bounds.time;
    let device = fs::metadata(root)?.dev();
    let mut left = bounds.entries;
    let mut is_whole = true;
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else {
            is_whole = false;
            continue;
        };
        // One entry beyond the limit is enough to know that the scan is incomplete.
        let mut names: Vec<Vec<u8>> =
            entries.take(left + 1).flatten().map(|entry| entry.file_name().into_vec()).collect();
        names.sort_unstable();
        for name in names {
            if left == 0 || Instant::now() >= until {
                return Ok(false);
            }
            left -= 1;
            let path = folder.join(OsStr::from_bytes(&name));
            // Deleted meanwhile.
            let Ok(found) = fs::symlink_metadata(root.join(&path)) else { continue };
            if found.is_file() || found.is_symlink() {
                visit(path.as_os_str().as_bytes(), Some(file_stamp(&found)))?;
            } else if name == b".git" {
                visit(path.as_os_str().as_bytes(), None)?;
            } else if found.is_dir() && !TOOL_DIRECTORIES.iter().any(|tool| tool.as_bytes() == name) {
                if found.dev() == device && depth < bounds.depth {
                    folders.push((path, depth + 1));
                } else {
                    is_whole = false;
                }
            }
        }
    }
    Ok(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::SystemTime;
    use tempfile::TempDir;

    /// Before every modification time in these tests.
    const LONG_AGO: i64 = 0;
    const NEVER: i64 = i64::MAX;

    struct World {
        folder: TempDir,
    }

    impl World {
        fn new() -> World {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("root")).unwrap();
            World { folder }
        }

        fn root(&self) -> PathBuf {
            self.folder.path().join("root")
        }

        /// Writes a file with the given modification time.
        fn write(&self, path: &str, text: &str, second: u64) {
            let path = self.root().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }

        fn take(&self, bounds: Bounds) -> Scan {
            Scan::take(&self.root(), self.folder.path(), bounds).unwrap()
        }
    }

    fn at_most(entries: usize) -> Bounds {
        Bounds { entries, ..Bounds::default() }
    }

    #[test]
    fn lines_of_new_files_are_counted() {
        let world = World::new();
        world.write("old", "1\n", 1_000);
        let mut scan = world.take(Bounds::default());
        for (path, text) in [("empty", ""), ("two", "1\n2\n"), ("open", "1\n2"), ("binary", "1\n\0\n")] {
            world.write(path, text, 1_000);
        }
        world.write("old", "1\n2\n", 2_000);
        let scanned = scan.compare(Bounds::default(), LONG_AGO).unwrap();
        let lines: Vec<_> = scanned.files.iter().map(|file| file.lines).collect();
        assert_eq!(describe(&scanned), ["A binary", "A empty", "M old", "A open", "A two"]);
        assert_eq!(lines, [Some((0, 0)), Some((0, 0)), None, Some((2, 0)), Some((2, 0))]);
    }

    fn describe(scanned: &ScanChanges) -> Vec<String> {
        let letter = |kind: &ChangeKind| match kind {
            ChangeKind::Added => 'A',
            ChangeKind::Modified => 'M',
            ChangeKind::Deleted => 'D',
            ChangeKind::Renamed { .. } => 'R',
        };
        let files = scanned.files.iter();
        files.map(|file| format!("{} {}", letter(&file.kind), String::from_utf8_lossy(&file.path))).collect()
    }

    #[test]
    fn added_deleted_and_modified_files_are_found() {
        let world = World::new();
        for (path, text) in
            [("same", "1"), ("size", "1"), ("time", "1"), ("gone/x", "1"), ("node_modules/m", "1")]
        {
            world.write(path, text, 1_000);
        }
        let mut scan = world.take(Bounds::default());
        world.write("size", "22", 1_000);
        world.write("time", "2", 2_000);
        world.write("new/n", "1", 1_000);
        world.write("node_modules/m", "2", 2_000);
        std::fs::remove_dir_all(world.root().join("gone")).unwrap();
        std::os::unix::fs::symlink("/etc", world.root().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, world.root().join("fifo"), 0o600.into()).unwrap();
        let scanned = scan.compare(Bounds::default(), LONG_AGO).unwrap();
        assert_eq!(describe(&scanned), ["D gone/x", "A link", "A new/n", "M size", "M time"]);
        assert!(scanned.is_whole);
        let left: Vec<_> = std::fs::read_dir(world.folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "no temporary file is left");
    }

    #[test]
    fn a_list_that_is_stored_on_disk_is_compared() {
        let world = World::new();
        let (folder, end) = ("f".repeat(200), "e".repeat(200));
        let file = |number: usize| format!("{folder}/{number}-{end}");
        let files = MAX_BYTES_IN_MEMORY / file(0).len() + 1;
        (0..files).for_each(|number| world.write(&file(number), "1", 1_000));
        let mut scan = world.take(Bounds::default());
        assert!(scan.entries.is_rolled());
        world.write(&file(7), "22", 1_000);
        let scanned = scan.compare(Bounds::default(), LONG_AGO).unwrap();
        assert_eq!(describe(&scanned), [format!("M {}", file(7))]);
    }

    #[test]
    fn a_bounded_scan_reports_no_false_changes() {
        let world = World::new();
        for n in 0..6 {
            world.write(&format!("f{n}"), "1", 1_000);
        }
        let mut scan = world.take(at_most(4));
        world.write("f5", "2", 2_000);
        let scanned = scan.compare(Bounds::default(), 1_500_000).unwrap();
        assert_eq!(describe(&scanned), ["M f5"], "f4 was beyond the limit and did not change");
        assert!(!scanned.is_whole);
        // A new file pushes others beyond the limit: they are not deleted.
        let mut scan = world.take(at_most(6));
        world.write("a", "new", 1_000);
        let scanned = scan.compare(at_most(6), NEVER).unwrap();
        assert_eq!(describe(&scanned), ["A a"]);
        assert!(!scanned.is_whole);
    }

    #[test]
    fn depth_is_bounded() {
        let world = World::new();
        world.write("a/b/c/x", "1", 1_000);
        let scan = world.take(Bounds { depth: 2, ..Bounds::default() });
        assert!(!scan.is_whole);
        assert!(world.take(Bounds { depth: 3, ..Bounds::default() }).is_whole);
    }

    #[test]
    fn tool_directories_are_recognized_by_name() {
        assert!(is_in_tool_directory(Path::new("a/node_modules/b")));
        assert!(!is_in_tool_directory(Path::new("node_modules")), "a file of that name is a file");
    }
}
