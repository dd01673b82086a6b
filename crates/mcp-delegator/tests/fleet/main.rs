//! Workers and operators of the fleet: real processes, a private PostgreSQL, and the scripted agent.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod faults;
mod namespace;
mod operations;
mod outages;
mod worker_world;

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, FleetState, TaskSpec};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{task_processes, wait_until};
use rustix::process::Signal;

use worker_world::{Fleet, failure, result_of, turn, wait_command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

#[test]
fn a_task_returns_its_diff_its_events_and_its_report() {
    let fleet = Fleet::new(&["echo second >> README", "echo new > added", "echo noise > build.log"]);
    let id = fleet.submit(fleet.spec());
    let mut worker = fleet.worker("one", &["--once"]);
    let end = fleet.wait_for_end(&id);
    assert_eq!(end.end, TaskEnd::Completed);
    let diff = fleet.diff(&id);
    assert!(diff.contains("+second") && diff.contains("b/added") && !diff.contains("noise"), "{diff}");
    let result = result_of(&end);
    assert_eq!(result.base_commit.as_deref(), Some(fleet.git(&["rev-parse", "main"]).trim()));
    assert_eq!((result.branch.as_deref(), result.worker.as_str()), (Some("main"), "one"));
    assert_eq!(result.record.report.final_message.as_ref().unwrap().text, "All done.");
    assert_eq!(result.tokens().unwrap().output, 7);
    assert!(fleet.events(&id).contains("All done."));
    worker.assert_success();
    assert_eq!(fleet.checkouts("one"), 0, "the checkout is removed");
    let log = worker.log();
    let name = format!("T-cloud-0123456789 ({id})");
    for line in [format!("claimed {name}: do it"), format!("{name} ended: completed")] {
        assert!(log.contains(&line), "no '{line}' in {log}");
    }
}

#[test]
fn changes_are_pushed_only_if_the_environment_permits_it() {
    let commit = "git -c user.name=agent -c user.email=agent@localhost commit -qam mine";
    let fleet = Fleet::new(&["echo pushed > README", commit, "echo more > added"]);
    let unpushed = fleet.submit(fleet.spec());
    let pushed = fleet.submit(TaskSpec { push: true, ..fleet.spec() });
    let mut worker = fleet.worker("one", &["--once"]);
    assert_eq!(result_of(&fleet.wait_for_end(&unpushed)).pushed_branch, None);
    let branch = result_of(&fleet.wait_for_end(&pushed)).pushed_branch.unwrap();
    assert_eq!(fleet.git(&["show", &format!("{branch}:README")]), "pushed\n");
    assert_eq!(fleet.git(&["show", "main:README"]), "first\n");
    let subjects = fleet.git(&["log", "--format=%s", &branch]);
    let title = fleet.spec().title;
    assert!(subjects.starts_with(&format!("{title}\nmine\n")), "the commit of the agent stays: {subjects}");
    worker.assert_success();
}

#[test]
fn a_cancelled_task_is_reported_with_its_reason_and_its_changes() {
    let fleet = Fleet::new(&["echo half > README", "echo > ../../../../../started", "sleep 600"]);
    let id = fleet.submit(fleet.spec());
    let _worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    fleet.database.cancel(&id, Some("no longer needed")).unwrap();
    let end = fleet.wait_for_end(&id);
    assert_eq!(end.end, TaskEnd::Cancelled { reason: Some("no longer needed".to_owned()) });
    assert!(fleet.diff(&id).contains("+half"));
    wait_until("the checkout is removed", || fleet.checkouts("one") == 0);
}

#[test]
fn setup_runs_once_for_two_tasks_and_is_not_in_their_diffs() {
    let fleet = Fleet::new(&["cat installed >> README"]);
    let counter = fleet.file("setup-runs");
    let setup = format!("echo run >> {}; echo tool > installed; echo preparing", counter.display());
    let spec = TaskSpec { setup: Some(setup), ..fleet.spec() };
    let ids = [fleet.submit(spec.clone()), fleet.submit(spec.clone())];
    let mut worker = fleet.worker("one", &["--once"]);
    for id in &ids {
        assert_eq!(fleet.wait_for_end(id).end, TaskEnd::Completed);
        let diff = fleet.diff(id);
        assert!(diff.contains("+tool") && !diff.contains("b/installed"), "{diff}");
        assert_eq!(fleet.blob(id, BlobName::Setup), "preparing\n");
    }
    worker.assert_success();
    assert_eq!(read_text(&counter), "run\n");
    // Another commit is another revision.
    fleet.commit();
    let id = fleet.submit(spec);
    fleet.worker("one", &["--once"]).assert_success();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert_eq!(read_text(&counter), "run\nrun\n");
    let setups = std::fs::read_dir(fleet.workspace("one").join("setups")).unwrap().count();
    assert_eq!(setups, 1, "the older revision is removed");
}

#[test]
fn a_failing_setup_is_reported_with_its_output_and_starts_no_agent() {
    let fleet = Fleet::new(&["echo > ../../../../../started"]);
    let spec =
        TaskSpec { setup: Some("echo installing; missing-tool; echo never".to_owned()), ..fleet.spec() };
    let id = fleet.submit(spec);
    fleet.worker("one", &["--once"]).assert_success();
    let end = fleet.wait_for_end(&id);
    let (kind, message) = failure(&end);
    assert_eq!(kind, "setup_failed");
    assert!(message.contains("exit code 127") && message.contains("missing-tool"), "{message}");
    let output = fleet.blob(&id, BlobName::Setup);
    assert!(output.starts_with("installing\n") && !output.contains("never"), "{output}");
    assert!(result_of(&end).base_commit.is_some());
    assert!(!fleet.file("started").exists());
}

#[test]
fn a_repository_that_cannot_be_cloned_fails_the_task_with_gits_message() {
    let fleet = Fleet::new(&[]);
    let missing = fleet.submit(TaskSpec { repo_url: "/nowhere/at/all".to_owned(), ..fleet.spec() });
    let branch = fleet.submit(TaskSpec { branch: Some("nope".to_owned()), ..fleet.spec() });
    fleet.worker("one", &["--once"]).assert_success();
    let (kind, message) = failure(&fleet.wait_for_end(&missing));
    assert_eq!(kind, "checkout_failed");
    assert!(message.contains("does not appear to be a git repository"), "{message}");
    let (kind, message) = failure(&fleet.wait_for_end(&branch));
    assert!(kind == "checkout_failed" && message.contains("no branch, tag or commit 'nope'"), "{message}");
    assert_eq!(fleet.checkouts("one"), 0);
}

#[test]
fn a_task_that_fails_before_its_checkout_is_reported() {
    let fleet = Fleet::new(&[]);
    // No directory can be created for the task.
    let tasks = fleet.workspace("one").join("tasks");
    let worker = fleet.worker("one", &[]);
    worker.wait_for_log("is ready");
    std::fs::remove_dir(&tasks).unwrap();
    std::fs::write(&tasks, "").unwrap();
    let id = fleet.submit(fleet.spec());
    let (kind, message) = failure(&fleet.wait_for_end(&id));
    assert_eq!(kind, "internal");
    assert!(message.contains("create the directory of a task"), "{message}");
}

#[test]
fn a_worker_without_git_does_not_start() {
    let fleet = Fleet::new(&[]);
    let id = fleet.submit(fleet.spec());
    let fleet = Fleet { stage: fleet.stage.variable("PATH", "/nowhere"), ..fleet };
    let mut worker = fleet.worker("one", &["--once"]);
    assert!(!worker.wait().success());
    assert!(worker.log().contains("git"), "{}", worker.log());
    assert_eq!(fleet.task(&id).state, FleetState::Queued);
}

#[test]
fn two_workers_share_the_work() {
    let fleet = Fleet::new(&[]);
    let go = fleet.file("go");
    fleet.stage.set_script(turn(&[&wait_command(&go.display().to_string())]));
    let ids: Vec<String> = (0..2).map(|_| fleet.submit(fleet.spec())).collect();
    let _workers = ["one", "two"].map(|name| fleet.worker(name, &["--slots", "1"]));
    for id in &ids {
        fleet.wait_until_running(id);
    }
    let mut names: Vec<_> = ids.iter().map(|id| fleet.task(id).worker.unwrap()).collect();
    names.sort();
    assert_eq!(names, ["one", "two"]);
    std::fs::write(go, "").unwrap();
    for id in &ids {
        assert_eq!(fleet.wait_for_end(id).end, TaskEnd::Completed);
    }
}

#[test]
fn a_task_of_the_fleet_does_not_wait_for_tasks_of_the_machine() {
    let mut fleet = Fleet::new(&[]);
    fleet.stage = fleet.stage.variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let go = fleet.file("go");
    fleet.stage.set_script(turn(&[&wait_command(&go.display().to_string())]));
    let other = fleet.stage.exec(&[]);
    wait_until("the task of the machine runs", || !task_processes(&other).is_empty());
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &["--slots", "1"]);
    worker.wait_for_log(" as T-local-");
    wait_until("both run", || fleet.stage.run_json(&["status"])["data"]["summary"]["running"] == 2);
    std::fs::write(go, "").unwrap();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
}

