//! The command line as a whole: help, typos, envelopes, formats, paging, truncation, pipes and terminals.

use delegator_testkit::program::{RunOutput, World, output_of, read_text};
use delegator_testkit::terminal::run_on_terminal;
use serde_json::json;

use crate::PROGRAM;

fn world() -> World {
    World::new(PROGRAM)
}

#[test]
fn help_version_completions_and_man_are_text_in_a_pipe() {
    for (args, beginning) in [
        (&[][..], "Delegate coding tasks"),
        (&["--help"], "Delegate coding tasks"),
        (&["-h"], "Delegate coding tasks"),
        (&["help"], "Delegate coding tasks"),
        (&["help", "config", "show"], "Show"),
        (&["wait", "--help"], "Wait"),
        (&["config"], "The configuration"),
        (&["-V"], "mcp-delegator 3.6"),
        (&["--version"], "mcp-delegator 3.6"),
        (&["completions"], "Run the line of your shell"),
        (&["completions", "zsh"], "#compdef mcp-delegator"),
        (&["man"], ".ie"),
    ] {
        let run = world().run(args);
        assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{args:?}: {run:?}");
        assert!(run.stdout.trim_start().starts_with(beginning), "{args:?}: {run:?}");
        for json in [&["--json"][..], &["--format", "json"]] {
            let run = world().run([args, json].concat());
            assert_eq!((run.exit, &run.json()["ok"]), (Some(0), &json!(true)), "{args:?}: {run:?}");
        }
    }
}

#[test]
fn help_as_json_also_prints_the_text_on_stderr() {
    let run = world().run(["--help", "--json"]);
    assert!(run.stderr.contains("Usage: mcp-delegator"));
    assert_eq!(run.json()["meta"]["exit_code"], 0);
    assert!(run.json()["data"]["usage"].is_string());
    assert!(world().run(["--help", "--json", "--quiet"]).stderr.is_empty());
}

#[test]
fn formats_have_the_names_that_people_write() {
    for name in ["text", "human"] {
        let run = world().run(["schema", "--format", name]);
        assert_eq!(run.exit, Some(0), "{run:?}");
        assert!(!run.stdout.starts_with('{'), "{run:?}");
    }
    assert!(world().run(["schema", "--format", "md"]).stdout.starts_with("# "));
    let run = world().run(["status", "--format", "jsn"]);
    assert_eq!(run.json()["error"]["suggestion"], "Did you mean json?");
}

#[test]
fn the_short_commands_are_those_of_local() {
    for name in ["run", "exec", "resume", "status", "wait", "results"] {
        let [short, long] =
            [vec![name], vec!["local", name]].map(|path| world().run([path, vec!["--help"]].concat()).stdout);
        assert_eq!(
            short,
            long.replace(&format!("mcp-delegator local {name}"), &format!("mcp-delegator {name}"))
        );
        assert!(short.contains(&format!("Usage: mcp-delegator {name}")), "{short}");
    }
    assert_eq!(world().run(["status"]).json()["meta"]["command"], "local.status");
    let suggestion = world().run(["fix the test"]).json()["error"]["suggestion"].clone();
    assert_eq!(suggestion, "To delegate a task: mcp-delegator run 'fix the test'");
    let kill = world().run(["kill", "T-local-0000000000"]);
    assert_eq!((kill.exit, &kill.json()["error"]["suggestion"]), (Some(2), &json!("Did you mean 'cancel'?")));
    let moved = world().run(["local", "logs", "T-local-0000000000"]);
    assert_eq!(moved.json()["error"]["redirect"]["command"], "mcp-delegator logs T-local-0000000000");
    let help = world().run(["help", "local", "logs", "--json"]);
    assert_eq!(help.json()["error"]["redirect"]["command"], "mcp-delegator help logs");
}

#[test]
fn help_on_a_terminal_is_text() {
    for args in
        [vec![], vec!["--help"], vec!["config"], vec!["manifest", "-h"], vec!["help", "config", "show"]]
    {
        let run = run_on_terminal(world().command(&args));
        assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        assert!(run.stdout.contains("Usage: mcp-delegator"), "{args:?}: {run:?}");
        assert!(!run.stdout.contains("\"ok\""), "{args:?}: {run:?}");
    }
}

