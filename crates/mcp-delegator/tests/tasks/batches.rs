//! Commands that act on several items: per-item results, exit 3 when some failed, and dry runs that state what would be done.

use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::PROGRAM;
const UNKNOWN: &str = "T-local-0000000000";
const OTHER_UNKNOWN: &str = "T-local-1111111111";

/// Tasks whose text contains "wait" wait for the file `go`; those whose text contains "fail" fail.
fn stage() -> Stage {
    let prelude = "text=$(cat); case $text in \
                   *wait*) while [ ! -e go ]; do sleep 0.02; done ;; *fail*) echo broken >&2; exit 1 ;; esac";
    let steps = successful_turn(&[]);
    let steps: Vec<Value> = steps.as_array().unwrap().iter().skip(1).cloned().collect();
    Stage::with_script_after(prelude, PROGRAM, json!(steps)).variable("MCP_DELEGATOR_MAX_CONCURRENT", "8")
}

fn exec(stage: &Stage, task: &str) -> String {
    let response = stage.run_json(&["local", "exec", task]);
    response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

fn ended(stage: &Stage, task: &str) -> String {
    let id = exec(stage, task);
    stage.wait(&id);
    id
}

fn run(stage: &Stage, args: &[&str]) -> RunOutput {
    stage.world.run(args)
}

fn standard(stage: &Stage, args: &[&str]) -> (Option<i32>, Value) {
    let run = run(stage, &[args, &["--envelope", "standard"]].concat());
    (run.exit, run.document())
}

fn human(stage: &Stage, args: &[&str]) -> RunOutput {
    run(stage, &[args, &["--format", "human"]].concat())
}

/// Target, success and error code of every item.
fn items(batch: &Value) -> Vec<(&str, bool, Option<&str>)> {
    let results = batch["results"].as_array().unwrap_or_else(|| panic!("{batch}"));
    let item = |item: &'_ Value| {
        assert_eq!(item["success"] == true, item.get("error").is_none(), "{item}");
        assert_eq!(item["success"] == true, item.get("result").is_some(), "{item}");
    };
    results.iter().for_each(item);
    let fields = |item| -> (&str, bool, Option<&str>) {
        let item: &Value = item;
        (item["target"].as_str().unwrap(), item["success"] == true, item["error"]["code"].as_str())
    };
    results.iter().map(fields).collect()
}

fn counts(batch: &Value) -> [&Value; 4] {
    ["total_operations", "successful", "failed", "partial_success"].map(|key| &batch[key])
}

#[test]
fn cancel_acts_on_known_tasks_and_reports_every_other_one() {
    let stage = stage();
    let (done, first, second) = (ended(&stage, "x"), exec(&stage, "wait"), exec(&stage, "wait"));
    let args = ["cancel", &done, &first, UNKNOWN, OTHER_UNKNOWN, &first];
    let run = run(&stage, &args);
    assert_eq!(run.exit, Some(3), "{run:?}");
    let envelope = run.json();
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("PARTIAL_FAILURE")));
    let data = &envelope["meta"]["failure_data"];
    assert_eq!(counts(data), [&json!(4), &json!(1), &json!(3), &json!(true)], "{data}");
    let expected = [
        (done.as_str(), false, Some("WRONG_STATE")),
        (first.as_str(), true, None),
        (UNKNOWN, false, Some("TASK_NOT_FOUND")),
        (OTHER_UNKNOWN, false, Some("TASK_NOT_FOUND")),
    ];
    assert_eq!(items(data), expected, "{data}");
    assert_eq!(stage.wait(&first)["data"]["state"], "cancelled");
    // A repeated cancel succeeds; the other envelope has the same items.
    let (exit, envelope) = standard(&stage, &["cancel", &done, &first, &second]);
    assert_eq!((exit, &envelope["success"], &envelope["error"]), (Some(3), &json!(true), &Value::Null));
    assert_eq!(counts(&envelope["data"]), [&json!(3), &json!(2), &json!(1), &json!(true)], "{envelope}");
    assert_eq!(envelope["metadata"]["warnings"][0]["code"], "W_PARTIAL_001", "{envelope}");
    assert_eq!(items(&envelope["data"])[1], (first.as_str(), true, None));
}

