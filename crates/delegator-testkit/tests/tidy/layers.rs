//! Crates and the top modules of the two large crates use each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use delegator_testkit::generated::workspace;

use crate::rust_files;

#[test]
fn every_crate_takes_the_workspace_lints() {
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace lints",
            manifest.display()
        );
    }
}

/// Each crate with the crates it may use. A new crate must be added here.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 16] = [
    ("delegator-domain", &[]),
    ("delegator-subprocess", &[]),
    ("delegator-config", &["delegator-domain"]),
    ("delegator-transcript", &["delegator-domain"]),
    ("delegator-registry", &["delegator-domain"]),
    ("delegator-git", &["delegator-subprocess"]),
    ("delegator-codex-cloud", &["delegator-domain", "delegator-subprocess"]),
    ("delegator-fleet", &["delegator-domain"]),
    ("delegator-notify", &["delegator-domain", "delegator-subprocess"]),
    ("delegator-supervisor", &["delegator-domain", "delegator-subprocess", "delegator-transcript"]),
    (
        "delegator-engine",
        &[
            "delegator-codex-cloud",
            "delegator-domain",
            "delegator-git",
            "delegator-notify",
            "delegator-registry",
            "delegator-supervisor",
            "delegator-transcript",
        ],
    ),
    (
        "delegator-worker",
        &[
            "delegator-domain",
            "delegator-engine",
            "delegator-fleet",
            "delegator-git",
            "delegator-registry",
            "delegator-supervisor",
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
            "delegator-fleet",
            "delegator-registry",
            "delegator-scripted-agent",
            "delegator-transcript",
            "delegator-worker",
        ],
    ),
];

#[test]
fn crates_depend_in_one_direction() {
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let (_, allowed_dependencies) = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .expect("a crate that is listed here");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependencies =
            manifest.split("[dev-dependencies]").next().unwrap().split("[dependencies]").nth(1);
        let ours =
            dependencies.unwrap_or_default().lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for used in ours.filter(|line| line.starts_with("delegator-") || *line == "mcp-delegator") {
            assert!(allowed_dependencies.contains(&used), "{name} must not depend on {used}");
        }
    }
}

/// The text of a file without its test module: tests may use everything.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// The names that follow a text in a line.
fn names_after<'a>(line: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    line.split(before).skip(1).map(|rest| {
        rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
    })
}

/// Fails if a top module of the crate uses one that is not below it. `layers` lists the lowest first; modules of one layer
/// do not use each other. `parts` are the methods of an engine that reach a module without its path.
fn assert_layers(crate_name: &str, layers: &[&[&str]], parts: &BTreeMap<String, String>) {
    let source = workspace().join("crates").join(crate_name).join("src");
    let layer_of = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let mut checked = 0;
    for (path, text) in rust_files() {
        let Ok(relative) = path.strip_prefix(&source) else { continue };
        let module = top_module(relative);
        if ["lib", "main"].contains(&module.as_str()) || path.ends_with("tests.rs") {
            continue;
        }
        let own = layer_of(&module).unwrap_or_else(|| panic!("{crate_name}: module {module} is in no layer"));
        let code = without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        // A chain of calls may be on several lines.
        let code = code.fold(String::new(), |code, line| match line.trim_start() {
            call if call.starts_with('.') => code + call,
            _ => code + "\n" + line,
        });
        for line in code.lines() {
            let of_parts =
                names_after(line, "engine.").filter_map(|name| parts.get(name).map(String::as_str));
            for used in names_after(line, "crate::").chain(of_parts) {
                let Some(other) = layer_of(used) else { continue };
                checked += 1;
                let is_allowed = used == module || other < own;
                assert!(is_allowed, "{}: {module} must not use {used}: {}", path.display(), line.trim());
            }
        }
    }
    assert!(checked > 20, "{crate_name}: only {checked} uses were checked");
}

fn top_module(relative: &Path) -> String {
    let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

#[test]
fn modules_of_mcp_delegator_depend_in_one_direction() {
    assert_layers(
        "mcp-delegator",
        &[&["error"], &["spec"], &["input", "output"], &["commands"], &["mcp", "watch"], &["app"]],
        &BTreeMap::new(),
    );
}

const ENGINE_LAYERS: &[&[&str]] = &[
    &["provider_error"],
    &["error"],
    &["system_port"],
    &["shared"],
    &["worktrees", "restore_points"],
    &["submit"],
    &["upkeep"],
    &["supervise"],
    &["remote"],
    &["conversations"],
    &["results"],
    &["changes", "wait"],
    &["cancel", "live"],
    &["real_system"],
    &["simulation"],
    &["model_test"],
];

/// The methods of `Engine` that return its parts, each with the one module that implements the part.
fn parts_of_the_engine() -> BTreeMap<String, String> {
    let source = workspace().join("crates/delegator-engine/src");
    let root = std::fs::read_to_string(source.join("lib.rs")).unwrap();
    let table = root.split("\nparts! {").nth(1).unwrap().lines().filter(|line| !line.contains("///"));
    let table = table.filter_map(|line| line.trim().split_once(": "));
    let files = rust_files();
    let module_of = |part: &str| {
        let header = format!("impl {part}<'_> {{");
        let implementing = files.iter().filter(|(_, text)| text.lines().any(|line| line == header));
        let modules: BTreeSet<String> =
            implementing.filter_map(|(path, _)| Some(top_module(path.strip_prefix(&source).ok()?))).collect();
        assert_eq!(modules.len(), 1, "{part} is implemented in {modules:?}");
        modules.into_iter().next().unwrap()
    };
    table.map(|(method, part)| (method.to_owned(), module_of(part.trim_end_matches(',')))).collect()
}

#[test]
fn modules_of_the_engine_depend_in_one_direction() {
    let parts = parts_of_the_engine();
    assert!(parts.len() > 5, "only {parts:?} were found");
    assert_layers("delegator-engine", ENGINE_LAYERS, &parts);
}

/// A method that a module adds to `Engine` can be called without a path of the module, so nothing would check
/// the call.
#[test]
fn only_the_root_of_the_engine_adds_methods_to_it() {
    let source = workspace().join("crates/delegator-engine/src");
    for (path, text) in rust_files() {
        let is_root = path == source.join("lib.rs");
        let adds = without_tests(&text).lines().any(|line| line.trim_start().starts_with("impl Engine {"));
        assert!(!adds || is_root || !path.starts_with(&source), "{} adds methods to Engine", path.display());
    }
}
