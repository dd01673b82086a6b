//! Markdown holds what JSON holds: nothing a model needs to go on is only in the other format.

use delegator_testkit::stage::{Stage, turn, until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::host::{Host, NEW, NEWER, OLD, go, quick, text, waiting};

/// One agent at a time.
fn in_line(stage: Stage) -> Stage {
    stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "1")
}

fn told(host: &mut Host, tool: &str, arguments: Value) -> String {
    text(&host.call(tool, arguments)).to_owned()
}

/// One heading, on the first line; nothing empty, and no `[]`.
fn assert_in_form(markdown: &str) {
    let mut fenced = false;
    let mut headings = 0;
    for (at, line) in markdown.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if line.starts_with('#') && !fenced {
            assert_eq!(at, 0, "a heading in the middle: {markdown}");
            headings += 1;
        }
        assert!(!line.trim_end().ends_with(':') || !line.starts_with("- "), "an empty row: {markdown}");
        assert!(line.trim() != "[]" && line.trim() != "{}", "a dump of nothing: {markdown}");
    }
    assert_eq!(headings, 1, "{markdown}");
}

fn until_ended(host: &mut Host, count: u64) {
    until("they have ended", || {
        let status = host.envelope("_codex_local_status", json!({}));
        status["data"]["summary"]["recently_completed"] == count
    });
}

#[test]
fn every_answer_about_tasks_has_one_heading_and_no_empty_row() {
    let stage = waiting();
    let mut host = Host::of(&stage, OLD);
    let (one, other) = (host.exec(), host.exec());
    for (tool, arguments) in [
        ("_codex_local_status", json!({})),
        ("_codex_local_status", json!({"task_id": one, "verbose": true})),
        ("_codex_local_wait", json!({"task_id": one, "timeout_sec": 1})),
        ("_codex_local_wait", json!({"task_ids": [one, other], "timeout_sec": 1})),
        ("_codex_local_results", json!({"task_id": one})),
        ("_codex_local_run", json!({"task": "x", "call_budget_sec": 1})),
        ("_codex_local_cancel", json!({"task_id": one})),
        ("_codex_local_cancel", json!({"task_id": one})),
        ("_codex_local_wait", json!({"task_ids": [one, other], "until": "any"})),
        ("_codex_cleanup_registry", json!({"dry_run": true})),
        ("_codex_cleanup_registry", json!({})),
        ("_codex_cloud_list_environments", json!({})),
        ("_codex_cloud_github_setup", json!({"repo_url": "https://github.com/a/b"})),
    ] {
        assert_in_form(&told(&mut host, tool, arguments));
    }
    go(&stage);
    assert_in_form(&told(&mut host, "_codex_local_wait", json!({"task_ids": [one, other]})));
    assert_in_form(&told(&mut host, "_codex_local_results", json!({"task_id": other})));
}

#[test]
fn status_shows_the_last_lines_when_asked() {
    let stage =
        Stage::playing(PROGRAM, turn(&[json!({"message": "on my way"}), json!({"wait_for_file": "go"})]));
    let mut host = Host::of(&stage, NEW);
    let id = host.exec();
    until("it has said something", || {
        let status = host.envelope("_codex_local_status", json!({"task_id": id, "verbose": true}));
        status["data"]["tasks"][0]["last_lines"].to_string().contains("on my way")
    });
    assert!(told(&mut host, "_codex_local_status", json!({"verbose": true})).contains("on my way"));
    assert!(!told(&mut host, "_codex_local_status", json!({})).contains("on my way"));
    go(&stage);
    stage.wait(&id);
}