#[test]
fn fields_select_the_data_of_a_partial_success_and_a_failure() {
    let stage = stage();
    let (done, cancelled) = (ended(&stage, "x"), exec(&stage, "wait"));
    let fields = ["--fields", "failed,results.target"];
    let args = [&["cancel", &cancelled, UNKNOWN][..], &fields].concat();
    let selected = json!({"failed": 1, "results": [{"target": cancelled}, {"target": UNKNOWN}]});
    let envelope = run(&stage, &args).json();
    assert_eq!(envelope["meta"]["failure_data"], selected, "{envelope}");
    assert_eq!(envelope["meta"]["fields"], json!(["failed", "results.target"]));
    let (exit, envelope) = standard(&stage, &args);
    assert_eq!((exit, &envelope["data"]), (Some(3), &selected), "{envelope}");
    let raw = run(&stage, &[&args[..], &["--envelope", "raw"]].concat());
    assert_eq!(raw.document(), selected);
    let tool = run(&stage, &[&args[..], &["--envelope", "tool"]].concat()).document();
    assert_eq!(tool["data"], selected, "{tool}");
    let failed = run(&stage, &[&["cancel", &done, UNKNOWN][..], &fields].concat()).json();
    assert_eq!(failed["error"]["code"], "ALL_ITEMS_FAILED");
    let selected = json!({"failed": 2, "results": [{"target": done}, {"target": UNKNOWN}]});
    assert_eq!(failed["meta"]["failure_data"], selected, "{failed}");
}

#[test]
fn a_partial_success_is_written_to_the_output_file() {
    let stage = stage();
    let id = exec(&stage, "wait");
    let file = stage.world.project().join("output.json");
    let run = run(&stage, &["cancel", &id, UNKNOWN, "--output", file.to_str().unwrap()]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(3), ""), "{run:?}");
    assert_eq!(run.stderr, "error: Some items failed; the others succeeded.\n");
    let envelope: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&envelope["success"], &envelope["data"]["failed"]), (&json!(true), &json!(1)), "{envelope}");
}

#[test]
fn cancel_of_which_all_items_failed_has_their_common_code() {
    let stage = stage();
    let (done, other) = (ended(&stage, "x"), ended(&stage, "x"));
    for (args, exit, code) in [
        (vec!["cancel", UNKNOWN], 5, "TASK_NOT_FOUND"),
        (vec!["cancel", UNKNOWN, OTHER_UNKNOWN], 5, "TASK_NOT_FOUND"),
        (vec!["cancel", &done, &other], 4, "WRONG_STATE"),
        (vec!["cancel", &done, UNKNOWN], 1, "ALL_ITEMS_FAILED"),
    ] {
        let run = run(&stage, &args);
        let envelope = run.json();
        assert_eq!((run.exit, &envelope["error"]["code"]), (Some(exit), &json!(code)), "{run:?}");
        if code == "ALL_ITEMS_FAILED" {
            assert_eq!(envelope["error"]["phase"], "execution", "{envelope}");
        }
        let data = &envelope["meta"]["failure_data"];
        assert_eq!(items(data).len(), args.len() - 1, "{data}");
        assert_eq!((&data["successful"], &data["partial_success"]), (&json!(0), &json!(false)));
        let text = human(&stage, &args);
        assert!(args[1..].iter().all(|id| text.stdout.contains(id)), "{text:?}");
        assert!(!text.stdout.contains("tasks cancelled"), "{text:?}");
    }
}

