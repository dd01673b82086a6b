//! Notifications about tasks that need a person: what a receiver gets can be answered, what does not apply any more is not
//! sent, and several are one.

#![cfg(debug_assertions)]

use std::fs::File;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use delegator_testkit::asking_agent::{self, exec, permission_request, question_request, response};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::{Stage, successful_turn, wait_until};
use delegator_testkit::terminal::TerminalSession;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::notifications::{Received, answer, delivery_processes, listed};

/// A receiver of all requests, and its address.
fn receiver() -> (String, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            if sender.send(answer(stream.unwrap(), 200)).is_err() {
                return;
            }
        }
    });
    (address, received)
}

/// Adds a `[notify]` table to the configuration. Failed deliveries are repeated soon, and few seconds are collected.
fn notifying(stage: Stage, notify: &str) -> Stage {
    let path = "home/.config/mcp-delegator/config.toml";
    let agents = std::fs::read_to_string(stage.root().join(path)).unwrap_or_default();
    stage.world.write(path, &format!("{agents}[notify]\n{notify}\n"));
    stage
        .variable("MCP_DELEGATOR_TEST_INHERIT", "MCP_DELEGATOR_TEST_RETRY_MS,MCP_DELEGATOR_TEST_MERGE_MS")
        .variable("MCP_DELEGATOR_TEST_RETRY_MS", "100")
        .variable("MCP_DELEGATOR_TEST_MERGE_MS", "500")
}

fn asking(request: &Value, notify: &str) -> Stage {
    notifying(asking_agent::stage(PROGRAM, request), notify)
}

/// Prevents all deliveries until it is dropped.
fn hold_deliveries(stage: &Stage) -> File {
    stage.run_json(&["queue", "pause"]);
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(stage.root().join("home/state/notify.lock"));
    let file = file.unwrap();
    file.lock().unwrap();
    stage.run_json(&["queue", "resume"]);
    file
}

/// Runs a command line that a notification contains.
fn run_command(stage: &Stage, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[0], "mcp-delegator", "{command}");
    stage.run_json(&words[1..])
}

/// The event, the state and the reason of each settled notification, the newest first.
fn recent(stage: &Stage) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = |found: &Value| (text(&found["event"]), text(&found["state"]), text(&found["last_error"]));
    listed(stage, "recent").iter().map(fields).collect()
}

fn row(event: &str, state: &str, reason: &str) -> (String, String, String) {
    (event.to_owned(), state.to_owned(), reason.to_owned())
}

#[test]
fn the_command_in_a_notification_answers_the_question_once() {
    let (address, received) = receiver();
    let stage =
        asking(&permission_request(), &format!("webhook = 'http://{address}/hook'\non = ['question']"));
    let id = exec(&stage);
    let sent = received.recv().unwrap().body;
    assert_eq!(
        (&sent["event"], &sent["section"], &sent["id"]),
        (&json!("task.question"), &json!("needs_you"), &json!(format!("{id}.question_1")))
    );
    let question = &sent["question"];
    assert_eq!((&question["kind"], &question["number"]), (&json!("permission"), &json!(1)));
    assert!(question["detail"].to_string().contains("make all"), "{sent}");
    assert_eq!(question["options"][0]["id"], "allow_once", "{sent}");
    assert_eq!((&sent["tasks"][0]["agent"], &sent["tasks"][0]["title"]), (&json!("asker"), &json!("do it")));
    let command = sent["command"].as_str().unwrap();
    assert!(sent["text"].as_str().unwrap().contains(command), "{sent}");
    let answered = run_command(&stage, command);
    assert_eq!(answered["data"]["answer"]["option"], "allow_once", "{answered}");
    assert_eq!(run_command(&stage, command)["error"]["code"], "WRONG_STATE");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "allow");
    wait_until("the delivery process has ended", || delivery_processes(&stage).is_empty());
    assert!(received.try_recv().is_err(), "it was sent once");
    let shown = stage.run_json(&["show", &id]);
    let of_task = &shown["data"]["notifications"][0];
    assert_eq!((&of_task["event"], &of_task["state"]), (&json!("question"), &json!("delivered")), "{shown}");
    let status = stage.run_json(&["local", "status", &id]);
    assert_eq!(status["data"]["notifications"][0], *of_task, "{status}");
}

/// The delivery process is started by the supervisor of the task that asks, but what it runs belongs to the user.
#[test]
fn a_command_that_gets_the_question_may_answer_it() {
    let line = format!(
        "MCP_DELEGATOR_HOME=~/state {PROGRAM} answer \"$NOTIFICATION_SUBJECT_ID\" reject_once > ~/answered"
    );
    let stage =
        asking(&permission_request(), &format!("on = ['question']\ncommand = ['sh', '-c', '''{line}''']"));
    let id = exec(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "deny", "{}", read_text(&stage.world.home().join("answered")));
    wait_until("it is settled", || !recent(&stage).is_empty());
    assert_eq!(recent(&stage), [row("question", "delivered", "")]);
}

