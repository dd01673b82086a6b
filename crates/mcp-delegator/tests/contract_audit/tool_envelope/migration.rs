//! The category of each tool, and the two formats of every answer.

use serde_json::{Value, json};

use super::cloud_answer;
use crate::assertions::{absent, contains, equals, object, one_of, text, time};
use crate::client;
use crate::recorded::{ALL_TOOLS, CATEGORIES, FLEET_CANCEL};
use crate::row::{Section, differs, works};

const IN_CATEGORY: &str = "Category and schema id of an answer that is no error";

#[track_caller]
fn is_in_category(tool: &str, category: &str) {
    let answer = &ALL_TOOLS.of(tool).envelope;
    equals(answer, "/status", "ok");
    equals(answer, "/tool_category", category);
    equals(answer, "/schema_id", format!("codex/v3.6/{category}/v1"));
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Tool-to-Category Mapping",
        rows: &[
            works(
                168,
                "`_codex_local_run`: category execution_ack, schema id `codex/v3.6/execution_ack/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_run", "execution_ack");
                },
            ),
            works(
                169,
                "`_codex_local_exec`: category execution_ack, schema id `codex/v3.6/execution_ack/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_exec", "execution_ack");
                },
            ),
            works(
                170,
                "`_codex_local_resume`: category execution_ack, schema id `codex/v3.6/execution_ack/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_resume", "execution_ack");
                },
            ),
            works(
                171,
                "`_codex_cloud_submit`: category execution_ack, schema id `codex/v3.6/execution_ack/v1`",
                "A task of hosted Codex",
                || {
                    equals(cloud_answer("_codex_cloud_submit", "execution_ack"), "/status", "ok");
                },
            ),
            works(
                172,
                "`_codex_local_wait`: category wait_result, schema id `codex/v3.6/wait_result/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_wait", "wait_result");
                },
            ),
            works(
                173,
                "`_codex_cloud_wait`: category wait_result, schema id `codex/v3.6/wait_result/v1`",
                "A task of hosted Codex",
                || {
                    equals(cloud_answer("_codex_cloud_wait", "wait_result"), "/status", "ok");
                },
            ),
            works(
                174,
                "`_codex_local_status`: category status_snapshot, schema id `codex/v3.6/status_snapshot/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_status", "status_snapshot");
                },
            ),
            works(
                175,
                "`_codex_cloud_status`: category status_snapshot, schema id `codex/v3.6/status_snapshot/v1`",
                "A task of hosted Codex",
                || {
                    equals(cloud_answer("_codex_cloud_status", "status_snapshot"), "/status", "ok");
                },
            ),
            works(
                176,
                "`_codex_local_results`: category result_set, schema id `codex/v3.6/result_set/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_results", "result_set");
                },
            ),
            works(
                177,
                "`_codex_cloud_results`: category result_set, schema id `codex/v3.6/result_set/v1`",
                "A task of hosted Codex",
                || {
                    equals(cloud_answer("_codex_cloud_results", "result_set"), "/status", "ok");
                },
            ),
            works(
                178,
                "`_codex_local_cancel`: category registry_info, schema id `codex/v3.6/registry_info/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_local_cancel", "registry_info");
                },
            ),
            works(
                179,
                "`_codex_cloud_cancel`: category registry_info, schema id `codex/v3.6/registry_info/v1`",
                "A queued task of a fleet is cancelled; hosted Codex cannot cancel, which is UNSUPPORTED with the same ids",
                || {
                    let hosted = cloud_answer("_codex_cloud_cancel", "registry_info");
                    equals(hosted, "/error/code", "UNSUPPORTED");
                    equals(&FLEET_CANCEL, "/status", "ok");
                    equals(&FLEET_CANCEL, "/tool_category", "registry_info");
                    equals(&FLEET_CANCEL, "/schema_id", "codex/v3.6/registry_info/v1");
                    equals(&FLEET_CANCEL, "/data/operation", "cancel");
                    equals(&FLEET_CANCEL, "/data/state", "cancelled");
                },
            ),
            works(
                180,
                "`_codex_cleanup_registry`: category registry_info, schema id `codex/v3.6/registry_info/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_cleanup_registry", "registry_info");
                },
            ),
            works(
                181,
                "`_codex_cloud_list_environments`: category registry_info, schema id `codex/v3.6/registry_info/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_cloud_list_environments", "registry_info");
                },
            ),
            works(
                182,
                "`_codex_cloud_github_setup`: category registry_info, schema id `codex/v3.6/registry_info/v1`",
                IN_CATEGORY,
                || {
                    is_in_category("_codex_cloud_github_setup", "registry_info");
                },
            ),
        ],
    },
    Section {
        heading: "TypeScript Interfaces",
        rows: &[works(
            191,
            "`JsonEnvelope` and `JsonError`: ten fields and five, with their types",
            "The types of the fields of every answer, in errors also those of `error`",
            || {
                for envelope in ALL_TOOLS.envelopes() {
                    for key in ["version", "schema_id", "tool", "request_id"] {
                        text(envelope, &format!("/{key}"));
                    }
                    time(envelope, "/ts");
                    one_of(envelope, "/tool_category", &CATEGORIES);
                    object(envelope, "/meta");
                    if text(envelope, "/status") == "error" {
                        text(envelope, "/error/code");
                        text(envelope, "/error/message");
                        object(envelope, "/error/details");
                        assert!(envelope["error"]["retryable"].is_boolean());
                        assert!(envelope["error"]["duration_ms"].is_u64());
                    } else {
                        object(envelope, "/data");
                    }
                }
            },
        )],
    },
    Section {
        heading: "Envelope Builder Utility",
        rows: &[
            works(198, "The server generates `request_id`", "A new one for each of two equal calls", || {
                for (tool, answer) in ALL_TOOLS.answers() {
                    let second = &answer.second_envelope;
                    assert_ne!(text(&answer.envelope, "/request_id"), text(second, "/request_id"), "{tool}");
                }
            }),
            differs(
                199,
                "`data` is left out when it is empty or zero",
                "A reader of an answer that is no error may rely on `data`",
                "`data` is an object in every answer that is no error, and in no error",
                || {
                    for envelope in ALL_TOOLS.envelopes() {
                        let has_data = envelope.get("data").is_some_and(Value::is_object);
                        assert_eq!(has_data, envelope["status"] == "ok", "{envelope}");
                    }
                },
            ),
        ],
    },
    Section {
        heading: "Migration Guide",
        rows: &[
            differs(
                200,
                "The Markdown answer of `exec` is `## 📊 Task Started` and `Task ID: ID`",
                "Markdown is written for models: the key facts first, without symbols",
                "`# Task ID accepted`, then the state and the directory, then the next call with the id",
                || {
                    let markdown = &ALL_TOOLS.of("_codex_local_exec").markdown;
                    let id = markdown.strip_prefix("# Task ").unwrap().split_once(" accepted\n\n- state: ");
                    let (id, rest) = id.unwrap_or_else(|| panic!("{markdown}"));
                    assert!(id.starts_with("T-local-") && rest.contains("\n- directory: /"), "{markdown}");
                    let next = format!("\nNext: `_codex_local_wait {{\"task_id\":\"{id}\"}}`");
                    assert!(rest.trim_end().ends_with(&next), "{markdown}");
                    assert!(markdown.is_ascii(), "{markdown}");
                },
            ),
            works(
                201,
                "The JSON answer of `exec` has the id in `data.task_id`",
                "The id of a local task",
                || {
                    contains(&ALL_TOOLS.of("_codex_local_exec").envelope, "/data/task_id", "T-local-");
                },
            ),
            works(
                202,
                "Markdown is the default",
                "A call without `format` answers with text only, and no structured content, for every tool",
                || {
                    for (tool, answer) in ALL_TOOLS.answers() {
                        let text = client::text(&answer.default);
                        assert!(text.starts_with("# "), "{tool}: {text}");
                        absent(&answer.default, "/structuredContent");
                    }
                },
            ),
            works(
                203,
                "`format: \"json\"` works in any call",
                "Every tool takes it, and answers with the envelope",
                || {
                    for listed in &ALL_TOOLS.listed {
                        let tool = text(listed, "/name");
                        object(listed, "/inputSchema/properties/format");
                        equals(&ALL_TOOLS.of(tool).envelope, "/version", "3.6");
                    }
                },
            ),
            works(204, "All 15 tools support both formats", "Each answers in Markdown and in JSON", || {
                assert_eq!(ALL_TOOLS.answers().count(), 15);
                for (tool, answer) in ALL_TOOLS.answers() {
                    assert!(answer.markdown.starts_with("# "), "{tool}: {}", answer.markdown);
                    assert_eq!(answer.json_text["tool"], json!(tool));
                }
            }),
        ],
    },
];
