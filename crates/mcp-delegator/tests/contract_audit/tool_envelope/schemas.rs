//! The published schemas of the answers.

use serde_json::Value;

use crate::assertions::{equals, list};
use crate::recorded::{CATEGORIES, stage_with_agent};
use crate::row::{Section, works};

/// The schema of a category, as the command `schema` prints it.
fn schema(category: &str) -> Value {
    stage_with_agent(&[]).run_json(&["schema", category])
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "JSON Schema Validation",
    rows: &[
        works(194, "The schemas are of JSON Schema draft 2020-12", "`$schema` of all five", || {
            for category in CATEGORIES {
                let draft = "https://json-schema.org/draft/2020-12/schema";
                equals(&schema(category), "/$schema", draft);
            }
        }),
        works(195, "`$id` is the schema id", "`$id` of all five", || {
            for category in CATEGORIES {
                equals(&schema(category), "/$id", format!("codex/v3.6/{category}/v1"));
            }
        }),
        works(
            196,
            "Seven fields are required: `version`, `schema_id`, `tool`, `tool_category`, `request_id`, `ts`, `status`",
            "All seven, and `meta`, which the table of fields requires as well",
            || {
                let schema = schema("execution_ack");
                let required: Vec<&str> =
                    list(&schema, "/required").iter().filter_map(Value::as_str).collect();
                for field in
                    ["version", "schema_id", "tool", "tool_category", "request_id", "ts", "status", "meta"]
                {
                    assert!(required.contains(&field), "{field} is not in {required:?}");
                }
            },
        ),
        works(
            197,
            "`version` is the constant \"3.6\"; `status` is \"ok\" or \"error\"",
            "Both in the schema",
            || {
                let schema = schema("execution_ack");
                equals(&schema, "/properties/version/const", "3.6");
                equals(&schema, "/properties/status/enum", serde_json::json!(["ok", "error"]));
            },
        ),
    ],
}];
