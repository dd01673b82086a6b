//! Validation of tool calls: all problems are reported together, before anything is done, by the names the caller used.

use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{Client, V2025_06, V2026_07, quick_stage};

const EXEC: &str = "_codex_local_exec";

/// The problems of a refused call as `field CODE`, in order.
fn problem_codes(refused: &Value) -> Vec<String> {
    let problems = refused["error"]["details"]["problems"].as_array().unwrap_or_else(|| panic!("{refused}"));
    let word = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    problems.iter().map(|problem| format!("{} {}", word(problem, "field"), word(problem, "code"))).collect()
}

/// Problem and suggestion for one input of a refused call.
fn problem_text(refused: &Value, field: &str) -> (String, String) {
    let problems = refused["error"]["details"]["problems"].as_array().unwrap_or_else(|| panic!("{refused}"));
    let problem = problems.iter().find(|problem| problem["field"] == field);
    let problem = problem.unwrap_or_else(|| panic!("nothing about {field}: {refused}"));
    let word = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    (word("problem"), word("suggestion"))
}

fn assert_nothing_started(stage: &Stage) {
    let summary = stage.run_json(&["local", "status"])["data"]["summary"].clone();
    assert_eq!(summary, json!({"running": 0, "queued": 0, "recently_completed": 0}));
}

#[test]
fn environment_problems_are_reported_with_the_input_problems() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let image = stage.world.project().join("not-an-image");
    std::fs::create_dir(&image).unwrap();
    let refused = client.envelope(
        EXEC,
        json!({
            "tsk": "x", "mode": "danger-full-access", "hard_timeout_sec": 0,
            "working_dir": "/nonexistent/dir", "options": {
                "add_dirs": ["/nonexistent/too", "here", "/"], "images": [image, "/nonexistent.png"],
            },
        }),
    );
    let mut found = problem_codes(&refused);
    found.sort();
    assert_eq!(
        found,
        [
            "add_dirs.0 INVALID_VALUE",
            "add_dirs.1 INVALID_VALUE",
            "hard_timeout_sec INVALID_VALUE",
            "images.0 INVALID_VALUE",
            "images.1 INVALID_VALUE",
            "mode POLICY_BLOCKED",
            "task MISSING_ARGUMENT",
            "tsk UNKNOWN_FLAG",
            "working_dir INVALID_VALUE",
        ],
        "{refused}"
    );
    for field in ["working_dir", "add_dirs.0", "add_dirs.1", "images.0", "images.1", "mode"] {
        let (problem, suggestion) = problem_text(&refused, field);
        assert!(!problem.is_empty() && !suggestion.is_empty(), "{field}: {problem} / {suggestion}");
    }
    let project = stage.world.project().canonicalize().unwrap();
    assert!(
        problem_text(&refused, "add_dirs.1").1.contains(project.join("here").to_str().unwrap()),
        "{refused}"
    );
    assert!(problem_text(&refused, "mode").0.contains("workspace-write"), "{refused}");
    assert_nothing_started(&stage);
}

#[test]
fn refused_values_are_repeated_with_a_suggestion() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let refused = client.envelope(
        EXEC,
        json!({"task": "x", "mode": "wild", "hard_timeout_sec": 0, "colour": "red", "model": ""}),
    );
    let problems = refused["error"]["details"]["problems"].as_array().unwrap();
    let find = |field: &str| problems.iter().find(|problem| problem["field"] == field).unwrap();
    assert_eq!(find("mode")["value"], "wild", "{refused}");
    assert!(find("mode")["suggestion"].as_str().unwrap().starts_with("Use one of read-only, "), "{refused}");
    assert_eq!(find("hard_timeout_sec")["value"], 0);
    assert_eq!(find("hard_timeout_sec")["suggestion"], "Give a number between 1 and 86400.");
    assert_eq!(find("colour")["value"], "colour");
    for problem in problems.iter().filter(|problem| problem["field"] != "model") {
        assert!(problem["suggestion"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
    }
    assert_nothing_started(&stage);
}

#[test]
fn a_single_problem_keeps_its_code_and_names_its_input() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    for (input, problem, code) in [
        (json!({"working_dir": "/nonexistent/dir"}), "working_dir INVALID_VALUE", "VALIDATION"),
        (json!({"add_dirs": ["/nonexistent"]}), "add_dirs.0 INVALID_VALUE", "VALIDATION"),
        (json!({"mode": "danger-full-access"}), "mode POLICY_BLOCKED", "VALIDATION"),
    ] {
        let mut arguments = input.clone();
        arguments["task"] = json!("x");
        let refused = client.envelope(EXEC, arguments);
        assert_eq!(problem_codes(&refused), [problem], "{refused}");
        assert_eq!(refused["error"]["code"], code, "{refused}");
        let (field, code) = problem.split_once(' ').unwrap();
        assert_eq!(refused["error"]["details"]["code"], code, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(field), "{refused}");
    }
    assert_nothing_started(&stage);
}

