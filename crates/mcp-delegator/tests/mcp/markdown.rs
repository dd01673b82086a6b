//! Markdown responses contain what JSON responses contain: a model never needs the other format to continue.

use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::{Client, V2025_06, V2025_11, V2026_07, quick_stage, release_agents, text, waiting_stage};

/// Limits the stage to one running task.
fn one_at_a_time(stage: Stage) -> Stage {
    stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "1")
}

fn call_markdown(client: &mut Client, tool: &str, arguments: Value) -> String {
    text(&client.call(tool, arguments)).to_owned()
}

/// Exactly one heading, on the first line; no empty list items and no empty JSON values.
fn assert_well_formed(markdown: &str) {
    let mut fenced = false;
    let mut headings = 0;
    for (at, line) in markdown.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if line.starts_with('#') && !fenced {
            assert_eq!(at, 0, "a heading in the middle: {markdown}");
            headings += 1;
        }
        assert!(!line.trim_end().ends_with(':') || !line.starts_with("- "), "an empty row: {markdown}");
        assert!(line.trim() != "[]" && line.trim() != "{}", "an empty JSON value: {markdown}");
    }
    assert_eq!(headings, 1, "{markdown}");
}

fn wait_until_completed(client: &mut Client, count: u64) {
    wait_until("the tasks have ended", || {
        let status = client.envelope("_codex_local_status", json!({}));
        status["data"]["summary"]["recently_completed"] == count
    });
}

#[test]
fn every_task_response_has_one_heading_and_no_empty_row() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let (first, second) = (client.exec(), client.exec());
    for (tool, arguments) in [
        ("_codex_local_status", json!({})),
        ("_codex_local_status", json!({"task_id": first, "verbose": true})),
        ("_codex_local_wait", json!({"task_id": first, "timeout_sec": 1})),
        ("_codex_local_wait", json!({"task_ids": [first, second], "timeout_sec": 1})),
        ("_codex_local_results", json!({"task_id": first})),
        ("_codex_local_run", json!({"task": "x", "call_budget_sec": 1})),
        ("_codex_local_cancel", json!({"task_id": first})),
        ("_codex_local_cancel", json!({"task_id": first})),
        ("_codex_local_wait", json!({"task_ids": [first, second], "until": "any"})),
        ("_codex_cleanup_registry", json!({"dry_run": true})),
        ("_codex_cleanup_registry", json!({})),
        ("_codex_cloud_list_environments", json!({})),
        ("_codex_cloud_github_setup", json!({"repository": "https://github.com/a/b"})),
    ] {
        assert_well_formed(&call_markdown(&mut client, tool, arguments));
    }
    release_agents(&stage);
    assert_well_formed(&call_markdown(
        &mut client,
        "_codex_local_wait",
        json!({"task_ids": [first, second]}),
    ));
    assert_well_formed(&call_markdown(&mut client, "_codex_local_results", json!({"task_id": second})));
}

#[test]
fn verbose_status_shows_the_last_lines() {
    let stage = Stage::with_script(
        PROGRAM,
        successful_turn(&[json!({"message": "on my way"}), json!({"wait_for_file": "go"})]),
    );
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    wait_until("the agent has printed a message", || {
        let status = client.envelope("_codex_local_status", json!({"task_id": id, "verbose": true}));
        status["data"]["tasks"][0]["last_lines"].to_string().contains("on my way")
    });
    assert!(
        call_markdown(&mut client, "_codex_local_status", json!({"verbose": true})).contains("on my way")
    );
    assert!(!call_markdown(&mut client, "_codex_local_status", json!({})).contains("on my way"));
    release_agents(&stage);
    stage.wait(&id);
}

