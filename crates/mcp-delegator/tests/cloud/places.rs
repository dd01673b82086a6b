//! A task answers in the same way wherever it runs: the same commands take its id, and their data has the same fields.

use std::collections::BTreeSet;

use delegator_testkit::fake_cloud::FakeState;
use delegator_testkit::program::World;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use serde_json::{Value, json};

use crate::hosted::{Cloud, DIFF};
use crate::own_fleet::{self, OwnFleet};

/// How the next task of a place ends.
#[derive(Debug, Clone, Copy)]
enum Course {
    Completes,
    Fails,
    /// It works until the test ends.
    Works,
}

/// Where tasks run.
trait Place {
    fn world(&self) -> &World;

    /// Decides what becomes of the tasks that are submitted next.
    fn prepare(&self, course: Course);

    fn submit(&self) -> String;
}

fn submit(place: &dyn Place, course: Course) -> String {
    place.prepare(course);
    place.submit()
}

struct ThisMachine(Stage);

impl Place for ThisMachine {
    fn world(&self) -> &World {
        &self.0.world
    }

    fn prepare(&self, course: Course) {
        prepare_script(&self.0, course);
    }

    fn submit(&self) -> String {
        self.0.exec(&["--mode", "workspace-write", "--skip-git-repo-check"])
    }
}

fn prepare_script(stage: &Stage, course: Course) {
    stage.set_script(match course {
        Course::Completes => successful_turn(&[json!({"write_file": {"path": "seed.txt", "text": "grown"}})]),
        Course::Fails => {
            json!([{"thread_started": {}}, "turn_started", {"turn_failed": "no"}])
        }
        Course::Works => json!([{"thread_started": {}}, "turn_started", "silent"]),
    });
}

impl Place for Cloud {
    fn world(&self) -> &World {
        &self.world
    }

    fn prepare(&self, course: Course) {
        match course {
            Course::Completes => self.next_task(&[FakeState::Completed], &[DIFF]),
            Course::Fails => self.next_task(&[FakeState::Failed], &[]),
            Course::Works => self.next_task(&[FakeState::Running], &[]),
        }
    }

    fn submit(&self) -> String {
        self.submitted_id()
    }
}

impl Place for OwnFleet {
    fn world(&self) -> &World {
        &self.submitter
    }

    fn prepare(&self, course: Course) {
        prepare_script(&self.stage, course);
    }

    fn submit(&self) -> String {
        let args = ["cloud", "submit", "grow the seed", "--env-id", own_fleet::ENVIRONMENT];
        call(self, &args).1["data"]["task_id"].as_str().unwrap().to_owned()
    }
}

/// The exit code and the answer of a command.
fn call(place: &dyn Place, args: &[&str]) -> (i32, Value) {
    let run = place.world().run(args);
    (run.exit.unwrap(), run.json())
}

/// The fields of an object that every task has.
fn common_fields(data: &Value) -> BTreeSet<&str> {
    // These are facts that not every task has: an exit code, a thread and a restore point of a local one, a diff of a cloud one.
    let optional = [
        "diff",
        "diff_command",
        "remote",
        "environment",
        "restore_point",
        "git",
        "artifacts",
        "labels",
        "thread_id",
        "containment",
        "sandbox",
        "agent_exit_code",
        "test_results",
        "expected_duration",
    ];
    let fields = data.as_object().unwrap().keys().map(String::as_str);
    fields.filter(|field| !optional.contains(field)).collect()
}

