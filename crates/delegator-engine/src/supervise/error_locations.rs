//! Makes error locations of failed commands relative to the working directory.
//!
//! After a `cd`, a command may report files relative to that directory (`cd web && tsc`) or to another one
//! (`cd member && cargo build` reports from the top of the workspace). The transcript does not show which.
//! The file system does: a path that exists only relative to that directory is rewritten.

use std::os::fd::AsFd;
use std::path::{Component, Path};

use delegator_transcript::CommandFailure;
use rustix::fs::{AtFlags, statat};

pub(crate) fn correct_paths(failures: &mut [CommandFailure], workdir: impl AsFd) {
    let is_there = |path: &str| statat(&workdir, path, AtFlags::empty()).is_ok();
    for CommandFailure { directory, places, .. } in failures {
        let Some(directory) = directory else { continue };
        for place in places {
            if let Some(corrected) = from_workdir(&place.file, directory, is_there) {
                place.file = corrected;
            }
        }
    }
}

fn from_workdir(file: &str, directory: &str, is_there: impl Fn(&str) -> bool) -> Option<String> {
    let joined = joined(directory, file)?;
    (Path::new(file).is_relative() && !is_there(file) && is_there(&joined)).then_some(joined)
}

/// Both as one normalized path; `None` if it leads above the working directory.
fn joined(directory: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let whole = Path::new(directory).join(file);
    for part in whole.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use delegator_transcript::ErrorLocation;

    use super::*;

    #[test]
    fn paths_are_rewritten_relative_to_the_working_directory() {
        let exists = |path: &str| ["web/a.ts", "src/lib.rs", "web/src/lib.rs", "shared/b.ts"].contains(&path);
        for (file, directory, expected) in [
            ("a.ts", "web", Some("web/a.ts")),
            ("./a.ts", "web", Some("web/a.ts")),
            ("../shared/b.ts", "web", Some("shared/b.ts")),
            // It exists as reported.
            ("src/lib.rs", "web", None),
            // It does not exist.
            ("gone.ts", "web", None),
            ("/usr/include/x.h", "web", None),
            ("a.ts", "/elsewhere", None),
            ("../../up.ts", "web", None),
        ] {
            assert_eq!(from_workdir(file, directory, exists).as_deref(), expected, "{file} in {directory}");
        }
    }

    #[test]
    fn only_commands_that_changed_directory_are_corrected() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("web")).unwrap();
        std::fs::write(folder.path().join("web/a.ts"), "").unwrap();
        let failure = |command: &str, directory: Option<&str>| CommandFailure {
            command: command.to_owned(),
            exit_code: Some(2),
            message: String::new(),
            kind: None,
            places: vec![ErrorLocation {
                file: "a.ts".to_owned(),
                line: 1,
                column: None,
                message: String::new(),
                kind: None,
            }],
            directory: directory.map(str::to_owned),
        };
        let mut failures = [failure("cd web && tsc", Some("web")), failure("tsc", None)];
        correct_paths(&mut failures, std::fs::File::open(folder.path()).unwrap());
        let files = failures.each_ref().map(|failure| failure.places[0].file.as_str());
        assert_eq!(files, ["web/a.ts", "a.ts"]);
    }
}