#[test]
fn status_names_unread_results_and_the_next_cursor() {
    let stage = quick_stage();
    let ids: Vec<String> = (0..3).map(|_| stage.exec(&[])).collect();
    let mut client = Client::connect(&stage, V2025_06);
    wait_until_completed(&mut client, 3);
    let status = call_markdown(&mut client, "_codex_local_status", json!({"limit": 1}));
    let unread = status.lines().find(|line| line.starts_with("- unread results: "));
    let unread = unread.unwrap_or_else(|| panic!("{status}"));
    assert!(ids.iter().all(|id| unread.contains(id.as_str())), "{status}");
    let cursor = status.lines().find_map(|line| line.strip_prefix("- more: cursor "));
    let cursor = cursor.unwrap_or_else(|| panic!("{status}"));
    let next = call_markdown(&mut client, "_codex_local_status", json!({"limit": 1, "cursor": cursor}));
    let listed = |text: &str| ids.iter().position(|id| text.contains(&format!("| {id} |")));
    assert!(
        listed(&status).is_some() && listed(&next).is_some() && listed(&status) != listed(&next),
        "{next}"
    );
}

#[test]
fn a_queued_task_shows_its_position_and_what_it_waits_for() {
    let stage = one_at_a_time(waiting_stage());
    let mut client = Client::connect(&stage, V2025_11);
    let first = client.exec();
    let arguments = json!({"task": "x", "idempotency_key": "k"});
    let queued = call_markdown(&mut client, "_codex_local_exec", arguments.clone());
    assert!(queued.contains("- queue position: 1\n"), "{queued}");
    assert!(!queued.contains("replayed"), "{queued}");
    assert!(
        call_markdown(&mut client, "_codex_local_exec", arguments).contains("- replayed: yes"),
        "the second time"
    );
    let resume = json!({"task": "go on", "task_id": first});
    let mut blocked = Value::Null;
    wait_until("the first task has a thread", || {
        blocked = client.envelope("_codex_local_resume", resume.clone());
        blocked["status"] == "ok"
    });
    let thread = blocked["data"]["thread_id"].as_str().unwrap_or_else(|| panic!("{blocked}")).to_owned();
    let blocked = call_markdown(&mut client, "_codex_local_resume", resume);
    assert!(blocked.contains(&format!("- waits for: {first} (")), "{blocked}");
    assert!(blocked.contains(&format!("- thread: {thread}\n")), "{blocked}");
    let status = call_markdown(&mut client, "_codex_local_status", json!({}));
    assert!(status.contains("| queued | task | position | waits for |"), "{status}");
    release_agents(&stage);
    stage.wait(&first);
}

#[test]
fn waiting_for_several_tasks_shows_messages_and_pending_tasks() {
    let steps = [json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})];
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&steps)).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
    let slow = stage.exec(&[]);
    stage.wait_for_project_file("ready");
    stage.set_script(successful_turn(&[]));
    let fast = stage.exec(&[]);
    stage.wait(&fast);
    let mut client = Client::connect(&stage, V2026_07);
    let both = json!({"task_ids": [fast, slow], "timeout_sec": 1});
    let expired = call_markdown(&mut client, "_codex_local_wait", both);
    assert!(expired.starts_with("# 1 of 2 tasks ended\n"), "{expired}");
    assert!(expired.contains("All done.") && expired.contains(&format!("- pending: {slow}")), "{expired}");
    let next = format!(r#"Next: `_codex_local_wait {{"task_id":"{slow}"}}`"#);
    assert!(expired.ends_with(&next), "{expired}");
    let any =
        call_markdown(&mut client, "_codex_local_wait", json!({"task_ids": [fast, slow], "until": "any"}));
    assert!(any.contains("All done.") && any.contains(&format!("- pending: {slow}")), "{any}");
    assert!(any.ends_with(&next), "{any}");
    let none = call_markdown(
        &mut client,
        "_codex_local_wait",
        json!({"task_ids": [slow], "until": "any", "timeout_sec": 1}),
    );
    assert!(none.ends_with(&next) && none.matches("Next:").count() == 1, "{none}");
    release_agents(&stage);
    let all = call_markdown(&mut client, "_codex_local_wait", json!({"task_ids": [fast, slow]}));
    assert!(all.starts_with("# 2 of 2 tasks ended\n") && all.matches("All done.").count() == 2, "{all}");
}