#[test]
fn help_lists_commands_and_their_flags() {
    let run = run_on_terminal(world().command::<&str>([]));
    assert!(run.stdout.contains("manifest"));
    let run = run_on_terminal(world().command(["local", "exec", "--help"]));
    assert!(run.stdout.contains("--working-dir"));
}

#[test]
fn a_typo_in_a_command_names_the_command_and_runs_nothing() {
    let run = world().run(["manifst", "--limit", "3"]);
    assert_eq!(run.exit, Some(13));
    let error = &run.json()["error"];
    assert_eq!(error["code"], "TYPO_CORRECTED");
    assert_eq!(
        error["redirect"],
        json!({"command": "mcp-delegator manifest --limit 3", "permanent": false, "reason": "typo_corrected"})
    );
    let run = run_on_terminal(world().command(["manifst"]));
    assert_eq!(run.exit, Some(13));
    assert!(run.stdout.contains("Did you mean 'manifest'?"), "{}", run.stdout);
}

#[test]
fn only_a_typo_of_one_letter_is_redirected() {
    for (args, suggested) in [
        (&["cfg", "max_concurrent", "3"][..], "'config show'"),
        (&["list"], "'status'"),
        (&["stat"], "'status'"),
        (&["ls", "--state", "working"], "'status'"),
    ] {
        let run = world().run(args);
        assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(2), &json!("ARG_ERROR")), "{run:?}");
        let error = run.json()["error"].clone();
        assert!(error["suggestion"].as_str().unwrap().contains(suggested), "{error}");
        assert!(error.get("redirect").is_none(), "{error}");
    }
    for typed in ["staus", "sttaus", "statuss", "stauts", "Status"] {
        let run = world().run([typed]);
        assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(13), &json!("TYPO_CORRECTED")), "{run:?}");
    }
}

