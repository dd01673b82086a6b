//! Tasks of a fleet as a submitter sees them. The test itself is the worker: it decides what happens when.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_engine::{DiffOmissions, FormatVersion, LeftOut, LeftOutReason, Record};
use delegator_fleet::{
    BlobName, Database, DatabaseUrl, FinishedTask, FleetClaim, NewSession, SessionId, TaskSpec,
};
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::program::{RunOutput, World, wait_for_output};
use delegator_testkit::stage::wait_until;
use delegator_transcript::Report;
use delegator_worker::FleetResult;
use serde_json::{Value, json};

use crate::hosted::DIFF;
use crate::{notification, notify_by_command, watch};

const ENVIRONMENT: &str = "env_own";
const STARTED: &str = "{\"type\":\"thread.started\",\"thread_id\":\"0199a213-81c0-7800-8aa1-bbab2a035a53\"}\n{\"type\":\"turn.started\"}\n";
const MESSAGE: &str = "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_1\",\"type\":\"agent_message\",\"text\":\"Grown.\"}}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}\n";

struct Fleet {
    server: PostgresServer,
    database: Database,
    world: World,
}

/// A task that the test runs as its worker.
struct RunningTask {
    claim: FleetClaim,
    spec: TaskSpec,
}

impl Fleet {
    fn new() -> Fleet {
        let server = PostgresServer::options().fast().start();
        let database = Database::new(&DatabaseUrl::parse(&server.url()).unwrap());
        database.migrate().unwrap();
        let world = machine(&server);
        Fleet { server, database, world }
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        self.world.run(args)
    }

    fn data(&self, args: &[&str]) -> Value {
        let run = self.run(args);
        let answer = run.json();
        assert_eq!(answer["ok"], true, "{args:?}: {run:?}");
        answer["data"].clone()
    }

    fn error(&self, args: &[&str]) -> Value {
        let run = self.run(args);
        let answer = run.json();
        assert_eq!(answer["ok"], false, "{args:?}: {run:?}");
        answer
    }

    fn submit(&self, extra: &[&str]) -> String {
        let args =
            [&["cloud", "submit", "grow the seed", "--env-id", ENVIRONMENT] as &[&str], extra].concat();
        self.data(&args)["task_id"].as_str().unwrap().to_owned()
    }

    fn session(&self, worker: &str) -> SessionId {
        let session = NewSession {
            worker: worker.to_owned(),
            workspace: worker.to_owned(),
            slots: 4,
            labels: BTreeMap::from([("os".to_owned(), "linux".to_owned())]),
            version: "3.6.0".to_owned(),
            lease: Duration::from_secs(180),
        };
        self.database.open_session(&session).unwrap().id
    }

    /// Claims the only queued task and starts it.
    fn start(&self, session: &SessionId) -> RunningTask {
        let claimed = self.database.claim(session, 1).unwrap().pop().unwrap();
        self.database.start(&claimed.claim).unwrap();
        RunningTask { claim: claimed.claim, spec: claimed.spec }
    }

    fn append(&self, task: &RunningTask, text: &str) {
        let stored = self.database.append_events(&task.claim, 0, b"").unwrap();
        self.database.append_events(&task.claim, stored, text.as_bytes()).unwrap();
    }

    fn finish(&self, task: &RunningTask, end: TaskEnd) {
        self.finish_with(task, end, DIFF, DiffOmissions::default());
    }

    fn finish_with(&self, task: &RunningTask, end: TaskEnd, diff: &str, omissions: DiffOmissions) {
        self.database.put_blob(&task.claim, BlobName::Diff, diff.as_bytes()).unwrap();
        self.database.put_blob(&task.claim, BlobName::Setup, b"installed\n").unwrap();
        self.finish_recorded(task, end, Record::default(), omissions);
    }

    fn finish_reported(&self, task: &RunningTask, record: Record) {
        self.database.put_blob(&task.claim, BlobName::Diff, DIFF.as_bytes()).unwrap();
        self.database.put_blob(&task.claim, BlobName::Setup, b"installed\n").unwrap();
        self.finish_recorded(task, TaskEnd::Completed, record, DiffOmissions::default());
    }