#[test]
fn the_allowed_roots_apply_to_the_servers_own_directory() {
    let stage = quick_stage();
    let root = stage.root().join("elsewhere");
    std::fs::create_dir(&root).unwrap();
    let stage = stage.variable("MCP_DELEGATOR_ALLOWED_ROOTS", &root.display().to_string());
    let mut client = Client::connect(&stage, V2026_07);
    let refused = client.envelope(EXEC, json!({"task": "x"}));
    assert_eq!(problem_codes(&refused), ["working_dir POLICY_BLOCKED"], "{refused}");
    assert!(problem_text(&refused, "working_dir").1.contains(root.to_str().unwrap()), "{refused}");
    let accepted = client.envelope(EXEC, json!({"task": "x", "working_dir": root}));
    assert_eq!(accepted["status"], "ok", "{accepted}");
}

#[test]
fn an_invalid_output_schema_is_refused() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    for (schema, expected) in [
        (json!({"type": "nonsense"}), "/type"),
        (json!({"type": "object", "properties": {"a": {"minimum": "one"}}}), "/properties/a/minimum"),
        (json!({"type": "object", "required": "a"}), "/required"),
        (json!({"pattern": "("}), "("),
        (json!({"$ref": "https://example.org/schema.json"}), "example.org"),
        (json!({"$ref": "#/$defs/missing"}), "missing"),
    ] {
        let refused = client.envelope(EXEC, json!({"task": "x", "output_schema": schema}));
        assert_eq!(problem_codes(&refused), ["output_schema INVALID_VALUE"], "{schema}: {refused}");
        assert!(problem_text(&refused, "output_schema").0.contains(expected), "{schema}: {refused}");
    }
    assert_nothing_started(&stage);
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": true}});
    let accepted = client.envelope(EXEC, json!({"task": "x", "output_schema": schema}));
    assert_eq!(accepted["status"], "ok", "{accepted}");
}

#[test]
fn an_unknown_input_suggests_a_known_one() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let mut suggestion = |tool: &str, key: &str| {
        let mut arguments = json!({});
        arguments[key] = json!("x");
        problem_text(&client.envelope(tool, arguments), key).1
    };
    for (tool, key, meant) in [
        (EXEC, "taks", "task"),
        (EXEC, "prompt", "task"),
        (EXEC, "cwd", "working_dir"),
        (EXEC, "timeout", "hard_timeout_sec"),
        (EXEC, "sandboxMode", "mode"),
        ("_codex_local_wait", "timeout", "timeout_sec"),
        ("_codex_local_resume", "conversationId", "thread_id"),
        ("_codex_local_results", "id", "task_id"),
        ("_codex_cloud_github_setup", "environment", "env_id"),
    ] {
        assert_eq!(suggestion(tool, key), format!("Did you mean {meant}?"), "{tool} {key}");
    }
    for key in ["confirm", "async", "foo"] {
        let known = suggestion(EXEC, key);
        for name in ["task", "mode", "working_dir", "model", "hard_timeout_sec", "options", "format"] {
            assert!(known.contains(name), "{key}: {known}");
        }
    }
    assert!(
        suggestion("_codex_cloud_list_environments", "foo").ends_with("are cursor, format."),
        "only these are accepted"
    );
}

#[test]
fn problem_texts_describe_the_input() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    // `format` is accepted among the options, too.
    let result = client.call("_codex_local_status", json!({"options": {"format": "json"}}));
    assert_eq!(result["structuredContent"]["status"], "ok", "{result}");
    let mut problem = |tool: &str, arguments: Value, field: &str| {
        let refused = client.envelope(tool, arguments);
        assert_eq!(problem_codes(&refused).len(), 1, "{refused}");
        problem_text(&refused, field).0
    };
    let twice = problem(EXEC, json!({"task": "x", "workingDir": "/", "working_dir": "/"}), "working_dir");
    assert_eq!(twice, "is given twice, as workingDir and as working_dir");
    let inputs = json!({"task": "x", "labels": {"a": "b"}, "options": {"labels": {"a": "c"}}});
    assert_eq!(problem(EXEC, inputs, "labels"), "is given twice, as labels and as options.labels");
    let twice = problem("_codex_local_status", json!({"options": {"format": "markdown"}}), "format");
    assert_eq!(twice, "is given twice, as format and as options.format");
    let not_a_list = json!({"task_ids": "T-local-0000000000"});
    assert_eq!(problem("_codex_local_wait", not_a_list, "task_ids"), "must be a list");
    for format in ["yaml", "human", "jsonl"] {
        let result = client.call("_codex_local_status", json!({"format": format}));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("must be one of markdown, json\n"), "{text}");
    }
}

