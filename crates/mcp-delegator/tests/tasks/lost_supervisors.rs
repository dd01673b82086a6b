//! The report of a task whose supervisor was killed.

use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, wait_until};
use serde_json::{Value, json};

use crate::evidence::{Project, WRITE_MODE, command, operations, write};

/// The steps of an agent whose supervisor is killed before its turn ends.
fn interrupted_steps() -> [Value; 6] {
    [
        write("src/made.txt", "agent\n"),
        command("PATH=tools.log:$PATH cargo test"),
        command("echo two > code.txt"),
        json!({"message": "Half of it is done."}),
        json!({"touch_file": "ready.log"}),
        json!("silent"),
    ]
}

/// A `cargo` that git ignores.
fn write_test_program(project: &Project) {
    let text =
        "#!/bin/sh\necho 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'\n";
    project.stage.write_program("project/tools.log/cargo", text);
}

fn kill_supervisor(stage: &Stage, id: &str) -> Value {
    stage.wait_for_project_file("ready.log");
    let events = stage.task_dir(id).join("events.jsonl");
    wait_until("the events are stored", || read_text(&events).contains("Half of it"));
    let supervisor = rustix::process::Pid::from_raw(stage.supervisor_pid(id)).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    let waited = stage.wait(id);
    assert_eq!(waited["data"]["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{waited}");
    waited
}

#[test]
fn a_lost_supervisor_leaves_a_report_of_what_happened() {
    let project = Project::repository(&interrupted_steps());
    write_test_program(&project);
    let id = project.stage.exec(&WRITE_MODE);
    let waited = kill_supervisor(&project.stage, &id);
    let summary = waited["data"]["summary"].as_str().unwrap();
    assert_eq!(
        summary,
        "Failed: the supervisor was lost; modified 1 file and added 1 (+1 −1), 3 tests passed"
    );
    let results = project.stage.run_json(&["local", "results", &id]);
    let data = &results["data"];
    assert_eq!(operations(&results)[..2], [&json!(["code.txt"]), &json!(["src/made.txt"])], "{results}");
    let files = &data["metadata"]["file_operations"];
    assert_eq!((&files["source"], &files["scope"]), (&json!("late"), &json!("partial")), "{results}");
    assert_eq!(files["possibly_agent_files"], json!(["code.txt"]), "no event names it");
    assert_eq!(data["metadata"]["test_results"]["passed"], 3, "{results}");
    assert!(data.to_string().contains("Half of it is done."), "{results}");
    assert!(results["warnings"].to_string().contains("compared later"), "{results}");
    // Later changes are not in the diff.
    project.write("code.txt", "the user's\n");
    let diff = project.stage.run_json(&["diff", &id, "--format", "json"]);
    assert_eq!((&diff["data"]["source"], &diff["data"]["file_count"]), (&json!("late"), &json!(2)), "{diff}");
    assert!(diff["warnings"].to_string().contains("W_DIFF_006"), "{diff}");
    let text = project.stage.world.run(["diff", &id]).stdout;
    assert!(text.contains("+agent") && !text.contains("the user's"), "{text}");
}

#[test]
fn a_lost_supervisor_of_a_worktree_or_outside_of_git_leaves_a_report() {
    let project = Project::repository(&interrupted_steps());
    let id = project.stage.exec(&["--mode", "workspace-write", "--isolation", "worktree"]);
    let in_worktree = |id: &str| {
        let events = project.stage.task_dir(id).join("events.jsonl");
        wait_until("the events are stored", || events.exists() && read_text(&events).contains("Half of it"));
    };
    in_worktree(&id);
    let supervisor = rustix::process::Pid::from_raw(project.stage.supervisor_pid(&id)).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    project.stage.wait(&id);
    let results = project.stage.run_json(&["local", "results", &id]);
    assert_eq!(operations(&results)[..2], [&json!(["code.txt"]), &json!(["src/made.txt"])], "{results}");
    assert_eq!(project.stage.run_json(&["diff", &id, "--format", "json"])["data"]["file_count"], 2);

    let project = Project::without_git(&interrupted_steps());
    write_test_program(&project);
    let id = project.stage.exec(&WRITE_MODE);
    kill_supervisor(&project.stage, &id);
    let results = project.stage.run_json(&["local", "results", &id]);
    let files = &results["data"]["metadata"]["file_operations"];
    assert_eq!(files["source"], "agent", "{results}");
    assert_eq!(results["data"]["metadata"]["test_results"]["passed"], 3, "{results}");
}
