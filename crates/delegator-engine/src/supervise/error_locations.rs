//! Makes error locations of failed commands relative to the working directory.
//!
//! After a `cd`, a command may report files relative to that directory (`cd web && tsc`) or to another one (`cd member &&
//! cargo build` reports from the top of the workspace). The transcript does not show which. The file system does: a path
//! that exists only relative to that directory is rewritten.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, statat};
use serde_json::Value;

/// Corrects the file names in the failures of a report, using the files as they are now.
pub(crate) fn correct_paths(report: &mut Value, workdir: impl AsFd) {
    let is_there = |path: &str| exists(workdir.as_fd(), path);
    for failure in array_mut(report, "failures") {
        let Some(directory) = failure["directory"].as_str().map(str::to_owned) else { continue };
        for file in array_mut(failure, "places").iter_mut().filter_map(|place| place.get_mut("file")) {
            if let Some(corrected) = file.as_str().and_then(|file| from_workdir(file, &directory, is_there)) {
                *file = corrected.into();
            }
        }
    }
}

fn array_mut<'a>(value: &'a mut Value, key: &str) -> &'a mut [Value] {
    value.get_mut(key).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

fn exists(workdir: BorrowedFd<'_>, path: &str) -> bool {
    statat(workdir, path, AtFlags::empty()).is_ok()
}

/// The corrected path, if it needs correction.
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
        let place = serde_json::json!({"file": "a.ts", "line": 1});
        let mut report = serde_json::json!({"failures": [
            {"command": "cd web && tsc", "directory": "web", "places": [place]},
            {"command": "tsc", "places": [place]},
        ]});
        correct_paths(&mut report, std::fs::File::open(folder.path()).unwrap());
        let files = [0, 1].map(|which| report["failures"][which]["places"][0]["file"].clone());
        assert_eq!(files, ["web/a.ts", "a.ts"]);
        correct_paths(&mut Value::Null, std::fs::File::open(folder.path()).unwrap());
    }
}