    fn finish_recorded(&self, task: &RunningTask, end: TaskEnd, record: Record, omissions: DiffOmissions) {
        let result = FleetResult {
            version: FormatVersion,
            record,
            base_commit: Some("c0ffee".repeat(7)[..40].to_owned()),
            branch: Some("main".to_owned()),
            pushed_branch: None,
            worker: "build-1".to_owned(),
            omissions,
        };
        let result = result.to_json().unwrap();
        let finished = FinishedTask { end, result, blobs: vec![BlobName::Diff, BlobName::Setup] };
        self.database.finish(&task.claim, &finished).unwrap();
    }
}

/// A machine that submits to the fleet.
fn machine(server: &PostgresServer) -> World {
    let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
    let environment = json!({"name": "Own", "repoUrl": "https://github.com/me/app", "stack": "rust", "provider": "fleet",
        "labels": {"os": "linux"}, "on_lost": "retry", "branch": "main"});
    world.write(
        "home/.config/mcp-delegator/environments.json",
        &json!({ENVIRONMENT: environment}).to_string(),
    );
    world.variable("MCP_DELEGATOR_DATABASE_URL", &server.url())
}

#[test]
fn a_task_of_the_fleet_is_submitted_followed_and_reported() {
    let fleet = Fleet::new();
    let submitted = fleet.run(&["cloud", "submit", "grow the seed", "--env-id", ENVIRONMENT]).json();
    let id = submitted["data"]["task_id"].as_str().unwrap();
    let no_worker = |answer: &Value| answer["meta"]["warning_details"][0]["code"] == "W_CLOUD_002";
    assert!(no_worker(&submitted), "{submitted}");
    assert!(no_worker(&fleet.run(&["cloud", "status"]).json()));
    let session = fleet.session("build-1");
    let status = fleet.run(&["cloud", "status", id]).json();
    assert_eq!((&status["data"]["summary"]["queued"], &status["warnings"]), (&json!(1), &json!([])));

    let task = fleet.start(&session);
    assert_eq!((task.spec.text.as_str(), task.spec.branch.as_deref()), ("grow the seed", Some("main")));
    fleet.append(&task, STARTED);
    wait_until("the task works", || fleet.data(&["cloud", "status", id])["summary"]["running"] == 1);
    fleet.append(&task, MESSAGE);
    let running = &fleet.data(&["cloud", "status", id, "--verbose"])["tasks"][0];
    wait_until("its lines are shown", || {
        let status = fleet.data(&["cloud", "status", id, "--verbose"]);
        status["tasks"][0]["last_lines"].to_string().contains("Grown.")
    });
    assert_eq!(running["environment"], ENVIRONMENT);
    assert!(fleet.data(&["logs", id])["stdout"].as_str().unwrap().ends_with(MESSAGE));

    fleet.finish(&task, TaskEnd::Completed);
    let waited = fleet.data(&["wait", id]);
    assert_eq!((&waited["state"], &waited["diff"]["text"]), (&json!("completed"), &json!(DIFF)));
    let remote = &waited["remote"];
    assert_eq!((&remote["worker"], &remote["branch"]), (&json!("build-1"), &json!("main")));
    assert_eq!(fleet.data(&["logs", id])["setup"], "installed\n");
    fleet.server.shut_down();
    assert_eq!(fleet.run(&["diff", id]).stdout, DIFF, "an ended task needs no database");
    assert_eq!(fleet.data(&["cloud", "results", id])["remote"]["base_commit"].as_str().unwrap().len(), 40);
}

