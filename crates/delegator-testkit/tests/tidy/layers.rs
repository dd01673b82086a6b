//! Crates and the top modules of the two large crates use each other in one direction only.

use std::collections::BTreeMap;
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

/// Fails if a top module of the crate uses one that is not below it. `layers` lists the lowest first; modules of one layer
/// do not use each other.
fn assert_layers(crate_name: &str, layers: &[&[&str]]) {
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
        for (number, line) in without_tests(&text).lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let Some(other) = layer_of(&used) else { continue };
                checked += 1;
                let is_allowed = used == module || other < own;
                assert!(is_allowed, "{}:{}: {module} must not use {used}", path.display(), number + 1);
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
        &[&["error"], &["spec"], &["input", "output"], &["commands"], &["mcp"], &["app"]],
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
    &["cancel"],
    &["real_system"],
    &["simulation"],
    &["model_test"],
];

#[test]
fn modules_of_the_engine_depend_in_one_direction() {
    assert_layers("delegator-engine", ENGINE_LAYERS);
}

/// The lines of the production code of a file, each with whether it is in an `impl Engine`.
fn lines_with_engine(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut is_inside = false;
    without_tests(text).lines().map(move |line| {
        is_inside = line.starts_with("impl Engine {") || (is_inside && line != "}");
        (is_inside, line)
    })
}

/// The names that follow a text in a line.
fn names_after<'a>(line: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    line.split(before).skip(1).map(|rest| {
        rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
    })
}

/// All modules extend `Engine`, so a path of a module does not show every use of it.
#[test]
fn modules_of_the_engine_call_no_method_of_a_module_above() {
    let source = workspace().join("crates/delegator-engine/src");
    let layer_of = |module: &str| ENGINE_LAYERS.iter().position(|layer| layer.contains(&module));
    let files: Vec<_> = rust_files()
        .into_iter()
        .filter_map(|(path, text)| Some((top_module(path.strip_prefix(&source).ok()?), path, text)))
        .filter(|(module, path, _)| layer_of(module).is_some() && !path.ends_with("tests.rs"))
        .collect();
    let mut defined_in: BTreeMap<&str, usize> = BTreeMap::new();
    for (module, _, text) in &files {
        for (is_inside, line) in lines_with_engine(text) {
            let is_definition = is_inside && line.starts_with("    ") && !line.starts_with("     ");
            if is_definition && let Some(name) = names_after(line, "fn ").next() {
                defined_in.insert(name, layer_of(module).unwrap());
            }
        }
    }
    let mut checked = 0;
    for (module, path, text) in &files {
        let own = layer_of(module).unwrap();
        for (is_inside, line) in lines_with_engine(text) {
            let of_self = names_after(line, "self.").filter(|_| is_inside);
            for name in of_self.chain(names_after(line, "engine.")) {
                let Some(layer) = defined_in.get(name) else { continue };
                checked += 1;
                assert!(*layer <= own, "{}: {module} must not call {name}", path.display());
            }
        }
    }
    assert!(checked > 100, "only {checked} calls were checked");
}