#[test]
fn cancel_never_reports_tasks_that_it_did_not_cancel() {
    let stage = stage();
    for args in [vec!["cancel", "--all"], vec!["cancel", "--all", "--dry-run"]] {
        let (exit, envelope) = standard(&stage, &args);
        assert_eq!(
            (exit, &envelope["data"]["message"]),
            (Some(0), &json!("No task to cancel")),
            "{envelope}"
        );
        assert_eq!(envelope["data"]["result"]["total_operations"], 0);
        assert!(human(&stage, &args).stdout.starts_with("No task to cancel"));
    }
    let (done, id) = (ended(&stage, "x"), exec(&stage, "wait"));
    let (exit, plan) = standard(&stage, &["cancel", &done, &id, "--dry-run"]);
    assert_eq!((exit, counts(&plan["data"])), (Some(3), [&json!(2), &json!(1), &json!(1), &json!(true)]));
    assert_eq!(plan["data"]["summary"], "1 of 2 tasks would be cancelled");
    let would_fail = "Some items would fail; the others would succeed.";
    assert_eq!(plan["metadata"]["warnings"][0]["message"], would_fail, "{plan}");
    let error = run(&stage, &["cancel", &done, &id, "--dry-run"]).json()["error"].clone();
    assert_eq!(error["message"], would_fail, "{error}");
    assert!(human(&stage, &["cancel", &id, "--dry-run"]).stdout.starts_with("1 task would be cancelled"));
    let (_, plan) = standard(&stage, &["cancel", "--all", "--dry-run"]);
    assert_eq!(plan["data"]["message"], "1 task would be cancelled", "{plan}");
    let cancelled = run(&stage, &["cancel", "--all"]).json();
    assert_eq!(cancelled["data"]["summary"], "1 task cancelled", "the dry run cancelled it: {cancelled}");
}

#[test]
fn cancelled_tasks_count_as_read() {
    let stage = stage();
    let (one, two) = (exec(&stage, "wait"), exec(&stage, "wait"));
    assert_eq!(run(&stage, &["cancel", &one, &two]).exit, Some(0));
    let status = stage.run_json(&["local", "status"]);
    assert_eq!(status["data"].get("unread"), None, "{status}");
}