#[test]
fn a_paused_queue_of_the_machine_is_reported() {
    let fleet = Fleet::new(&[]);
    fleet.stage.run_json(&["queue", "pause"]);
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    worker.wait_for_log("the queue of this machine is paused");
    fleet.stage.run_json(&["queue", "resume"]);
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
}

#[test]
fn a_drained_worker_finishes_its_tasks_and_claims_no_more() {
    let fleet = Fleet::new(&[]);
    let go = fleet.file("go");
    fleet.stage.set_script(turn(&[&wait_command(&go.display().to_string())]));
    let running = fleet.submit(fleet.spec());
    let mut worker = fleet.worker("one", &[]);
    fleet.wait_until_running(&running);
    worker.signal(Signal::TERM);
    worker.wait_for_log("draining");
    let queued = fleet.submit(fleet.spec());
    std::fs::write(go, "").unwrap();
    assert_eq!(fleet.wait_for_end(&running).end, TaskEnd::Completed);
    worker.assert_success();
    assert_eq!(fleet.task(&queued).state, FleetState::Queued);
    assert_eq!(fleet.database.status().unwrap().workers.len(), 0);
}

#[test]
fn fleet_drain_ends_a_worker() {
    let fleet = Fleet::new(&[]);
    let mut worker = fleet.worker("one", &[]);
    worker.wait_for_log("is ready");
    assert!(fleet.database.drain("one").unwrap());
    worker.assert_success();
}

