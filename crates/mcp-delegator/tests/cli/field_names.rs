//! Names of fields in the published output schemas: own booleans are `is_*` or `has_*`, own counts `*_count`, and own
//! measures end in their unit, own ordinals in `_number`. Names that a contract spells stand in a table with their source.

use mcp_delegator::app::command_list::catalog;
use mcp_delegator::output::envelopes::schema;
use mcp_delegator::spec::Category;
use serde_json::Value;

const EXEC_EVENTS: &str = "Codex exec events";
const CLI: &str = "CLI envelope";
const STANDARD: &str = "standard envelope";
const TOOL: &str = "tool envelope";
/// The pages that settle what the documents leave open.
const SPECIFICATION: &str = "specification";

const BOOLEANS: [(&str, &str); 14] = [
    ("accepted", TOOL),
    ("completed", EXEC_EVENTS),
    ("dry_run", TOOL),
    ("included", TOOL),
    ("not_modified", CLI),
    ("ok", CLI),
    ("partial", SPECIFICATION),
    ("partial_success", STANDARD),
    ("permanent", CLI),
    ("replayed", SPECIFICATION),
    ("retryable", CLI),
    ("success", STANDARD),
    ("truncated", TOOL),
    ("wait_expired", SPECIFICATION),
];

const INTEGERS: [(&str, &str); 39] = [
    ("cleaned", TOOL),
    ("column", TOOL),
    ("completed_steps", TOOL),
    ("count", TOOL),
    ("deleted", TOOL),
    ("duration", TOOL),
    ("exit_code", TOOL),
    ("failed", TOOL),
    ("found", TOOL),
    ("line", TOOL),
    ("lines_changed", TOOL),
    // The two parts of lines_changed.
    ("lines_added", TOOL),
    ("lines_deleted", TOOL),
    ("original_size", TOOL),
    ("page", STANDARD),
    ("page_size", STANDARD),
    ("passed", TOOL),
    ("percent", TOOL),
    ("position", TOOL),
    ("queue_position", TOOL),
    ("queued", TOOL),
    ("recently_completed", TOOL),
    ("retry_after", CLI),
    ("running", TOOL),
    // Identifies a signal; nothing is counted or measured.
    ("signal", SPECIFICATION),
    ("size", TOOL),
    ("skipped", TOOL),
    ("step", TOOL),
    ("successful", STANDARD),
    ("total", TOOL),
    ("total_operations", STANDARD),
    ("total_steps", TOOL),
    ("bytes", SPECIFICATION),
    ("attempt", SPECIFICATION),
    ("old_start", SPECIFICATION),
    ("old_lines", SPECIFICATION),
    ("new_start", SPECIFICATION),
    ("new_lines", SPECIFICATION),
    ("recommended_attempt", SPECIFICATION),
];

const UNITS: [&str; 9] =
    ["_bytes", "_characters", "_code", "_hours", "_ms", "_seconds", "_tokens", "_count", "_number"];

fn is_type(schema: &Value, name: &str) -> bool {
    let is_named = |kind: &Value| kind == name;
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    is_named(&schema["type"])
        || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(is_named))
        || alternatives.into_iter().any(|alternative| is_type(alternative, name))
}

/// The properties anywhere in a schema whose name does not follow the rules.
fn misnamed(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let is_listed = |table: &[(&str, &str)]| table.iter().any(|(listed, _)| listed == name);
            let has_prefix = name.starts_with("is_") || name.starts_with("has_");
            if is_type(property, "boolean") && !has_prefix && !is_listed(&BOOLEANS) {
                found.push(format!("boolean {name}"));
            }
            let has_suffix = UNITS.iter().any(|unit| name.ends_with(unit));
            if is_type(property, "integer") && !has_suffix && !is_listed(&INTEGERS) {
                found.push(format!("integer {name}"));
            }
        }
    }
    match schema {
        Value::Object(object) => found.extend(object.values().flat_map(misnamed)),
        Value::Array(items) => found.extend(items.iter().flat_map(misnamed)),
        _ => {}
    }
    found
}

#[test]
fn own_booleans_and_counts_are_named_by_the_rules() {
    let commands = catalog().iter().map(|spec| (spec.name(), spec.output_schema()));
    let categories =
        Category::ALL.map(|category| (category.name().to_owned(), schema::tool(category))).into_iter();
    let envelopes = [
        ("agent".to_owned(), schema::agent()),
        ("standard".to_owned(), schema::standard()),
        ("error".to_owned(), schema::tool_error()),
    ];
    let mut problems: Vec<String> = commands
        .chain(categories)
        .chain(envelopes)
        .flat_map(|(name, schema)| misnamed(&schema).into_iter().map(move |field| format!("{name}: {field}")))
        .collect();
    problems.dedup();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a_misnamed_field_is_found_at_any_depth() {
    let schema = serde_json::json!({"$defs": {"Inner": {"properties": {
        "paused": {"type": ["boolean", "null"]}, "is_paused": {"type": "boolean"},
        "tasks": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "task_count": {"type": "integer"},
    }}}});
    assert_eq!(misnamed(&schema), ["boolean paused", "integer tasks"]);
}