#[test]
fn a_question_that_was_answered_before_the_delivery_is_dropped() {
    let stage =
        asking(&permission_request(), "on = ['question']\ncommand = ['sh', '-c', 'touch ~/notified']");
    let lock = hold_deliveries(&stage);
    let id = exec(&stage);
    wait_until("the agent asks", || !listed(&stage, "pending").is_empty());
    stage.run_json(&["answer", &id, "allow_once"]);
    drop(lock);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    stage.run_json(&["local", "status"]);
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    assert_eq!(recent(&stage), [row("question", "dropped", "answered")]);
    assert!(!stage.world.home().join("notified").exists());
    assert!(!stage.task_dir(&id).join("notify.json").exists());
}

#[test]
fn a_question_that_a_person_was_notified_of_waits_longer() {
    let stage = asking(&permission_request(), "on = ['question']\ncommand = ['true']")
        .variable("MCP_DELEGATOR_ANSWER_TIMEOUT_SEC", "5")
        .variable("MCP_DELEGATOR_NOTIFIED_ANSWER_TIMEOUT_SEC", "600");
    let id = exec(&stage);
    wait_until("it is delivered", || recent(&stage) == [row("question", "delivered", "")]);
    // The first limit counts from a moment before this one.
    let notified = Instant::now();
    wait_until("the first limit has passed", || notified.elapsed() > Duration::from_secs(6));
    let question = stage.run_json(&["answer", &id]);
    assert_eq!(question["data"]["state"], "open", "{question}");
    stage.run_json(&["answer", &id, "allow_once"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "allow");
}

#[test]
fn a_prolonged_question_without_an_answer_is_a_no() {
    let stage = asking(&permission_request(), "on = ['question']\ncommand = ['true']")
        .variable("MCP_DELEGATOR_ANSWER_TIMEOUT_SEC", "2")
        .variable("MCP_DELEGATOR_NOTIFIED_ANSWER_TIMEOUT_SEC", "3");
    let id = exec(&stage);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
    assert_eq!(response(&stage)["behavior"], "deny");
}

#[test]
fn what_a_person_has_on_a_screen_is_not_sent() {
    let stage =
        asking(&permission_request(), "command = ['sh', '-c', 'touch ~/notified']").variable("TERM", "xterm");
    stage.run_json(&["queue", "pause"]);
    let id = exec(&stage);
    let mut terminal = TerminalSession::start_interactive(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("the queue is paused");
    stage.run_json(&["queue", "resume"]);
    terminal.wait_for_text(" left):");
    terminal.type_text("1\n");
    assert_eq!(terminal.wait().exit, Some(0));
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    let mut found = recent(&stage);
    found.sort();
    assert_eq!(
        found,
        [row("ended", "dropped", "it was on a screen"), row("question", "dropped", "answered")]
    );
    assert!(!stage.world.home().join("notified").exists());
}

#[test]
fn a_question_is_sent_when_its_screen_is_closed() {
    let stage =
        asking(&permission_request(), "on = ['question']\ncommand = ['sh', '-c', 'touch ~/notified']")
            .variable("TERM", "xterm");
    stage.run_json(&["queue", "pause"]);
    let id = exec(&stage);
    let mut terminal = TerminalSession::start_interactive(stage.world.command(["local", "wait", &id]));
    terminal.wait_for_text("the queue is paused");
    stage.run_json(&["queue", "resume"]);
    terminal.wait_for_text(" left):");
    wait_until("it is pending", || !listed(&stage, "pending").is_empty());
    assert!(!stage.world.home().join("notified").exists());
    terminal.child.kill().unwrap();
    terminal.wait();
    wait_until("it is sent", || stage.world.home().join("notified").exists());
    stage.run_json(&["answer", &id, "allow_once"]);
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn questions_that_come_together_are_one_notification() {
    let (address, received) = receiver();
    let stage = asking(&question_request(), &format!("webhook = 'http://{address}/hook'\non = ['question']"))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "5");
    let lock = hold_deliveries(&stage);
    let args = [&asking_agent::TASK_ARGS[..], &["--allow-parallel-writes"]].concat();
    let ids: Vec<String> = (0..5).map(|_| stage.exec(&args)).collect();
    wait_until("all ask", || listed(&stage, "pending").len() == 5);
    drop(lock);
    stage.run_json(&["local", "status"]);
    let sent = received.recv().unwrap().body;
    assert_eq!((&sent["event"], &sent["title"]), (&json!("several"), &json!("5 tasks need you")), "{sent}");
    let each = sent["notifications"].as_array().unwrap();
    let mut notified: Vec<&str> = each.iter().map(|each| each["subject"]["id"].as_str().unwrap()).collect();
    notified.sort_unstable();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(notified, expected);
    for each in each {
        let command = each["command"].as_str().unwrap();
        assert!(sent["text"].as_str().unwrap().contains(command), "{sent}");
        run_command(&stage, command);
    }
    ids.iter().for_each(|id| assert_eq!(stage.wait(id)["data"]["state"], "completed"));
    wait_until("the delivery process has ended", || delivery_processes(&stage).is_empty());
    assert!(received.try_recv().is_err(), "each was sent once");
    assert_eq!(recent(&stage), vec![row("question", "delivered", ""); 5]);
}

#[test]
fn silence_and_a_nearly_used_budget_are_sent() {
    let (address, received) = receiver();
    let agent = r#"cat > /dev/null
echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.started"}'
while [ ! -e go ]; do sleep 0.1; done
echo '{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":1}}'"#;
    let stage = Stage::with_shell_agent(PROGRAM, agent);
    let stage = notifying(stage, &format!("webhook = 'http://{address}/hook'\non = ['budget', 'stuck']"))
        .variable("MCP_DELEGATOR_IDLE_COUNTS", "output")
        .variable("MCP_DELEGATOR_BUDGET_DAY_TOKENS", "12");
    stage.world.write("project/go", "");
    stage.wait(&stage.exec(&[]));
    std::fs::remove_file(stage.world.project().join("go")).unwrap();
    let id = stage.exec(&["--idle-timeout-sec", "16"]);
    let near = received.recv().unwrap().body;
    assert_eq!((&near["event"], &near["subject"]["id"]), (&json!("task.budget"), &json!(id)), "{near}");
    assert!(near["title"].as_str().unwrap().contains("10 of 12 tokens"), "{near}");
    assert_eq!(near["command"], format!("mcp-delegator show {id}"));
    let stuck = received.recv().unwrap().body;
    assert_eq!(
        (&stuck["event"], &stuck["id"]),
        (&json!("task.stuck"), &json!(format!("{id}.stuck"))),
        "{stuck}"
    );
    assert_eq!(run_command(&stage, stuck["command"].as_str().unwrap())["ok"], true);
    stage.world.write("project/go", "");
    assert_eq!(stage.wait(&id)["data"]["state"], "completed");
}

#[test]
fn services_for_people_get_their_own_format() {
    for (format, path, expected) in [
        ("slack", "/services/T0/B0", json!({"text": "*completed: do it*\nAll &lt;done&gt;"})),
        (
            "ntfy",
            "/my-topic?auth=QmVhcmVy",
            json!({
                "topic": "my-topic", "title": "completed: do it", "message": "All <done>", "priority": 3,
                "tags": ["white_check_mark"],
            }),
        ),
        (
            "telegram",
            "/bot1:token/sendMessage?chat_id=7",
            json!({"text": "completed: do it\nAll <done>", "disable_web_page_preview": true}),
        ),
    ] {
        let (address, received) = receiver();
        let notify = format!(
            "webhook = 'http://{address}{path}'\nwebhook_format = '{format}'\ntemplate = '''{{state}}: {{title}}\nAll <done>'''"
        );
        let stage = notifying(Stage::with_script(PROGRAM, successful_turn(&[])), &notify);
        stage.wait(&stage.exec(&[]));
        let Received { head, body, .. } = received.recv().unwrap();
        assert_eq!(body, expected, "{format}");
        let to = if format == "ntfy" { "/?auth=qmvhcmvy" } else { &path.to_lowercase() };
        assert!(head.starts_with(&format!("post {to} http/1.1\r\n")), "{head}");
    }
}

#[test]
fn a_url_that_does_not_fit_its_format_is_a_problem_of_the_configuration() {
    let stage = notifying(
        Stage::with_script(PROGRAM, successful_turn(&[])),
        "webhook = 'https://hooks.example/private'\nwebhook_format = 'telegram'",
    );
    let tested = stage.run_json(&["notify", "--test"]);
    assert_eq!(tested["error"]["code"], "CONFIG_INVALID", "{tested}");
    assert!(
        tested.to_string().contains("sendMessage?chat_id") && !tested.to_string().contains("private"),
        "{tested}"
    );
}

#[test]
fn the_desktop_shows_several_ends_as_one() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    stage.write_program(
        "tools/notify-send",
        "#!/bin/sh\nfor argument in \"$@\"; do printf '%s|' \"$argument\"; done >> \"$HOME/shown\"\necho >> \"$HOME/shown\"\n",
    );
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage.root().join("tools").display());
    let stage = notifying(stage, "desktop = true\ntemplate = '{state}: {title}'").variable("PATH", &path);
    let lock = hold_deliveries(&stage);
    let ids: Vec<String> = (0..2).map(|_| stage.exec(&[])).collect();
    ids.iter().for_each(|id| drop(stage.wait(id)));
    drop(lock);
    stage.run_json(&["local", "status"]);
    wait_until("nothing is left to send", || listed(&stage, "pending").is_empty());
    let shown = read_text(&stage.world.home().join("shown"));
    assert_eq!(shown.matches("--app-name=mcp-delegator|--urgency=normal|--|").count(), 1, "{shown}");
    assert!(shown.contains("|2 ended|completed: do it\n\n\ncompleted: do it"), "{shown}");
}
