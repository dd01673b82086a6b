//! Many tasks in one state directory: start order, exclusion between writers, pause, and batch cancel.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use delegator_testkit::program::wait_for_output;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A stage whose agents create a `begun-` file and wait for the file `go`.
fn waiting_stage() -> Stage {
    Stage::with_script(
        PROGRAM,
        successful_turn(&[json!({"touch_file": "begun-{pid}"}), json!({"wait_for_file": "go"})]),
    )
    .variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

fn started_agents(stage: &Stage) -> usize {
    let entries = std::fs::read_dir(stage.world.project()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("begun-")).count()
}

fn release_agents(stage: &Stage) {
    std::fs::write(stage.world.project().join("go"), "").unwrap();
}

fn state(stage: &Stage, id: &str) -> String {
    let status = stage.run_json(&["local", "status", id]);
    let data = &status["data"];
    let lists = ["tasks", "queue", "recently_completed"];
    let found = lists.iter().find(|list| data[*list].as_array().is_some_and(|list| !list.is_empty()));
    match found {
        Some(&"queue") => "queued".to_owned(),
        Some(list) => data[*list][0]["state"].as_str().unwrap().to_owned(),
        None => panic!("{status}"),
    }
}

fn submit(stage: &Stage, more: &[&str]) -> Value {
    stage.run_json(&[&["local", "exec", "do it"], more].concat())
}

fn id_of(response: &Value) -> String {
    response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[test]
fn writers_of_one_tree_run_in_turn_and_readers_do_not_wait() {
    let stage = waiting_stage();
    let write = ["--mode", "workspace-write"];
    let first = id_of(&submit(&stage, &write));
    let second = submit(&stage, &write);
    assert_eq!(second["meta"]["waiting_for"], json!({"task_id": first, "reason": "work_tree"}), "{second}");
    assert_eq!((&second["data"]["state"], &second["meta"]["queue_position"]), (&json!("queued"), &json!(1)));
    let reader = submit(&stage, &[]);
    assert_eq!(reader["meta"]["queue_position"], 0, "a reader must not wait: {reader}");
    let parallel = submit(&stage, &["--mode", "workspace-write", "--allow-parallel-writes"]);
    assert_eq!(parallel["meta"]["queue_position"], 0, "{parallel}");
    wait_until("three agents have started", || started_agents(&stage) == 3);
    let status = stage.run_json(&["local", "status"]);
    let queue = status["data"]["queue"].clone();
    assert_eq!(queue[0]["waiting_for"]["task_id"], json!(first), "{status}");
    release_agents(&stage);
    for id in [&first, &id_of(&second), &id_of(&reader), &id_of(&parallel)] {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
    assert_eq!(started_agents(&stage), 4);
}

#[test]
fn writers_of_different_trees_run_in_parallel() {
    let stage = waiting_stage();
    let elsewhere = stage.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let elsewhere = elsewhere.display().to_string();
    submit(&stage, &["--mode", "workspace-write"]);
    let response = submit(&stage, &["--mode", "workspace-write", "--working-dir", &elsewhere]);
    assert_eq!(response["meta"]["queue_position"], 0, "{response}");
    let below = stage.world.project().join("below");
    std::fs::create_dir(&below).unwrap();
    let response =
        submit(&stage, &["--mode", "workspace-write", "--working-dir", &below.display().to_string()]);
    assert_eq!(response["meta"]["waiting_for"]["reason"], "work_tree", "{response}");
    release_agents(&stage);
    std::fs::write(below.join("go"), "").unwrap();
    std::fs::write(stage.root().join("elsewhere/go"), "").unwrap();
    assert_eq!(stage.wait(&id_of(&response))["data"]["state"], "completed");
}

#[test]
fn a_paused_queue_accepts_tasks_and_starts_none() {
    let stage = waiting_stage();
    release_agents(&stage);
    let paused = stage.run_json(&["queue", "pause"]);
    assert_eq!(paused["data"]["is_paused"], true, "{paused}");
    let accepted = submit(&stage, &[]);
    assert_eq!(
        (&accepted["meta"]["is_queue_paused"], &accepted["data"]["state"]),
        (&json!(true), &json!("queued"))
    );
    let id = id_of(&accepted);
    let again = stage.run_json(&["queue", "pause"]);
    assert_eq!((&again["data"]["is_changed"], &again["data"]["queued_count"]), (&json!(false), &json!(1)));
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["is_queue_paused"], true, "{status}");
    assert_eq!(started_agents(&stage), 0);
    let resumed = stage.run_json(&["queue", "resume"]);
    assert_eq!(
        (&resumed["data"]["is_paused"], &resumed["data"]["is_changed"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn tasks_are_cancelled_by_label_and_state() {
    let stage = waiting_stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "2");
    let ids: Vec<String> = ["a", "a", "a", "b"]
        .iter()
        .map(|team| id_of(&submit(&stage, &["--labels", &format!("team={team}")])))
        .collect();
    wait_until("two agents have started", || started_agents(&stage) == 2);
    let plan = stage.run_json(&["cancel", "--labels", "team=a", "--dry-run"]);
    assert_eq!((&plan["data"]["count"], &plan["meta"]["dry_run"]), (&json!(3), &json!(true)), "{plan}");
    let queued =
        stage.run_json(&["cancel", "--labels", "team=a", "--state", "queued", "--reason", "not now"]);
    assert_eq!(queued["data"]["count"], 1, "{queued}");
    assert_eq!(queued["data"]["tasks"][0]["task_id"], json!(ids[2]));
    assert_eq!(state(&stage, &ids[0]), "working", "a running task was cancelled");
    let all = stage.run_json(&["cancel", "--all"]);
    assert_eq!(all["data"]["count"], 3, "{all}");
    for id in &ids {
        assert_eq!(stage.wait(id)["data"]["state"], "cancelled");
    }
    assert_eq!(started_agents(&stage), 2, "a task was started meanwhile");
    assert_eq!(stage.run_json(&["cancel", "--all"])["data"]["count"], 0);
}

#[test]
fn cancel_needs_a_selection() {
    let stage = waiting_stage();
    let run = stage.world.run(["cancel"]);
    assert_eq!(run.exit, Some(2), "{run:?}");
    let id = id_of(&submit(&stage, &[]));
    let run = stage.world.run(["cancel", &id, "--all"]);
    assert_eq!(run.json()["error"]["code"], "INVALID_VALUE", "{run:?}");
    let named = stage.run_json(&["cancel", &id]);
    assert_eq!(named["data"]["count"], 1, "{named}");
}

#[test]
fn retry_repeats_a_finished_task_with_its_inputs() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[json!({"record": {"file": "record-{pid}.json"}})]));
    let text = "mend it\nand \u{1f980} test it";
    let given = ["--task", text, "--labels", "team=a", "--model", "m-1", "--idempotency-key", "k"];
    let first = id_of(&stage.run_json(&[&["local", "exec"], given.as_slice()].concat()));
    stage.wait(&first);
    let elsewhere = stage.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = stage.world.command(["retry", &first]);
    let command = command.current_dir(&elsewhere).stdin(Stdio::null()).stdout(Stdio::piped());
    let again = wait_for_output(command.stderr(Stdio::piped()).spawn().unwrap()).json();
    assert_eq!(again["meta"]["retry_of"], json!(first), "{again}");
    let second = id_of(&again);
    assert_ne!(first, second);
    assert_eq!(stage.wait(&second)["data"]["state"], "completed");
    let entries = std::fs::read_dir(stage.world.project()).unwrap().flatten();
    let records: Vec<Value> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("record-"))
        .map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap())
        .collect();
    assert_eq!(records.len(), 2, "both ran in the same directory");
    for record in &records {
        assert_eq!(record["stdin"], text);
        assert!(record["argv"].to_string().contains("--model=m-1"), "{record}");
    }
    let status = stage.run_json(&["local", "status", "--labels", "team=a"]);
    assert_eq!(status["data"]["summary"]["recently_completed"], 2, "{status}");
}