#[test]
fn results_name_the_cursor_of_earlier_events() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[json!({"events": {"count": 80, "bytes": 100}})]));
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    stage.wait(&id);
    let arguments = json!({"task_id": id, "include_events": true});
    let envelope = client.envelope("_codex_local_results", arguments.clone());
    let cursor = envelope["data"]["events"]["next_cursor"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    assert!(
        call_markdown(&mut client, "_codex_local_results", arguments)
            .contains(&format!(r#""events_cursor":"{cursor}""#))
    );
}

#[test]
fn a_run_over_its_budget_shows_thread_and_progress() {
    let stage = Stage::with_script(
        PROGRAM,
        successful_turn(&[json!({"command": {"run": "true"}}), json!({"wait_for_file": "go"})]),
    );
    let mut client = Client::connect(&stage, V2025_06);
    let run = json!({"task": "x", "call_budget_sec": 3});
    let response = client.envelope("_codex_local_run", run.clone());
    let data = &response["data"];
    assert!(data["thread_id"].is_string() && data["elapsed_seconds"].is_u64(), "{response}");
    let progress = &data["progress"];
    assert_eq!((&progress["percent"], &progress["total_steps"]), (&Value::Null, &Value::Null), "{response}");
    assert!(progress["command_count"].is_u64() && progress["event_count"].as_u64() > Some(0), "{response}");
    let expired = call_markdown(&mut client, "_codex_local_run", run);
    for fact in ["thread", "elapsed", "activity", "so far"] {
        assert!(expired.contains(&format!("\n- {fact}: ")), "{fact}: {expired}");
    }
    assert!(!expired.contains('%'), "{expired}");
    let id = data["task_id"].as_str().unwrap();
    let waited = client.envelope("_codex_local_wait", json!({"task_id": id, "timeout_sec": 1}));
    assert_eq!(waited["data"]["thread_id"], data["thread_id"], "{waited}");
    release_agents(&stage);
    stage.wait(id);
}

#[test]
fn labels_are_shown_in_every_view_of_a_task() {
    let stage = one_at_a_time(waiting_stage());
    let mut client = Client::connect(&stage, V2026_07);
    let labels = json!({"team": "parser", "ticket": "7"});
    let mut exec = || {
        let response = client.envelope("_codex_local_exec", json!({"task": "x", "labels": labels}));
        response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    };
    let (id, _) = (exec(), exec());
    let status = client.envelope("_codex_local_status", json!({}))["data"].clone();
    assert_eq!(
        (&status["tasks"][0]["labels"], &status["queue"][0]["labels"]),
        (&labels, &labels),
        "{status}"
    );
    let shown = "team=parser, ticket=7";
    assert_eq!(call_markdown(&mut client, "_codex_local_status", json!({})).matches(shown).count(), 2);
    release_agents(&stage);
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        let response = client.envelope(tool, json!({"task_id": id}));
        assert_eq!(response["data"]["labels"], labels, "{response}");
        assert!(call_markdown(&mut client, tool, json!({"task_id": id})).contains(shown), "{tool}");
    }
    let run = client.envelope("_codex_local_run", json!({"task": "x", "labels": labels}));
    assert_eq!(run["data"]["labels"], labels, "{run}");
    let status = client.envelope("_codex_local_status", json!({}))["data"].clone();
    assert_eq!(status["recently_completed"][0]["labels"], labels, "{status}");
    // Without labels the key is absent.
    let plain = client.exec();
    client.call("_codex_local_wait", json!({"task_id": plain}));
    let status = client.envelope("_codex_local_status", json!({"task_id": plain}));
    assert!(status["data"]["recently_completed"][0].get("labels").is_none(), "{status}");
    assert!(!call_markdown(&mut client, "_codex_local_status", json!({"task_id": plain})).contains("labels"));
}

#[test]
fn a_cancel_reports_its_signals_and_repeats_its_response() {
    let steps = [
        json!({"trap": {"signals": ["INT", "TERM"], "log": "signals"}}),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ];
    let stage = one_at_a_time(Stage::with_script(PROGRAM, successful_turn(&steps)));
    let mut client = Client::connect(&stage, V2025_06);
    let (running, queued) = (client.exec(), client.exec());
    stage.wait_for_project_file("ready");
    let first = client.envelope("_codex_local_cancel", json!({"task_id": queued}));
    assert_eq!(first["data"]["previous_state"], "queued", "{first}");
    assert!(first["data"].get("signals").is_none(), "no signal was needed: {first}");
    let killed = client.envelope("_codex_local_cancel", json!({"task_id": running}));
    assert_eq!(killed["data"]["signals"], json!(["SIGINT", "SIGTERM", "SIGKILL"]), "{killed}");
    assert_eq!(killed["data"]["previous_state"], "working", "{killed}");
    for (id, response) in [(&queued, first), (&running, killed)] {
        let again = client.envelope("_codex_local_cancel", json!({"task_id": id}));
        assert_eq!((&again["data"], &again["meta"]), (&response["data"], &response["meta"]));
    }
    let markdown = call_markdown(&mut client, "_codex_local_cancel", json!({"task_id": running}));
    assert!(markdown.starts_with(&format!("# Task {running} cancelled\n")), "{markdown}");
    assert!(markdown.contains("SIGKILL") && markdown.contains("- previous state: working\n"), "{markdown}");
}

#[test]
fn a_wide_title_fits_the_status_of_one_task() {
    let wide = "\u{4efb}\u{52a1}".repeat(60);
    let long = format!("sh -c 'until test -e go; do sleep 0.02; done; : {}'", "[x]".repeat(60));
    let stage = Stage::with_script(PROGRAM, successful_turn(&[json!({"command": {"run": long}})]));
    let mut client = Client::connect(&stage, V2025_06);
    let arguments = json!({"task": wide, "labels": {"team": "[parser]", "ticket": "a|b".repeat(40)}});
    let accepted = client.envelope("_codex_local_exec", arguments);
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
    wait_until("the agent runs its command", || {
        let status = client.envelope("_codex_local_status", json!({"task_id": id}));
        status["data"]["tasks"][0]["progress"]["current_activity"].to_string().contains("sh -c")
    });
    let running = call_markdown(&mut client, "_codex_local_status", json!({"task_id": id}));
    assert!(running.len() <= 600, "{} bytes: {running}", running.len());
    assert!(
        running.contains(&id) && running.contains('\u{4efb}') && running.contains("until test"),
        "{running}"
    );
    release_agents(&stage);
    wait_until_completed(&mut client, 1);
    let ended = call_markdown(&mut client, "_codex_local_status", json!({"task_id": id}));
    assert!(ended.len() <= 600 && ended.contains("completed"), "{} bytes: {ended}", ended.len());
}

#[test]
fn a_long_final_message_is_truncated_to_8000_characters() {
    let long = "\u{fc}".repeat(9_000);
    let exact = "\u{fc}".repeat(8_000);
    for (message, is_cut) in [(&long, true), (&exact, false)] {
        let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
        stage.set_script(json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": message}, {"turn_completed": {}}
        ]));
        let id = stage.exec(&[]);
        let response = stage.wait(&id);
        let shown = response["data"]["final_message"].as_str().unwrap_or_else(|| panic!("{response}"));
        assert_eq!((shown.chars().count(), shown.ends_with(" [truncated]")), (8_000, is_cut));
    }
}