#[test]
fn status_names_unread_results_and_where_the_list_goes_on() {
    let stage = quick();
    let ids: Vec<String> = (0..3).map(|_| stage.exec(&[])).collect();
    let mut host = Host::of(&stage, OLD);
    until_ended(&mut host, 3);
    let status = told(&mut host, "_codex_local_status", json!({"limit": 1}));
    let unread = status.lines().find(|line| line.starts_with("- unread results: "));
    let unread = unread.unwrap_or_else(|| panic!("{status}"));
    assert!(ids.iter().all(|id| unread.contains(id.as_str())), "{status}");
    let cursor = status.lines().find_map(|line| line.strip_prefix("- more: cursor "));
    let cursor = cursor.unwrap_or_else(|| panic!("{status}"));
    let next = told(&mut host, "_codex_local_status", json!({"limit": 1, "cursor": cursor}));
    let listed = |text: &str| ids.iter().position(|id| text.contains(&format!("| {id} |")));
    assert!(
        listed(&status).is_some() && listed(&next).is_some() && listed(&status) != listed(&next),
        "{next}"
    );
}

#[test]
fn a_queued_task_says_where_it_stands_and_what_it_waits_for() {
    let stage = in_line(waiting());
    let mut host = Host::of(&stage, NEWER);
    let first = host.exec();
    let arguments = json!({"task": "x", "idempotency_key": "k"});
    let queued = told(&mut host, "_codex_local_exec", arguments.clone());
    assert!(queued.contains("- place in the queue: 1\n"), "{queued}");
    assert!(!queued.contains("replayed"), "{queued}");
    assert!(told(&mut host, "_codex_local_exec", arguments).contains("- replayed: yes"), "the second time");
    let resume = json!({"task": "go on", "task_id": first});
    let mut blocked = Value::Null;
    until("the first has announced its thread", || {
        blocked = host.envelope("_codex_local_resume", resume.clone());
        blocked["status"] == "ok"
    });
    let thread = blocked["data"]["thread_id"].as_str().unwrap_or_else(|| panic!("{blocked}")).to_owned();
    let blocked = told(&mut host, "_codex_local_resume", resume);
    assert!(blocked.contains(&format!("- waits for: {first} (")), "{blocked}");
    assert!(blocked.contains(&format!("- thread: {thread}\n")), "{blocked}");
    let status = told(&mut host, "_codex_local_status", json!({}));
    assert!(status.contains("| queued | place | waits for |"), "{status}");
    go(&stage);
    stage.wait(&first);
}