#[test]
fn retry_of_a_redacted_task_needs_a_new_text() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[])).variable("DEPLOY_TOKEN", "s3cr3t-value-4711");
    let first = stage.run_json(&["local", "exec", "log in with s3cr3t-value-4711"]);
    let first = id_of(&first);
    stage.wait(&first);
    let stored = std::fs::read_to_string(stage.task_dir(&first).join("task.txt")).unwrap();
    assert!(!stored.contains("s3cr3t-value"), "{stored}");
    let refused = stage.world.run(["retry", &first]);
    assert_eq!(refused.json()["error"]["code"], "WRONG_STATE", "{refused:?}");
    let again = stage.run_json(&["retry", &first, "--task", "log in"]);
    assert_eq!(again["ok"], true, "{again}");
}

#[test]
fn retry_with_a_text_that_rewrites_history_is_refused() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let first = stage.exec(&["--mode", "workspace-write"]);
    stage.wait(&first);
    let refused = stage.world.run(["retry", &first, "--task", "run git push --force"]);
    assert_eq!(refused.json()["error"]["code"], "POLICY_BLOCKED", "{refused:?}");
    assert!(!refused.stdout.contains("allow_destructive_git"), "retry has no such input: {refused:?}");
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"], 1);
}

#[test]
fn retry_of_a_running_task_is_refused() {
    let stage = waiting_stage();
    let id = id_of(&submit(&stage, &[]));
    let run = stage.world.run(["retry", &id]);
    assert_eq!(run.json()["error"]["code"], "WRONG_STATE", "{run:?}");
    stage.run_json(&["cancel", "--all"]);
}