#[test]
fn the_second_signal_cancels_the_tasks() {
    let fleet = Fleet::new(&["echo > ../../../../../started", "sleep 600"]);
    let id = fleet.submit(fleet.spec());
    let mut worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    worker.signal(Signal::TERM);
    worker.wait_for_log("draining");
    worker.signal(Signal::INT);
    let reason = Some("the worker was stopped".to_owned());
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Cancelled { reason });
    worker.assert_success();
}

#[test]
fn a_restarted_worker_continues_its_running_tasks() {
    let fleet = Fleet::new(&[]);
    let go = fleet.file("go");
    let wait = wait_command(&go.display().to_string());
    fleet.stage.set_script(turn(&["echo start >> ../../../../../started", "echo changed > README", &wait]));
    let id = fleet.submit(fleet.spec());
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    worker.kill();
    let mut worker = fleet.worker("one", &["--once"]);
    worker.wait_for_log("resumed");
    std::fs::write(go, "").unwrap();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert!(fleet.diff(&id).contains("+changed"));
    assert!(fleet.events(&id).contains("All done."));
    assert_eq!(read_text(&fleet.file("started")), "start\n", "the agent ran once");
    assert_eq!(fleet.task(&id).attempt, 1);
    worker.assert_success();
}

#[test]
fn a_task_that_ended_while_no_worker_ran_is_reported_by_the_next() {
    let fleet = Fleet::new(&["echo start >> ../../../../../started", "echo changed > README"]);
    let id = fleet.submit(fleet.spec());
    let go = fleet.file("go");
    let wait = wait_command(&go.display().to_string());
    fleet.stage.set_script(turn(&[
        "echo start >> ../../../../../started",
        &wait,
        "echo > ../../../../../over",
    ]));
    let worker = fleet.worker("one", &[]);
    fleet.wait_for_file("started");
    worker.kill();
    std::fs::write(go, "").unwrap();
    fleet.wait_for_file("over");
    fleet.worker("one", &["--once"]).assert_success();
    assert_eq!(fleet.wait_for_end(&id).end, TaskEnd::Completed);
    assert_eq!(read_text(&fleet.file("started")), "start\n");
}

#[test]
fn a_workspace_has_one_worker_and_a_name_too() {
    let fleet = Fleet::new(&[]);
    let worker = fleet.worker("one", &["--labels", "gpu=no,os=linux", "--labels", "disk=ssd"]);
    worker.wait_for_log("is ready");
    let labels = &fleet.database.status().unwrap().workers[0].labels;
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(labels, ["disk=ssd", "gpu=no", "os=linux"]);
    let mut second = fleet.worker("one", &[]);
    assert!(!second.wait().success());
    assert!(second.log().contains("uses the workspace"), "{}", second.log());
    let other = fleet.workspace("other").display().to_string();
    let named = fleet.stage.world.run(["worker", "--name", "one", "--workspace", &other]);
    assert!(named.stdout.contains("is running elsewhere"), "{named:?}");
}
