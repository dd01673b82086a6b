//! Finds a program and resolves it to an absolute path.
//!
//! A bare name is looked up on the given PATH, in absolute entries only and never in the work trees of the
//! task, so that a program planted in one of them is not found.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error("{} is not an absolute path; give an absolute path or a bare name", given.display())]
    Relative { given: PathBuf },
    #[error("{} does not exist", given.display())]
    Missing { given: PathBuf },
    #[error("{} cannot be executed: {problem}", path.display())]
    NotExecutable { path: PathBuf, problem: &'static str },
    /// `skipped` is empty, or says which program was not used and why.
    #[error("no program named {name:?} was found on PATH{skipped}")]
    NotOnPath { name: String, skipped: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Where a task works: places in which a program may have been planted. Links are resolved.
#[derive(Debug, Default)]
pub struct UntrustedTrees {
    /// Top levels; nothing below them is trusted.
    pub repositories: Vec<PathBuf>,
    /// Directories outside of any repository, such as the user's home. Directories below them may be trusted.
    pub directories: Vec<PathBuf>,
}

impl UntrustedTrees {
    fn containing(&self, entry: &Path) -> Option<&PathBuf> {
        let real = entry.canonicalize().unwrap_or_else(|_| entry.to_path_buf());
        let repository = self.repositories.iter().find(|top| entry.starts_with(top) || real.starts_with(top));
        repository.or_else(|| self.directories.iter().find(|directory| **directory == real))
    }
}

/// Finds a program; the result is absolute, links resolved. `given` is an absolute path or a bare name;
/// `path` is the submitter's PATH.
pub fn locate(
    given: &OsStr,
    path: Option<&OsStr>,
    untrusted: &UntrustedTrees,
) -> Result<PathBuf, LocateError> {
    let found = if given.as_bytes().contains(&b'/') {
        let explicit = Path::new(given);
        if !explicit.is_absolute() {
            return Err(LocateError::Relative { given: explicit.to_path_buf() });
        }
        explicit.to_path_buf()
    } else {
        find_on_path(given, path.unwrap_or_default(), untrusted)?
    };
    check_program(&found)?;
    found.canonicalize().map_err(|source| io_error(&found, source))
}

fn io_error(path: &Path, source: io::Error) -> LocateError {
    LocateError::Io { path: path.to_path_buf(), source }
}

fn find_on_path(name: &OsStr, path: &OsStr, untrusted: &UntrustedTrees) -> Result<PathBuf, LocateError> {
    let not_found = |skipped| LocateError::NotOnPath { name: name.to_string_lossy().into_owned(), skipped };
    if name.is_empty() || name == "." || name == ".." {
        return Err(not_found(String::new()));
    }
    let entries =
        path.as_bytes().split(|&byte| byte == b':').map(|entry| Path::new(OsStr::from_bytes(entry)));
    let (mut unusable, mut skipped) = (None, String::new());
    for entry in entries.filter(|entry| entry.is_absolute()) {
        let candidate = entry.join(name);
        match check_program(&candidate) {
            Ok(()) => match untrusted.containing(entry) {
                None => return Ok(candidate),
                Some(tree) if skipped.is_empty() => {
                    let (program, tree) = (candidate.display(), tree.display());
                    let reason = format!("programs in the task's own work tree {tree} are not trusted");
                    skipped = format!("; {program} was skipped, because {reason}");
                }
                Some(_) => {}
            },
            Err(problem @ LocateError::NotExecutable { .. }) => unusable = unusable.or(Some(problem)),
            Err(_) => {}
        }
    }
    Err(unusable.unwrap_or_else(|| not_found(skipped)))
}

pub(super) fn check_program(path: &Path) -> Result<(), LocateError> {
    let problem = |problem| Err(LocateError::NotExecutable { path: path.to_path_buf(), problem });
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(LocateError::Missing { given: path.to_path_buf() })
        }
        Err(error) => Err(io_error(path, error)),
        Ok(metadata) if !metadata.is_file() => problem("it is not a regular file"),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => problem("it has no execute permission"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Writes an executable file.
    pub(crate) fn write_program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(path: &str, untrusted: &UntrustedTrees) -> Result<PathBuf, LocateError> {
        locate(OsStr::new("codex"), Some(OsStr::new(path)), untrusted)
    }

    #[test]
    fn programs_in_a_work_tree_of_the_task_are_skipped_and_named() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let [tree, home, good] = ["tree", "home", "good"].map(|name| root.join(name));
        for directory in [&tree, &tree.join("bin"), &home, &home.join("bin"), &good] {
            write_program(&directory.join("codex"), "#!/bin/sh\n");
        }
        std::os::unix::fs::symlink(tree.join("bin"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&good, tree.join("out")).unwrap();
        let untrusted = UntrustedTrees { repositories: vec![tree.clone()], directories: vec![home.clone()] };
        for path in ["", ":", ".", "./bin", "bin"] {
            let error = search(path, &untrusted).unwrap_err();
            assert!(!error.to_string().contains("skipped"), "{error}");
        }
        let at = |path: &Path| path.display().to_string();
        for (directory, tree) in [
            (tree.join("bin"), &tree),
            (tree.clone(), &tree),
            (tree.join("out"), &tree),
            (root.join("link"), &tree),
            (home.clone(), &home),
        ] {
            let message = search(&format!("{}:.", at(&directory)), &untrusted).unwrap_err().to_string();
            assert!(message.contains(&format!("{} was skipped", at(&directory.join("codex")))), "{message}");
            assert!(message.contains(&format!("work tree {} ", at(tree))), "{message}");
            let found = search(&format!("{}:{}", at(&directory), at(&good)), &untrusted).unwrap();
            assert_eq!(found, good.join("codex"));
        }
        assert_eq!(search(&at(&home.join("bin")), &untrusted).unwrap(), home.join("bin/codex"));
    }

    #[test]
    fn errors_name_the_path_that_cannot_be_started() {
        let temp = tempfile::tempdir().unwrap();
        let plain = temp.path().join("codex");
        std::fs::write(&plain, "x").unwrap();
        std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = locate(plain.as_os_str(), None, &UntrustedTrees::default()).unwrap_err();
        assert!(error.to_string().contains(plain.to_str().unwrap()), "{error}");
        let error = search(temp.path().to_str().unwrap(), &UntrustedTrees::default()).unwrap_err();
        assert!(matches!(error, LocateError::NotExecutable { .. }), "{error}");
        assert!(matches!(
            locate(OsStr::new("/no/such/codex"), None, &UntrustedTrees::default()),
            Err(LocateError::Missing { .. })
        ));
        assert!(matches!(
            locate(OsStr::new("./codex"), None, &UntrustedTrees::default()),
            Err(LocateError::Relative { .. })
        ));
    }
}