#[test]
fn status_pages_through_finished_tasks() {
    let stage =
        Stage::with_script(PROGRAM, successful_turn(&[])).variable("MCP_DELEGATOR_MAX_CONCURRENT", "4");
    let mut ids: Vec<String> = (0..5).map(|_| id_of(&submit(&stage, &[]))).collect();
    ids.iter().for_each(|id| drop(stage.wait(id)));
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let mut args = vec!["local", "status", "--limit", "2"];
        args.extend(cursor.as_deref().map(|cursor| ["--cursor", cursor]).into_iter().flatten());
        let page = stage.run_json(&args);
        assert_eq!(page["data"]["summary"]["recently_completed"], 5, "{page}");
        let shown = page["data"]["recently_completed"].as_array().unwrap();
        listed.extend(shown.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()));
        assert_eq!(page["meta"].get("next_cursor"), None, "{page}");
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let standard = stage.run_json(&["local", "status", "--limit", "2", "--envelope", "standard"]);
    let tool = stage.run_json(&["local", "status", "--limit", "2", "--envelope", "tool"]);
    let human = stage.world.run(["local", "status", "--limit", "2", "--format", "human"]);
    let next = tool["meta"]["next_cursor"].as_str().unwrap_or_else(|| panic!("{tool}"));
    assert_eq!((&standard["metadata"]["cursor"], tool["meta"].get("cursor")), (&json!(next), None));
    // People get no cursor, but a flag.
    assert!(human.stderr.contains("--limit") && !human.stderr.contains(next), "{human:?}");
    listed.sort();
    ids.sort();
    assert_eq!(listed, ids);
    let run = stage.world.run(["local", "status", "--state", "failed", "--cursor", &cursor.unwrap()]);
    assert_eq!(run.json()["error"]["code"], "INVALID_CURSOR", "{run:?}");
}

#[test]
fn waiting_for_any_reports_the_pending_tasks() {
    let stage = waiting_stage();
    let slow = id_of(&submit(&stage, &[]));
    let other = stage.root().join("quick");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("go"), "").unwrap();
    let quick = id_of(&submit(&stage, &["--working-dir", &other.display().to_string()]));
    let both = ["local", "wait", "--task-ids", &slow, "--task-ids", &quick, "--until", "any"];
    let first = stage.run_json(&both);
    assert_eq!(first["data"]["tasks"][0]["task_id"], json!(quick), "{first}");
    assert_eq!(first["meta"]["pending"], json!([slow]), "{first}");
    let none =
        stage.run_json(&["local", "wait", "--task-ids", &slow, "--until", "any", "--timeout-sec", "1"]);
    assert_eq!(none["meta"]["pending"], json!([slow]), "{none}");
    stage.run_json(&["cancel", "--all"]);
}

