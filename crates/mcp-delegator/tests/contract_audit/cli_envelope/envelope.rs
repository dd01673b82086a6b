//! The envelope that every command prints on a pipe.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

use delegator_testkit::declared_errors::undeclared_error;
use delegator_testkit::program::World;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::assertions::{
    absent, at, boolean, contains, equals, integer, list, object, one_of, text, valid, violations,
};
use crate::recorded::{CLI_ANSWERS, CliAnswer};
use crate::row::{Section, differs, not_testable, works};

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

fn milliseconds_since(start: Instant) -> i64 {
    start.elapsed().as_millis().try_into().unwrap()
}

/// The last line of a stream, the milliseconds between its first line and its last event, and those of its whole life.
fn streamed() -> (Value, i64, i64) {
    let world = World::new(PROGRAM);
    let start = Instant::now();
    let mut follow = world.command(["events", "follow", "--format", "jsonl"]);
    let mut follow = follow.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (follow.stdin.take().unwrap(), follow.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    input.write_all(b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n").unwrap();
    lines.next().unwrap().unwrap();
    let first_line = Instant::now();
    world.run(["version"]);
    let open = milliseconds_since(first_line);
    drop(input);
    let last = lines.last().unwrap().unwrap();
    follow.wait().unwrap();
    (serde_json::from_str(&last).unwrap(), open, milliseconds_since(start))
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
                "Every answer of a command validates against `schema COMMAND`; a run without its task, and one with a \
                 number as state, do not",
                || {
                    // A call that names no command has the name of the program.
                    let of_commands = CLI_ANSWERS.all().into_iter();
                    for answer in
                        of_commands.filter(|answer| answer.json["meta"]["command"] != "mcp-delegator")
                    {
                        let command = text(&answer.json, "/meta/command");
                        valid(&crate::recorded::schema(command, "cli"), &answer.json);
                    }
                    let schema = crate::recorded::schema("local.run", "cli");
                    for change in [json!({}), json!({"task_id": "T-local-0000000000", "state": 7})] {
                        let mut changed = CLI_ANSWERS.completed_run.json.clone();
                        let data = changed["data"].as_object_mut().unwrap();
                        data.shift_remove("task_id").unwrap();
                        data.extend(change.as_object().unwrap().clone());
                        assert!(!violations(&schema, &changed).is_empty(), "{changed}");
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
            works(
                15,
                "`message` is a summary for people",
                "A sentence in every error; that of an unknown task names it",
                || {
                    every_failure(|answer| assert!(text(&answer.json, "/error/message").contains(' ')));
                    let message = "There is no task T-local-0000000000.";
                    equals(&CLI_ANSWERS.unknown_task.json, "/error/message", message);
                },
            ),
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
            differs(
                18,
                "`retryable` mirrors the `retryable` of the exit code entry",
                "An exit code stands for several errors; 4 is a wrong state, which changes, and a bad configuration, \
                 which does not",
                "It mirrors `retryable_error_codes` of the entry, for every failure; results of a running task are retryable, \
                 and `retryable` of the entry 4 is false",
                || {
                    every_failure(|answer| {
                        assert_eq!(undeclared_error(&answer.json, &CLI_ANSWERS.manifest.json["data"]), None);
                    });
                    let early = &CLI_ANSWERS.early_results.json;
                    equals(early, "/error/retryable", true);
                    let commands = list(&CLI_ANSWERS.manifest.json, "/data/commands");
                    let results = commands.iter().find(|command| command["name"] == "local.results").unwrap();
                    let entry = at(results, "/exit_codes/4");
                    equals(entry, "/retryable", false);
                    assert!(list(entry, "/retryable_error_codes").contains(at(early, "/error/code")));
                    assert!(!list(entry, "/retryable_error_codes").contains(&json!("CONFIG_INVALID")));
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
                "No command was restructured or deprecated yet",
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
                "Each of two pages has two schemas, and no schema is on both",
                || {
                    let pages = [&CLI_ANSWERS.first_page, &CLI_ANSWERS.second_page];
                    let pages = pages.map(|page| list(&page.json, "/data/schemas"));
                    assert_eq!(pages.map(<[Value]>::len), [2, 2]);
                    assert!(pages[1].iter().all(|schema| !pages[0].contains(schema)), "{pages:?}");
                },
            ),
            works(37, "`meta` may have further keys", "`command` of every answer", || {
                every_answer(|answer| {
                    text(&answer.json, "/meta/command");
                });
            }),
            differs(
                38,
                "`duration_ms` is the time from the entry of the command to the last byte of the output",
                "The number is a part of the output, so it is taken when the output is rendered, before it is written",
                "It covers the whole run of an agent that works for 300 ms and is at most the life of the process; that of \
                 a stream covers the time until its input ends",
                || {
                    let steps = successful_turn(&[json!({"command": {"run": "sleep 0.3"}})]);
                    let (stage, start) = (Stage::with_script(PROGRAM, steps), Instant::now());
                    let run = stage.run_json(&["local", "run", "x"]);
                    let (stream, open, lived) = streamed();
                    for (answer, times) in [(&run, 300..=milliseconds_since(start)), (&stream, open..=lived)]
                    {
                        let duration = integer(answer, "/meta/duration_ms");
                        assert!(times.contains(&duration), "{duration} is not in {times:?}");
                    }
                },
            ),
            works(
                39,
                "`schema_version` lets agents detect breaking changes",
                "That of every answer is the one that the manifest declares, and that of the program is a version of its own",
                || {
                    let manifest = at(&CLI_ANSWERS.manifest.json, "/data");
                    equals(manifest, "/schema_version", "1.0");
                    equals(manifest, "/version", "3.6.0");
                    every_answer(|answer| {
                        let manifest = &CLI_ANSWERS.manifest.json;
                        equals(
                            &answer.json,
                            "/meta/schema_version",
                            manifest["data"]["schema_version"].clone(),
                        );
                        equals(&answer.json, "/meta/tool_version", manifest["data"]["version"].clone());
                    });
                },
            ),
            works(
                40,
                "The document is itself the schema of every answer",
                "`schema agent` is the document, and every answer validates against it; with a sixth key none does",
                || {
                    let document = crate::recorded::stage_with_agent(&[]).run_json(&["schema", "agent"]);
                    equals(&document, "/$id", "ResponseEnvelope");
                    equals(&document, "/$schema", "http://json-schema.org/draft-07/schema#");
                    for answer in CLI_ANSWERS.all() {
                        valid(&document, &answer.json);
                        let mut changed = answer.json.clone();
                        changed["extra"] = json!(1);
                        assert!(!violations(&document, &changed).is_empty());
                    }
                },
            ),
        ],
    },
];