#[test]
fn wait_for_several_tasks_reports_unknown_ids_after_the_others() {
    let stage = stage();
    let (good, bad) = (ended(&stage, "x"), ended(&stage, "fail"));
    // A failed task is a successful item, and a task that is named twice counts once.
    let all = ["local", "wait", "--task-ids", &good, "--task-ids", &bad, "--task-ids", &good];
    let waited = run(&stage, &all);
    assert_eq!(waited.exit, Some(0), "{waited:?}");
    assert_eq!(waited.json()["data"]["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(waited.json()["data"].get("results"), None);
    let (_, envelope) = standard(&stage, &all);
    let data = &envelope["data"];
    assert_eq!(
        (&data["total_count"], &data["filtered_count"], &data["page"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!((&data["tasks"][0]["task_id"], data.get("task")), (&json!(good), None), "{envelope}");

    let partial = [&all[..], &["--task-ids", UNKNOWN, "--task-ids", OTHER_UNKNOWN]].concat();
    let waited = run(&stage, &partial);
    assert_eq!(waited.exit, Some(3), "{waited:?}");
    let envelope = waited.json();
    let data = &envelope["meta"]["failure_data"];
    assert_eq!(counts(data), [&json!(4), &json!(2), &json!(2), &json!(true)], "{data}");
    assert_eq!((data["tasks"].as_array().unwrap().len(), items(data)[3].0), (2, OTHER_UNKNOWN));
    let (exit, envelope) = standard(&stage, &partial);
    assert_eq!((exit, &envelope["success"]), (Some(3), &json!(true)), "{envelope}");
    assert_eq!(counts(&envelope["data"]), [&json!(4), &json!(2), &json!(2), &json!(true)]);
    let text = human(&stage, &partial).stdout;
    assert!([&good, &bad, UNKNOWN, OTHER_UNKNOWN].iter().all(|id| text.contains(*id)), "{text}");

    let unknown = run(&stage, &["local", "wait", "--task-ids", UNKNOWN, "--task-ids", OTHER_UNKNOWN]);
    let envelope = unknown.json();
    assert_eq!((unknown.exit, &envelope["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
    assert_eq!(items(&envelope["meta"]["failure_data"]).len(), 2, "{envelope}");
}

#[test]
fn wait_for_any_task_reports_unknown_ids_with_the_first_result() {
    let stage = stage();
    let good = ended(&stage, "x");
    let ids = ["--task-ids", UNKNOWN, "--task-ids", &good];
    let waited = run(&stage, &[&["local", "wait", "--until", "any"], &ids[..]].concat());
    assert_eq!(waited.exit, Some(3), "{waited:?}");
    let data = waited.json()["meta"]["failure_data"].clone();
    let first = &data["tasks"][0];
    assert_eq!((&first["task_id"], &first["state"]), (&json!(good), &json!("completed")), "{data}");
    assert_eq!(items(&data), [(UNKNOWN, false, Some("TASK_NOT_FOUND")), (good.as_str(), true, None)]);
}

#[test]
fn wait_for_any_task_leaves_no_task_out() {
    let stage = stage();
    let (one, slow) = (ended(&stage, "x"), exec(&stage, "wait"));
    let two = exec(&stage, "fail");
    let status = || stage.run_json(&["local", "status"])["data"].clone();
    wait_until("both have ended", || status()["summary"]["recently_completed"] == 2);
    let known =
        ["local", "wait", "--until", "any", "--task-ids", &slow, "--task-ids", &two, "--task-ids", &one];
    let waited = run(&stage, &known);
    let envelope = waited.json();
    let tasks = envelope["data"]["tasks"].as_array().unwrap();
    assert_eq!((waited.exit, tasks.len(), &tasks[0]["task_id"]), (Some(0), 1, &json!(one)), "{waited:?}");
    assert_eq!(
        (&envelope["meta"]["ended"], &envelope["meta"]["pending"]),
        (&json!([one, two]), &json!([slow]))
    );
    assert!(human(&stage, &known).stdout.contains(&two));
    // Only the task whose result was returned counts as read.
    assert_eq!(status()["unread"]["task_ids"], json!([two]));

    let waited = run(&stage, &[&known[..], &["--task-ids", UNKNOWN]].concat());
    let data = waited.json()["meta"]["failure_data"].clone();
    assert_eq!((waited.exit, counts(&data)[0]), (Some(3), &json!(4)), "{waited:?}");
    let expected = [
        (slow.as_str(), true, None),
        (two.as_str(), true, None),
        (one.as_str(), true, None),
        (UNKNOWN, false, Some("TASK_NOT_FOUND")),
    ];
    assert_eq!(items(&data), expected, "{data}");
    assert_eq!(run(&stage, &["cancel", "--all"]).exit, Some(0));
}

#[test]
fn a_task_that_was_cancelled_before_is_not_counted() {
    let stage = stage();
    let (before, now) = (exec(&stage, "wait"), exec(&stage, "wait"));
    assert_eq!(run(&stage, &["cancel", &before]).json()["data"]["count"], 1);
    for (ids, count, would, did) in [
        (vec![before.as_str()], 0, "No task would be cancelled", "No task was cancelled"),
        (vec![&before, &now], 1, "1 of 2 tasks would be cancelled", "1 of 2 tasks cancelled"),
    ] {
        let args = [&["cancel"], &ids[..]].concat();
        for (args, summary) in [([&args[..], &["--dry-run"]].concat(), would), (args.clone(), did)] {
            let cancelled = run(&stage, &args);
            let data = cancelled.json()["data"].clone();
            assert_eq!(cancelled.exit, Some(0), "{cancelled:?}");
            assert_eq!((&data["count"], &data["summary"]), (&json!(count), &json!(summary)), "{data}");
            assert_eq!(data["successful"], ids.len(), "{data}");
        }
    }
}

/// The rule is the same for one id by position, one in a list, and several.
#[test]
fn exit_status_makes_a_failed_task_a_failed_item() {
    let stage = stage();
    let (good, bad) = (ended(&stage, "x"), ended(&stage, "fail"));
    let wait = |ids: &[&str]| run(&stage, &[&["local", "wait", "--exit-status"], ids].concat());
    for ids in
        [vec![bad.as_str()], vec!["--task-ids", &bad], vec![&bad, &bad], vec!["--until", "any", &bad, &bad]]
    {
        let failed = wait(&ids);
        assert_eq!(
            (failed.exit, &failed.json()["error"]["code"]),
            (Some(80), &json!("AGENT_FAILED")),
            "{failed:?}"
        );
    }
    let mixed = wait(&["--task-ids", &bad, "--task-ids", &good]);
    assert_eq!(mixed.exit, Some(3), "{mixed:?}");
    assert_eq!(wait(&[&bad, &good]).exit, Some(3));
    assert_eq!(wait(&[&good, "--task-ids", &bad]).exit, Some(3));
    assert_eq!(wait(&[&good, "--task-ids", &json!([bad]).to_string()]).exit, Some(3), "a list in JSON");
    let data = mixed.json()["meta"]["failure_data"].clone();
    assert_eq!(items(&data), [(bad.as_str(), false, Some("AGENT_FAILED")), (good.as_str(), true, None)]);
    assert_eq!(data["tasks"][0]["state"], "failed", "{data}");
    assert_eq!(wait(&["--task-ids", &good]).exit, Some(0));
}

#[test]
fn an_expired_wait_lists_unknown_ids_beside_pending_tasks() {
    let stage = stage();
    let id = exec(&stage, "wait");
    let args = ["local", "wait", "--timeout-sec", "1", "--task-ids", &id, "--task-ids", UNKNOWN];
    let expired = run(&stage, &args);
    assert_eq!(expired.exit, Some(14), "{expired:?}");
    let envelope = expired.json();
    assert_eq!(envelope["meta"]["pending"], json!([id]), "{envelope}");
    let data = &envelope["meta"]["failure_data"];
    // A task that runs has not failed.
    assert_eq!(items(data), [(id.as_str(), true, None), (UNKNOWN, false, Some("TASK_NOT_FOUND"))]);
    assert_eq!(data["results"][0]["result"]["state"], "working", "{data}");
    assert_eq!(run(&stage, &["cancel", "--all"]).exit, Some(0));
}

#[test]
fn lists_state_the_size_of_a_page_and_not_the_number_of_items() {
    let stage = stage();
    stage.world.write("home/.config/mcp-delegator/environments.json", "{}");
    let (_, empty) = standard(&stage, &["cloud", "list-environments"]);
    assert_eq!(
        (&empty["data"]["total_count"], &empty["data"]["page_size"]),
        (&json!(0), &json!(1000)),
        "{empty}"
    );
    let (_, all) = standard(&stage, &["config", "show"]);
    assert_eq!(all["data"]["page_size"], 1000);
    assert!(all["data"]["total_count"].as_u64().unwrap() > 10, "{all}");
    let (_, one) = standard(&stage, &["config", "show", "max_concurrent", "--limit", "7"]);
    assert_eq!((&one["data"]["total_count"], &one["data"]["page_size"]), (&json!(1), &json!(7)), "{one}");
}

#[test]
fn dry_runs_state_what_would_be_done() {
    let stage = stage();
    let (exit, envelope) = standard(&stage, &["cleanup-registry", "--dry-run"]);
    let would = "Would clean 0 stuck tasks and delete 0 old tasks";
    assert_eq!((exit, &envelope["data"]["message"]), (Some(0), &json!(would)), "{envelope}");
    assert!(human(&stage, &["cleanup-registry", "--dry-run"]).stdout.starts_with(would));
    let (_, envelope) = standard(&stage, &["cleanup-registry"]);
    assert_eq!(envelope["data"]["message"], "Cleaned 0 stuck tasks, deleted 0 old tasks");
}

/// One path for scripts: `data.tasks[]`, with the facts that a wait for one task has in `meta`.
#[test]
fn waits_for_any_and_for_all_list_tasks_in_the_same_shape() {
    let stage = stage();
    let (good, bad) = (ended(&stage, "x"), ended(&stage, "fail"));
    let keys = |task: &Value| task.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let all = stage.run_json(&["local", "wait", &good, &bad]);
    let any = stage.run_json(&["local", "wait", &good, &bad, "--until", "any"]);
    let tasks = all["data"]["tasks"].as_array().unwrap();
    assert_eq!(keys(&any["data"]["tasks"][0]), keys(&tasks[0]), "{any}");
    let one = stage.run_json(&["local", "wait", &good]);
    for key in ["started_ts", "completed_ts"] {
        assert_eq!((tasks[0][key].is_string(), &tasks[0][key]), (true, &one["meta"][key]), "{key}: {all}");
    }
    let codes = [&tasks[0]["agent_exit_code"], &tasks[1]["agent_exit_code"]];
    assert_eq!(codes, [&json!(0), &json!(1)], "{all}");
    // A prefix and an unknown id beside each other.
    let prefix = &good[.."T-local-".len() + 10];
    let partial = run(&stage, &["local", "wait", prefix, UNKNOWN]);
    let data = partial.json()["meta"]["failure_data"].clone();
    assert_eq!(items(&data), [(good.as_str(), true, None), (UNKNOWN, false, Some("TASK_NOT_FOUND"))]);
    assert_eq!(partial.exit, Some(3), "{partial:?}");
}

#[test]
fn a_wait_for_several_tasks_shows_the_whole_result_of_each() {
    let stage = stage();
    let (good, bad) = (ended(&stage, "x"), ended(&stage, "fail"));
    for format in ["human", "markdown"] {
        let shown = run(&stage, &["local", "wait", &good, &bad, "--format", format]).stdout;
        for text in [&good, &bad, "All done.", "Changed nothing", "broken", "exit code"] {
            assert!(shown.contains(text), "{format} lacks {text}: {shown}");
        }
        // The results are complete, so there is nothing to fetch.
        assert!(!shown.contains("Next:"), "{shown}");
    }
}

#[test]
fn a_wait_by_label_returns_recent_and_unfinished_tasks_and_is_repeatable() {
    let stage = stage();
    let submit = |task: &str, label: &str| {
        let response = stage.run_json(&["local", "exec", task, "--labels", label, "--labels", "kind=x"]);
        response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    };
    let ids = |response: &Value, place: &str| -> Vec<String> {
        let tasks = response.pointer(place).and_then(Value::as_array).cloned();
        let tasks = tasks.unwrap_or_else(|| panic!("{response}"));
        tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
    };
    let read = submit("x", "batch=7");
    stage.wait(&read);
    let quick = submit("x", "batch=7");
    let counts = || stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"].clone();
    wait_until("both have ended", || counts() == 2);
    let (slow, _other) = (submit("wait", "batch=7"), submit("wait", "batch=8"));
    let any = stage.run_json(&["local", "wait", "--labels", "batch=7", "--until", "any"]);
    assert_eq!(
        (ids(&any, "/data/tasks"), &any["meta"]["pending"]),
        (vec![quick.clone()], &json!([slow])),
        "{any}"
    );
    let expired = ["local", "wait", "--labels", "batch=7", "--labels", "kind=x", "--timeout-sec", "1"];
    let expired = stage.run_json(&expired);
    let all = [read.as_str(), &quick, &slow];
    assert_eq!(ids(&expired, "/meta/failure_data/tasks"), all, "{expired}");
    std::fs::write(stage.world.project().join("go"), "").unwrap();
    for _ in 0..2 {
        let last = stage.run_json(&["local", "wait", "--labels", "batch=7"]);
        assert_eq!(ids(&last, "/data/tasks"), all, "{last}");
    }
    let any = stage.run_json(&["local", "wait", "--labels", "batch=7", "--until", "any"]);
    assert_eq!(ids(&any, "/data/tasks"), [read.as_str()], "{any}");
    let none = run(&stage, &["local", "wait", "--labels", "batch=9", "--format", "human"]);
    assert_eq!(none.exit, Some(5), "{none:?}");
    let hint = "mcp-delegator status --labels batch=9";
    assert!(none.stderr.contains(hint), "{none:?}");
    assert_eq!(run(&stage, &hint.split(' ').skip(1).collect::<Vec<_>>()).exit, Some(0));
    let both = run(&stage, &["local", "wait", &slow, "--labels", "batch=7"]);
    assert_eq!(both.exit, Some(2), "{both:?}");
}

#[test]
fn the_status_of_one_task_mentions_no_other_task() {
    let stage = stage();
    let (unread, slow) = (exec(&stage, "x"), exec(&stage, "wait"));
    let counts = || stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"].clone();
    wait_until("the first has ended", || counts() == 1);
    let status = stage.run_json(&["local", "status", &slow]);
    assert!(!status.to_string().contains(&unread), "{status}");
    let text = human(&stage, &["local", "status", &slow]).stdout;
    assert!(!text.contains(&unread) && text.contains(&format!("wait {slow}")), "{text}");
    // The overview lists it, and suggests the wait for the task that runs.
    let overview = human(&stage, &["local", "status"]).stdout;
    assert!(
        overview.contains("Finished, unread") && overview.contains(&format!("wait {slow}")),
        "{overview}"
    );
    let data = stage.run_json(&["local", "status"])["data"].clone();
    assert_eq!(data["unread"], json!({"count": 1, "task_ids": [unread]}));
    assert_eq!(run(&stage, &["cancel", "--all"]).exit, Some(0));
}
