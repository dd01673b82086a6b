//! What the docs promise about the tree is true.

use std::collections::BTreeSet;

use delegator_testkit::generated::workspace;

use crate::rust_files;

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
        let lines = sections.flat_map(|section| section.lines().skip(1));
        let lines = lines.filter(|line| !line.starts_with('#') && line.contains('='));
        named.extend(lines.filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned));
    }
    named.retain(|name| !workspace().join("crates").join(name).is_dir());
    let page = std::fs::read_to_string(workspace().join("docs/dependencies.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.map(str::to_owned).collect::<BTreeSet<String>>(), named);
}
