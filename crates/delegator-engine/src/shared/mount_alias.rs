//! The one path by which we know a directory that bind mounts show at several.
//!
//! Two paths lead to the same directory if they have the same device and the same path within its file
//! system. The mount that shows most of the file system gives a directory its primary path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct Mount<'a> {
    device: &'a str,
    /// The part of the file system that is shown.
    root: PathBuf,
    point: PathBuf,
}

/// The primary path of a directory; `real` has no symbolic links.
pub(crate) fn primary_path(real: &Path) -> PathBuf {
    let list = read_mounts();
    primary_among(&parse_mounts(&list), real)
}

/// The primary paths of directories elsewhere that mounts show below this directory.
pub(crate) fn shown_below(real: &Path) -> Vec<PathBuf> {
    let list = read_mounts();
    let mounts = parse_mounts(&list);
    let below = mounts.iter().filter(|mount| mount.point.starts_with(real) && mount.point != real);
    below.map(|mount| primary_among(&mounts, &mount.point)).filter(|path| !path.starts_with(real)).collect()
}

fn read_mounts() -> String {
    let list = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&list).into_owned()
}

fn primary_among(mounts: &[Mount<'_>], real: &Path) -> PathBuf {
    // A mount may cover another one, so the list alone does not prove that two paths are the same.
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let own = identity(real);
    let same = aliases(mounts, real).into_iter().find(|path| own.is_some() && identity(path) == own);
    same.unwrap_or_else(|| real.to_owned())
}

/// The paths that may lead to the same directory, the primary one first.
fn aliases(mounts: &[Mount<'_>], real: &Path) -> Vec<PathBuf> {
    // The last of several mounts at one point is visible.
    let containing = mounts.iter().filter(|mount| real.starts_with(&mount.point));
    let Some(own) = containing.max_by_key(|mount| mount.point.as_os_str().len()) else { return Vec::new() };
    let moved = |from: &Path, to: &Path, path: &Path| {
        let rest = path.strip_prefix(from).ok()?;
        Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
    };
    let Some(within) = moved(&own.point, &own.root, real) else { return Vec::new() };
    let mut showing: Vec<&Mount<'_>> =
        mounts.iter().filter(|mount| mount.device == own.device && within.starts_with(&mount.root)).collect();
    showing.sort_by_key(|mount| mount.root.as_os_str().len());
    showing.into_iter().filter_map(|mount| moved(&mount.root, &mount.point, &within)).collect()
}

fn parse_mounts(list: &str) -> Vec<Mount<'_>> {
    let parse = |line| {
        let mut fields = str::split(line, ' ').skip(2);
        let device = fields.next()?;
        Some(Mount { device, root: unescape(fields.next()?), point: unescape(fields.next()?) })
    };
    list.lines().filter_map(parse).collect()
}

/// Spaces, tabs, line breaks and backslashes are written as a backslash and three octal digits.
fn unescape(field: &str) -> PathBuf {
    let (mut path, mut rest) = (String::new(), field);
    while let Some((before, after)) = rest.split_once('\\') {
        let digits = after.get(..3).unwrap_or_default();
        path.push_str(before);
        path.push(u8::from_str_radix(digits, 8).map_or('\\', char::from));
        rest = &after[digits.len()..];
    }
    path.push_str(rest);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 27 254:0 /home/me/my\\040app /mnt/app rw - ext4 /dev/vda rw\n\
        31 27 254:0 /home/me/my\\040app/sub /mnt/sub rw - ext4 /dev/vda rw\n\
        32 27 8:1 /volumes/x /work rw - ext4 /dev/sda rw\n\
        33 27 8:1 /volumes/x/repo /repo rw shared:1 - ext4 /dev/sda rw\n\
        not a mount\n";

    #[test]
    fn every_alias_of_a_directory_has_the_same_primary_path() {
        let mounts = parse_mounts(LIST);
        for (path, primary) in [
            ("/home/me/my app", "/home/me/my app"),
            ("/mnt/app", "/home/me/my app"),
            ("/mnt/app/sub/deep", "/home/me/my app/sub/deep"),
            ("/mnt/sub", "/home/me/my app/sub"),
            ("/mnt/sub/deep", "/home/me/my app/sub/deep"),
            ("/mnt", "/mnt"),
            ("/work/repo", "/work/repo"),
            ("/repo", "/work/repo"),
            ("/repo/src", "/work/repo/src"),
        ] {
            assert_eq!(aliases(&mounts, Path::new(path))[0], Path::new(primary), "{path}");
        }
        assert!(aliases(&[], Path::new("/a")).is_empty());
    }

    #[test]
    fn a_path_that_is_not_the_same_directory_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let list = format!("1 1 0:1 / / rw - x x rw\n2 1 0:1 /no/such {} rw - x x rw\n", real.display());
        assert_eq!(primary_among(&parse_mounts(&list), &real), real);
        assert_eq!(primary_path(Path::new("/no/such/directory")), Path::new("/no/such/directory"));
    }
}