#[test]
fn a_queued_task_has_a_warning_about_what_only_an_operator_can_change() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let warning = |args: &[&str]| {
        let answer = fleet.run(args).json();
        let details = answer["meta"]["warning_details"].as_array().cloned().unwrap_or_default();
        details.into_iter().find(|warning| warning["code"] == "W_CLOUD_002").unwrap_or_default()
    };
    let expect = |obstacle: &str, command: &str| {
        let warning = warning(&["cloud", "status", &id]);
        assert_eq!(warning["context"]["obstacle"]["kind"], obstacle, "{warning}");
        assert!(warning["message"].as_str().unwrap().contains(command), "{warning}");
    };
    expect("no_worker", "mcp-delegator worker");
    let session = fleet.session("build-1");
    assert_eq!(warning(&["cloud", "status", &id]), Value::Null);
    fleet.database.pause(Some("build-1")).unwrap();
    expect("workers_paused", "mcp-delegator fleet resume WORKER");
    fleet.database.pause(None).unwrap();
    expect("fleet_paused", "mcp-delegator fleet resume");
    for args in [&["wait", &id, "--timeout-sec", "1"] as &[&str], &["status", &id]] {
        assert_eq!(warning(args)["context"]["obstacle"]["task_ids"], json!([id]), "{args:?}");
    }
    fleet.submit(&[]);
    let both = warning(&["cloud", "status"]);
    assert!(both["message"].as_str().unwrap().starts_with("2 tasks wait: the fleet is paused"), "{both}");
    fleet.database.resume(None).unwrap();
    fleet.database.drain("build-1").unwrap();
    expect("workers_draining", "mcp-delegator worker");
    fleet.database.close_session(&session).unwrap();
    expect("no_worker", "mcp-delegator fleet status");
}

#[test]
fn the_id_of_a_task_of_another_machine_leads_to_the_commands_that_work() {
    let fleet = Fleet::new();
    let other = machine(&fleet.server);
    let submitted = fleet.data(&["cloud", "submit", "grow the seed", "--env-id", ENVIRONMENT]);
    let id = submitted["task_id"].as_str().unwrap();
    let remote_id = submitted["remote"]["remote_id"].as_str().unwrap();
    for command in ["wait", "status", "cancel", "results"] {
        for given in [id, remote_id] {
            let answer = other.run([command, given]).json();
            assert_eq!(answer["ok"], false, "{answer}");
            for working in ["mcp-delegator fleet tasks", &format!("mcp-delegator fleet cancel {given}")] {
                assert!(answer["error"].to_string().contains(working), "{command} {given}: {answer}");
            }
        }
    }
    let listed = other.run(["fleet", "tasks"]).json();
    assert_eq!(listed["data"]["tasks"][0]["task_id"], id, "{listed}");
    let cancelled = other.run(["fleet", "cancel", id]).json();
    assert_eq!(cancelled["data"]["state"], "cancelled", "{cancelled}");
    assert_eq!(fleet.data(&["wait", id])["state"], "cancelled");
}

#[test]
fn events_are_followed_until_the_task_ends() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let session = fleet.session("build-1");
    let mut follow = fleet.world.command(["events", "follow", &id]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut logs = fleet.world.command(["logs", &id, "--follow", "--raw"]);
    let logs = logs.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let task = fleet.start(&session);
    fleet.append(&task, STARTED);
    assert!(lines.next().unwrap().contains("thread.started"), "before the task has ended");
    fleet.append(&task, MESSAGE);
    fleet.finish(&task, TaskEnd::Completed);
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("Grown.")), "{rest:?}");
    assert!(follow.wait().unwrap().success());
    let logs = wait_for_output(logs);
    assert_eq!(logs.stdout, format!("{STARTED}{MESSAGE}"), "{logs:?}");
}

#[test]
fn watch_shows_a_task_of_the_fleet_like_one_of_this_machine() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let session = fleet.session("build-1");
    let mut screen = watch(&fleet.world, &[&id]);
    screen.wait_for_screen("[overview]");
    let task = fleet.start(&session);
    screen.type_text("3");
    fleet.append(&task, &format!("{STARTED}{MESSAGE}"));
    screen.wait_for_screen("Message: Grown.");
    fleet.finish(&task, TaskEnd::Completed);
    screen.type_text("1");
    screen.wait_for_screen(&format!("Task {id} completed"));
    screen.type_text("d");
    screen.wait_for_screen("+grown");
    screen.type_text("\u{1b}");
    screen.wait_for_screen("Recent (1)");
    screen.type_text("q");
    assert_eq!(screen.wait().exit, Some(0));
}