/// The answers about tasks of each course, which must have the same fields everywhere.
fn answers(place: &dyn Place) -> Vec<Value> {
    let completed = submit(place, Course::Completes);
    let (exit, waited) = call(place, &["wait", &completed]);
    assert_eq!((exit, &waited["data"]["state"]), (0, &json!("completed")), "{waited}");
    assert!(waited["data"]["summary"].as_str().unwrap().contains("1 file"), "{waited}");
    let (_, results) = call(place, &["results", &completed[..12]]);
    assert_eq!(results["data"]["summary"], waited["data"]["summary"], "the beginning of an id is enough");
    let (exit, refused) = call(place, &["cancel", &completed]);
    assert_eq!((exit, &refused["error"]["code"]), (4, &json!("WRONG_STATE")), "{refused}");

    let failed = submit(place, Course::Fails);
    let (exit, failure) = call(place, &["wait", &failed, "--exit-status"]);
    assert_eq!((exit, &failure["error"]["code"]), (80, &json!("AGENT_FAILED")), "{failure}");
    let (_, failure) = call(place, &["results", &failed]);
    assert!(failure["data"]["metadata"]["error_context"]["failure_kind"].is_string(), "{failure}");
    place.prepare(Course::Works);
    let (exit, again) = call(place, &["retry", &failed]);
    assert_eq!((exit, &again["meta"]["retry_of"]), (0, &json!(failed)), "{again}");

    let working = again["data"]["task_id"].as_str().unwrap();
    wait_until("the task works", || call(place, &["status", working]).1["data"]["summary"]["running"] == 1);
    let (exit, expired) = call(place, &["wait", working, "--timeout-sec", "1"]);
    assert_eq!((exit, &expired["meta"]["failure_data"]["state"]), (14, &json!("working")), "{expired}");
    let (exit, early) = call(place, &["results", working]);
    assert_eq!((exit, &early["error"]["retryable"]), (4, &json!(true)), "{early}");
    let (_, status) = call(place, &["status", working]);
    assert_eq!(
        (&status["data"]["summary"]["running"], &status["data"]["tasks"][0]["task_id"]),
        (&json!(1), &json!(working))
    );
    let (exit, both) = call(place, &["wait", &completed, &failed]);
    assert_eq!((exit, both["data"]["tasks"].as_array().unwrap().len()), (0, 2), "{both}");
    let data =
        |answer: &Value, at: &str| answer.pointer(at).unwrap_or_else(|| panic!("{at}: {answer}")).clone();
    vec![
        data(&waited, "/data"),
        data(&waited, "/data/metadata"),
        data(&waited, "/data/metadata/file_operations"),
        data(&results, "/data"),
        data(&failure, "/data/metadata"),
        data(&again, "/data"),
        data(&expired, "/meta/failure_data"),
        data(&status, "/data/tasks/0"),
    ]
}

fn check_same_answers(place: &dyn Place) {
    let here = ThisMachine(Stage::with_script(env!("CARGO_BIN_EXE_mcp-delegator"), json!([])));
    for (here, there) in answers(&here).iter().zip(&answers(place)) {
        assert_eq!(common_fields(here), common_fields(there), "{here}\n{there}");
    }
}

#[test]
fn a_task_of_hosted_codex_answers_like_one_of_this_machine() {
    check_same_answers(&Cloud::new());
}

#[test]
fn a_task_of_the_fleet_answers_like_one_of_this_machine() {
    let fleet = OwnFleet::start();
    check_same_answers(&fleet);
    // What hosted Codex cannot do.
    let done = submit(&fleet, Course::Completes);
    let (exit, logs) = call(&fleet, &["logs", &done, "--follow"]);
    assert!(exit == 0 && logs["data"]["stdout"].as_str().unwrap().contains("All done."), "{logs}");
    let (_, results) = call(&fleet, &["results", &done, "--include-events"]);
    let data = &results["data"];
    assert_eq!((&data["remote"]["worker"], &data["remote"]["branch"]), (&json!("build-1"), &json!("main")));
    assert!(data["events"]["items"].to_string().contains("All done."), "{results}");
    assert!(data.to_string().contains("All done."), "the final message: {results}");
    let (exit, applied) = call(&fleet, &["cloud", "apply", &done]);
    assert_eq!((exit, &applied["data"]["is_applied"]), (0, &json!(true)), "{applied}");
    let working = submit(&fleet, Course::Works);
    wait_until("the task works", || call(&fleet, &["status", &working]).1["data"]["summary"]["running"] == 1);
    let (exit, cancelled) = call(&fleet, &["cancel", &working, "--reason", "enough"]);
    assert_eq!((exit, &cancelled["ok"]), (0, &json!(true)), "{cancelled}");
    assert_eq!(call(&fleet, &["results", &working]).1["data"]["state"], "cancelled");
}
