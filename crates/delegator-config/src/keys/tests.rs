//! The key table is complete and consistent.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    DefaultValue, KEYS, ProjectRight, TextFormat, ValueKind, fields_of, find, is_section, nearest, settings,
};
use crate::check::Checker;
use crate::node::{Node, Shape};

/// The keys of the specified interface, with `*` for its open namespaces, and additional ones: `containment`,
/// `enclosure`, `niceness`, `hide_state_dir`, `database_url_file` and the retention of the fleet.
const SPECIFIED_KEYS: &str = "codex_bin max_concurrent idle_timeout_sec hard_timeout_sec interrupt_grace_sec \
    terminate_grace_sec idle_counts call_budget_sec max_mode default_agent default_mode hide_state_dir max_stream_bytes max_processes containment enclosure niceness sweep_exempt \
    allowed_roots redact_names agents.* answer_timeout_sec notified_answer_timeout_sec retention_hours restore_point_retention_hours worktree_quota_bytes repositories.* verify_unsandboxed budget.* \
    max_depth max_children notify.* database_url database_url_file fleet_lease_sec fleet_heartbeat_sec fleet_cutoff_sec fleet_retention_hours fleet_max_bytes toolsets \
    tools exclude_tools read_only output_schemas default_format tool_prefix format envelope log_level labels";

#[test]
fn the_table_has_exactly_the_specified_keys() {
    let specified: BTreeSet<&str> =
        SPECIFIED_KEYS.split_whitespace().map(|name| name.trim_end_matches(".*")).collect();
    let defined: BTreeSet<&str> = KEYS.iter().filter_map(|key| key.name.split('.').next()).collect();
    assert_eq!(defined, specified);
}

#[test]
fn no_name_and_no_variable_occurs_twice() {
    let names: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len());
    let variables: BTreeSet<_> = settings().filter_map(|key| key.variable()).collect();
    assert_eq!(variables.len(), settings().count());
}

#[test]
fn every_default_passes_its_own_check() {
    let text = |value: &Value| Node { at: None, shape: Shape::Text(value.as_str().unwrap().to_owned()) };
    for key in KEYS {
        let default = key.default.value(4);
        let shape = match &default {
            Value::Null | Value::Object(_) => continue,
            Value::Bool(value) => Shape::Bool(*value),
            Value::Number(number) => Shape::Integer { value: number.as_i64(), written: number.to_string() },
            Value::String(_) => text(&default).shape,
            Value::Array(items) => Shape::List(items.iter().map(text).collect()),
        };
        let mut checker = Checker::new(None);
        let value = checker.value(&key.kind, key.name, &Node { at: None, shape });
        assert_eq!(value, Some(default), "{}: {:?}", key.name, checker.problems);
    }
}

#[test]
fn a_limit_has_an_order_and_a_default_to_be_lowered_from() {
    for key in KEYS.iter().filter(|key| key.project == ProjectRight::Lower) {
        assert!(matches!(key.kind, ValueKind::Integer { .. } | ValueKind::Choice(_)), "{}", key.name);
        assert!(key.rank(&key.default.value(8)).is_some(), "{}", key.name);
    }
}

#[test]
fn only_urls_are_secret() {
    let secret: Vec<_> = KEYS.iter().filter(|key| key.secret).map(|key| key.name).collect();
    assert_eq!(secret, ["notify.webhook", "database_url"]);
}

#[test]
fn max_concurrent_defaults_to_the_cores_and_at_least_two() {
    let key = find("max_concurrent").unwrap();
    assert!(matches!(key.default, DefaultValue::Cores));
    for (cores, expected) in [(0, 2), (1, 2), (2, 2), (16, 16)] {
        assert_eq!(key.default.value(cores), expected);
    }
}

#[test]
fn variables_and_flags_follow_the_name() {
    assert_eq!(find("max_concurrent").unwrap().variable().as_deref(), Some("MCP_DELEGATOR_MAX_CONCURRENT"));
    assert_eq!(
        find("budget.task_tokens").unwrap().variable().as_deref(),
        Some("MCP_DELEGATOR_BUDGET_TASK_TOKENS")
    );
    assert_eq!(find("budget.task_tokens").unwrap().flag(), "--budget-task-tokens");
    assert!(fields_of("agents").all(|(_, key)| key.variable().is_none()));
}

#[test]
fn sections_are_derived_from_the_table() {
    assert!(is_section("budget") && is_section("notify"));
    assert!(!is_section("agents") && !is_section("max_concurrent") && !is_section(""));
}

#[test]
fn other_spellings_suggest_the_key() {
    for key in settings() {
        let dashed = key.name.replace('_', "-");
        assert_eq!(nearest(&dashed), Some(key.name));
        let mut camel = String::new();
        for (at, word) in key.name.split('_').enumerate() {
            let (first, rest) = word.split_at(1);
            camel += &if at == 0 { first.to_owned() } else { first.to_uppercase() };
            camel += rest;
        }
        assert_eq!(nearest(&camel), Some(key.name), "{camel}");
    }
    assert_eq!(nearest("task_tokens"), Some("budget.task_tokens"));
    assert_eq!(nearest("teapot"), None);
    assert_eq!(nearest(&"m".repeat(100_000)), None);
}

#[test]
fn text_formats_accept_and_reject() {
    let cases: [(TextFormat, &[&str], &[&str]); 9] = [
        (TextFormat::Argument, &["", "-x", "a b\n"], &["a\0b"]),
        (
            TextFormat::ToolPrefix,
            &["", "_codex_", "a-9", "12345678901234567890123456789012"],
            &["a b", "ä", "a.b", "123456789012345678901234567890123"],
        ),
        (TextFormat::ToolName, &["_codex_local_run", "x"], &["", "a b", "a/b"]),
        (TextFormat::VariableName, &["A", "_x9"], &["", "9A", "A=secret", "A-B", "A B"]),
        (
            TextFormat::PassedVariable,
            &["A", "CARGO_HOME", "GIT_AUTHOR_NAME"],
            &["", "9A", "LD_PRELOAD", "NODE_OPTIONS", "GIT_SSH_COMMAND", "BASH_ENV"],
        ),
        (TextFormat::ProgramName, &["sccache", "a b"], &["", ".", "..", "a/b", "a\0"]),
        (
            TextFormat::DatabaseUrl,
            &["postgres://h/d", "postgresql:///d"],
            &["", "postgres://", "mysql://h/d", "h", "postgres://h/ d"],
        ),
        (
            TextFormat::WebhookUrl,
            &["https://h.example/x?y=z", "http://localhost:8080/", "http://127.0.0.9", "http://[::1]:80/x"],
            &[
                "",
                "h",
                "http://h.example/",
                "http://10.0.0.1/",
                "ftp://localhost/",
                "https://u:p@h/",
                "https:///x",
                "https://h/ x",
            ],
        ),
        (TextFormat::NotificationTemplate, &["done", "{state}\n{summary}"], &["", "{stat}", "{"]),
    ];
    for (format, right, wrong) in cases {
        assert!(right.iter().all(|text| format.accepts(text)), "{format:?} rejects a valid text");
        for text in wrong {
            assert!(!format.accepts(text), "{format:?} accepts {text:?}");
        }
    }
}