#[test]
fn an_expired_cli_wait_names_a_command_that_works() {
    let stage = waiting_stage();
    let (first, second) = (stage.exec(&[]), stage.exec(&[]));
    let wait = ["local", "wait", "--task-ids", &first, "--task-ids", &second, "--timeout-sec", "1"];
    let expired = stage.world.run([wait.as_slice(), &["--format", "markdown"]].concat());
    assert_eq!(expired.exit, Some(14), "{expired:?}");
    assert!(expired.stdout.starts_with("# 0 of 2 tasks ended\n"), "{expired:?}");
    let next = expired.stdout.lines().find_map(|line| line.strip_prefix("Next: `mcp-delegator "));
    let next = next.and_then(|command| command.strip_suffix('`')).unwrap_or_else(|| panic!("{expired:?}"));
    release_agents(&stage);
    let waited = stage.world.run(next.split(' '));
    assert_eq!(waited.exit, Some(0), "{next}: {waited:?}");
    assert_eq!(waited.json()["data"]["tasks"].as_array().map(Vec::len), Some(2), "{waited:?}");
}

#[test]
fn an_expired_wait_for_any_suggests_the_same_wait() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let (first, second) = (client.exec(), client.exec());
    let any = json!({"task_ids": [first, second], "until": "any", "timeout_sec": 1});
    let next = format!(r#"Next: `_codex_local_wait {{"task_ids":["{first}","{second}"],"until":"any"}}`"#);
    let expired = call_markdown(&mut client, "_codex_local_wait", any);
    assert!(expired.ends_with(&next), "{expired}");
    release_agents(&stage);
    stage.wait(&first);
    stage.wait(&second);
}

