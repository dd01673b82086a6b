//! The envelope that every tool answers with.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::assertions::{equals, list, object, one_of, text, time, valid};
use crate::recorded::{ALL_TOOLS, CATEGORIES, COMPLETED};
use crate::row::{Section, differs, works};

/// Asserts something about the envelope of each of the fifteen tools.
#[track_caller]
fn every_envelope(check: fn(&Value)) {
    assert_eq!(ALL_TOOLS.envelopes().count(), 15);
    ALL_TOOLS.envelopes().for_each(check);
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Overview",
        rows: &[
            works(
                1,
                "All 15 tools answer in JSON when a call has `format: \"json\"`",
                "15 tools are listed, and each answers with a JSON object, as text and as structured content",
                || {
                    assert_eq!(ALL_TOOLS.listed.len(), 15);
                    for (tool, answer) in ALL_TOOLS.answers() {
                        assert!(ALL_TOOLS.listed.iter().any(|listed| listed["name"] == tool), "{tool}");
                        object(&answer.envelope, "");
                        assert_eq!(answer.json_text, answer.envelope, "{tool}");
                    }
                },
            ),
            works(
                2,
                "All tools share one envelope",
                "The keys of every answer are those of the envelope, in its order",
                || {
                    every_envelope(|envelope| {
                        let last = if envelope["status"] == "ok" { "data" } else { "error" };
                        let keys: Vec<&String> = object(envelope, "").keys().collect();
                        let expected = [
                            "version",
                            "schema_id",
                            "tool",
                            "tool_category",
                            "request_id",
                            "ts",
                            "status",
                            "meta",
                            last,
                        ];
                        assert_eq!(keys, expected);
                    });
                },
            ),
        ],
    },
    Section {
        heading: "Overview",
        rows: &[
            works(
                3,
                "Answers are machine-readable and predictable",
                "The answer of every tool validates against the schema that the server publishes for its category",
                || {
                    every_envelope(|envelope| {
                        valid(&ALL_TOOLS.schemas[text(envelope, "/tool_category")], envelope);
                    });
                },
            ),
            works(
                5,
                "Five categories of tools have a schema each",
                "Five resources of the server, each with its own `$id`, and every tool in one of the categories",
                || {
                    for category in CATEGORIES {
                        let id = format!("codex/v3.6/{category}/v1");
                        equals(&ALL_TOOLS.schemas[category], "/$id", id);
                        let is_used = |envelope: &Value| envelope["tool_category"] == category;
                        assert!(ALL_TOOLS.envelopes().any(is_used), "no tool in {category}");
                    }
                },
            ),
        ],
    },
    Section {
        heading: "Common Envelope Structure",
        rows: &[
            works(7, "`version` is \"3.6\"", "`version` of every tool", || {
                every_envelope(|envelope| equals(envelope, "/version", "3.6"));
            }),
            works(
                8,
                "`schema_id` is `codex/v3.6/{category}/v1`",
                "`schema_id` of every tool, errors included, contains its `tool_category`",
                || {
                    every_envelope(|envelope| {
                        let category = text(envelope, "/tool_category");
                        equals(envelope, "/schema_id", format!("codex/v3.6/{category}/v1"));
                    });
                },
            ),
            works(
                9,
                "`tool` is the name of the tool",
                "`tool` of every tool is the name that was called",
                || {
                    for (tool, answer) in ALL_TOOLS.answers() {
                        equals(&answer.envelope, "/tool", tool);
                    }
                },
            ),
            works(10, "`tool_category` is one of five values", "`tool_category` of every tool", || {
                every_envelope(|envelope| one_of(envelope, "/tool_category", &CATEGORIES));
            }),
            works(
                11,
                "`request_id` is a UUID",
                "`request_id` of every tool parses, and no two are equal",
                || {
                    let ids: std::collections::BTreeSet<Uuid> = ALL_TOOLS
                        .envelopes()
                        .map(|envelope| text(envelope, "/request_id").parse().unwrap())
                        .collect();
                    assert_eq!(ids.len(), 15);
                },
            ),
            works(12, "`ts` is an ISO-8601 time", "`ts` of every tool parses and is in UTC", || {
                every_envelope(|envelope| {
                    time(envelope, "/ts");
                });
            }),
            works(13, "`status` is \"ok\" or \"error\"", "`status` of every tool", || {
                every_envelope(|envelope| one_of(envelope, "/status", &["ok", "error"]));
            }),
            works(14, "`meta` is always there", "`meta` of every tool is an object, also in errors", || {
                every_envelope(|envelope| {
                    object(envelope, "/meta");
                });
            }),
            differs(
                15,
                "`meta` holds small scalar values",
                "Warnings, ids of tasks, selected fields and the reason of a wait in the queue have no other place in the \
                 envelope",
                "The published schemas declare scalars, the lists `warnings` and `fields`, and the objects `agent_pause` and \
                 `waiting_for`; a wait for several tasks has the lists `ended` and `pending`",
                || {
                    let mut others = BTreeSet::new();
                    for schema in ALL_TOOLS.schemas.values() {
                        for (key, declared) in object(schema, "/properties/meta/properties") {
                            if declared["type"] == "array" || declared["type"] == "object" {
                                others.insert(key.as_str());
                            }
                        }
                    }
                    assert_eq!(others, BTreeSet::from(["agent_pause", "fields", "waiting_for", "warnings"]));
                    assert_eq!(list(&COMPLETED.wait_any, "/meta/ended").len(), 2);
                    equals(&COMPLETED.wait_any, "/meta/pending", json!([]));
                    let warning = object(&COMPLETED.many_files, "/meta/warnings/0");
                    assert!(warning.keys().eq(["code", "message", "context"]), "{warning:?}");
                },
            ),
            works(
                16,
                "`data` is omitted in errors",
                "No error has `data`; every other answer has it",
                || {
                    every_envelope(|envelope| {
                        assert_eq!(
                            envelope.get("data").is_none(),
                            envelope["status"] == "error",
                            "{envelope}"
                        );
                    });
                },
            ),
            works(17, "`error` is there only in errors", "`error` of every tool", || {
                every_envelope(|envelope| {
                    let has_error = envelope.get("error").is_some_and(Value::is_object);
                    assert_eq!(has_error, envelope["status"] == "error", "{envelope}");
                });
            }),
        ],
    },
];
