//! The environments file: reading, problems with their positions, and edits that preserve everything else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use delegator_domain::environment::{Environment, OnLost};
use delegator_domain::task::{Mode, Provider};
use serde_json::{Map, Value, json};

use super::check::FIELDS;
use super::*;
use crate::Sources;
use crate::settings::tests::{accepted, field_names};

fn sources(root: &Path) -> Sources {
    let environment = BTreeMap::from([(OsString::from("HOME"), root.as_os_str().to_owned())]);
    Sources { environment, current_dir: root.to_owned(), flags: Vec::new(), cores: 2 }
}

fn write_environments(text: &str) -> (tempfile::TempDir, Sources) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".config/mcp-delegator");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("environments.json"), text).unwrap();
    let sources = sources(root.path());
    (root, sources)
}

fn read_back(root: &tempfile::TempDir) -> String {
    std::fs::read_to_string(root.path().join(".config/mcp-delegator/environments.json")).unwrap()
}

/// Line, column and message of every problem.
fn read_problems(text: &str) -> Vec<(usize, usize, String)> {
    let (_root, sources) = write_environments(text);
    match read(&sources) {
        Err(EnvironmentsError::Invalid(error)) => error
            .problems
            .into_iter()
            .map(|problem| {
                let message = format!("{}: {}", problem.key, problem.problem);
                let hint = problem.suggestion.map(|meant| format!(" [{meant}]")).unwrap_or_default();
                (problem.line.unwrap(), problem.column.unwrap(), message + &hint)
            })
            .collect(),
        other => panic!("{text} was read as {other:?}"),
    }
}

fn entry() -> Map<String, Value> {
    new_entry(vec![
        ("name", Some("New".into())),
        ("repoUrl", Some("https://github.com/o/n".into())),
        ("stack", Some("go".into())),
        ("branch", None),
    ])
}

#[test]
fn the_struct_has_exactly_the_fields_of_the_table() {
    let names: Vec<&str> = std::iter::once("id").chain(FIELDS.iter().map(|(name, ..)| *name)).collect();
    assert_eq!(field_names::<Environment>(), names);
    let mut valid = json!({"id": "a", "name": "A", "repoUrl": "/a", "stack": "go"});
    for (name, _, default) in
        FIELDS.iter().filter(|(name, ..)| valid.get(*name).is_none()).collect::<Vec<_>>()
    {
        valid[*name] = default.value(1);
    }
    for (name, kind, _) in &FIELDS {
        for value in accepted(kind) {
            let mut entry = valid.clone();
            entry[*name] = value;
            let read = serde_json::from_value::<Environment>(entry.clone());
            assert!(read.is_ok(), "{entry}: {read:?}");
        }
    }
}

#[test]
fn the_sample_is_a_valid_file() {
    let (_root, sources) = write_environments(sample());
    let read = read(&sources).unwrap();
    assert!(read.warnings.is_empty());
    let [only] = read.all.as_slice() else { panic!("{read:?}") };
    assert_eq!((only.id.as_str(), only.provider), ("env_myproject", Provider::CodexCloud));
}

#[test]
fn missing_fields_get_defaults_and_the_file_order_is_preserved() {
    let text = r#"{"z": {"name": "Z", "repoUrl": "git@host:o/n.git", "stack": "c++"},
                   "a": {"name": "A", "repoUrl": "/srv/a.git", "stack": "rust", "provider": "fleet", "on_lost": "retry",
                         "labels": {"os": "linux"}, "max_claims": 5, "push": true, "priority": -3}}"#;
    let (_root, sources) = write_environments(text);
    let all = read(&sources).unwrap().all;
    assert_eq!(all.iter().map(|environment| environment.id.as_str()).collect::<Vec<_>>(), ["z", "a"]);
    let (plain, full) = (&all[0], &all[1]);
    assert_eq!((plain.mode, plain.max_claims, plain.on_lost), (Mode::WorkspaceWrite, 2, OnLost::Fail));
    assert_eq!((full.provider, full.max_claims, full.on_lost), (Provider::Fleet, 5, OnLost::Retry));
    assert_eq!((full.push, full.priority, full.labels["os"].as_str()), (true, -3, "linux"));
}

#[test]
fn a_missing_file_is_reported_with_its_path() {
    let root = tempfile::tempdir().unwrap();
    let error = read(&sources(root.path())).unwrap_err();
    let path = root.path().join(".config/mcp-delegator/environments.json");
    assert!(matches!(&error, EnvironmentsError::Missing { path: missing } if *missing == path), "{error:?}");
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    let [(line, column, message)] = read_problems("{\n  \"a\": {,}\n}").try_into().unwrap();
    assert_eq!((line, column), (2, 9));
    assert!(message.contains("not valid JSON") && !message.contains(" line "), "{message}");
    assert_eq!(read_problems("[]")[0].2, ": expected an object, keyed by environment id");
    assert_eq!(read_problems("")[0].0, 1);
}

