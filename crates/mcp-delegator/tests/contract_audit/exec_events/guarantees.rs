//! Statements about the whole stream.

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;
use serde_json::json;

use crate::assertions::{absent, equals, text};
use crate::row::{Section, differs, works};
use crate::transcripts::{EXAMPLE, converted, is_copied, mapped, run_events, summary};

fn command_with_exit_code(code: &str) -> String {
    format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","exit_code":{code},"status":"failed"}}}}"#
    )
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Example Transcript",
        rows: &[works(
            68,
            "The example transcript",
            "Copied byte for byte, also with `--strict`; the summary is completed, with the tokens of the example; `events follow` prints all six events",
            || {
                is_copied(EXAMPLE.trim_end());
                let summary = summary(EXAMPLE);
                equals(&summary, "/state", "completed");
                equals(
                    &summary,
                    "/thread_info/token_usage",
                    json!({
        "input_tokens": 123, "cached_input_tokens": 0, "output_tokens": 45}),
                );
                let followed = run_events(&["follow", "--format", "jsonl"], EXAMPLE);
                assert!(followed.stdout.starts_with(EXAMPLE), "{}", followed.stdout);
            },
        )],
    },
    Section {
        heading: "Notes and Guarantees",
        rows: &[
            works(
                69,
                "Numbers are signed: 64 bits for tokens, 32 bits for `exit_code`, as JSON numbers",
                "The limits are copied; with `--strict`, a line with a larger exit code is left out",
                || {
                    for code in [i32::MIN, i32::MAX] {
                        is_copied(&command_with_exit_code(&code.to_string()));
                    }
                    assert!(converted(&command_with_exit_code("2147483648")).is_empty());
                },
            ),
            differs(
                70,
                "`exit_code` is omitted while a command is in progress",
                "Codex itself writes null today, and without `--strict` events are copied byte for byte",
                "Without `--strict` a null is copied; with it, `exit_code` is omitted",
                || {
                    let line = command_with_exit_code("null");
                    assert_eq!(run_events(&["normalize"], &line).stdout.trim_end(), line);
                    absent(&converted(&line)[0], "/item/exit_code");
                },
            ),
            works(
                71,
                "Ids are unique within the stream",
                "Converted items are numbered from 0, without a gap and without repetition",
                || {
                    let message = r#"{"type":"agent_message","message":"m"}"#;
                    let ids: Vec<String> = mapped(&[message; 3])
                        .iter()
                        .map(|event| text(event, "/item/id").to_owned())
                        .collect();
                    assert_eq!(ids, ["item_0", "item_1", "item_2"]);
                },
            ),
            works(
                72,
                "The wire format is stable",
                "Recordings of Codex 0.44 to 0.166 without a deviation are copied byte for byte",
                || {
                    for version in ["0.44.0", "0.98.0", "0.125.0", "0.146.1", "0.158.0", "0.166.0"] {
                        let name = format!(
                            "crates/delegator-transcript/tests/transcripts/versions/{version}.plain.jsonl"
                        );
                        let recording = read_text(&workspace().join(name));
                        assert_eq!(run_events(&["normalize"], &recording).stdout, recording, "{version}");
                    }
                },
            ),
        ],
    },
];
