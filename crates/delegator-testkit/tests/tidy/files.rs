//! Every file is small, has a header and a name that says something, and is finished.

use crate::rust_files;

const MAX_LINES: usize = 600;
const MAX_LINES_OF_MAIN: usize = 15;

/// Names that attract code which belongs elsewhere.
const CATCH_ALL_NAMES: [&str; 7] = ["util", "utils", "common", "helpers", "manager", "misc", "core"];

#[test]
fn files_stay_small() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines; split it", path.display());
        if path.ends_with("src/main.rs") {
            assert!(lines <= MAX_LINES_OF_MAIN, "{} has {lines} lines", path.display());
        }
    }
}

#[test]
fn every_file_has_a_module_header() {
    for (path, text) in rust_files() {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let has_header = first.starts_with("//!") || first.starts_with("#![no_main]");
        assert!(has_header, "{} begins without a module header: {first}", path.display());
    }
}

#[test]
fn no_module_has_a_catch_all_name() {
    for (path, _) in rust_files() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        assert!(!CATCH_ALL_NAMES.contains(&name.as_str()), "{}", path.display());
        assert!(!CATCH_ALL_NAMES.contains(&folder.as_str()), "{}", path.display());
    }
}

#[test]
fn no_unfinished_code_is_left() {
    // Put together here so that this file does not find itself.
    let markers = [
        ["to", "do!("].concat(),
        ["unimpl", "emented!("].concat(),
        ["FIX", "ME"].concat(),
        ["#[ig", "nore"].concat(),
    ];
    for (path, text) in rust_files() {
        for marker in &markers {
            assert!(!text.contains(marker.as_str()), "{} still has {marker}", path.display());
        }
    }
}
