//! Questions of an agent, answered from the command line. The agent is a shell script that speaks like Claude Code.

use delegator_testkit::asking_agent::{self, exec, permission_request, question_request, response};
use delegator_testkit::stage::{Stage, wait_until};
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::PROGRAM;

/// The open question of the only running task.
fn open_question(stage: &Stage) -> Value {
    let mut open = Value::Null;
    wait_until("the agent asks", || {
        open = stage.run_json(&["local", "status"])["data"]["tasks"][0]["waiting_for_answer"][0].clone();
        open.is_object()
    });
    open
}

#[test]
fn a_permission_is_given_from_the_command_line_and_the_first_answer_wins() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let id = exec(&stage);
    let question = open_question(&stage);
    assert_eq!(
        (&question["kind"], &question["question_number"], &question["state"]),
        (&json!("permission"), &json!(1), &json!("open")),
        "{question}"
    );
    assert!(question["detail"].as_str().unwrap().contains("make all"), "{question}");
    let expired = stage.run_json(&["local", "wait", &id, "--timeout-sec", "1"]);
    assert_eq!(expired["meta"]["failure_data"]["waiting_for_answer"][0]["question_number"], 1, "{expired}");
    let shown = stage.run_json(&["answer", &id]);
    assert_eq!((&shown["data"]["state"], &shown["data"]["title"]), (&json!("open"), &question["title"]));
    let unknown = stage.run_json(&["answer", &id, "perhaps"]);
    assert_eq!(unknown["error"]["code"], "INVALID_VALUE", "{unknown}");
    let shown = stage.run_json(&["answer", "--last"]);
    assert_eq!(shown["data"]["task_id"], id.as_str(), "{shown}");
    let answered = stage.run_json(&["answer", "--last", "allow_once"]);
    assert_eq!(answered["data"]["answer"]["option"], "allow_once", "{answered}");
    let late = stage.run_json(&["answer", &id, "reject_once", "--question", "1"]);
    assert_eq!(
        (&late["error"]["code"], &late["meta"]["error_context"]["answer_option"]),
        (&json!("WRONG_STATE"), &json!("allow_once")),
        "{late}"
    );
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "allow");
}

/// A terminal would take all between the escape sequence and its end for a title, and not show it.
#[test]
fn a_command_that_hides_a_part_of_itself_is_shown_whole() {
    let mut request = permission_request();
    request["input"]["command"] = json!("ls \u{1b}]; touch owned #\u{7} -la");
    let stage = asking_agent::stage(PROGRAM, &request);
    let id = exec(&stage);
    let shown = "ls ⟨U+001B⟩]; touch owned #⟨U+0007⟩ -la";
    assert!(open_question(&stage)["detail"].as_str().unwrap().contains(shown));
    let text = stage.world.run(["answer", &id, "--format", "text"]).stdout;
    assert!(text.contains(shown), "{text}");
    stage.run_json(&["answer", &id, "reject_once"]);
    stage.wait(&id);
}

#[test]
fn a_question_is_answered_with_an_option_or_a_text() {
    for (answer, expected) in [("Red", "Red"), ("green, please", "green, please")] {
        let stage = asking_agent::stage(PROGRAM, &question_request());
        let id = exec(&stage);
        let question = open_question(&stage);
        assert_eq!(
            (&question["kind"], &question["is_text_accepted"]),
            (&json!("question"), &json!(true)),
            "{question}"
        );
        stage.run_json(&["answer", &id, answer]);
        assert_eq!(stage.wait(&id)["data"]["state"], "completed");
        assert!(response(&stage).to_string().contains(expected), "{}", response(&stage));
    }
}

#[test]
fn a_question_without_an_answer_in_time_is_a_no() {
    let stage =
        asking_agent::stage(PROGRAM, &permission_request()).variable("MCP_DELEGATOR_ANSWER_TIMEOUT_SEC", "1");
    let id = exec(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "deny");
    let late = stage.run_json(&["answer", &id, "allow_once", "--question", "1"]);
    assert_eq!(late["meta"]["error_context"]["question_state"], "expired", "{late}");
}

#[test]
fn an_agent_cannot_answer_its_own_question() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let id = exec(&stage);
    open_question(&stage);
    let mut command = stage.world.command(["answer", &id, "allow_once"]);
    let output = command.env("DELEGATOR_TASK", format!("{id}:0")).output().unwrap();
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(refused["error"]["code"], "POLICY_BLOCKED", "{refused}");
    stage.run_json(&["local", "cancel", &id]);
    let closed = stage.run_json(&["answer", &id, "allow_once", "--question", "1"]);
    assert_eq!(closed["meta"]["error_context"]["question_state"], "withdrawn", "{closed}");
}

#[test]
fn a_wait_on_a_terminal_prints_the_question_and_the_command_that_answers_it() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let id = exec(&stage);
    let mut terminal = TerminalSession::start(stage.world.command(["local", "wait", &id]));
    let command = format!("mcp-delegator answer {id} --option allow_once --question 1");
    terminal.wait_for_text(&command);
    stage.run_json(&["answer", &id, "allow_once"]);
    let run = terminal.wait();
    assert_eq!((run.exit, run.stdout.matches(&command).count()), (Some(0), 1), "{}", run.stdout);
}

#[test]
fn a_wait_on_a_terminal_takes_the_answer_there() {
    let stage = asking_agent::stage(PROGRAM, &permission_request()).variable("TERM", "xterm");
    let id = exec(&stage);
    let mut terminal = TerminalSession::start_interactive(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("asks for permission");
    terminal.wait_for_text(" left):");
    assert!(!terminal.text().contains("mcp-delegator answer"), "{}", terminal.text());
    terminal.type_text("9\n");
    terminal.wait_for_text("Type 1 to 3:");
    terminal.type_text("1\n");
    let run = terminal.wait();
    assert_eq!((run.exit, run.stdout.matches("asks for permission").count()), (Some(0), 1), "{}", run.stdout);
    assert_eq!(response(&stage)["behavior"], "allow");
}

#[test]
fn a_question_that_is_answered_elsewhere_is_no_longer_asked() {
    let stage = asking_agent::stage(PROGRAM, &question_request());
    let id = exec(&stage);
    let mut terminal = TerminalSession::start_interactive(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("or an answer of your own");
    stage.run_json(&["answer", &id, "Red"]);
    let run = terminal.wait();
    assert_eq!(run.exit, Some(0), "{}", run.stdout);
    assert!(response(&stage).to_string().contains("Red"));
}

#[test]
fn what_was_typed_before_a_question_is_no_answer() {
    let stage = asking_agent::stage(PROGRAM, &permission_request()).variable("TERM", "xterm");
    stage.run_json(&["queue", "pause"]);
    let id = exec(&stage);
    let mut terminal = TerminalSession::start_interactive(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("the queue is paused");
    terminal.type_text("1\n");
    stage.run_json(&["queue", "resume"]);
    terminal.wait_for_text(" left):");
    terminal.type_text("3\n");
    let run = terminal.wait();
    assert_eq!(run.exit, Some(0), "{}", run.stdout);
    assert_eq!(response(&stage)["behavior"], "deny");
}