/// A task that an agent delegates is an ordinary task and continues after the agent's own task ends.
#[test]
fn a_nested_task_continues_after_its_parent_ends() {
    let script = format!(
        "if [ -e inner ]; then exec '{PROGRAM}' scripted-agent --script \"$INNER\" \"$@\"; fi; touch inner; \
         '{PROGRAM}' local exec 'the inner one' > inner.json < /dev/null; cat > /dev/null; \
         echo '{{\"type\":\"thread.started\",\"thread_id\":\"outer\"}}'; echo '{{\"type\":\"turn.started\"}}'; \
         echo '{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}}}'"
    );
    let stage = Stage::with_shell_agent(PROGRAM, "");
    let inner_script = stage.root().join("inner-script.json");
    stage.world.write(
        "inner-script.json",
        &json!({"steps": successful_turn(&[json!({"wait_for_file": "go"})])}).to_string(),
    );
    let state = stage.world.home().join("state").display().to_string();
    let codex = stage.root().join("bin/codex").display().to_string();
    // The agent's environment is an allow-list, so its script sets the variables of the inner call.
    let exports = format!(
        "export MCP_DELEGATOR_HOME={state} MCP_DELEGATOR_CODEX_BIN={codex} INNER={}",
        inner_script.display()
    );
    stage.write_program(
        "bin/codex",
        &format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo codex-cli 0.166.0; exit 0; fi\n{exports}\n{script}\n"),
    );
    let outer = stage.exec(&["--mode", "read-only"]);
    let waited = stage.wait(&outer);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let inner: Value =
        serde_json::from_slice(&std::fs::read(stage.world.project().join("inner.json")).unwrap()).unwrap();
    let inner = id_of(&inner);
    assert_eq!(
        state_until_working(&stage, &inner),
        "working",
        "the sweep of the outer task killed the inner one"
    );
    release_agents(&stage);
    assert_eq!(stage.wait(&inner)["data"]["state"], "completed");
}

fn state_until_working(stage: &Stage, id: &str) -> String {
    wait_until("the task has started", || stage.task_dir(id).join("events.jsonl").exists());
    state(stage, id)
}

#[test]
fn writers_that_share_an_additional_directory_run_one_after_the_other() {
    let stage = waiting_stage();
    let directory = |name: &str| {
        let path = stage.root().join(name);
        std::fs::create_dir(&path).unwrap();
        path.display().to_string()
    };
    let (shared, second, third) = (directory("shared"), directory("second"), directory("third"));
    let write = |working_dir: &str, more: &[&str]| {
        submit(&stage, &[&["--mode", "workspace-write", "--working-dir", working_dir], more].concat())
    };
    let project = stage.world.project().display().to_string();
    let first = id_of(&write(&project, &["--add-dirs", &shared]));
    let waiting_for = json!({"task_id": first, "reason": "work_tree"});
    let through_another = write(&second, &["--add-dirs", &shared]);
    assert_eq!(through_another["meta"]["waiting_for"], waiting_for, "{through_another}");
    let directly = write(&shared, &[]);
    assert_eq!(directly["meta"]["waiting_for"], waiting_for, "{directly}");
    let reader = submit(&stage, &["--working-dir", &third, "--add-dirs", &shared]);
    assert_eq!(reader["meta"]["queue_position"], 0, "{reader}");
    for dir in [&project, &second, &shared, &third] {
        std::fs::write(std::path::Path::new(dir).join("go"), "").unwrap();
    }
    for id in [&first, &id_of(&through_another), &id_of(&directly), &id_of(&reader)] {
        assert_eq!(stage.wait(id)["data"]["state"], "completed");
    }
}

