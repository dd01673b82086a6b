//! Finds a program and resolves it to an absolute path.
//!
//! A bare name is looked up on the given PATH, in absolute entries only and never below the working directory, so that
//! a program planted in a repository is not found.

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
    #[error("no program named {name:?} was found on PATH")]
    NotOnPath { name: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Finds a program; the result is absolute, links resolved. `given` is an absolute path or a bare name; `path` is the
/// submitter's PATH.
pub fn locate(given: &OsStr, path: Option<&OsStr>, workdir: Option<&Path>) -> Result<PathBuf, LocateError> {
    let found = if given.as_bytes().contains(&b'/') {
        let explicit = Path::new(given);
        if !explicit.is_absolute() {
            return Err(LocateError::Relative { given: explicit.to_path_buf() });
        }
        explicit.to_path_buf()
    } else {
        find_on_path(given, path.unwrap_or_default(), workdir)?
    };
    check_program(&found)?;
    found.canonicalize().map_err(|source| io_error(&found, source))
}

fn io_error(path: &Path, source: io::Error) -> LocateError {
    LocateError::Io { path: path.to_path_buf(), source }
}

fn find_on_path(name: &OsStr, path: &OsStr, workdir: Option<&Path>) -> Result<PathBuf, LocateError> {
    let not_found = || LocateError::NotOnPath { name: name.to_string_lossy().into_owned() };
    if name.is_empty() || name == "." || name == ".." {
        return Err(not_found());
    }
    let workdir = workdir.map(|workdir| workdir.canonicalize().unwrap_or_else(|_| workdir.to_path_buf()));
    let is_in_workdir = |entry: &Path| {
        let entry = entry.canonicalize().unwrap_or_else(|_| entry.to_path_buf());
        workdir.as_deref().is_some_and(|workdir| entry.starts_with(workdir))
    };
    let entries =
        path.as_bytes().split(|&byte| byte == b':').map(|entry| Path::new(OsStr::from_bytes(entry)));
    let mut unusable = None;
    for entry in entries.filter(|entry| entry.is_absolute()) {
        let candidate = entry.join(name);
        match check_program(&candidate) {
            Ok(()) if !is_in_workdir(entry) => return Ok(candidate),
            Err(problem @ LocateError::NotExecutable { .. }) => unusable = unusable.or(Some(problem)),
            Ok(()) | Err(_) => {}
        }
    }
    Err(unusable.unwrap_or_else(not_found))
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
    pub(in crate::agent) fn write_program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(path: &str, workdir: &Path) -> Result<PathBuf, LocateError> {
        locate(OsStr::new("codex"), Some(OsStr::new(path)), Some(workdir))
    }

    #[test]
    fn programs_in_the_working_directory_are_not_found() {
        let temp = tempfile::tempdir().unwrap();
        let workdir = temp.path().join("work");
        write_program(&workdir.join("codex"), "#!/bin/sh\n");
        write_program(&workdir.join("bin/codex"), "#!/bin/sh\n");
        write_program(&temp.path().join("good/codex"), "#!/bin/sh\n");
        let (work, good) = (workdir.display(), temp.path().join("good"));
        for path in ["", ":", ".", "./bin", "bin", &format!("{work}:{work}/bin:.:")] {
            assert!(matches!(search(path, &workdir), Err(LocateError::NotOnPath { .. })), "{path}");
        }
        let found = search(&format!("{work}::{work}/bin:{}", good.display()), &workdir).unwrap();
        assert_eq!(found, good.canonicalize().unwrap().join("codex"));
    }

    #[test]
    fn errors_name_the_path_that_cannot_be_started() {
        let temp = tempfile::tempdir().unwrap();
        let plain = temp.path().join("codex");
        std::fs::write(&plain, "x").unwrap();
        std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = locate(plain.as_os_str(), None, None).unwrap_err();
        assert!(error.to_string().contains(plain.to_str().unwrap()), "{error}");
        let error = search(temp.path().to_str().unwrap(), Path::new("/nowhere")).unwrap_err();
        assert!(matches!(error, LocateError::NotExecutable { .. }), "{error}");
        assert!(matches!(locate(OsStr::new("/no/such/codex"), None, None), Err(LocateError::Missing { .. })));
        assert!(matches!(locate(OsStr::new("./codex"), None, None), Err(LocateError::Relative { .. })));
    }
}
