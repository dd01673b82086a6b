//! Checks of the source tree itself: file sizes, layers, words, and what the docs promise.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read is a failure")]

mod circles;
mod docs;
mod files;
mod language;
mod layers;
mod settings;

use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files_below(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["crates", "fuzz"] {
        files_below(&workspace().join(folder), &mut found);
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(found.len() > 20, "the walk found only {} files", found.len());
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}