#[test]
fn a_follower_learns_that_a_lost_task_was_started_again() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let first = fleet.session("build-1");
    let task = fleet.start(&first);
    fleet.append(&task, STARTED);
    let mut follow = fleet.world.command(["events", "follow", &id]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("thread.started"));
    fleet.database.close_session(&first).unwrap();
    let second = fleet.session("build-2");
    let task = fleet.start(&second);
    fleet.append(&task, &format!("{STARTED}{MESSAGE}"));
    fleet.finish(&task, TaskEnd::Completed);
    let rest: Vec<String> = lines.collect();
    let is_start = |line: &&String| line.starts_with("{\"type\":\"thread.started\"");
    assert_eq!(rest.iter().filter(is_start).count(), 1, "{rest:?}");
    assert!(rest.last().unwrap().contains("W_EVENTS_008"), "{rest:?}");
    assert!(follow.wait().unwrap().success());
    let events = fleet.data(&["results", &id, "--include-events"])["events"].clone();
    assert_eq!(events["items"].as_array().unwrap().len(), 4, "those of the last attempt: {events}");
}

#[test]
fn queued_and_running_tasks_are_cancelled() {
    let fleet = Fleet::new();
    let session = fleet.session("build-1");
    let queued = fleet.submit(&[]);
    fleet.data(&["cancel", &queued, "--reason", "enough"]);
    assert_eq!(fleet.data(&["results", &queued])["state"], "cancelled");
    let running = fleet.submit(&[]);
    let task = fleet.start(&session);
    std::thread::scope(|scope| {
        let cancel = scope.spawn(|| fleet.data(&["cancel", &running]));
        let is_requested = || fleet.database.heartbeat(&session).unwrap().tasks[0].cancel.is_some();
        wait_until("the worker gets the request", is_requested);
        fleet.finish(&task, TaskEnd::Cancelled { reason: None });
        let cancelled = &cancel.join().unwrap()["tasks"][0];
        assert_eq!(
            (&cancelled["previous_state"], &cancelled["state"]),
            (&json!("working"), &json!("cancelled"))
        );
    });
    assert_eq!(fleet.data(&["results", &running])["state"], "cancelled");
}

#[test]
fn a_lost_worker_is_named_and_the_task_can_be_retried() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    for worker in ["build-1", "build-2"] {
        let session = fleet.session(worker);
        fleet.start(&session);
        fleet.database.close_session(&session).unwrap();
    }
    let waited = fleet.data(&["wait", &id]);
    let failure = &waited["metadata"]["error_context"];
    assert_eq!(failure["failure_kind"], FailureKind::WorkerLost.name(), "{waited}");
    assert!(waited.to_string().contains("retry"), "{waited}");
    let followed = fleet.run(&["events", "follow", &id]).stdout;
    let summary: Value = serde_json::from_str(followed.lines().last().unwrap()).unwrap();
    let writer = &summary["data"]["task"];
    assert_eq!(
        (&writer["task_id"], &writer["failure_kind"]),
        (&json!(id), &json!(FailureKind::WorkerLost.name()))
    );
    let log = fleet.run(&["logs", &id, "--follow", "--format", "human"]).stdout;
    assert!(log.contains(writer["reason"].as_str().unwrap()), "{log}");
    let again = fleet.data(&["retry", &id]);
    assert_ne!(again["remote"]["remote_id"], waited["remote"]["remote_id"]);
}

#[test]
fn a_key_returns_the_same_task_on_every_machine() {
    let fleet = Fleet::new();
    let other = machine(&fleet.server);
    let args = ["cloud", "submit", "grow the seed", "--env-id", ENVIRONMENT, "--idempotency-key", "k1"];
    let (first, second) = (fleet.run(&args).json(), other.run(args).json());
    assert_eq!(first["data"]["remote"]["remote_id"], second["data"]["remote"]["remote_id"], "{second}");
    assert_eq!(second["meta"]["replayed"], true, "{second}");
    let different = ["cloud", "submit", "something else", "--env-id", ENVIRONMENT, "--idempotency-key", "k1"];
    let refused = machine(&fleet.server).run(different).json();
    assert_eq!(refused["error"]["code"], "IDEMPOTENCY_MISMATCH", "{refused}");
}