#[test]
fn every_response_about_a_task_states_that_the_queue_is_paused() {
    let stage = waiting_stage();
    release_agents(&stage);
    stage.run_json(&["queue", "pause"]);
    let accepted = submit(&stage, &[]);
    let (id, resume) = (id_of(&accepted), "mcp-delegator queue resume");
    let waited = stage.run_json(&["local", "wait", &id, "--timeout-sec", "1"]);
    assert_eq!(waited["meta"]["is_queue_paused"], true, "{waited}");
    for response in [&accepted, &waited, &stage.run_json(&["local", "status"])] {
        let warning = response["meta"]["warning_details"][0].clone();
        assert_eq!(warning["code"], "W_QUEUE_001", "{response}");
        assert!(warning["message"].as_str().unwrap().contains(resume), "{response}");
    }
    // A wait without a limit says so before the task starts.
    for args in [&["local", "wait", &id][..], &["local", "run", "do it"]] {
        let mut command = stage.world.command(args);
        let mut attached = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(attached.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("warning: ") && line.contains(resume), "{line}");
        attached.kill().unwrap();
        attached.wait().unwrap();
    }
    stage.run_json(&["queue", "resume"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn the_next_task_has_position_1_in_all_texts() {
    let stage = waiting_stage();
    stage.run_json(&["queue", "pause"]);
    let text = |args: &[&str]| stage.world.run([args, &["--format", "human"]].concat()).stdout;
    for position in ["1", "2"] {
        let accepted = text(&["local", "exec", "do it"]);
        let line = accepted.lines().find(|line| line.starts_with("queue position")).unwrap();
        assert_eq!(line.split_whitespace().last(), Some(position), "{accepted}");
    }
    // A person sees the order of the lines.
    let status = stage.world.run(["local", "status", "--format", "markdown"]).stdout;
    let position = |line: &str| line.split('|').nth(3).unwrap_or_default().trim().to_owned();
    let positions: Vec<String> = status.lines().filter(|line| line.contains("do it")).map(position).collect();
    assert_eq!(positions, ["1", "2"], "{status}");
    assert_eq!(stage.run_json(&["local", "status"])["data"]["queue"][0]["position"], 0);
}

/// Scripts need one path for tasks of every state.
#[test]
fn status_also_lists_all_tasks_in_one_shape() {
    let stage = waiting_stage().variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    release_agents(&stage);
    let padding: Vec<String> =
        (0..2).flat_map(|at| ["--labels".to_owned(), format!("pad{at}={}", "x".repeat(190))]).collect();
    let padding: Vec<&str> = padding.iter().map(String::as_str).collect();
    let ended = id_of(&submit(&stage, &padding));
    stage.wait(&ended);
    std::fs::remove_file(stage.world.project().join("go")).unwrap();
    let working = id_of(&submit(&stage, &padding));
    let queued = id_of(&submit(&stage, &padding));
    let status = stage.run_json(&["local", "status"]);
    let all = status["data"]["all_tasks"].as_array().unwrap().clone();
    let state_of = |task: &Value| {
        (task["task_id"].as_str().unwrap().to_owned(), task["state"].as_str().unwrap().to_owned())
    };
    let expected = [(working, "working"), (queued, "queued"), (ended, "completed")];
    let expected = expected.map(|(id, state)| (id, state.to_owned()));
    assert_eq!(all.iter().map(state_of).collect::<Vec<_>>(), expected, "{status}");
    let keys = |task: &Value| task.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(all.iter().all(|task| keys(task) == keys(&all[0])), "{status}");
    assert_eq!(
        (all[2]["labels"].as_object().unwrap().len(), &all[1]["queue_position"]),
        (2, &json!(0)),
        "{status}"
    );
    // Too small for all of them: the lists agree, and the cursor continues, also with selected fields.
    for more in [&[][..], &["--fields", "all_tasks"]] {
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        while ids.is_empty() || cursor.is_some() {
            let page: Vec<&str> = cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]).collect();
            let args = [&["local", "status", "--max-bytes", "4096"][..], more, &page].concat();
            let page = stage.run_json(&args);
            let all = page["data"]["all_tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
            assert!(!all.is_empty(), "{page}");
            if more.is_empty() {
                let lists = ["tasks", "queue", "recently_completed"].map(|list| &page["data"][list]);
                let listed = lists.iter().flat_map(|list| list.as_array().unwrap());
                assert!(
                    listed.map(|task| &task["task_id"]).eq(all.iter().map(|task| &task["task_id"])),
                    "{page}"
                );
            }
            ids.extend(all.iter().map(|task| state_of(task).0));
            cursor = page["meta"]["cursor"].as_str().map(str::to_owned);
        }
        assert_eq!(ids, expected.clone().map(|(id, _)| id), "{more:?}");
    }
    stage.run_json(&["cancel", "--all"]);
}

/// A turn that fails with a usage limit.
fn limited_turn(message: &str) -> serde_json::Value {
    json!([{"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"turn_failed": message}])
}

#[test]
fn a_usage_limit_pauses_the_agent_until_a_user_resumes_it() {
    let stage =
        Stage::with_script(PROGRAM, limited_turn("You've hit your usage limit. Try again in 3 days."));
    let limited = stage.exec(&[]);
    assert_eq!(stage.wait(&limited)["data"]["metadata"]["error_context"]["failure_kind"], "usage_limit");
    stage.set_script(successful_turn(&[]));
    let accepted = stage.run_json(&["local", "exec", "do it"]);
    let (waiting, pause) = (&accepted["data"]["task_id"], &accepted["meta"]["agent_pause"]);
    assert_eq!((&pause["agent"], &pause["task_id"]), (&json!("codex"), &json!(limited)), "{accepted}");
    assert!(accepted["warnings"].to_string().contains("queue resume --agent codex"), "{accepted}");
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"]["agent_pauses"][0], *pause, "{status}");
    assert_eq!(status["data"]["queue"][0]["agent_pause"], *pause, "{status}");
    let doctor = stage.run_json(&["doctor"]);
    assert!(doctor.to_string().contains("no queued task of these agents starts for now: codex"), "{doctor}");
    let expired = stage.run_json(&["local", "wait", waiting.as_str().unwrap(), "--timeout-sec", "1"]);
    assert_eq!(expired["meta"]["failure_data"]["state"], "queued", "{expired}");
    assert!(expired["warnings"].to_string().contains("W_QUEUE_002"), "{expired}");
    let resumed = stage.run_json(&["queue", "resume", "--agent", "codex"]);
    assert_eq!(
        (&resumed["data"]["is_changed"], resumed["data"].get("agent_pauses")),
        (&json!(true), None),
        "{resumed}"
    );
    assert_eq!(stage.wait(waiting.as_str().unwrap())["data"]["state"], "completed");
}

/// The caller that waits starts the task.
#[test]
fn a_paused_agent_continues_when_its_limit_is_reset() {
    let stage = Stage::with_script(PROGRAM, limited_turn("You've hit your usage limit. Try again in 2s."));
    stage.wait(&stage.exec(&[]));
    stage.set_script(successful_turn(&[]));
    let waited = stage.wait(&stage.exec(&[]));
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
}

#[test]
fn a_user_pauses_one_agent_and_the_tasks_of_others_start() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let config = "[agents.true]\nprotocol = \"plain\"\ncommand = [\"/bin/true\"]\nunsandboxed = true\n";
    stage.world.write("home/.config/mcp-delegator/config.toml", config);
    let paused = stage.run_json(&["queue", "pause", "--agent", "codex"]);
    assert_eq!((&paused["data"]["is_paused"], &paused["data"]["is_changed"]), (&json!(false), &json!(true)));
    assert_eq!(paused["data"]["agent_pauses"][0].get("until_at"), None, "{paused}");
    let (held, other) = (stage.exec(&[]), stage.exec(&["--agent", "true", "--skip-git-repo-check"]));
    assert_eq!(stage.wait(&other)["data"]["state"], "completed");
    assert_eq!(stage.run_json(&["local", "status", &held])["data"]["queue"][0]["task_id"], held);
    let unknown = stage.run_json(&["queue", "pause", "--agent", "kodex"]);
    assert_eq!(unknown["error"]["code"], "INVALID_VALUE", "{unknown}");
    stage.run_json(&["queue", "resume", "--agent", "codex"]);
    assert_eq!(stage.wait(&held)["data"]["state"], "completed");
}

/// The same directory under another path is the same work tree.
#[test]
fn writers_that_reach_one_tree_through_a_bind_mount_run_one_after_the_other() {
    let stage = waiting_stage();
    for name in ["alias", "alias-of-sub", "elsewhere", "project/sub", "project/shown"] {
        std::fs::create_dir_all(stage.root().join(name)).unwrap();
    }
    let script = format!(
        "cd '{}' && mount --bind project alias && mount --bind project/sub alias-of-sub && \
         mount --bind elsewhere project/shown && for dir in project alias alias/sub alias-of-sub elsewhere; do \
         \"{PROGRAM}\" local exec x --mode workspace-write --skip-git-repo-check --working-dir \"$dir\" || exit; done",
        stage.root().display()
    );
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let run = stage.world.run_as(Path::new("/usr/bin/unshare"), [flags, "sh", "-c", &script]);
    if run.exit != Some(0) && run.stderr.contains("ermi") {
        return; // Mounting is not permitted here.
    }
    let accepted: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {run:?}")))
        .collect();
    assert_eq!(accepted.len(), 5, "{run:?}");
    for later in &accepted[1..] {
        assert_eq!(later["meta"]["waiting_for"]["reason"], "work_tree", "{later}");
    }
    stage.run_json(&["cancel", "--all"]);
}