#[test]
fn a_redirect_is_quoted_and_never_repeats_a_secret() {
    let run = world().run(["config", "shwo", "it's me"]);
    assert_eq!(run.json()["error"]["redirect"]["command"], r"mcp-delegator config show 'it'\''s me'");
    let run = world().run(["manifst", "--etag", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"]);
    assert_eq!(run.exit, Some(2), "{run:?}");
    assert!(run.json()["error"].get("redirect").is_none());
    assert!(!run.stdout.contains("abcdefghijklmnop"), "{}", run.stdout);
}

#[test]
fn a_former_command_name_redirects_permanently() {
    let run = world().run(["completion", "bash"]);
    assert_eq!(run.exit, Some(13));
    assert_eq!(run.json()["error"]["code"], "COMMAND_RENAMED");
    assert_eq!(
        run.json()["error"]["redirect"],
        json!({"command": "mcp-delegator completions bash", "permanent": true, "reason": "renamed"})
    );
}

#[test]
fn an_unknown_command_lists_the_commands() {
    let run = world().run(["teapot"]);
    assert_eq!(run.exit, Some(2));
    assert!(run.json()["error"]["suggestion"].as_str().unwrap().contains("manifest"));
}

#[test]
fn all_problems_of_a_command_line_are_reported_together() {
    let args = ["local", "exec", "--mod", "workspace", "--idle-timeout-sec", "0", "--bogus", "3", "--model"];
    let run = world().run(args);
    assert_eq!(run.exit, Some(2));
    let envelope = run.json();
    let problems = envelope["meta"]["error_context"]["problems"].as_array().unwrap();
    let fields: Vec<&str> = problems.iter().map(|problem| problem["field"].as_str().unwrap()).collect();
    for field in ["--mod", "--bogus", "--model", "mode", "idle_timeout_sec", "task"] {
        assert!(fields.contains(&field), "{field} is missing in {fields:?}");
    }
    assert_eq!(
        problems[fields.iter().position(|f| *f == "--mod").unwrap()]["suggestion"],
        "Did you mean --mode?"
    );
    let run = world().run(["local", "exec", "x", "--cwd", "/"]);
    assert_eq!(
        run.json()["error"]["suggestion"],
        "Did you mean --working-dir?",
        "the alias of another program"
    );
}

#[test]
fn a_pipe_gets_json_and_a_terminal_gets_text() {
    let run = world().run(["config", "show"]);
    assert_eq!(run.json()["meta"]["command"], "config.show");
    let run = run_on_terminal(world().command(["config", "show"]));
    assert!(run.stdout.starts_with("SETTING"), "{}", run.stdout);
    let run = run_on_terminal(world().variable("CI", "true").command(["config", "show"]));
    assert!(run.stdout.starts_with("{\"ok\":true"), "{}", run.stdout);
}

#[test]
fn options_may_appear_anywhere() {
    let world = world();
    let first = world.run(["--format", "json", "config", "show", "max_mode"]).json();
    let last = world.run(["config", "show", "max_mode", "--format", "json"]).json();
    let middle = world.run(["config", "--format=json", "show", "max_mode"]).json();
    assert_eq!(first["data"], last["data"]);
    assert_eq!(first["data"], middle["data"]);
}

#[test]
fn the_standard_envelope_is_sorted_and_indented() {
    let run = world().run(["config", "show", "max_mode", "--envelope", "standard"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(&lines[..2], ["{", "  \"command\": \"config_show\","]);
    let keys: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with("  \""))
        .map(|line| line.split('"').nth(1).unwrap())
        .collect();
    assert_eq!(keys, ["command", "data", "error", "metadata", "success", "timestamp"]);
    let data = &run.document()["data"];
    assert_eq!(
        (&data["total_count"], &data["page"], &data["page_size"]),
        (&json!(1), &json!(1), &json!(1000))
    );
}

#[test]
fn the_tool_envelope_follows_its_contract() {
    let envelope = world().run(["manifest", "--limit", "1", "--envelope", "tool"]).json();
    assert_eq!(envelope["version"], "3.6");
    assert_eq!(envelope["tool"], "_codex_manifest");
    assert_eq!(envelope["schema_id"], "codex/v3.6/registry_info/v1");
    assert!(envelope["meta"]["next_cursor"].is_string());
    let renamed = world()
        .variable("MCP_DELEGATOR_TOOL_PREFIX", "codex_")
        .run(["manifest", "--envelope", "tool"])
        .json();
    assert_eq!(renamed["tool"], "codex_manifest");
}

#[test]
fn the_raw_envelope_is_only_the_data() {
    let run = world().run(["version", "--envelope", "raw"]);
    assert_eq!(run.json()["name"], "mcp-delegator");
    let run = world().run(["config", "show", "nope", "--envelope", "raw"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(5), ""));
    assert!(run.stderr.contains("There is no setting 'nope'."));
}

#[test]
fn the_envelope_comes_from_flag_then_variable_then_file() {
    let success = |run: RunOutput| run.document().get("success").is_some();
    assert!(success(world().config("envelope = 'standard'").run(["version"])));
    let both = world().config("envelope = 'standard'").variable("MCP_DELEGATOR_ENVELOPE", "agent");
    assert!(!success(both.run(["version"])));
    assert!(success(both.run(["version", "--envelope", "standard"])));
}

#[test]
fn the_format_comes_from_flag_then_variable_then_file() {
    let is_json = |run: RunOutput| serde_json::from_str::<serde_json::Value>(&run.stdout).is_ok();
    let in_file = || world().config("format = 'human'");
    assert!(!is_json(in_file().run(["doctor"])));
    assert!(is_json(in_file().variable("MCP_DELEGATOR_FORMAT", "json").run(["doctor"])));
    for args in [["--format", "json"], ["--envelope", "standard"]] {
        assert!(is_json(in_file().run(["doctor", args[0], args[1]])), "{args:?}");
    }
    let broken = world().config("no_such_key = 1").variable("MCP_DELEGATOR_FORMAT", "human");
    assert!(!is_json(broken.run(["exec", "x"])), "an error of the configuration is printed alike");
    let unknown = world().variable("MCP_DELEGATOR_FORMAT", "yaml").run(["exec", "x"]);
    assert_eq!(unknown.json()["error"]["code"], "CONFIG_INVALID", "{unknown:?}");
}

#[test]
fn jsonl_has_one_line_per_item_and_a_final_line() {
    let run = world().run(["config", "show", "--format", "jsonl", "--limit", "3"]);
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[..3].iter().all(|line| line["key"].is_string()));
    assert_eq!((&lines[3]["ok"], &lines[3]["data"]), (&json!(true), &json!({"count": 3})));
    assert!(lines[3]["meta"]["cursor"].is_string());
    let run = world().run(["config", "show", "--format", "jsonl", "--limit", "3", "--no-stream"]);
    assert_eq!(run.json()["data"]["settings"].as_array().unwrap().len(), 3);
}

#[test]
fn markdown_shows_settings_and_errors() {
    let run = world().run(["config", "show", "max_mode", "--format", "markdown"]);
    assert!(run.stdout.contains("| max_mode | workspace-write | default |"), "{}", run.stdout);
    let run = world().run(["config", "show", "nope", "--format", "markdown"]);
    assert_eq!(run.exit, Some(5));
    assert!(run.stdout.starts_with("# Error: NOT_FOUND"), "{}", run.stdout);
}

#[test]
fn an_output_file_gets_the_standard_envelope_whole() {
    let world = world();
    let run = world.run(["config", "show", "max_mode", "--output", "output.json"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""));
    let text = read_text(&world.project().join("output.json"));
    assert!(text.starts_with("{\n  \"command\": \"config_show\""), "{text}");
    let run = world.run(["config", "show", "nope", "--output", "output.json"]);
    assert_eq!(run.exit, Some(5));
    assert_eq!(run.json()["error"]["code"], "NOT_FOUND");
    assert_eq!(read_text(&world.project().join("output.json")), text, "a failure leaves the file as it was");
    let entries = std::fs::read_dir(world.project()).unwrap().count();
    assert_eq!(entries, 1, "a temporary file is left");
}

#[test]
fn a_format_given_as_output_is_refused_with_the_right_flag() {
    for (word, flag) in
        [("json", "--format json"), ("markdown", "--format markdown"), ("standard", "--envelope standard")]
    {
        let run = world().run(["manifest", "--output", word]);
        assert_eq!(run.exit, Some(2));
        assert_eq!(run.json()["error"]["suggestion"], format!("Did you mean {flag}?"));
    }
    let run = world().run(["manifest", "--output", "missing/folder/x.json"]);
    assert_eq!(run.exit, Some(2), "{run:?}");
}

#[test]
fn raw_commands_write_their_own_format() {
    let run = world().run(["completions", "bash"]);
    assert!(run.stdout.contains("complete -o nospace"), "{}", run.stdout);
    let run = world().run(["man"]);
    assert!(run.stdout.contains(".TH mcp-delegator 1"), "{}", run.stdout);
    let run = world().run(["schema", "agent"]);
    assert_eq!(run.document()["$id"], "ResponseEnvelope");
    let run = world().run(["completions", "bash", "--format", "json"]);
    assert!(run.json()["data"]["text"].as_str().unwrap().contains("complete -o nospace"));
}

#[test]
fn a_failed_raw_command_keeps_stdout_empty() {
    let run = world().run(["completions", "tcsh"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
    let envelope: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(envelope["error"]["code"], "INVALID_VALUE");
}

#[test]
fn completions_and_manual_know_the_commands() {
    let world = world();
    let mut command = world.command(["--", "mcp-delegator", ""]);
    let offered = output_of(command.env("_MCP_DELEGATOR_COMPLETE", "fish")).stdout;
    assert!(offered.contains("manifest\t") && offered.contains("local\t"), "{offered}");
    assert!(!offered.contains("--quiet"), "flags hide the commands: {offered}");
    assert!(world.run(["man", "config", "show"]).stdout.contains("Only this setting"));
    assert_eq!(world.run(["man", "nonsense"]).exit, Some(2));
}

#[test]
fn a_matching_etag_is_not_modified() {
    for command in [vec!["manifest"], vec!["schema", "agent", "--format", "json"]] {
        let etag = world().run(&command).json()["meta"]["etag"].as_str().unwrap().to_owned();
        let again: Vec<&str> = command.iter().copied().chain(["--etag", &etag]).collect();
        let run = world().run(&again);
        assert_eq!(run.exit, Some(0));
        let envelope = run.json();
        assert_eq!((&envelope["data"], &envelope["meta"]["not_modified"]), (&json!(null), &json!(true)));
    }
    assert!(world().run(["manifest", "--etag", "other"]).json()["data"].is_object());
}

#[test]
fn cursors_list_every_item_once() {
    let all: Vec<String> = names_of(&world().run(["manifest"]).json());
    let (mut listed, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["manifest".to_owned(), "--limit".into(), "7".into()];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor".to_owned(), cursor.clone()]));
        let envelope = world().run(&args).json();
        listed.extend(names_of(&envelope));
        match envelope["meta"]["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(listed, all);
    assert_eq!(world().run(["manifest", "--cursor", "zzz"]).json()["error"]["code"], "INVALID_CURSOR");
}

fn names_of(envelope: &serde_json::Value) -> Vec<String> {
    let commands = envelope["data"]["commands"].as_array().unwrap();
    commands.iter().map(|command| command["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn fields_narrow_the_data_and_unknown_ones_are_refused() {
    let data = world().run(["manifest", "--fields", "version,commands.name"]).json()["data"].clone();
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["version", "commands"]);
    assert_eq!(data["commands"][0], json!({"name": "local.run"}));
    let run = world().run(["manifest", "--fields", "commands.nam"]);
    assert_eq!(run.exit, Some(2));
    assert_eq!(run.json()["error"]["suggestion"], "Did you mean name?");
}

#[test]
fn a_large_response_is_truncated_with_a_warning() {
    let run = world().run(["manifest", "--max-bytes", "10000"]);
    assert_eq!(run.exit, Some(0));
    assert!(run.stdout.len() <= 10_000, "{}", run.stdout.len());
    let envelope = run.json();
    assert_eq!(envelope["meta"]["truncated"], true);
    assert!(envelope["warnings"][0].as_str().unwrap().starts_with("W_TRUNCATION_001: "));
    assert_eq!(world().run(["manifest", "--max-bytes", "12"]).exit, Some(2));
}

#[test]
fn strict_warnings_turn_warnings_into_a_failure() {
    let world = world().variable("MCP_DELEGATOR_MAX_CONCURENT", "3");
    let run = world.run(["config", "show", "max_mode"]);
    assert_eq!(run.exit, Some(0));
    assert!(
        run.json()["warnings"][0].as_str().unwrap().contains("MCP_DELEGATOR_MAX_CONCURRENT"),
        "{}",
        run.stdout
    );
    let run = world.run(["config", "show", "max_mode", "--strict-warnings"]);
    assert_eq!(run.exit, Some(1));
    let envelope = run.json();
    assert_eq!(envelope["error"]["code"], "WARNINGS_AS_ERRORS");
    assert_eq!(envelope["meta"]["failure_data"]["settings"][0]["key"], "max_mode");
}

#[test]
fn a_closed_stdout_exits_silently() {
    let world = world();
    let run = world.run_without_reader(["manifest"]);
    assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn logs_go_to_stderr_in_the_requested_format() {
    let world = world().variable("MCP_DELEGATOR_LOG", "debug").variable("MY_TOKEN", "correct-horse-battery");
    let run = world.run(["version", "--log-format", "json"]);
    assert!(run.json()["ok"].as_bool().unwrap());
    for line in run.stderr.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "not JSON: {line}");
    }
    assert!(run.stderr.contains("configuration loaded"));
    let run = World::new(PROGRAM).variable("MCP_DELEGATOR_LOG", "a=b=c").run(["manifest"]);
    assert_eq!(run.exit, Some(0));
    assert!(run.json()["warnings"][0].as_str().unwrap().contains("MCP_DELEGATOR_LOG"));
}

#[test]
fn a_secret_of_the_environment_is_redacted_in_responses() {
    let world = world().variable("DEPLOY_TOKEN", "correct-horse-battery-staple");
    let run = world.run(["schema", "correct-horse-battery-staple", "--format", "json"]);
    assert_eq!(run.exit, Some(5));
    assert!(!run.stdout.contains("correct-horse"), "{}", run.stdout);
    assert!(run.stdout.contains("[REDACTED:"), "{}", run.stdout);
}

#[test]
fn control_sequences_do_not_reach_a_terminal() {
    let run = run_on_terminal(world().command(["schema", "a\u{1b}]0;owned\u{7}b\u{9b}2Jc"]));
    assert_eq!(run.exit, Some(5));
    assert!(run.stdout.chars().all(|letter| !letter.is_control() || letter == '\n'), "{:?}", run.stdout);
}