#[test]
fn a_submission_without_an_answer_may_be_repeated_only_with_a_key() {
    let fleet = Fleet::new();
    fleet.server.kill_now();
    let args = ["cloud", "submit", "grow", "--env-id", ENVIRONMENT];
    let error = fleet.error(&args);
    assert_eq!(
        (&error["error"]["code"], &error["error"]["retryable"]),
        (&json!("NETWORK_ERROR"), &json!(false))
    );
    let error = fleet.error(&[&args as &[&str], &["--idempotency-key", "k1"]].concat());
    assert_eq!(
        (&error["error"]["code"], &error["error"]["retryable"]),
        (&json!("NETWORK_ERROR"), &json!(true))
    );
}

#[test]
fn a_wait_outlasts_a_restart_of_the_database() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let session = fleet.session("build-1");
    let task = fleet.start(&session);
    fleet.server.kill_now();
    // The acceptance counts as a query, so the next one is due a moment later.
    wait_until("the status warns of the database", || {
        let status = fleet.run(&["cloud", "status"]).json();
        status["meta"]["warning_details"][0]["code"] == "W_CLOUD_001"
    });
    let error = fleet.error(&["cloud", "submit", "grow", "--env-id", ENVIRONMENT]);
    assert_eq!(error["error"]["code"], "NETWORK_ERROR", "{error}");
    let undecided = error["meta"]["error_context"]["task_id"].as_str().unwrap().to_owned();
    assert!(error["error"]["message"].as_str().unwrap().contains(&undecided), "{error}");
    let next =
        format!("whether it was accepted, before you submit it again: mcp-delegator status {undecided}");
    assert!(error["error"]["suggestion"].as_str().unwrap().ends_with(&next), "{error}");
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| fleet.data(&["wait", &id]));
        fleet.server.restart();
        fleet.finish(&task, TaskEnd::Completed);
        assert_eq!(wait.join().unwrap()["state"], "completed");
    });
    let decided = fleet.data(&["wait", &undecided]);
    let kind = &decided["metadata"]["error_context"]["failure_kind"];
    assert_eq!(*kind, FailureKind::NotAccepted.name(), "{decided}");
}

#[test]
fn what_cannot_work_is_refused_with_what_to_do() {
    let fleet = Fleet::new();
    let submit = ["cloud", "submit", "grow", "--env-id", ENVIRONMENT];
    let refused = fleet.error(&[&submit as &[&str], &["--attempts", "2"]].concat());
    assert_eq!(refused["error"]["code"], "UNSUPPORTED", "{refused}");
    assert!(refused.to_string().contains("several times"), "{refused}");
    let world = machine(&fleet.server).variable("MCP_DELEGATOR_DATABASE_URL", "");
    let refused = world.run(submit).json();
    assert_eq!(refused["error"]["code"], "CONFIG_INVALID", "{refused}");
    assert!(refused.to_string().contains("MCP_DELEGATOR_DATABASE_URL"), "{refused}");
    let empty = PostgresServer::options().fast().start();
    let refused = machine(&empty).run(submit).json();
    assert_eq!(refused["error"]["code"], "DEPENDENCY_MISSING", "{refused}");
    assert!(refused.to_string().contains("fleet migrate"), "{refused}");
    assert_eq!(fleet.data(&["cloud", "status"])["summary"]["queued"], 0);
}