#[test]
fn a_task_without_a_thread_is_named_when_it_cannot_be_resumed() {
    let stage = Stage::with_shell_agent(crate::PROGRAM, "exit 1");
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    client.envelope("_codex_local_wait", json!({"task_id": id}));
    let refused = client.envelope("_codex_local_resume", json!({"task": "go on", "task_id": id}));
    let details = &refused["error"]["details"];
    assert_eq!(
        (&details["code"], &details["task_id"]),
        (&json!("THREAD_NOT_FOUND"), &json!(id)),
        "{refused}"
    );
}

#[test]
fn nul_bytes_are_refused_in_every_input() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let refused = client.envelope(
        EXEC,
        json!({
            "task": "hidden\0", "working_dir": "/hidden\0", "options": {
                "labels": {"team": "hidden\0"}, "idempotency_key": "hidden\0", "verify": ["true", "hidden\0"],
                "output_schema": {"hidden\0": true},
            },
        }),
    );
    let mut found = problem_codes(&refused);
    found.sort();
    let fields = ["idempotency_key", "labels.team", "output_schema", "task", "verify.1", "working_dir"];
    assert_eq!(found, fields.map(|field| format!("{field} INVALID_VALUE")), "{refused}");
    assert!(!refused.to_string().contains("hidden"), "{refused}");
    let id = "T-local-0000000000";
    let refused = client.envelope("_codex_local_cancel", json!({"task_id": id, "reason": "hidden\0"}));
    assert_eq!(problem_codes(&refused), ["reason INVALID_VALUE"], "{refused}");
    let guide = json!({
        "repository": "https://github.com/a/b", "tech_stack": "rust", "git_user_name": "hidden\0",
        "git_user_email": "a@example.org",
    });
    let refused = client.envelope("_codex_cloud_github_setup", guide);
    assert_eq!(problem_codes(&refused), ["git_user_name INVALID_VALUE"], "{refused}");
    assert_nothing_started(&stage);
}

#[test]
fn command_line_only_inputs_are_refused() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2026_07);
    let refused = client.envelope(
        "_codex_cleanup_registry",
        json!({"includeRestorePoints": true, "options": {"trust_clock": true}}),
    );
    assert_eq!(
        problem_codes(&refused),
        ["include_restore_points POLICY_BLOCKED", "trust_clock POLICY_BLOCKED"]
    );
    let (_, suggestion) = problem_text(&refused, "include_restore_points");
    assert!(
        suggestion.contains("'cleanup-registry' in a terminal with --include-restore-points"),
        "{suggestion}"
    );
    let accepted = client.envelope("_codex_cleanup_registry", json!({"include_restore_points": false}));
    assert_eq!(accepted["status"], "ok", "{accepted}");
    let mut client = Client::connect_with(&stage, V2025_06, &["--toolsets", "extra"], json!({}));
    let file = stage.world.project().join("report.txt");
    let refused = client.envelope("_codex_doctor", json!({"bundle": file}));
    assert_eq!(problem_codes(&refused), ["bundle POLICY_BLOCKED"], "{refused}");
    assert!(!file.exists());
}

/// A caller should not complete inputs of a call that cannot succeed.
#[test]
fn without_environments_a_submission_names_the_command_that_adds_one_before_its_inputs_are_checked() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    for arguments in [json!({}), json!({"wrong": 1}), json!({"task": "x", "env_id": "e"})] {
        let refused = client.envelope("_codex_cloud_submit", arguments);
        assert_eq!(refused["error"]["code"], "NOT_FOUND", "{refused}");
        assert!(refused["error"]["details"].get("problems").is_none(), "{refused}");
        let suggestion = refused["error"]["details"]["suggestion"].as_str().unwrap();
        assert!(suggestion.contains("mcp-delegator env add"), "{suggestion}");
    }
}

#[test]
fn without_environments_the_list_names_the_command_that_adds_one() {
    let stage = quick_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let missing = client.envelope("_codex_cloud_list_environments", json!({}));
    let suggestion = missing["error"]["details"]["suggestion"].as_str().unwrap().to_owned();
    let (_, command) = suggestion.split_once("mcp-delegator ").unwrap_or_else(|| panic!("{suggestion}"));
    let words = shell_words(command.trim_end_matches(['.', '\'']));
    let added = stage.world.run(words.iter().map(String::as_str));
    assert_eq!(added.exit, Some(0), "{suggestion}: {added:?}");
    let listed = client.envelope("_codex_cloud_list_environments", json!({}));
    assert_eq!(listed["data"]["environments"].as_array().map(Vec::len), Some(1), "{listed}");
}

fn shell_words(text: &str) -> Vec<String> {
    delegator_transcript::shell::split(text).unwrap_or_else(|| panic!("{text}"))
}