#[test]
fn all_problems_are_reported_with_their_positions() {
    let text = "{\n \"a\": {\"nam\": \"A\", \"repoUrl\": \"ext::sh -c x\", \"stack\": \"Node JS\"},\n \
                \"-b\": 1,\n \"c\": {\"name\": \"C\", \"repoUrl\": \"https://me:secret@h/x\", \"stack\": \"go\",\n  \
                \"provider\": \"fleeet\", \"max_claims\": 0, \"push\": \"no\", \"createdAt\": \"soon\", \"labels\": [1],\n  \
                \"branch\": \"a..b\", \"mode\": \"write\"}\n}";
    let found = read_problems(text);
    let at = |key: &str| {
        let found = found.iter().find(|(_, _, message)| message.starts_with(&format!("{key}:")));
        found
            .map(|(line, column, message)| (*line, *column, message.clone()))
            .unwrap_or_else(|| panic!("{key}"))
    };
    assert_eq!(at("a.name").0, 2);
    assert!(at("a.name").2.contains("`nam` is not known"));
    assert_eq!((at("a.repoUrl").0, at("a.repoUrl").1), (2, 20));
    assert_eq!((at("a.stack").0, at("-b").0), (2, 3));
    assert!(at("c.repoUrl").2.contains("password") && !at("c.repoUrl").2.contains("secret"));
    assert!(at("c.provider").2.ends_with("[fleet]"), "{:?}", at("c.provider"));
    for key in ["c.max_claims", "c.push", "c.createdAt", "c.labels"] {
        assert_eq!(at(key).0, 5, "{key}");
    }
    assert_eq!((at("c.branch").0, at("c.mode").0), (6, 6));
}

#[test]
fn many_problems_are_truncated() {
    let entries: Map<String, Value> = (0..500).map(|number| (format!("e{number}"), json!({}))).collect();
    let (_root, sources) = write_environments(&Value::Object(entries).to_string());
    let Err(EnvironmentsError::Invalid(error)) = read(&sources) else { panic!("the file is invalid") };
    assert_eq!(error.problems.len(), 101);
    assert!(error.problems[100].problem.contains("more problems"), "{}", error.problems[100]);
}

#[test]
fn a_duplicate_id_is_a_problem() {
    let entry_json = r#"{"name": "A", "repoUrl": "/a", "stack": "go"}"#;
    let found = read_problems(&format!("{{\"a\": {entry_json},\n\"a\": {entry_json}}}"));
    assert!(
        found.iter().any(|(line, _, message)| *line == 2 && message == "a: occurs twice in the file"),
        "{found:?}"
    );
}

#[test]
fn repository_urls_with_a_special_meaning_to_git_are_rejected() {
    for url in
        ["--upload-pack=x", "ext::sh", "https://", "ftp://h/x", "plain", "https://h/a b", "https://token@h/x"]
    {
        let text = json!({"a": {"name": "A", "repoUrl": url, "stack": "go"}}).to_string();
        assert_eq!(read_problems(&text).len(), 1, "{url}");
    }
    for url in ["https://h/x", "ssh://git@h:22/x", "git@h:o/n.git", "/srv/x", "file:///srv/x"] {
        let (_root, sources) =
            write_environments(&json!({"a": {"name": "A", "repoUrl": url, "stack": "go"}}).to_string());
        assert!(read(&sources).is_ok(), "{url}");
    }
}

#[test]
fn an_edit_keeps_unknown_fields_and_the_order() {
    let text = r#"{"z": {"x-mine": [1, {"deep": null}], "stack": "go", "name": "Z", "repoUrl": "/z"}, "a": {"name": "A", "repoUrl": "/a", "stack": "go", "nmae": 1}}"#;
    let (root, sources) = write_environments(text);
    let warnings = read(&sources).unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].message.contains("did you mean `name`"), "{warnings:?}");
    let added = add(&sources, "new", entry()).unwrap();
    assert_eq!(added.name, "New");
    let mut expected: Value = serde_json::from_str(text).unwrap();
    expected["new"] = json!({"name": "New", "repoUrl": "https://github.com/o/n", "stack": "go"});
    let now: Value = serde_json::from_str(&read_back(&root)).unwrap();
    // Compared as text, because the order matters.
    assert_eq!(now.to_string(), expected.to_string());
    remove(&sources, "new").unwrap();
    let before: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read_back(&root)).unwrap().to_string(), before.to_string());
    remove(&sources, "z").unwrap();
    assert!(read(&sources).unwrap().find("z").is_none());
}

#[test]
fn the_file_is_private_and_no_temporary_file_remains() {
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path());
    add(&sources, "a", entry()).unwrap();
    let folder = root.path().join(".config/mcp-delegator");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("environments.json"))), (0o700, 0o600));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_symlink_is_followed_and_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".config/mcp-delegator");
    std::fs::create_dir_all(root.path().join("dotfiles")).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("../../dotfiles/e.json", folder.join("environments.json")).unwrap();
    add(&sources(root.path()), "a", entry()).unwrap();
    assert!(folder.join("environments.json").is_symlink());
    assert!(root.path().join("dotfiles/e.json").is_file());
}

#[test]
fn failed_edits_change_nothing() {
    let (root, sources) = write_environments("{");
    assert!(matches!(add(&sources, "a", entry()), Err(EnvironmentsError::Invalid(_))));
    assert_eq!(read_back(&root), "{");
    let (root, sources) = write_environments(sample());
    let error = remove(&sources, "env_myprojcet").unwrap_err();
    assert!(
        matches!(&error, EnvironmentsError::Unknown { nearest: Some(near), .. } if near == "env_myproject"),
        "{error:?}"
    );
    assert!(matches!(add(&sources, "env_myproject", entry()), Err(EnvironmentsError::Exists { .. })));
    assert!(matches!(add(&sources, "a b", entry()), Err(EnvironmentsError::Invalid(_))));
    assert_eq!(read_back(&root), sample());
}

#[test]
fn concurrent_edits_do_not_undo_each_other() {
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let sources = &sources;
            scope.spawn(move || add(sources, &format!("env_{number}"), entry()).unwrap());
        }
    });
    assert_eq!(read(&sources).unwrap().all.len(), 8);
}
