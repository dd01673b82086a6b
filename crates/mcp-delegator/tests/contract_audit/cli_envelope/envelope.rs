//! The envelope that every command prints on a pipe.

use delegator_testkit::declared_errors::undeclared_error;
use serde_json::Value;

use crate::assertions::{absent, at, boolean, contains, equals, integer, list, object, one_of, text};
use crate::recorded::{CLI_ANSWERS, CliAnswer};
use crate::row::{Section, not_testable, works};

const ERROR_KEYS: [&str; 8] =
    ["code", "message", "detail", "retryable", "retry_after", "phase", "suggestion", "redirect"];

#[track_caller]
fn every_answer(check: fn(&CliAnswer)) {
    CLI_ANSWERS.all().into_iter().for_each(check);
}

#[track_caller]
fn every_failure(check: fn(&CliAnswer)) {
    assert!(CLI_ANSWERS.failures().count() >= 8);
    CLI_ANSWERS.failures().for_each(check);
}

/// The messages of a schema that an answer violates.
fn violations(schema: &Value, answer: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(answer).map(|error| error.to_string()).collect()
}

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "ResponseEnvelope",
        rows: &[
            works(
                1,
                "`ok`, `data`, `error`, `warnings` and `meta` are always present",
                "The keys of successes and failures of all kinds",
                || {
                    every_answer(|answer| {
                        for key in ["/ok", "/data", "/error", "/warnings", "/meta"] {
                            at(&answer.json, key);
                        }
                    });
                },
            ),
            works(2, "There are no other keys", "Every answer has five keys", || {
                every_answer(|answer| assert_eq!(object(&answer.json, "").len(), 5));
            }),
            works(3, "`ok` is a boolean", "`ok` of every answer", || {
                every_answer(|answer| {
                    boolean(&answer.json, "/ok");
                });
            }),
            works(
                4,
                "`ok` is true if and only if the exit code is 0",
                "`ok`, `meta.exit_code` and the exit code of the process",
                || {
                    every_answer(|answer| {
                        equals(&answer.json, "/ok", answer.exit == 0);
                        equals(&answer.json, "/meta/exit_code", answer.exit);
                    });
                },
            ),
            works(5, "`data` is null, an object or an array", "The type of `data` of every answer", || {
                every_answer(|answer| {
                    let data = at(&answer.json, "/data");
                    assert!(data.is_null() || data.is_object() || data.is_array(), "{data}");
                });
            }),
            works(
                6,
                "`data` is present on success, null on failure, never absent",
                "`data` of every answer; it is also null if the caller's copy is not modified",
                || {
                    every_answer(|answer| {
                        let is_expected =
                            answer.exit == 0 && at(&answer.json, "/meta").get("not_modified").is_none();
                        assert_eq!(at(&answer.json, "/data").is_null(), !is_expected, "{answer:?}");
                    });
                },
            ),
            works(
                7,
                "`data` has the shape that the command's output schema declares",
                "A run and the manifest validate against `schema COMMAND`",
                || {
                    for answer in [&CLI_ANSWERS.completed_run, &CLI_ANSWERS.manifest] {
                        let schema = crate::recorded::schema(text(&answer.json, "/meta/command"));
                        assert_eq!(violations(&schema, at(&answer.json, "/data")), Vec::<String>::new());
                    }
                },
            ),
            works(8, "`error` is null on success", "`error` of every success", || {
                CLI_ANSWERS.successes().for_each(|answer| equals(&answer.json, "/error", Value::Null));
            }),
            works(9, "`error` is an object on any non-zero exit", "`error` of every failure", || {
                every_failure(|answer| {
                    object(&answer.json, "/error");
                });
            }),
            works(
                10,
                "`warnings` are strings",
                "The warning about a run that changed files without running tests",
                || {
                    let warnings = list(&CLI_ANSWERS.completed_run.json, "/warnings");
                    assert!(!warnings.is_empty());
                    assert!(
                        warnings
                            .iter()
                            .all(|warning| warning.as_str().is_some_and(|text| text.starts_with("W_")))
                    );
                },
            ),
            works(11, "`warnings` may be empty and is never null", "`warnings` of every answer", || {
                every_answer(|answer| {
                    list(&answer.json, "/warnings");
                });
                assert!(list(&CLI_ANSWERS.status.json, "/warnings").is_empty());
            }),
            works(12, "`meta` is an object", "`meta` of every answer", || {
                every_answer(|answer| {
                    object(&answer.json, "/meta");
                });
            }),
        ],
    },
    Section {
        heading: "ErrorDetail",
        rows: &[
            works(
                13,
                "An error has no keys besides the eight defined ones",
                "The keys of every error",
                || {
                    every_failure(|answer| {
                        for key in object(&answer.json, "/error").keys() {
                            assert!(ERROR_KEYS.contains(&key.as_str()), "{key}");
                        }
                    });
                },
            ),
            works(
                14,
                "`code` is a stable identifier for programs",
                "Every code is declared in the manifest of its command",
                || {
                    every_failure(|answer| {
                        let code = text(&answer.json, "/error/code");
                        assert!(
                            code.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'),
                            "{code}"
                        );
                        assert_eq!(undeclared_error(&answer.json, &CLI_ANSWERS.manifest.json["data"]), None);
                    });
                },
            ),
            works(15, "`message` is a summary for people", "`message` of every error", || {
                every_failure(|answer| {
                    text(&answer.json, "/error/message");
                });
            }),
            works(
                16,
                "`detail` is an extended explanation",
                "The missing environments file comes with a sample",
                || contains(&CLI_ANSWERS.environments_missing.json, "/error/detail", "repoUrl"),
            ),
            works(17, "`retryable` is a boolean", "`retryable` of every error", || {
                every_failure(|answer| {
                    boolean(&answer.json, "/error/retryable");
                });
            }),
            works(
                18,
                "`retryable` mirrors the exit code entry of the emitted code",
                "The manifest declares the same value for every error; results of a running task are retryable in both",
                || {
                    let manifest = &CLI_ANSWERS.manifest.json["data"];
                    every_failure(|answer| {
                        assert_eq!(undeclared_error(&answer.json, &CLI_ANSWERS.manifest.json["data"]), None);
                    });
                    equals(&CLI_ANSWERS.early_results.json, "/error/retryable", true);
                    let commands = list(manifest, "/commands");
                    let results = commands.iter().find(|command| command["name"] == "local.results").unwrap();
                    let retryable = list(results, "/exit_codes/4/retryable_error_codes");
                    assert!(retryable.contains(&CLI_ANSWERS.early_results.json["error"]["code"]));
                },
            ),
            works(
                19,
                "`retry_after` gives the seconds to wait, only if the error is retryable and the time is known",
                "A call with too few file descriptors has it; errors that are not retryable do not",
                || {
                    let shortage = &CLI_ANSWERS.resource_shortage.json;
                    equals(shortage, "/error/retryable", true);
                    assert!(integer(shortage, "/error/retry_after") >= 1);
                    for answer in
                        CLI_ANSWERS.failures().filter(|answer| !boolean(&answer.json, "/error/retryable"))
                    {
                        absent(&answer.json, "/error/retry_after");
                    }
                },
            ),
            works(20, "`phase` can be validation", "A call with invalid values", || {
                equals(&CLI_ANSWERS.invalid_call.json, "/error/phase", "validation");
            }),
            works(21, "`phase` can be execution", "A run whose agent failed", || {
                equals(&CLI_ANSWERS.failed_run.json, "/error/phase", "execution");
            }),
            works(22, "`phase` can be cleanup", "A cleanup that cannot delete a leftover", || {
                equals(&CLI_ANSWERS.failed_cleanup.json, "/error/phase", "cleanup");
            }),
            works(
                23,
                "`validation` guarantees that there are no side effects",
                "An invalid call in an empty world creates no state directory",
                || {
                    let stage = crate::recorded::stage_with_agent(&[]);
                    let run = stage.world.run(["local", "run", "x", "--mode", "sudo"]);
                    equals(&run.json(), "/error/phase", "validation");
                    assert!(!stage.world.home().join("state").exists());
                },
            ),
            works(24, "`suggestion` is the next step", "An unknown task suggests to list the tasks", || {
                contains(&CLI_ANSWERS.unknown_task.json, "/error/suggestion", "mcp-delegator status");
            }),
            works(25, "`redirect` is present only with exit code 13", "`redirect` of every failure", || {
                every_failure(|answer| {
                    assert_eq!(
                        answer.json.pointer("/error/redirect").is_some(),
                        answer.exit == 13,
                        "{answer:?}"
                    );
                });
                assert_eq!((CLI_ANSWERS.renamed.exit, CLI_ANSWERS.typo.exit), (13, 13));
            }),
        ],
    },
    Section {
        heading: "Redirect",
        rows: &[
            works(
                26,
                "`command` is the exact replacement invocation",
                "It contains the arguments of the call",
                || equals(&CLI_ANSWERS.renamed.json, "/error/redirect/command", "mcp-delegator schema error"),
            ),
            works(
                27,
                "`permanent` tells whether to memorize the mapping",
                "True for a renamed command, false for a typo",
                || {
                    equals(&CLI_ANSWERS.renamed.json, "/error/redirect/permanent", true);
                    equals(&CLI_ANSWERS.typo.json, "/error/redirect/permanent", false);
                },
            ),
            works(28, "`reason` can be renamed", "A former name of a command", || {
                equals(&CLI_ANSWERS.renamed.json, "/error/redirect/reason", "renamed");
            }),
            works(29, "`reason` can be typo_corrected", "A misspelt command", || {
                equals(&CLI_ANSWERS.typo.json, "/error/redirect/reason", "typo_corrected");
            }),
            not_testable(
                30,
                "`reason` can be restructured or deprecated",
                "No command was restructured or deprecated yet.",
            ),
        ],
    },
    Section {
        heading: "ResponseMeta",
        rows: &[
            works(31, "`duration_ms` is an integer of at least 0", "`duration_ms` of every answer", || {
                every_answer(|answer| assert!(integer(&answer.json, "/meta/duration_ms") >= 0));
            }),
            works(32, "`request_id` identifies the call", "All answers have different ids", || {
                let mut ids: Vec<&str> =
                    CLI_ANSWERS.all().map(|answer| text(&answer.json, "/meta/request_id")).to_vec();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), CLI_ANSWERS.all().len());
            }),
            works(33, "`schema_version` is the version of the envelope, major.minor", "It is 1.0", || {
                every_answer(|answer| one_of(&answer.json, "/meta/schema_version", &["1.0"]));
            }),
            works(
                34,
                "`not_modified` is true when an etag matched and `data` is intentionally null",
                "The manifest, called with its own etag",
                || {
                    let again = &CLI_ANSWERS.manifest_again;
                    equals(&again.json, "/meta/not_modified", true);
                    equals(&again.json, "/data", Value::Null);
                    assert_eq!(again.exit, 0);
                },
            ),
            works(
                35,
                "`truncated` is true when the output was shortened to the size limit",
                "The manifest with a limit of 4,096 bytes",
                || {
                    equals(&CLI_ANSWERS.truncated_manifest.json, "/meta/truncated", true);
                    absent(&CLI_ANSWERS.status.json, "/meta/truncated");
                },
            ),
            works(
                36,
                "`cursor` is passed as --cursor to get the next page",
                "The second page of the schemas differs from the first",
                || {
                    text(&CLI_ANSWERS.first_page.json, "/meta/cursor");
                    assert_eq!(CLI_ANSWERS.second_page.exit, 0);
                    assert_ne!(CLI_ANSWERS.second_page.json["data"], CLI_ANSWERS.first_page.json["data"]);
                },
            ),
            works(37, "`meta` may have further keys", "`command` of every answer", || {
                every_answer(|answer| {
                    text(&answer.json, "/meta/command");
                });
            }),
        ],
    },
];