#[test]
fn status_names_the_next_call() {
    let stage = waiting_stage();
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    let running = call_markdown(&mut client, "_codex_local_status", json!({}));
    assert!(running.ends_with(&format!(r#"Next: `_codex_local_wait {{"task_id":"{id}"}}`"#)), "{running}");
    release_agents(&stage);
    wait_until_completed(&mut client, 1);
    let unread = call_markdown(&mut client, "_codex_local_status", json!({}));
    assert!(unread.ends_with(&format!(r#"Next: `_codex_local_results {{"task_id":"{id}"}}`"#)), "{unread}");
    client.call("_codex_local_results", json!({"task_id": id}));
    assert!(!call_markdown(&mut client, "_codex_local_status", json!({})).contains("Next:"));
}

#[test]
fn a_truncated_message_names_the_call_for_the_whole() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "m".repeat(9_000)},
        {"turn_completed": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}},
    ]);
    let stage = Stage::with_script(PROGRAM, steps);
    let mut client = Client::connect(&stage, V2025_06);
    let id = client.exec();
    let cut = call_markdown(&mut client, "_codex_local_wait", json!({"task_id": id}));
    let hint =
        format!(r#"Read the whole message: _codex_local_results {{"task_id":"{id}","include_output":true}}"#);
    assert!(cut.ends_with(&hint) && cut.contains("final message (8000 of 9000 bytes):"), "{cut}");
    let typed = client.envelope("_codex_local_wait", json!({"task_id": id}));
    let expected = json!({"shown_bytes": 8000, "total_bytes": 9000, "suggestion": hint});
    assert_eq!(typed["data"]["final_message_truncated"], expected, "{typed}");
    let all = json!({"task_id": id, "include_output": true});
    let whole = client.envelope("_codex_local_results", all.clone());
    assert!(whole["data"].get("final_message_truncated").is_none(), "{whole}");
    let whole = call_markdown(&mut client, "_codex_local_results", all);
    assert_eq!(whole.matches(&"m".repeat(9_000)).count(), 1, "{}", whole.len());
    assert!(!whole.contains("whole message") && whole.contains("turn.completed"), "{}", whole.len());
}

#[test]
fn a_finished_turn_is_not_a_finished_task() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "All done."},
        {"plan": {"steps": ["Read"], "done": 1}},
        {"turn_completed": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}}, {"wait_for_file": "go"},
    ]);
    let stage = Stage::with_script(PROGRAM, steps);
    let mut client = Client::connect(&stage, V2026_07);
    let id = client.exec();
    wait_until("the turn has ended", || {
        let status = client.envelope("_codex_local_status", json!({"task_id": id}));
        let percent = status["data"]["tasks"][0]["progress"]["percent"].as_u64();
        assert_ne!(percent, Some(100), "{status}");
        percent == Some(99)
    });
    release_agents(&stage);
    stage.wait(&id);
}

#[test]
fn cancelling_a_queued_task_has_no_duration_and_marks_it_read() {
    let stage = one_at_a_time(waiting_stage());
    let mut client = Client::connect(&stage, V2026_07);
    let first = client.exec();
    let queued = client.exec();
    client.call("_codex_local_cancel", json!({"task_id": queued, "reason": "not needed"}));
    let ended = client.envelope("_codex_local_wait", json!({"task_id": queued}));
    assert_eq!(
        (&ended["data"]["metadata"]["duration"], &ended["meta"]["duration_ms"]),
        (&json!(0), &json!(0)),
        "{ended}"
    );
    assert_eq!(ended["data"]["summary"], "Cancelled (not needed) before it began", "{ended}");
    client.call("_codex_local_cancel", json!({"task_id": first}));
    let status = client.envelope("_codex_local_status", json!({}));
    assert!(status["data"].get("unread").is_none(), "a cancelled task counts as read: {status}");
}
