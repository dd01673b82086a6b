//! Finds the agent's program and resolves it to an absolute path.
//!
//! A bare name is looked up on the given PATH, in absolute entries only and never below the working directory, so that
//! a program planted in a repository is not found. npm installs `codex` as a node script that starts the native
//! program; killing the script leaves the native program running. Where the native program lies next to the script, it
//! is used instead.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLocation {
    /// Absolute, links resolved.
    pub program: PathBuf,
    /// The npm script that was found first, if `program` is the native program behind it.
    pub wrapper: Option<PathBuf>,
    /// Directory of helper programs that the wrapper would have prepended to PATH.
    pub helpers: Option<PathBuf>,
}

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

/// Finds the agent. `given` is an absolute path or a bare name; `path` is the submitter's PATH.
pub fn locate(
    given: &OsStr,
    path: Option<&OsStr>,
    workdir: Option<&Path>,
) -> Result<ProgramLocation, LocateError> {
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
    let resolved = found.canonicalize().map_err(|source| io_error(&found, source))?;
    match native_program(&resolved) {
        Some((program, helpers)) => Ok(ProgramLocation { program, wrapper: Some(resolved), helpers }),
        None => Ok(ProgramLocation { program: resolved, wrapper: None, helpers: None }),
    }
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

fn check_program(path: &Path) -> Result<(), LocateError> {
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

/// The native program behind npm's wrapper, with the directory of its helpers.
fn native_program(script: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    if !is_node_script(script) {
        return None;
    }
    let package = script.parent()?.parent()?;
    let (platform, triple) = platform()?;
    let vendors = [
        package.parent()?.join(platform).join("vendor"),
        package.join("node_modules/@openai").join(platform).join("vendor"),
        package.join("vendor"),
    ];
    vendors.iter().map(|vendor| vendor.join(triple)).find_map(|root| {
        // Layout of current packages, then of those before about 0.126.
        let program = ["bin/codex", "codex/codex"].iter().map(|inner| root.join(inner));
        let program = program.into_iter().find(|path| check_program(path).is_ok())?;
        let helpers = Some(root.join("path")).filter(|helpers| helpers.is_dir());
        Some((program, helpers))
    })
}

fn platform() -> Option<(&'static str, &'static str)> {
    match std::env::consts::ARCH {
        "x86_64" => Some(("codex-linux-x64", "x86_64-unknown-linux-musl")),
        "aarch64" => Some(("codex-linux-arm64", "aarch64-unknown-linux-musl")),
        _ => None,
    }
}

fn is_node_script(path: &Path) -> bool {
    let mut beginning = Vec::with_capacity(128);
    let read = File::open(path).and_then(|file| file.take(128).read_to_end(&mut beginning));
    let first_line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && first_line.starts_with(b"#!") && memchr::memmem::find(first_line, b"node").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write_program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(path: &str, workdir: &Path) -> Result<ProgramLocation, LocateError> {
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
        assert_eq!(found.program, good.canonicalize().unwrap().join("codex"));
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

    #[test]
    fn native_program_is_preferred_over_the_npm_wrapper() {
        let temp = tempfile::tempdir().unwrap();
        let modules = temp.path().canonicalize().unwrap().join("node_modules");
        let script = modules.join("@openai/codex/bin/codex.js");
        write_program(&script, "#!/usr/bin/env node\nimport x\n");
        std::fs::create_dir_all(modules.join(".bin")).unwrap();
        let link = modules.join(".bin/codex");
        symlink("../@openai/codex/bin/codex.js", &link).unwrap();
        let (package, triple) = platform().unwrap();
        // The native package is not installed: fall back to the wrapper.
        let found = locate(link.as_os_str(), None, None).unwrap();
        assert_eq!(found, ProgramLocation { program: script.clone(), wrapper: None, helpers: None });
        for inner in ["codex/codex", "bin/codex"] {
            let native = modules.join("@openai").join(package).join("vendor").join(triple).join(inner);
            write_program(&native, "\x7fELF");
            let found = locate(link.as_os_str(), None, None).unwrap();
            assert_eq!((found.program, found.wrapper), (native, Some(script.clone())));
        }
    }
}
