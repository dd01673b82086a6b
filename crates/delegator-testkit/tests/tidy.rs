//! The tree keeps the habits it preaches: small files, module headers, no banned names, closed doors.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read is a failure")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;

const MOST_LINES: usize = 600;
const MOST_LINES_OF_MAIN: usize = 15;

/// Names that attract whatever nobody wants to think about.
const MAGNETS: [&str; 7] = ["util", "utils", "common", "helpers", "manager", "misc", "core"];

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
        let folder = workspace().join(folder);
        if folder.is_dir() {
            files_below(&folder, &mut found);
        }
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    assert!(found.len() > 20, "the walk found only {} files", found.len());
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn files_stay_small() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines: two rooms in one?", path.display());
        if path.ends_with("src/main.rs") {
            assert!(lines <= MOST_LINES_OF_MAIN, "{} has {lines} lines", path.display());
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in rust_files() {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let says = first.starts_with("//!") || first.starts_with("#![no_main]");
        assert!(says, "{} begins without a module header: {first}", path.display());
    }
}

#[test]
fn no_file_is_a_magnet() {
    for (path, _) in rust_files() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        assert!(!MAGNETS.contains(&name.as_str()), "{}", path.display());
        assert!(!MAGNETS.contains(&folder.as_str()), "{}", path.display());
    }
}

#[test]
fn nothing_is_left_open() {
    // Put together here so that this file does not find itself.
    let open_ends = [
        ["to", "do!("].concat(),
        ["unimpl", "emented!("].concat(),
        ["FIX", "ME"].concat(),
        ["#[ig", "nore"].concat(),
    ];
    for (path, text) in rust_files() {
        for end in &open_ends {
            assert!(!text.contains(end.as_str()), "{} still has {end}", path.display());
        }
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{} has its own rules", manifest.display());
    }
}

#[test]
fn rooms_depend_in_one_direction() {
    // Who may know whom; a crate that is not listed has to be thought about first.
    let allowed: [(&str, &[&str]); 11] = [
        ("delegator-domain", &[]),
        ("delegator-config", &["delegator-domain"]),
        ("delegator-transcript", &["delegator-domain"]),
        ("delegator-registry", &["delegator-domain"]),
        ("delegator-git", &[]),
        ("delegator-supervisor", &["delegator-domain", "delegator-transcript"]),
        (
            "delegator-engine",
            &[
                "delegator-domain",
                "delegator-git",
                "delegator-registry",
                "delegator-supervisor",
                "delegator-transcript",
            ],
        ),
        ("delegator-scripted-agent", &[]),
        ("delegator-testkit", &[]),
        ("xtask", &["delegator-domain", "delegator-engine", "delegator-registry"]),
        (
            "mcp-delegator",
            &[
                "delegator-config",
                "delegator-domain",
                "delegator-engine",
                "delegator-registry",
                "delegator-scripted-agent",
                "delegator-transcript",
            ],
        ),
    ];
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let (_, may_know) =
            allowed.iter().find(|(crate_name, _)| *crate_name == name).expect("a crate with a place");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependencies =
            manifest.split("[dev-dependencies]").next().unwrap().split("[dependencies]").nth(1);
        let ours =
            dependencies.unwrap_or_default().lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for known in ours.filter(|line| line.starts_with("delegator-") || *line == "mcp-delegator") {
            assert!(may_know.contains(&known), "{name} must not know {known}");
        }
    }
}

#[test]
fn the_readmes_commands_exist() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    assert!(readme.contains("scripts/test"));
    assert!(std::fs::read_to_string(workspace().join(".ci/run")).unwrap().contains("scripts/test"));
}

/// Every test that the table of defects names is in the tree.
#[test]
fn tests_named_in_the_reliability_page_exist() {
    let page = std::fs::read_to_string(workspace().join("docs/reliability.md")).unwrap();
    let sources: String = rust_files().into_iter().map(|(_, text)| text).collect();
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let tests = row.split(" | ").nth(2).unwrap_or_default();
        for name in tests.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')) {
            // Words of several parts are functions; the others are files and modules.
            if name.matches('_').count() >= 3 {
                named += 1;
                assert!(sources.contains(&format!("fn {name}(")), "there is no test {name}");
            }
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

/// The tables of docs/dependencies.md and the manifests name the same packages.
#[test]
fn every_dependency_has_a_reason() {
    let mut named = BTreeSet::new();
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let manifest = std::fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        let sections = manifest.split("\n[").filter(|section| {
            section.starts_with("dependencies]") || section.starts_with("dev-dependencies]")
        });
        let names = sections.flat_map(|section| section.lines().skip(1)).filter(|line| !line.starts_with('#') && line.contains('='));
        let names = names.filter_map(|line| line.split(['.', ' ', '=']).next());
        named.extend(names.map(str::to_owned));
    }
    named.retain(|name| !workspace().join("crates").join(name).is_dir());
    let page = std::fs::read_to_string(workspace().join("docs/dependencies.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.map(str::to_owned).collect::<BTreeSet<String>>(), named);
}