#[test]
fn waiting_for_several_brings_their_messages_and_names_who_is_missing() {
    let steps = [json!({"touch_file": "ready"}), json!({"wait_for_file": "go"})];
    let stage = Stage::playing(PROGRAM, turn(&steps)).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8");
    let slow = stage.exec(&[]);
    stage.until_there("ready");
    stage.play(turn(&[]));
    let fast = stage.exec(&[]);
    stage.wait(&fast);
    let mut host = Host::of(&stage, NEW);
    let both = json!({"task_ids": [fast, slow], "timeout_sec": 1});
    let expired = told(&mut host, "_codex_local_wait", both);
    assert!(expired.starts_with("# 1 of 2 tasks ended\n"), "{expired}");
    assert!(expired.contains("All done.") && expired.contains(&format!("- pending: {slow}")), "{expired}");
    let next = format!(r#"Next: `_codex_local_wait {{"task_id":"{slow}"}}`"#);
    assert!(expired.ends_with(&next), "{expired}");
    let any = told(&mut host, "_codex_local_wait", json!({"task_ids": [fast, slow], "until": "any"}));
    assert!(any.contains("All done.") && any.contains(&format!("- pending: {slow}")), "{any}");
    assert!(any.ends_with(&next), "{any}");
    let none =
        told(&mut host, "_codex_local_wait", json!({"task_ids": [slow], "until": "any", "timeout_sec": 1}));
    assert!(none.ends_with(&next) && none.matches("Next:").count() == 1, "{none}");
    go(&stage);
    let all = told(&mut host, "_codex_local_wait", json!({"task_ids": [fast, slow]}));
    assert!(all.starts_with("# 2 of 2 tasks ended\n") && all.matches("All done.").count() == 2, "{all}");
}

#[test]
fn earlier_events_can_be_asked_for() {
    let stage = Stage::playing(PROGRAM, turn(&[json!({"events": {"count": 80, "bytes": 100}})]));
    let mut host = Host::of(&stage, OLD);
    let id = host.exec();
    stage.wait(&id);
    let arguments = json!({"task_id": id, "include_events": true});
    let envelope = host.envelope("_codex_local_results", arguments.clone());
    let cursor = envelope["data"]["events"]["next_cursor"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    assert!(
        told(&mut host, "_codex_local_results", arguments)
            .contains(&format!(r#""events_cursor":"{cursor}""#))
    );
}

#[test]
fn a_run_over_its_budget_tells_its_thread_and_how_far_it_is() {
    let stage =
        Stage::playing(PROGRAM, turn(&[json!({"command": {"run": "true"}}), json!({"wait_for_file": "go"})]));
    let mut host = Host::of(&stage, OLD);
    let run = json!({"task": "x", "call_budget_sec": 1});
    let answer = host.envelope("_codex_local_run", run.clone());
    let data = &answer["data"];
    assert!(data["thread_id"].is_string() && data["progress"]["percent"].is_u64(), "{answer}");
    let expired = told(&mut host, "_codex_local_run", run);
    assert!(expired.contains("\n- thread: ") && expired.contains("\n- percent: "), "{expired}");
    let id = data["task_id"].as_str().unwrap();
    let waited = host.envelope("_codex_local_wait", json!({"task_id": id, "timeout_sec": 1}));
    assert_eq!(waited["data"]["thread_id"], data["thread_id"], "{waited}");
    go(&stage);
    stage.wait(id);
}

#[test]
fn labels_are_shown_wherever_a_task_is() {
    let stage = in_line(waiting());
    let mut host = Host::of(&stage, NEW);
    let labels = json!({"team": "parser", "ticket": "7"});
    let mut exec = || {
        let answer = host.envelope("_codex_local_exec", json!({"task": "x", "labels": labels}));
        answer["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let (one, _) = (exec(), exec());
    let status = host.envelope("_codex_local_status", json!({}))["data"].clone();
    assert_eq!(
        (&status["tasks"][0]["labels"], &status["queue"][0]["labels"]),
        (&labels, &labels),
        "{status}"
    );
    let shown = "team=parser, ticket=7";
    assert_eq!(told(&mut host, "_codex_local_status", json!({})).matches(shown).count(), 2);
    go(&stage);
    for tool in ["_codex_local_wait", "_codex_local_results"] {
        let answer = host.envelope(tool, json!({"task_id": one}));
        assert_eq!(answer["data"]["labels"], labels, "{answer}");
        assert!(told(&mut host, tool, json!({"task_id": one})).contains(shown), "{tool}");
    }
    let run = host.envelope("_codex_local_run", json!({"task": "x", "labels": labels}));
    assert_eq!(run["data"]["labels"], labels, "{run}");
    let status = host.envelope("_codex_local_status", json!({}))["data"].clone();
    assert_eq!(status["recently_completed"][0]["labels"], labels, "{status}");
    // Without labels nothing is said of them.
    let plain = host.exec();
    host.call("_codex_local_wait", json!({"task_id": plain}));
    let status = host.envelope("_codex_local_status", json!({"task_id": plain}));
    assert!(status["data"]["recently_completed"][0].get("labels").is_none(), "{status}");
    assert!(!told(&mut host, "_codex_local_status", json!({"task_id": plain})).contains("labels"));
}

#[test]
fn a_cancel_says_what_it_took_and_says_it_again() {
    let steps = [
        json!({"trap": {"signals": ["INT", "TERM"], "log": "signals"}}),
        json!({"touch_file": "ready"}),
        json!("silent"),
    ];
    let stage = in_line(Stage::playing(PROGRAM, turn(&steps)));
    let mut host = Host::of(&stage, OLD);
    let (running, queued) = (host.exec(), host.exec());
    stage.until_there("ready");
    let first = host.envelope("_codex_local_cancel", json!({"task_id": queued}));
    assert_eq!(first["data"]["previous_state"], "queued", "{first}");
    assert!(first["data"].get("signals").is_none(), "nothing had to be sent: {first}");
    let killed = host.envelope("_codex_local_cancel", json!({"task_id": running}));
    assert_eq!(killed["data"]["signals"], json!(["SIGINT", "SIGTERM", "SIGKILL"]), "{killed}");
    assert_eq!(killed["data"]["previous_state"], "working", "{killed}");
    for (id, answer) in [(&queued, first), (&running, killed)] {
        let again = host.envelope("_codex_local_cancel", json!({"task_id": id}));
        assert_eq!((&again["data"], &again["meta"]), (&answer["data"], &answer["meta"]));
    }
    let markdown = told(&mut host, "_codex_local_cancel", json!({"task_id": running}));
    assert!(markdown.starts_with(&format!("# Task {running} cancelled\n")), "{markdown}");
    assert!(markdown.contains("SIGKILL") && markdown.contains("- was: working\n"), "{markdown}");
}

#[test]
fn a_long_first_line_in_a_wide_script_still_fits_the_status_of_one_task() {
    let wide = "\u{4efb}\u{52a1}".repeat(60);
    let long = format!("sh -c 'until test -e go; do sleep 0.02; done; : {}'", "[x]".repeat(60));
    let stage = Stage::playing(PROGRAM, turn(&[json!({"command": {"run": long}})]));
    let mut host = Host::of(&stage, OLD);
    let arguments = json!({"task": wide, "labels": {"team": "[parser]", "ticket": "a|b".repeat(40)}});
    let accepted = host.envelope("_codex_local_exec", arguments);
    let id = accepted["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned();
    until("it runs its command", || {
        let status = host.envelope("_codex_local_status", json!({"task_id": id}));
        status["data"]["tasks"][0]["progress"]["current_activity"].to_string().contains("sh -c")
    });
    let running = told(&mut host, "_codex_local_status", json!({"task_id": id}));
    assert!(running.len() <= 600, "{} bytes: {running}", running.len());
    assert!(
        running.contains(&id) && running.contains('\u{4efb}') && running.contains("until test"),
        "{running}"
    );
    go(&stage);
    until_ended(&mut host, 1);
    let ended = told(&mut host, "_codex_local_status", json!({"task_id": id}));
    assert!(ended.len() <= 600 && ended.contains("completed"), "{} bytes: {ended}", ended.len());
}

#[test]
fn a_long_final_message_is_cut_to_eight_thousand_characters() {
    let long = "\u{fc}".repeat(9_000);
    let exact = "\u{fc}".repeat(8_000);
    for (message, is_cut) in [(&long, true), (&exact, false)] {
        let stage = Stage::playing(PROGRAM, turn(&[]));
        stage.play(json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": message}, {"turn_completed": {}}
        ]));
        let id = stage.exec(&[]);
        let answer = stage.wait(&id);
        let told = answer["data"]["final_message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!((told.chars().count(), told.ends_with(" [truncated]")), (8_000, is_cut));
    }
}

#[test]
fn on_the_command_line_a_wait_that_ran_out_reads_the_same_and_names_a_command_that_works() {
    let stage = waiting();
    let (one, other) = (stage.exec(&[]), stage.exec(&[]));
    let wait = ["local", "wait", "--task-ids", &one, "--task-ids", &other, "--timeout-sec", "1"];
    let expired = stage.world.run([wait.as_slice(), &["--format", "markdown"]].concat());
    assert_eq!(expired.exit, Some(14), "{expired:?}");
    assert!(expired.stdout.starts_with("# 0 of 2 tasks ended\n"), "{expired:?}");
    let next = expired.stdout.lines().find_map(|line| line.strip_prefix("Next: `mcp-delegator "));
    let next = next.and_then(|words| words.strip_suffix('`')).unwrap_or_else(|| panic!("{expired:?}"));
    go(&stage);
    let waited = stage.world.run(next.split(' '));
    assert_eq!(waited.exit, Some(0), "{next}: {waited:?}");
    assert_eq!(waited.json()["data"]["tasks"].as_array().map(Vec::len), Some(2), "{waited:?}");
}

#[test]
fn who_waits_for_any_goes_on_waiting_for_any() {
    let stage = waiting();
    let mut host = Host::of(&stage, OLD);
    let (one, other) = (host.exec(), host.exec());
    let any = json!({"task_ids": [one, other], "until": "any", "timeout_sec": 1});
    let next = format!(r#"Next: `_codex_local_wait {{"task_ids":["{one}","{other}"],"until":"any"}}`"#);
    let expired = told(&mut host, "_codex_local_wait", any);
    assert!(expired.ends_with(&next), "{expired}");
    go(&stage);
    stage.wait(&one);
    stage.wait(&other);
}

#[test]
fn status_names_what_to_call_next() {
    let stage = waiting();
    let mut host = Host::of(&stage, OLD);
    let id = host.exec();
    let running = told(&mut host, "_codex_local_status", json!({}));
    assert!(running.ends_with(&format!(r#"Next: `_codex_local_wait {{"task_id":"{id}"}}`"#)), "{running}");
    go(&stage);
    until_ended(&mut host, 1);
    let unread = told(&mut host, "_codex_local_status", json!({}));
    assert!(unread.ends_with(&format!(r#"Next: `_codex_local_results {{"task_id":"{id}"}}`"#)), "{unread}");
    host.call("_codex_local_results", json!({"task_id": id}));
    assert!(!told(&mut host, "_codex_local_status", json!({})).contains("Next:"));
}

#[test]
fn a_message_that_was_cut_says_how_to_get_the_whole() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "m".repeat(9_000)},
        {"turn_completed": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}},
    ]);
    let stage = Stage::playing(PROGRAM, steps);
    let mut host = Host::of(&stage, OLD);
    let id = host.exec();
    let cut = told(&mut host, "_codex_local_wait", json!({"task_id": id}));
    let next = format!(r#"Next: `_codex_local_results {{"task_id":"{id}","include_output":true}}`"#);
    assert!(cut.ends_with(&next), "{cut}");
    let whole = told(&mut host, "_codex_local_results", json!({"task_id": id, "include_output": true}));
    assert!(whole.contains(&"m".repeat(9_000)) && !whole.contains("Next:"), "{}", whole.len());
}

#[test]
fn a_turn_that_is_over_is_not_a_task_that_has_ended() {
    let steps = json!([
        {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"message": "All done."},
        {"turn_completed": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}}, {"wait_for_file": "go"},
    ]);
    let stage = Stage::playing(PROGRAM, steps);
    let mut host = Host::of(&stage, NEW);
    let id = host.exec();
    until("its turn is over", || {
        let status = host.envelope("_codex_local_status", json!({"task_id": id}));
        let percent = status["data"]["tasks"][0]["progress"]["percent"].as_u64();
        assert_ne!(percent, Some(100), "{status}");
        percent == Some(99)
    });
    go(&stage);
    stage.wait(&id);
}

#[test]
fn a_task_cancelled_in_the_queue_never_ran_and_whoever_cancels_has_seen_the_end() {
    let stage = in_line(waiting());
    let mut host = Host::of(&stage, NEW);
    let first = host.exec();
    let queued = host.exec();
    host.call("_codex_local_cancel", json!({"task_id": queued, "reason": "not needed"}));
    let ended = host.envelope("_codex_local_wait", json!({"task_id": queued}));
    assert_eq!(
        (&ended["data"]["metadata"]["duration"], &ended["meta"]["duration_ms"]),
        (&json!(0), &json!(0)),
        "{ended}"
    );
    assert_eq!(ended["data"]["summary"], "Cancelled (not needed) before it began", "{ended}");
    host.call("_codex_local_cancel", json!({"task_id": first}));
    let status = host.envelope("_codex_local_status", json!({}));
    assert!(status["data"].get("unread").is_none(), "who cancelled it knows: {status}");
}
