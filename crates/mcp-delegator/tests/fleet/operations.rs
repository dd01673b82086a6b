//! The commands of an operator against a private PostgreSQL: every answer, and every failure with its remedy.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use delegator_domain::task::Mode;
use delegator_fleet::{Database, DatabaseUrl, NewFleetTask, NewSession, OnLost, SessionId, TaskSpec, new_id};
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::program::{RunOutput, World};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A server without tables, and a world whose configuration names it.
struct Operator {
    server: PostgresServer,
    world: World,
}

impl Operator {
    fn new() -> Operator {
        let server = PostgresServer::options().fast().start();
        let world = World::new(PROGRAM).variable("MCP_DELEGATOR_DATABASE_URL", &server.url());
        Operator { server, world }
    }

    fn migrated() -> Operator {
        let operator = Operator::new();
        operator.database().migrate().unwrap();
        operator
    }

    fn database(&self) -> Database {
        Database::new(&DatabaseUrl::parse(&self.server.url()).unwrap())
    }

    fn data(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.json()["data"].clone()
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn open_session(database: &Database, worker: &str, with: &[(&str, &str)]) -> SessionId {
    let session = NewSession {
        worker: worker.to_owned(),
        workspace: new_id(),
        slots: 2,
        labels: labels(with),
        version: "3.6.0".to_owned(),
        lease: Duration::from_secs(180),
    };
    database.open_session(&session).unwrap().id
}

fn submit(database: &Database, with: &[(&str, &str)]) -> String {
    submit_as(database, with, None)
}

/// Submits a task that has this id on the machine that submits it.
fn submit_as(database: &Database, with: &[(&str, &str)], submitter_task: Option<&str>) -> String {
    let spec = TaskSpec {
        environment: "env_site".to_owned(),
        repo_url: "/repository".to_owned(),
        branch: None,
        setup: None,
        mode: Mode::WorkspaceWrite,
        push: false,
        text: "fix the login\nof all users".to_owned(),
        title: "fix the login".to_owned(),
        labels: BTreeMap::new(),
        submitter_task: submitter_task.map(str::to_owned),
    };
    let task = NewFleetTask {
        id: new_id(),
        idempotency: None,
        spec,
        labels: labels(with),
        priority: 0,
        on_lost: OnLost::Fail,
        max_claims: 2,
    };
    database.submit(&task).unwrap().id
}

#[track_caller]
fn assert_error(run: &RunOutput, exit: i32, code: &str, suggestion: &str) {
    let error = &run.json()["error"];
    assert_eq!((run.exit, error["code"].as_str()), (Some(exit), Some(code)), "{run:?}");
    assert!(error["suggestion"].as_str().unwrap().contains(suggestion), "{error:#}");
}

#[test]
fn without_a_database_every_command_names_the_setting() {
    let world = World::new(PROGRAM);
    let commands: [&[&str]; 7] = [
        &["status"],
        &["tasks"],
        &["cancel", "x"],
        &["migrate"],
        &["pause"],
        &["resume", "w"],
        &["drain", "w"],
    ];
    for args in commands {
        let run = world.run(["fleet"].iter().chain(args));
        assert_error(&run, 4, "CONFIG_INVALID", "MCP_DELEGATOR_DATABASE_URL");
    }
}

#[test]
fn missing_tables_are_created_by_the_suggested_command() {
    let operator = Operator::new();
    let run = operator.world.run(["fleet", "status"]);
    assert_error(&run, 4, "DEPENDENCY_MISSING", "mcp-delegator fleet migrate");
    assert_eq!(
        operator.data(&["fleet", "migrate"]),
        json!({"from_version": "0", "to_version": "1", "is_changed": true})
    );
    assert_eq!(operator.data(&["fleet", "migrate"])["is_changed"], false);
    let text = operator.world.run(["fleet", "status", "--format", "human"]).stdout;
    assert!(text.contains("0 workers, 0 of 0 slots busy, 0 queued") && text.contains("No worker"), "{text}");
}

#[test]
fn tables_of_a_newer_program_are_not_touched() {
    let operator = Operator::migrated();
    operator.server.execute("insert into delegator.migrations (version, min_program) values (9, 9)");
    for command in ["status", "migrate"] {
        let run = operator.world.run(["fleet", command]);
        assert_error(&run, 4, "DEPENDENCY_VERSION", "Install the newer version");
    }
}

#[test]
fn status_shows_workers_slots_and_the_queue() {
    let operator = Operator::migrated();
    let database = operator.database();
    let busy = open_session(&database, "build-1", &[("os", "linux")]);
    open_session(&database, "build-2", &[]);
    for with in [&[("os", "linux")][..], &[("os", "linux")], &[("gpu", "yes")]] {
        submit(&database, with);
    }
    assert_eq!(database.claim(&busy, 1).unwrap().len(), 1);
    let fleet = operator.data(&["fleet", "status"]);
    let wanted = [
        ("worker_count", 2),
        ("slot_count", 4),
        ("busy_count", 1),
        ("queued_count", 2),
        ("running_count", 1),
        ("unmatched_count", 1),
        ("lost_last_day_count", 0),
        ("ended_last_day_count", 0),
    ];
    for (name, count) in wanted {
        assert_eq!(fleet[name], count, "{name}: {fleet:#}");
    }
    assert!(fleet["oldest_wait_ms"].as_i64().unwrap() >= 0);
    let [first, second] = fleet["workers"].as_array().unwrap().as_slice() else { panic!("{fleet:#}") };
    assert_eq!((&first["name"], &first["state"]), (&json!("build-1"), &json!("busy")));
    assert_eq!((&first["labels"], &first["busy_count"]), (&json!({"os": "linux"}), &json!(1)));
    assert_eq!((&second["name"], &second["state"]), (&json!("build-2"), &json!("idle")));
    for format in ["human", "markdown"] {
        let text = operator.world.run(["fleet", "status", "--format", format]).stdout;
        for fact in
            ["2 workers, 1 of 4 slots busy, 2 queued", "build-1", "1/2", "os=linux", "build-2", "idle"]
        {
            assert!(text.contains(fact), "{format}: no {fact} in {text}");
        }
    }
}

#[test]
fn status_of_one_worker_is_its_health_check() {
    let operator = Operator::migrated();
    let database = operator.database();
    let run = operator.world.run(["fleet", "status", "--worker", "build-1"]);
    assert_error(&run, 5, "NOT_FOUND", "No worker is running");
    let session = open_session(&database, "build-1", &[]);
    open_session(&database, "build-2", &[]);
    let fleet = operator.data(&["fleet", "status", "--worker", "build-1"]);
    assert_eq!((&fleet["worker_count"], &fleet["workers"][0]["name"]), (&json!(1), &json!("build-1")));
    database.close_session(&session).unwrap();
    let run = operator.world.run(["fleet", "status", "--worker", "build-1"]);
    assert_error(&run, 5, "NOT_FOUND", "build-2");
}

#[test]
fn pause_resume_and_drain_decide_who_claims() {
    let operator = Operator::migrated();
    let database = operator.database();
    let session = open_session(&database, "build-1", &[]);
    submit(&database, &[]);
    let change = |args: &[&str]| operator.data(&[&["fleet"], args].concat());
    assert_eq!(change(&["pause"]), json!({"worker": null, "is_paused": true, "is_changed": true}));
    assert_eq!(change(&["pause"])["is_changed"], false);
    assert_eq!(change(&["status"])["workers"][0]["state"], "paused");
    assert!(database.claim(&session, 1).unwrap().is_empty());
    assert_eq!(change(&["resume"]), json!({"worker": null, "is_paused": false, "is_changed": true}));
    assert_eq!(change(&["pause", "build-1"])["worker"], "build-1");
    assert!(database.claim(&session, 1).unwrap().is_empty());
    assert_eq!(change(&["resume", "build-1"])["is_changed"], true);
    assert_eq!(change(&["drain", "build-1"]), json!({"worker": "build-1", "is_changed": true}));
    assert_eq!(change(&["drain", "build-1"])["is_changed"], false);
    assert_eq!(change(&["status"])["workers"][0]["state"], "draining");
    assert!(database.heartbeat(&session).unwrap().is_draining);
    assert!(database.claim(&session, 1).unwrap().is_empty());
    for command in ["pause", "resume", "drain"] {
        let run = operator.world.run(["fleet", command, "biuld-1"]);
        assert_error(&run, 5, "NOT_FOUND", "Did you mean build-1?");
    }
}

#[test]
fn tasks_of_all_machines_are_listed() {
    let operator = Operator::migrated();
    let database = operator.database();
    let text = operator.world.run(["fleet", "tasks", "--format", "human"]).stdout;
    assert!(text.contains("No such task in the fleet") && !text.contains("To cancel one"), "{text}");
    let session = open_session(&database, "build-1", &[]);
    let running = submit_as(&database, &[], Some("T-cloud-1111111111"));
    assert_eq!(database.claim(&session, 1).unwrap().len(), 1);
    let queued = submit_as(&database, &[], Some("T-cloud-2222222222"));
    let cancelled = submit(&database, &[]);
    database.cancel(&cancelled, None).unwrap();
    let ids = |args: &[&str]| -> Vec<String> {
        let data = operator.data(&[&["fleet", "tasks"], args].concat());
        let tasks = data["tasks"].as_array().unwrap();
        tasks.iter().map(|task| task["remote_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]), [running.as_str(), &queued, &cancelled]);
    assert_eq!(ids(&["--state", "queued"]), [queued.as_str()]);
    assert_eq!(ids(&["--state", "running"]), [running.as_str()]);
    assert_eq!(ids(&["--state", "ended"]), [cancelled.as_str()]);
    assert_eq!(ids(&["--worker", "build-1"]), [running.as_str()]);
    assert_eq!(ids(&["--worker", "build-1", "--state", "queued"]), [""; 0]);
    let page = operator.data(&["fleet", "tasks", "--limit", "2"]);
    assert_eq!((page["tasks"].as_array().unwrap().len(), &page["has_more"]), (2, &json!(true)));
    let mut first = page["tasks"][0].clone();
    assert!(first["age_ms"].as_i64().unwrap() >= 0 && first["created_at"].as_str().unwrap().ends_with('Z'));
    for varying in ["age_ms", "created_at"] {
        first.as_object_mut().unwrap().remove(varying);
    }
    let expected = json!({"task_id": "T-cloud-1111111111", "remote_id": running, "environment": "env_site",
        "state": "claimed", "is_cancel_requested": false, "worker": "build-1", "title": "fix the login"});
    assert_eq!(first, expected);
    for format in ["human", "markdown"] {
        let text = operator.world.run(["fleet", "tasks", "--format", format]).stdout;
        for fact in ["3 tasks", "T-cloud-2222222222", "fix the login", "build-1", "env_site", &cancelled] {
            assert!(text.contains(fact), "{format}: no {fact} in {text}");
        }
        assert_eq!(text.contains("fleet cancel"), format == "human", "{text}");
    }
    let run = operator.world.run(["fleet", "tasks", "--worker", "biuld-1"]);
    assert_error(&run, 5, "NOT_FOUND", "Did you mean build-1?");
}

#[test]
fn a_task_of_any_machine_is_cancelled() {
    let operator = Operator::migrated();
    let database = operator.database();
    let session = open_session(&database, "build-1", &[]);
    let running = submit(&database, &[]);
    let claim = database.claim(&session, 1).unwrap().remove(0).claim;
    database.start(&claim).unwrap();
    let queued = submit_as(&database, &[], Some("T-cloud-2222222222"));
    let cancel = |id: &str| operator.data(&["fleet", "cancel", id, "--reason", "restored"]);
    let expected = json!({"task_id": "T-cloud-2222222222", "remote_id": queued, "state": "cancelled", "worker": null, "is_changed": true});
    assert_eq!(cancel("t-CLOUD-2222222222"), expected);
    assert_eq!(cancel(&queued)["is_changed"], false);
    let requested = cancel(&running);
    assert_eq!((&requested["state"], &requested["worker"]), (&json!("running"), &json!("build-1")));
    assert_eq!((&requested["is_changed"], &cancel(&running)["is_changed"]), (&json!(true), &json!(false)));
    let owned = database.heartbeat(&session).unwrap().tasks;
    assert_eq!(owned[0].cancel.as_ref().unwrap().reason.as_deref(), Some("restored"));
    let text = |args: &[&str]| operator.world.run([args, &["--format", "human"]].concat()).stdout;
    assert!(text(&["fleet", "tasks"]).contains("cancelling"));
    assert!(text(&["fleet", "cancel", &running]).contains("already being cancelled"));
    assert!(text(&["fleet", "cancel", &queued]).contains("had ended already: cancelled"));
    let run = operator.world.run(["fleet", "cancel", "T-cloud-0000000000"]);
    assert_error(&run, 5, "NOT_FOUND", "mcp-delegator fleet tasks");
}

#[test]
fn the_printed_roles_work_and_have_only_their_rights() {
    let operator = Operator::migrated();
    let run = operator.world.run(["fleet", "grant", "--submitter", "lap\"tops", "--worker", "builders"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    operator.server.execute(&run.stdout);
    operator.server.execute(&run.stdout);
    let as_role = |role: &str, args: &[&str]| {
        let url = operator.server.url_for(role);
        operator.world.run([&["fleet"], args, &["--database-url", &url]].concat())
    };
    for role in ["lap%22tops", "builders"] {
        assert_eq!(as_role(role, &["status"]).exit, Some(0), "{role}");
        assert_eq!(as_role(role, &["migrate"]).exit, Some(0), "{role}: the tables are current");
        let id = submit(&operator.database(), &[]);
        assert_eq!(as_role(role, &["tasks"]).json()["data"]["tasks"][0]["remote_id"], *id, "{role}");
        assert_eq!(as_role(role, &["cancel", &id]).json()["data"]["state"], "cancelled", "{role}");
    }
    let run = as_role("lap%22tops", &["pause"]);
    assert_error(&run, 7, "PERMISSION_DENIED", "mcp-delegator fleet grant");
}

#[test]
fn a_server_that_does_not_answer_or_admit_is_reported_without_the_password() {
    let password = "hunter2-hunter2";
    let operator = Operator::migrated();
    let world = World::new(PROGRAM);
    let run = |url: &str| {
        world.write("project/url", &format!("{url}\n"));
        let run = world.run(["fleet", "status", "--database-url-file", "url"]);
        assert!(!run.stdout.contains(password) && !run.stderr.contains(password), "{run:?}");
        run
    };
    assert_eq!(run(&operator.server.url()).exit, Some(0), "a relative path is one of the current directory");
    let closed = format!("postgres://me:{password}@127.0.0.1:1/fleet");
    assert_error(&run(&closed), 12, "NETWORK_ERROR", "Check that the server runs");
    let port = operator.server.port();
    let unknown = format!("postgres://postgres:{password}@127.0.0.1:{port}/missing");
    assert_error(&run(&unknown), 8, "UNAUTHENTICATED", "user, password and database");
    let nameless = format!("postgres://me:{password}@127.0.0.1/");
    assert_error(&run(&nameless), 4, "CONFIG_INVALID", "postgres://USER@HOST:PORT/DATABASE");
    let on_command_line = world.run(["fleet", "status", "--database-url", &closed]);
    assert_eq!(on_command_line.exit, Some(4), "{on_command_line:?}");
    assert!(!on_command_line.stdout.contains(password), "{on_command_line:?}");
    assert!(on_command_line.stdout.contains("every user of the machine can see a command line"));
}

#[test]
fn doctor_checks_the_database() {
    let check = |world: &World, name: &str| {
        let answer = world.run(["doctor"]).json();
        let data = if answer["ok"] == true { &answer["data"] } else { &answer["meta"]["failure_data"] };
        let checks = data["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == name)
    };
    assert_eq!(check(&World::new(PROGRAM), "fleet"), None, "no fleet is configured");
    let operator = Operator::new();
    let missing = check(&operator.world, "fleet").unwrap();
    assert_eq!(missing["status"], "problem", "{missing}");
    assert!(missing["suggestion"].as_str().unwrap().contains("fleet migrate"), "{missing}");
    operator.database().migrate().unwrap();
    let found = check(&operator.world, "fleet").unwrap();
    assert_eq!(found["status"], "ok", "{found}");
    assert!(found["message"].as_str().unwrap().contains("0 workers running"), "{found}");

    let world = World::new(PROGRAM).config("database_url_file = '~/url'\n");
    assert_eq!(check(&world, "fleet").unwrap()["status"], "problem", "the file is missing");
    world.write("home/url", &operator.server.url());
    let set_mode = |mode| {
        std::fs::set_permissions(world.home().join("url"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o644);
    let open = check(&world, "database_url_file").unwrap();
    assert!(open["suggestion"].as_str().unwrap().starts_with("Run: chmod go= "), "{open}");
    set_mode(0o600);
    assert_eq!(check(&world, "database_url_file"), None);
    assert_eq!(check(&world, "fleet").unwrap()["status"], "ok");
}