#[test]
fn changes_that_are_not_in_the_diff_are_named_everywhere() {
    let fleet = Fleet::new();
    let session = fleet.session("build-1");
    let ended = |diff: &str, omissions| {
        let id = fleet.submit(&[]);
        fleet.finish_with(&fleet.start(&session), TaskEnd::Completed, diff, omissions);
        fleet.data(&["wait", &id]);
        id
    };
    let large = LeftOut { path: "big.bin".to_owned(), reason: LeftOutReason::TooLarge, bytes: 40 << 20 };
    let omissions = DiffOmissions { left_out: vec![large], left_out_count: 1, size_limit: None };
    fleet.world.write("project/seed.txt", "seed\n");
    let git = fleet.world.run_as(Path::new("/usr/bin/git"), ["init", "--quiet"]);
    assert_eq!(git.exit, Some(0), "{git:?}");

    let id = ended(DIFF, omissions.clone());
    let diff = fleet.run(&["diff", &id]);
    assert!(diff.stdout == DIFF && diff.stderr.contains("big.bin (40 MiB"), "{diff:?}");
    for args in [&["results", &id] as &[&str], &["cloud", "apply", &id, "--dry-run"]] {
        let answer = fleet.run(args).json();
        assert!(
            answer["warnings"].to_string().contains("W_CLOUD_003: 1 change is not in the diff: big.bin"),
            "{answer}"
        );
        let data = &answer["data"];
        let left_out = data["remote"].get("left_out").unwrap_or(&data["left_out"]);
        assert_eq!(left_out[0]["reason"], "too_large", "{answer}");
    }

    let only_large = ended("", omissions);
    let refused = fleet.error(&["cloud", "apply", &only_large]);
    assert!(refused.to_string().contains("big.bin"), "{refused}");

    let too_large = ended("", DiffOmissions { size_limit: Some(256 << 20), ..DiffOmissions::default() });
    for command in [&["diff"] as &[&str], &["cloud", "apply"]] {
        let refused = fleet.run(&[command, &[&too_large]].concat());
        assert!(format!("{refused:?}").contains("larger than 256 MiB"), "{refused:?}");
    }
}

#[test]
fn the_ends_of_fleet_tasks_are_notified() {
    for end in [TaskEnd::Completed, TaskEnd::Cancelled { reason: None }] {
        let fleet = Fleet::new();
        notify_by_command(&fleet.world);
        let id = fleet.submit(&[]);
        match end {
            TaskEnd::Completed => {
                let task = fleet.start(&fleet.session("build-1"));
                wait_until("the task works", || {
                    fleet.data(&["cloud", "status", &id])["summary"]["running"] == 1
                });
                fleet.finish(&task, end.clone());
                fleet.data(&["wait", &id]);
            }
            _ => drop(fleet.data(&["cancel", &id])),
        }
        let sent = notification(&fleet.world);
        assert_eq!(
            (&sent["subject"]["id"], &sent["subject"]["state"]),
            (&json!(id), &json!(end.state().name()))
        );
    }
}

#[test]
fn a_damaged_file_of_a_task_is_refused_and_its_query_is_not_repeated() {
    for (damage, problem) in [
        (
            "insert into delegator.blob_parts select task, attempt, name, part + 1, bytes from delegator.blob_parts",
            "bytes",
        ),
        ("update delegator.blob_parts set bytes = overlay(bytes placing 'X' from 1)", "checksum"),
        ("delete from delegator.blob_parts", "bytes"),
    ] {
        let fleet = Fleet::new();
        let id = fleet.submit(&[]);
        let task = fleet.start(&fleet.session("build-1"));
        fleet.finish(&task, TaskEnd::Completed);
        fleet.server.execute(&format!(
            "alter table delegator.blob_parts disable trigger all; {damage};
             alter table delegator.blob_parts enable trigger all"
        ));
        let answer = fleet.error(&["wait", &id]);
        assert_eq!(answer["error"]["retryable"], false, "{damage}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(problem), "{damage}: {answer}");
    }
}

#[test]
fn the_thread_of_a_fleet_task_is_in_its_answers() {
    let fleet = Fleet::new();
    let id = fleet.submit(&[]);
    let task = fleet.start(&fleet.session("build-1"));
    fleet.append(&task, "{\"type\":\"thread.started\",\"thread_id\":\"0199-fleet\"}\n");
    wait_until("the thread is known", || {
        let expired = fleet.run(&["wait", &id, "--timeout-sec", "1"]).json();
        expired["meta"]["failure_data"]["thread_id"] == "0199-fleet"
    });
    let report = Report { thread_id: Some("0199-fleet".to_owned()), ..Report::default() };
    fleet.finish_reported(&task, Record { report, ..Record::default() });
    assert_eq!(fleet.data(&["wait", &id])["metadata"]["thread_info"]["thread_id"], "0199-fleet");
    let results = fleet.data(&["results", &id]);
    assert_eq!(results["metadata"]["thread_info"]["thread_id"], "0199-fleet", "{results}");
}
