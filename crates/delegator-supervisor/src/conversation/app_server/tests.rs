//! The conversation with Codex's app server, line by line.

use delegator_domain::question::Question;
use delegator_transcript::wire::app_server::{ApprovalPolicy, SandboxMode};
use serde_json::{Value, json};

use super::*;

fn plan() -> AppServerPlan {
    AppServerPlan {
        prompt: "Please do it".to_owned(),
        images: vec!["/a.png".into()],
        resume: None,
        thread: ThreadOptions {
            cwd: "/home/dev/project".into(),
            model: Some("gpt-5.5".to_owned()),
            sandbox: Some(SandboxMode::WorkspaceWrite),
            approval_policy: ApprovalPolicy::Never,
        },
        turn: TurnOptions { output_schema: Some(json!({"type": "object"})) },
        ask: false,
    }
}

/// A conversation, and what it sent and reported.
struct Talk {
    server: AppServer,
    sent: Vec<Value>,
    steps: Vec<Step>,
}

impl Talk {
    fn open(plan: AppServerPlan) -> Talk {
        let mut talk = Talk { server: AppServer::new(plan), sent: Vec::new(), steps: Vec::new() };
        talk.run(AppServer::open);
        talk
    }

    fn run(&mut self, act: impl FnOnce(&mut AppServer, &mut Outbox)) {
        let mut out = Outbox::default();
        act(&mut self.server, &mut out);
        self.sent.extend(out.lines.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        self.steps.extend(out.steps);
    }

    fn line(&mut self, line: &str) {
        self.run(|server, out| server.on_line(line, out));
    }

    fn json(&mut self, line: &Value) {
        self.line(&line.to_string());
    }

    fn control(&mut self, control: Control) {
        self.run(|server, out| server.on_control(control, out));
    }

    fn message(&mut self, number: u32, delivery: Delivery) {
        let number = MessageNumber(number);
        self.control(Control::Message { number, text: format!("message {number}"), delivery });
    }

    /// The methods that were sent, or the results of responses.
    fn sent(&mut self) -> Vec<String> {
        let name = |sent: Value| match &sent["method"] {
            Value::String(method) => method.clone(),
            _ => sent["result"].to_string(),
        };
        std::mem::take(&mut self.sent).into_iter().map(name).collect()
    }

    fn steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// A thread with a running turn.
    fn running(plan: AppServerPlan) -> Talk {
        let mut talk = Talk::open(plan);
        talk.json(&json!({"id": 1, "result": {}}));
        talk.json(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
        talk.json(&json!({"id": 3, "result": {"turn": {"id": "turn-1"}}}));
        talk.sent();
        talk.steps();
        talk
    }

    fn turn_ends(&mut self, status: &str) {
        let turn = json!({"threadId": "t", "turn": {"id": "turn-1", "status": status}});
        self.json(&json!({"method": "turn/completed", "params": turn}));
    }

    fn refuse(&mut self, id: u32) {
        self.json(&json!({"id": id, "error": {"code": -32600, "message": "no active turn to steer"}}));
    }
}

/// The agent's lines of a recording.
fn recorded_lines(name: &str) -> Vec<String> {
    let transcripts =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../delegator-transcript/tests/transcripts/app_server/");
    let recording = std::fs::read_to_string(format!("{transcripts}{name}.jsonl")).unwrap();
    recording.lines().filter(|line| !line.starts_with(r#"{"sent":"#)).map(str::to_owned).collect()
}

#[test]
fn the_handshake_begins_a_thread_and_a_turn() {
    let mut talk = Talk::open(plan());
    assert_eq!(talk.sent[0]["params"]["capabilities"]["experimentalApi"], true);
    talk.json(&json!({"id": 1, "result": {"userAgent": "x"}}));
    assert_eq!(talk.sent[1], json!({"method": "initialized", "params": {}}));
    let thread = json!({
        "cwd": "/home/dev/project", "model": "gpt-5.5", "sandbox": "workspace-write",
        "approvalPolicy": "never", "approvalsReviewer": "user",
    });
    assert_eq!(talk.sent[2], json!({"id": 2, "method": "thread/start", "params": thread}));
    talk.json(&json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    let input = json!([
        {"type": "text", "text": "Please do it", "text_elements": []},
        {"type": "localImage", "path": "/a.png"},
    ]);
    let turn = json!({"threadId": "t", "input": input, "outputSchema": {"type": "object"}});
    assert_eq!(talk.sent[3], json!({"id": 3, "method": "turn/start", "params": turn}));
    assert_eq!(talk.steps(), [], "the prompt is not accepted yet");
    talk.json(&json!({"id": 3, "result": {"turn": {"id": "turn-1"}}}));
    assert_eq!(talk.steps(), [Step::Ready]);
}

#[test]
fn a_thread_is_resumed_and_a_failed_handshake_ends_the_conversation() {
    let mut talk = Talk::open(AppServerPlan { resume: Some("t-old".to_owned()), ..plan() });
    talk.json(&json!({"id": 1, "result": {}}));
    assert_eq!(talk.sent[2]["method"], "thread/resume");
    assert_eq!(talk.sent[2]["params"]["threadId"], "t-old");
    assert_eq!(talk.sent[2]["params"]["excludeTurns"], true);
    talk.refuse(2);
    assert_eq!(talk.steps(), [Step::Over]);
    assert!(!talk.server.can_take(Delivery::Next) && !talk.server.can_take(Delivery::Now));
}

#[test]
fn a_recorded_task_runs_to_its_end_and_takes_a_next_message() {
    let mut talk = Talk::open(plan());
    recorded_lines("task").iter().for_each(|line| talk.line(line));
    assert_eq!(talk.sent(), ["initialize", "initialized", "thread/start", "turn/start"]);
    assert_eq!(talk.steps(), [Step::Ready, Step::TurnEnded]);
    assert!(talk.server.can_take(Delivery::Next));
    talk.message(1, Delivery::Next);
    assert_eq!(talk.sent[0]["params"]["input"][0]["text"], "message 1");
    assert!(!talk.server.can_take(Delivery::Next) && !talk.server.can_take(Delivery::Now));
    talk.json(&json!({"id": 4, "result": {"turn": {"id": "turn-2"}}}));
    assert_eq!(talk.steps(), [Step::Accepted(MessageNumber(1))]);
    assert!(talk.server.can_take(Delivery::Now));
}

#[test]
fn a_message_is_steered_into_the_running_turn() {
    let mut talk = Talk::running(plan());
    assert!(talk.server.can_take(Delivery::Now) && !talk.server.can_take(Delivery::Next));
    talk.message(1, Delivery::Now);
    let steer = &talk.sent[0];
    assert_eq!(
        (&steer["method"], &steer["params"]["expectedTurnId"]),
        (&json!("turn/steer"), &json!("turn-1"))
    );
    talk.json(&json!({"id": 4, "result": {"turnId": "turn-1"}}));
    assert_eq!(talk.steps(), [Step::Accepted(MessageNumber(1))]);
}

#[test]
fn a_message_that_cannot_be_steered_begins_the_next_turn() {
    // The turn has ended before the message arrived.
    let mut talk = Talk::running(plan());
    talk.message(1, Delivery::Now);
    talk.turn_ends("completed");
    assert_eq!(talk.steps(), [Step::TurnEnded]);
    talk.refuse(4);
    assert_eq!(talk.sent(), ["turn/steer", "turn/start"]);
    talk.json(&json!({"id": 5, "result": {"turn": {"id": "turn-2"}}}));
    assert_eq!(talk.steps(), [Step::Accepted(MessageNumber(1))]);
    // The turn goes on and cannot be steered.
    let mut talk = Talk::running(plan());
    talk.message(1, Delivery::Now);
    talk.refuse(4);
    assert_eq!((talk.sent(), talk.steps()), (vec!["turn/steer".to_owned()], vec![]));
    talk.turn_ends("completed");
    assert_eq!((talk.sent(), talk.steps()), (vec!["turn/start".to_owned()], vec![]));
}

#[test]
fn a_message_whose_turn_is_refused_is_reported() {
    let mut talk = Talk::running(plan());
    talk.turn_ends("completed");
    talk.message(1, Delivery::Next);
    talk.refuse(4);
    let refused = Step::Refused { message: MessageNumber(1), reason: "no active turn to steer".to_owned() };
    assert_eq!(talk.steps(), [Step::TurnEnded, refused, Step::TurnEnded]);
}

#[test]
fn an_interrupt_ends_the_commands_of_the_turn_too() {
    let mut talk = Talk::running(plan());
    talk.control(Control::Interrupt);
    talk.json(&json!({"id": 4, "result": {}}));
    talk.turn_ends("interrupted");
    assert_eq!(talk.sent(), ["turn/interrupt", "thread/backgroundTerminals/clean"]);
    assert_eq!(talk.steps(), [], "its commands may still run");
    talk.json(&json!({"id": 5, "result": {}}));
    assert_eq!(talk.steps(), [Step::TurnEnded]);
    assert!(!talk.server.can_take(Delivery::Next));
    // The turn ended before the interrupt arrived.
    let mut talk = Talk::running(plan());
    talk.control(Control::Interrupt);
    talk.turn_ends("completed");
    talk.refuse(4);
    talk.json(&json!({"id": 5, "result": {}}));
    assert_eq!(talk.sent(), ["turn/interrupt", "thread/backgroundTerminals/clean"]);
    assert_eq!(talk.steps(), [Step::TurnEnded]);
    // No turn runs.
    let mut talk = Talk::open(plan());
    talk.control(Control::Interrupt);
    assert_eq!(talk.steps(), [Step::TurnEnded]);
}

#[test]
fn approvals_are_declined_unless_the_user_is_asked() {
    let mut talk = Talk::open(plan());
    recorded_lines("task_approve").iter().for_each(|line| talk.line(line));
    let decline = r#"{"decision":"decline"}"#;
    let handshake = ["initialize", "initialized", "thread/start", "turn/start"];
    assert_eq!(talk.sent(), [&handshake[..], &[decline; 4]].concat());
    assert_eq!(talk.steps(), [Step::Ready, Step::TurnEnded]);
}

#[test]
fn approvals_travel_to_the_user_and_back() {
    let mut talk = Talk::open(AppServerPlan { ask: true, ..plan() });
    let mut details = Vec::new();
    for line in recorded_lines("task_approve") {
        // The app server says that a request is resolved when it has our answer.
        talk.line(&line);
        for step in talk.steps() {
            if let Step::Question(Question { number, detail, .. }) = step {
                details.push(detail.unwrap());
                let option = if details.len() == 4 { "reject_once" } else { "allow_once" };
                let answer = Answer { option: Some(option.to_owned()), text: None };
                talk.control(Control::Answer { question: number, answer });
            }
        }
    }
    let expected = [
        "/bin/bash -lc 'cat greet.py'\nin /home/dev/project",
        "/home/dev/project/greet.py",
        "/home/dev/project/notes.txt",
        "/bin/bash -lc 'python3 greet.py; echo to-stderr >&2'\nin /home/dev/project",
    ];
    assert_eq!(details, expected);
    let (accept, decline) = (r#"{"decision":"accept"}"#, r#"{"decision":"decline"}"#);
    assert_eq!(talk.sent()[4..], [accept, accept, accept, decline]);
}

#[test]
fn an_approval_that_is_no_longer_needed_is_withdrawn() {
    let mut talk = Talk::running(AppServerPlan { ask: true, ..plan() });
    let request = |id: u32| {
        let params =
            json!({"threadId": "t", "turnId": "turn-1", "itemId": "i", "command": "ls", "reason": "r"});
        json!({"id": id, "method": "item/commandExecution/requestApproval", "params": params})
    };
    talk.json(&request(0));
    talk.json(&json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 0}}));
    talk.json(&request(1));
    talk.turn_ends("interrupted");
    let steps = talk.steps();
    let numbers: Vec<_> = steps
        .iter()
        .filter_map(|step| if let Step::Withdrawn(number) = step { Some(number.0) } else { None })
        .collect();
    assert_eq!((numbers, steps.last()), (vec![1, 2], Some(&Step::TurnEnded)));
}

#[test]
fn questions_of_the_agent_are_asked_and_unknown_requests_are_refused() {
    let mut talk = Talk::running(plan());
    let option = json!({"label": "Blue", "description": "like water"});
    let question =
        json!({"id": "colour", "header": "Colour", "question": "Which colour?", "options": [option]});
    let params = json!({"threadId": "t", "itemId": "i", "questions": [question]});
    talk.json(&json!({"id": "q", "method": "item/tool/requestUserInput", "params": params}));
    let steps = talk.steps();
    assert!(
        matches!(&steps[..], [Step::Question(question)] if question.title == "Which colour?"),
        "{steps:?}"
    );
    let answer = Answer { option: Some("Blue".to_owned()), text: None };
    talk.control(Control::Answer { question: QuestionNumber(1), answer });
    let answers = json!({"answers": {"colour": {"answers": ["Blue"]}}});
    assert_eq!(talk.sent, [json!({"id": "q", "result": answers})]);
    talk.sent.clear();
    talk.json(&json!({"id": 7, "method": "currentTime/read", "params": {}}));
    talk.json(&json!({"id": 8, "method": "item/permissions/requestApproval", "params": {}}));
    assert_eq!(talk.sent[0]["error"]["code"], -32601);
    assert_eq!(talk.sent[1], json!({"id": 8, "result": {"permissions": {}}}));
}

#[test]
fn turns_of_other_threads_are_not_ours() {
    let mut talk = Talk::running(plan());
    let turn = json!({"threadId": "sub", "turn": {"id": "x", "status": "completed"}});
    talk.json(&json!({"method": "turn/completed", "params": turn}));
    assert_eq!(talk.steps(), []);
}
