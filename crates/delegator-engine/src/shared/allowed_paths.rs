//! Checks that a task may use a directory, or a file that a caller names: it exists and is in one of the
//! configured `allowed_roots`.
//!
//! A directory is checked in validation, at submission and when the task starts, because a name may refer to
//! another directory by then. A file is opened first, without reading or waiting for a writer, and then
//! checked by its descriptor: a reader that uses it is safe from a name that is changed afterwards.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{DirectoryProblem, EngineError, FileProblem, Result};

/// The canonical path of a directory that a task may use.
pub fn resolve_allowed_dir(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, DirectoryProblem> {
    let real = path.canonicalize()?;
    if !real.is_dir() {
        return Err(DirectoryProblem::NotADirectory);
    }
    check_within(&real, roots)?;
    Ok(real)
}

/// Without roots every directory is allowed. Roots are resolved before the comparison.
pub(crate) fn check_within(real: &Path, roots: &[PathBuf]) -> Result<(), DirectoryProblem> {
    if is_within(real, roots) {
        Ok(())
    } else {
        Err(DirectoryProblem::OutsideRoots { roots: roots.to_vec() })
    }
}

fn is_within(real: &Path, roots: &[PathBuf]) -> bool {
    let is_below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    roots.is_empty() || roots.iter().any(is_below)
}

/// Opens a regular file inside the roots (without roots: anywhere) and outside the state directory, which
/// holds the HTTP token and the records of all tasks. Returns it with its real path.
pub fn open_allowed_file(
    path: &Path,
    roots: &[PathBuf],
    state_dir: Option<&Path>,
) -> Result<(File, PathBuf), FileProblem> {
    // A path descriptor does not block on a FIFO and does not touch a device.
    let found =
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&found).map_err(io::Error::from)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(FileProblem::NotAFile);
    }
    let name = descriptor_path(&found);
    let real = std::fs::read_link(&name)?;
    if !is_within(&real, roots) {
        return Err(FileProblem::OutsideRoots { roots: roots.to_vec() });
    }
    if state_dir.and_then(|dir| dir.canonicalize().ok()).is_some_and(|dir| real.starts_with(dir)) {
        return Err(FileProblem::OwnState);
    }
    Ok((File::open(name)?, real))
}

pub(crate) fn resolve_allowed_file(
    input: &'static str,
    path: &Path,
    roots: &[PathBuf],
    state_dir: &Path,
) -> Result<PathBuf> {
    let refuse = |problem| EngineError::UnusableFile { input, path: path.to_owned(), problem };
    open_allowed_file(path, roots, Some(state_dir)).map(|(_, real)| real).map_err(refuse)
}

fn descriptor_path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_inside_the_roots_are_opened() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        let state = world.path().join("state");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&state).unwrap();
        let (inside, outside) = (root.join("in.png"), world.path().join("out.png"));
        std::fs::write(&inside, "in").unwrap();
        std::fs::write(&outside, "out").unwrap();
        std::fs::write(state.join("http-token"), "token").unwrap();
        let (link, fifo) = (root.join("link.png"), root.join("fifo"));
        symlink(&outside, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let roots = [root.clone()];
        let open = |path: &Path, roots: &[PathBuf]| open_allowed_file(path, roots, Some(&state));

        let (mut file, real) = open(&inside, &roots).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), real), ("in", inside.canonicalize().unwrap()));
        assert!(open(&outside, &[]).is_ok(), "without roots every directory is allowed");
        for outside in [&outside, &link, &root.join("../out.png")] {
            let refused = open(outside, &roots).unwrap_err();
            assert!(matches!(refused, FileProblem::OutsideRoots { .. }), "{}: {refused}", outside.display());
        }
        for special in [fifo.as_path(), &root, Path::new("/dev/null"), Path::new("/dev/zero")] {
            let refused = open(special, &[]).unwrap_err();
            assert!(matches!(refused, FileProblem::NotAFile), "{}: {refused}", special.display());
        }
        assert!(matches!(open(&root.join("no"), &roots).unwrap_err(), FileProblem::Missing));
        assert!(matches!(open(&state.join("http-token"), &[]).unwrap_err(), FileProblem::OwnState));
    }
}
