//! Edge cases of the command line: unusual arguments, files and sizes. Each covers a former bug or a near miss.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use delegator_testkit::program::{RunOutput, World, read_text};
use delegator_testkit::terminal::{TerminalSession, run_on_terminal};
use serde_json::{Value, json};

use crate::PROGRAM;

fn world() -> World {
    World::new(PROGRAM)
}

fn problem_fields(run: &RunOutput) -> Vec<String> {
    let problems = run.json()["meta"]["error_context"]["problems"].as_array().cloned().unwrap_or_default();
    problems.iter().map(|problem| problem["field"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let bad = OsStr::from_bytes(b"\xff\xfe\xfd");
    for args in
        [vec![bad], vec![OsStr::new("config"), bad], vec![OsStr::new("manifest"), OsStr::new("--etag"), bad]]
    {
        let run = world().run(&args);
        assert_eq!(run.exit, Some(2), "{args:?}: {run:?}");
        assert_eq!(run.json()["ok"], false);
    }
}

#[test]
fn a_flag_may_precede_its_command() {
    let run = world().run(["--limit", "2", "manifest"]);
    assert_eq!(run.json()["data"]["commands"].as_array().unwrap().len(), 2);
    assert_eq!(world().run(["config", "--changed", "show"]).json()["data"]["settings"], json!([]));
}

#[test]
fn global_flags_are_honoured_behind_an_unknown_command() {
    let run = world().run(["manifets", "--envelope", "standard"]);
    assert_eq!(run.document()["error"]["code"], "E_VALIDATION_011");
    let run = world().run(["nonsense", "--format", "human"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.starts_with("error: There is no command"), "{}", run.stderr);
}

#[test]
fn a_redirect_names_the_intended_command_line() {
    let redirect = |args: &[&str]| world().run(args).json()["error"]["redirect"]["command"].clone();
    assert_eq!(redirect(&["help", "manifets", "--json"]), "mcp-delegator help manifest");
    assert_eq!(redirect(&["help", "config", "shw", "--json"]), "mcp-delegator help config show");
    assert_eq!(redirect(&["--output", "manifets", "manifets"]), "mcp-delegator --output manifets manifest");
    assert_eq!(redirect(&["--json", "--", "manifest"]), json!(null));
    let world = world().variable("MY_API_TOKEN", "hunter2supersecretvalue");
    let run = world.run(["manifets", "--etag", "hunter2supersecretvalue"]);
    assert_eq!(run.exit, Some(2));
    assert_eq!(run.json()["error"].get("redirect"), None);
}

#[test]
fn a_misspelt_group_is_suggested() {
    let suggestion =
        |args: &[&str]| world().run(args).json()["error"]["suggestion"].as_str().unwrap().to_owned();
    assert!(suggestion(&["flet", "status"]).contains("'fleet'"));
    assert!(suggestion(&["evnts", "normalize"]).contains("'events'"));
    assert!(!suggestion(&["cloud", "nope"]).contains("Known commands: ."));
}

#[test]
fn wrong_flags_are_reported_as_typed() {
    assert_eq!(problem_fields(&world().run(["--json", "manifest", "-qx"])), ["-x"]);
    let run = world().run(["manifest", "--quiet=true"]);
    assert!(
        run.json()["error"]["message"].as_str().unwrap().contains("--quiet: takes no value"),
        "{}",
        run.stdout
    );
    assert_eq!(problem_fields(&world().run(["manifest", "--max-bytes", "-1"])), ["--max-bytes"]);
    let run = world().run(["cleanup-registry", "--dry-run", "true"]);
    assert_eq!(run.json()["error"]["suggestion"], "Write a boolean flag as --name=true.");
    assert_eq!(problem_fields(&world().run(["manifest", ""])), ["''"]);
}

#[test]
fn each_suggestion_belongs_to_its_own_field() {
    let run = world().run(["manifest", "--zzz=true", "--etga=x", "--envelope", "standard"]);
    let details = run.document()["error"]["details"].clone();
    let help = "Run 'mcp-delegator manifest --help' to list the flags.";
    assert_eq!((&details["field"], &details["suggestion"]), (&json!("--zzz"), &json!(help)));
}

/// Field, value and suggestion of the first problem, in the standard envelope.
fn first_problem(args: &[&str]) -> (Value, Value, Value) {
    let run = world().run([args, &["--envelope", "standard"]].concat());
    let details = run.document()["error"]["details"].clone();
    assert_eq!(details["problems"][0]["value"], details["value"], "{details}");
    assert_eq!(details["problems"][0]["suggestion"], details["suggestion"], "{details}");
    (details["field"].clone(), details["value"].clone(), details["suggestion"].clone())
}

#[test]
fn a_cursor_or_name_that_is_not_found_is_repeated() {
    for (args, field, value) in [
        (&["local", "status", "--cursor", "garbage"][..], "cursor", "garbage"),
        (&["manifest", "--cursor", "garbage"], "cursor", "garbage"),
        (&["schema", "local.staus"], "name", "local.staus"),
    ] {
        let run = world().run([args, &["--envelope", "standard"]].concat());
        let details = run.document()["error"]["details"].clone();
        assert_eq!((&details["field"], &details["value"]), (&json!(field), &json!(value)), "{details}");
    }
}

#[test]
fn every_refused_value_is_repeated_with_a_suggestion() {
    for (args, field, value, suggestion) in [
        (
            vec!["local", "status", "--brightness", "red"],
            "--brightness",
            json!("--brightness"),
            "Run 'mcp-delegator local status --help' to list the flags.",
        ),
        (vec!["local", "exec", "x", "--mode", "wild"], "mode", json!("wild"), "Use one of read-only, "),
        (
            vec!["local", "exec", "x", "--mode", "read-onyl"],
            "mode",
            json!("read-onyl"),
            "Did you mean read-only?",
        ),
        (
            vec!["local", "wait", "T-local-00000000", "--timeout-sec", "0"],
            "timeout_sec",
            json!(0),
            "Give a number between 1 and 3600.",
        ),
        (
            vec!["local", "wait", "T-local-00000000", "--timeout-sec", "soon"],
            "timeout_sec",
            json!("soon"),
            "Give a whole number.",
        ),
        (vec!["manifest", "--format", "xml"], "--format", json!("xml"), "Use one of human, "),
        (vec!["manifest", "--max-bytes", "1"], "--max-bytes", json!("1"), "Give a number of at least 4096."),
    ] {
        let found = first_problem(&args);
        assert_eq!((&found.0, &found.1), (&json!(field), &value), "{args:?}: {found:?}");
        assert!(found.2.as_str().unwrap_or_default().starts_with(suggestion), "{args:?}: {found:?}");
    }
}

#[test]
fn a_person_reads_the_permitted_values_only_once() {
    let run = world().run(["local", "exec", "x", "--mode", "wild", "--format", "human"]);
    assert_eq!(run.stderr.matches("workspace-write").count(), 1, "{run:?}");
    assert!(!run.stderr.contains("hint:"), "{run:?}");
    let run = world().run(["local", "exec", "x", "--mode", "read-onyl", "--format", "human"]);
    assert!(run.stderr.contains("hint: Did you mean read-only?"), "{run:?}");
}

#[test]
fn output_to_dev_stdout_appends() {
    let world = world();
    world.write("project/log", "precious\n");
    let file = std::fs::OpenOptions::new().append(true).open(world.project().join("log")).unwrap();
    let status = world.command(["version", "--output", "/dev/stdout"]).stdout(file).status().unwrap();
    assert!(status.success());
    let text = read_text(&world.project().join("log"));
    assert!(text.starts_with("precious\n{"), "{text}");
}

#[test]
fn output_follows_a_dangling_symlink() {
    let world = world();
    std::os::unix::fs::symlink("target.json", world.project().join("link")).unwrap();
    assert_eq!(world.run(["version", "--output", "link"]).exit, Some(0));
    assert!(world.project().join("link").is_symlink());
    assert!(read_text(&world.project().join("target.json")).contains("\"success\": true"));
}

#[test]
fn an_unwritable_output_file_is_reported_on_stdout() {
    let world = world();
    world.write("project/folder/x", "");
    for path in ["folder", "folder/", "new/"] {
        let run = world.run(["version", "--output", path]);
        assert_eq!(run.exit, Some(2), "{path}: {run:?}");
        assert_eq!(run.json()["error"]["code"], "INVALID_VALUE");
    }
    let run = world.run(["version", "--output", "/proc/x.json"]);
    assert_eq!(run.json()["ok"], false, "{run:?}");
    assert_eq!(json!(run.exit), run.json()["meta"]["exit_code"]);
    assert_eq!(world.run(["version", "--output", "-"]).exit, Some(2));
}

#[test]
fn a_not_modified_response_leaves_the_output_file_alone() {
    let world = world();
    world.run(["manifest", "--output", "cache.json"]);
    let before = read_text(&world.project().join("cache.json"));
    let etag = world.run(["manifest"]).json()["meta"]["etag"].as_str().unwrap().to_owned();
    let run = world.run(["manifest", "--etag", &etag, "--output", "cache.json"]);
    assert_eq!(run.json()["meta"]["not_modified"], true);
    assert_eq!(read_text(&world.project().join("cache.json")), before);
}

/// [`World::run`] validates every answer against the schema that the program publishes for it.
#[test]
fn answers_are_valid_in_every_envelope_and_reduced_in_every_way() {
    let world = world();
    world.write("project/t.jsonl", "{\"type\":\"turn.started\"}\n");
    for (args, field) in [
        (&["manifest"][..], "commands.name"),
        (&["config", "show"], "settings.key"),
        (&["schema"], "schemas.name"),
        (&["schema", "local.exec"], "command"),
        (&["completions", "bash"], "text"),
        (&["man"], "text"),
        (&["help"], "usage"),
        (&["version"], "version"),
        (&["local", "status"], "summary.queued"),
        (&["doctor"], "checks.name"),
        (&["events", "summarize", "t.jsonl"], "counts"),
        (&["events", "normalize", "t.jsonl"], "lines_read"),
    ] {
        for envelope in ["agent", "standard", "tool"] {
            for more in [&[][..], &["--fields", field], &["--max-bytes", "1024"], &["--strict-warnings"]] {
                let run = world.run([args, &["--envelope", envelope], more].concat());
                assert!(run.document().is_object(), "{args:?} {more:?}");
            }
        }
        let lines = world.run([args, &["--format", "jsonl"]].concat()).stdout;
        // Without an agent `doctor` fails.
        let ok = format!("{{\"ok\":{}", args[0] != "doctor");
        assert!(lines.lines().last().unwrap().starts_with(&ok), "{args:?}: {lines}");
    }
}

#[test]
fn json_on_a_terminal_has_no_control_characters() {
    let hostile = "\u{9b}31mX\u{7f}\u{202e}\u{e0041}";
    for format in ["json", "jsonl"] {
        let run = run_on_terminal(world().command(["schema", hostile, "--format", format]));
        assert!(run.stdout.chars().all(|letter| !letter.is_control() || letter == '\n'), "{:?}", run.stdout);
        assert!(!run.stdout.contains('\u{202e}'));
        let envelope: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(envelope["meta"]["error_context"]["name"], hostile);
    }
}

#[test]
fn every_envelope_fits_the_size_limit() {
    for (max, envelope) in [
        (10_000, "agent"),
        (10_000, "standard"),
        (90_000, "standard"),
        (60_000, "tool"),
        (140_000, "standard"),
    ] {
        let run = world().run(["manifest", "--max-bytes", &max.to_string(), "--envelope", envelope]);
        assert!(run.stdout.len() <= max, "{envelope} {max}: {}", run.stdout.len());
        let document = run.document();
        let data = if envelope == "standard" { &document["data"]["manifest"] } else { &document["data"] };
        let commands = data["commands"].as_array().unwrap();
        assert!(max < 60_000 || commands.len() > 2, "{envelope} {max}: only {}", commands.len());
    }
    let run = world().run(["completions", "bash", "--max-bytes", "4096", "--strict-warnings"]);
    assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "a command's own format is never truncated");
}

#[test]
fn huge_input_is_not_echoed() {
    let huge = json!({"key": "x".repeat(3_000_000), "y".repeat(1_000_000): 1});
    let run = world().run_with_input(["config", "show", "--input-json", "-"], huge.to_string().as_bytes());
    assert_eq!(run.exit, Some(2));
    assert!(run.stdout.len() < 5_000, "{} bytes", run.stdout.len());
}

#[test]
fn json_input_is_parsed_leniently() {
    let by_json = |text: &str| world().run_with_input(["manifest", "--input-json", "-"], text.as_bytes());
    assert_eq!(by_json(r#"{"limit": 5.0}"#).json()["data"]["commands"].as_array().unwrap().len(), 5);
    assert_eq!(by_json(r#"{"limit": null}"#).exit, Some(0));
    let cleanup = ["cleanup-registry", "--input-json", "-"];
    let spelled_otherwise = br#"{"oldTaskMaxAgeHours": null, "dryRun": true}"#;
    assert_eq!(world().run_with_input(cleanup, spelled_otherwise).exit, Some(0));
    assert!(by_json(r#"{"limit": 1, "format": "markdown"}"#).stdout.starts_with("# mcp-delegator"));
    for (text, code) in [
        ("", "INVALID_JSON"),
        ("[]", "INVALID_JSON"),
        ("{", "INVALID_JSON"),
        (r#"{"format": 3}"#, "INVALID_VALUE"),
    ] {
        let run = by_json(text);
        assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(2), &json!(code)), "{text}");
    }
    for missing in ["/nowhere/at/all.json", "", "."] {
        assert_eq!(world().run(["manifest", "--input-json", missing]).exit, Some(2), "{missing}");
    }
    let both = world().run_with_input(["local", "exec", "-", "--input-json", "-"], b"{}");
    assert_eq!(problem_fields(&both), ["task"]);
    let literal = world().run_with_input(["local", "exec", "--input-json", "-"], br#"{"task": "-"}"#);
    assert_eq!(literal.exit, Some(4), "a hyphen in JSON is ordinary text: {literal:?}");
}

#[test]
fn a_forged_cursor_is_refused() {
    let cursor =
        world().run(["manifest", "--limit", "3"]).json()["meta"]["cursor"].as_str().unwrap().to_owned();
    let plain: Vec<u8> =
        (0..cursor.len()).step_by(2).map(|at| u8::from_str_radix(&cursor[at..at + 2], 16).unwrap()).collect();
    let forged = String::from_utf8(plain).unwrap().replacen("1.2.3.", "1.1.5000.", 1);
    let forged: String = forged.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(world().run(["manifest", "--cursor", &forged]).json()["error"]["code"], "INVALID_CURSOR");
}

#[test]
fn fields_selection_works_in_every_format() {
    let run = world().run(["config", "show", "--fields", "user_file", "--envelope", "standard"]);
    assert_eq!(run.document()["data"].get("settings"), None);
    let run = run_on_terminal(world().command(["manifest", "--fields", "version"]));
    assert_eq!(run.stdout.trim(), "version  3.6.0");
    // The schema of the tool envelope requires other fields of the status, too.
    let run = world().run(["local", "status", "--fields", "tasks", "--envelope", "tool"]);
    assert_eq!((run.exit, &run.document()["status"]), (Some(0), &json!("ok")), "{run:?}");
    for args in [["schema", "agent", "--fields", "nope"], ["manifest", "--json", "--fields", "version.foo"]] {
        assert_eq!(world().run(args).exit, Some(2), "{args:?}");
    }
}

#[test]
fn a_page_reports_that_more_follows_in_every_format() {
    let run = world().run(["manifest", "--limit", "2", "--envelope", "standard"]);
    assert_eq!(run.document()["metadata"]["pagination"]["page_size"], 2);
    let run = run_on_terminal(world().command(["config", "show", "--limit", "2"]));
    assert!(run.stdout.contains("There is more: a larger --limit shows it."), "{}", run.stdout);
}

#[test]
fn a_bad_state_directory_is_a_configuration_error() {
    let run = world().variable("MCP_DELEGATOR_HOME", "relative").run(["config", "show"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")));
}

#[test]
fn a_project_limit_above_the_effective_one_is_a_warning() {
    let world = world().variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
    world.write("project/.mcp-delegator.toml", "max_concurrent = 5000\n");
    let warnings = world.run(["config", "show", "max_concurrent"]).json()["warnings"].to_string();
    assert!(warnings.contains("8 applies (MCP_DELEGATOR_MAX_CONCURRENT)"), "{warnings}");
}

#[test]
fn retryable_matches_the_declared_exit_codes() {
    let run = world().run(["config", "show", "--input-json", "/dev/null/x"]);
    let declared = world().run(["manifest"]).json();
    let command = declared["data"]["commands"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "config.show")
        .unwrap()
        .clone();
    let entry = &command["exit_codes"][run.exit.unwrap().to_string()];
    assert_eq!(entry["retryable"], run.json()["error"]["retryable"]);
}

#[test]
fn environment_problems_are_reported_with_the_input_problems() {
    let args = ["local", "exec", "x", "--mode", "danger-full-access"];
    let more = ["--working-dir", "/nonexistent", "--hard-timeout-sec", "0", "--add-dirs", "here"];
    let world = world();
    let run = world.run([args.as_slice(), &more].concat());
    assert_eq!(run.exit, Some(2), "{run:?}");
    let mut fields = problem_fields(&run);
    fields.sort();
    assert_eq!(fields, ["add_dirs.0", "hard_timeout_sec", "mode", "working_dir"], "{run:?}");
    // A configuration that cannot be parsed is reported before any problem of the call.
    let broken = world.variable("MCP_DELEGATOR_MAX_MODE", "nonsense");
    assert_eq!(
        problem_fields(&broken.run(["local", "exec", "x", "--working-dir", "/nonexistent"])),
        ["max_mode"]
    );
}

#[test]
fn the_task_text_may_come_from_a_file() {
    let world = world();
    world.write("project/task.md", "# Fix it\n\n- the test\n");
    world.write("project/empty.md", "");
    world.write("project/blank.md", " \n\n");
    std::fs::write(world.project().join("binary.md"), [0xff, 0xfe]).unwrap();
    world.write("project/long.md", &"x".repeat(100_001));
    // The text arrives: the only problem is the unknown agent.
    for args in [&["--task-file", "task.md"][..], &["--task-file=task.md", "--input-json", "agent.json"]] {
        world.write("project/agent.json", r#"{"task": "replaced by the flag"}"#);
        let run = world.run([&["local", "exec", "--agent", "no-such-agent"], args].concat());
        assert_eq!(problem_fields(&run), ["agent"], "{run:?}");
    }
    let agent = ["local", "exec", "--agent", "no-such-agent", "--task-file", "-"];
    assert_eq!(problem_fields(&world.run_with_input(agent, b"do it")), ["agent"]);
    let both = world.run_with_input([&agent[..], &["--input-json", "-"]].concat(), b"{}");
    assert!(problem_fields(&both).contains(&"task".to_owned()), "{both:?}");
    let unreadable = ["local", "exec", "--agent", "no-such-agent", "--task-file", "missing.md"];
    assert_eq!(problem_fields(&world.run(unreadable)), ["--task-file", "agent"], "all problems at once");
    for (args, field, problem) in [
        (&["--task-file", "missing.md"][..], "--task-file", "could not read missing.md"),
        (&["--task-file", "."], "--task-file", "could not read ."),
        (&["--task-file", "empty.md"], "--task-file", "empty.md is empty"),
        (&["--task-file", "binary.md"], "--task-file", "not valid UTF-8"),
        (&["--task-file", "blank.md"], "task", "blank"),
        (&["--task-file", "long.md"], "task", "100000"),
        (&["text", "--task-file", "task.md"], "--task-file", "together with task"),
        (&["--task-file", "task.md", "--task-file", "task.md"], "--task-file", "more than once"),
    ] {
        for command in ["run", "exec"] {
            let run = world.run([&["local", command], args].concat());
            assert_eq!(
                (run.exit, problem_fields(&run)),
                (Some(2), vec![field.to_owned()]),
                "{args:?} {run:?}"
            );
            let message = run.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(problem), "{message}");
        }
    }
}

#[test]
fn a_server_on_a_terminal_explains_itself_and_serves() {
    let world = world();
    let mut session = TerminalSession::start_interactive(world.command(["serve"]));
    session.wait_for_text("mcp-delegator setup");
    session.type_text("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n");
    session.wait_for_text("\"result\":{}");
    session.type_text("\x04");
    assert_eq!(session.wait().exit, Some(0));
    // A client reads only the protocol, and no explanation.
    let mut session = TerminalSession::start_interactive(world.command(["serve", "--quiet"]));
    session.type_text("\x04");
    let shown = session.wait();
    assert!(!shown.stdout.contains("mcp-delegator setup"), "{shown:?}");
    let quiet = world.run(["serve"]);
    assert_eq!((quiet.exit, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn no_hint_on_the_command_line_names_an_input_of_a_tool() {
    let text = "reset the history with git push --force";
    for args in [
        &["cancel"][..],
        &["cancel", "T-local-0000000000", "--all"],
        &["restore"],
        &["restore", "T-local-0000000000"],
        &["restore", "T-local-0000000000", "--all", "--undo", "--dry-run"],
        &["restore", "--list", "--undo"],
        &["resume", "x"],
        &["wait"],
        &["env", "remove", "x"],
        &["run", text, "--mode", "workspace-write"],
        &["run", "x", "--mode", "danger-full-access", "--confirm"],
        &["run", "x", "--env-allow-list", "A"],
        &["run", "x", "--working-dir", "nope"],
    ] {
        // Every hint that a test reads is checked (testkit, `remedies`); these are made from markers.
        for output in [["--envelope", "standard"], ["--format", "human"]] {
            assert_ne!(world().run([args, &output].concat()).exit, Some(0), "{args:?}");
        }
    }
}

/// The hint that a person reads.
fn hint(args: &[&str]) -> String {
    let run = world().run([args, &["--format", "human"]].concat());
    assert_ne!(run.exit, Some(0), "{run:?}");
    run.stderr.split_once("hint: ").map(|(_, hint)| hint.trim_end().to_owned()).unwrap_or(run.stderr)
}

#[test]
fn a_hint_names_flags() {
    for (args, expected) in [
        (
            &["cancel"][..],
            "Give --task-ids, or give --all; --dry-run shows what would be cancelled. Or give --last for the last submission in this directory.",
        ),
        (&["restore", "T-local-0000000000"], "Check with --dry-run first, then give --confirm-destructive."),
        (&["resume", "x"], "Give either --thread-id or --task-id or --last."),
        (&["results", "T-local-0000000000", "T-local-0000000001"], "This command takes one id."),
        (&["queue", "pause", "x"], "This command takes no value without a flag."),
        (&["run", "x", "--labels", "a=b,c=d"], "Write --labels a=b --labels c=d"),
        (
            &["run", "x", "--mode", "workspace-write", "--confirm=false"],
            "Remove --confirm=false, or use --mode read-only.",
        ),
    ] {
        assert_eq!(hint(args), expected, "{args:?}");
    }
}

#[test]
fn a_person_reads_the_flag_of_a_refused_input() {
    let run = world().run(["cancel", "--format", "human"]);
    assert!(run.stderr.starts_with("error: --task-ids: is missing, and neither --all nor"), "{run:?}");
    let run = world().run(["restore", "--format", "human"]);
    assert!(run.stderr.contains("  - --confirm-destructive: must be true"), "{run:?}");
}

#[test]
fn resume_explains_where_the_id_belongs() {
    let run = world().run(["resume", "T-local-0000000000", "go on", "--format", "human"]);
    let hint = "Give the id as a flag, --task-id T-local-0000000000, and one text.";
    assert!(run.stderr.contains(hint), "{run:?}");
}

#[test]
fn a_refused_alternative_is_not_missing_as_well() {
    let run = world().run(["--json", "wait", "--labels", "k=v", "--labels", "k=w"]);
    assert_eq!(problem_fields(&run), ["labels"]);
}

#[test]
fn a_task_id_may_be_in_capitals() {
    let run = world().run(["results", "T-LOCAL-0000000000"]);
    assert_eq!(run.json()["error"]["code"], "TASK_NOT_FOUND", "{run:?}");
}
