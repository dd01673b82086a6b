//! The conversation with invented agents; `recorded` has those of recordings.

mod recorded;

use delegator_domain::message::MessageNumber;
use delegator_domain::question::{Answer, OptionKind, QuestionNumber};
use delegator_domain::task::Mode;
use serde_json::{Value, json};

use super::*;
use recorded::replay;

fn plan(mode: Mode, is_enforced: bool) -> AcpPlan {
    AcpPlan {
        prompt: "fix it".to_owned(),
        cwd: "/home/dev/project".to_owned(),
        directories: vec!["/more".to_owned()],
        resume: None,
        settings: Vec::new(),
        permissions: PermissionPolicy {
            mode,
            ask: false,
            is_enforced,
            writable_roots: vec!["/home/dev/project".into()],
        },
        replays_late: false,
    }
}

/// A conversation and what it did so far.
struct Talk {
    acp: Acp,
    sent: Vec<Value>,
    steps: Vec<Step>,
    /// Whether standard input was closed.
    is_closed: bool,
}

impl Talk {
    fn open(plan: AcpPlan) -> Talk {
        let mut talk = Talk { acp: Acp::new(plan), sent: Vec::new(), steps: Vec::new(), is_closed: false };
        talk.act(|acp, out| acp.open(out));
        talk
    }

    /// Returns what was sent.
    fn act(&mut self, act: impl FnOnce(&mut Acp, &mut Outbox)) -> Vec<Value> {
        let mut out = Outbox::default();
        act(&mut self.acp, &mut out);
        let sent: Vec<Value> = out.lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        self.sent.extend(sent.iter().cloned());
        self.steps.extend(out.steps);
        self.is_closed |= out.closes_stdin;
        sent
    }

    fn line(&mut self, line: &Value) -> Vec<Value> {
        self.act(|acp, out| acp.on_line(&line.to_string(), out))
    }

    /// Answers the last request.
    fn answer(&mut self, result: Value) -> Vec<Value> {
        let id = self.last_request();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn fail(&mut self, code: i64) -> Vec<Value> {
        let id = self.last_request();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}))
    }

    fn last_request(&self) -> i64 {
        let requests = self.sent.iter().rev().filter(|line| line.get("method").is_some());
        requests.filter_map(|line| line["id"].as_i64()).next().unwrap()
    }

    fn control(&mut self, control: Control) -> Vec<Value> {
        self.act(|acp, out| acp.on_control(control, out))
    }

    fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// With an open session and the prompt sent.
    fn begun(plan: AcpPlan) -> Talk {
        let mut talk = Talk::open(plan);
        talk.answer(json!({"_meta": {"steering": {"supported": true}}}));
        talk.answer(json!({"sessionId": "s"}));
        assert_eq!(talk.take_steps(), [Step::Ready]);
        talk
    }

    fn message(&mut self, number: u32, delivery: Delivery) -> Vec<Value> {
        let number = MessageNumber(number);
        self.control(Control::Message { number, text: "more".to_owned(), delivery })
    }
}

fn methods(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["method"].as_str().unwrap_or("answer")).collect()
}

fn permission(id: Value, call: &Value) -> Value {
    let options = [("r", "reject_once"), ("aa", "allow_always"), ("a", "allow_once")]
        .map(|(id, kind)| json!({"optionId": id, "name": kind, "kind": kind}));
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
}

#[test]
fn settings_come_between_session_and_prompt() {
    let settings =
        vec![AcpSetting::Mode { id: "plan", is_required: false }, AcpSetting::Model("m".to_owned())];
    let mut talk = Talk::open(AcpPlan { settings, ..plan(Mode::ReadOnly, true) });
    talk.answer(json!({"agentCapabilities": {"sessionCapabilities": {"additionalDirectories": {}}}}));
    assert_eq!(talk.sent[1]["params"]["additionalDirectories"], json!(["/more"]));
    let session = json!({"sessionId": "s", "modes": {"availableModes": [{"id": "plan"}]}});
    assert_eq!(methods(&talk.answer(session)), ["session/set_mode"]);
    assert_eq!(methods(&talk.answer(json!({}))), ["session/set_model"]);
    let prompt = talk.answer(json!({}));
    assert_eq!(prompt[0]["params"]["prompt"], json!([{"type": "text", "text": "fix it"}]));
    assert_eq!(talk.take_steps(), [Step::Ready]);
}

#[test]
fn a_setting_that_the_agent_refuses_ends_the_conversation() {
    let settings = vec![AcpSetting::Model("m".to_owned())];
    let mut talk = Talk::open(AcpPlan { settings, ..plan(Mode::ReadOnly, true) });
    talk.answer(json!({}));
    talk.answer(json!({"sessionId": "s"}));
    assert_eq!(talk.fail(-32602), Vec::<Value>::new());
    assert_eq!(talk.take_steps(), [Step::Over]);
}

#[test]
fn a_session_is_resumed_if_the_agent_can_and_loaded_otherwise() {
    let resume = || AcpPlan { resume: Some("old".to_owned()), ..plan(Mode::ReadOnly, true) };
    let mut talk = Talk::open(resume());
    let capabilities =
        json!({"agentCapabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}}}});
    let request = talk.answer(capabilities);
    assert_eq!(
        (&request[0]["method"], &request[0]["params"]["sessionId"]),
        (&json!("session/resume"), &json!("old"))
    );
    let mut talk = Talk::open(resume());
    assert_eq!(methods(&talk.answer(json!({"agentCapabilities": {"loadSession": true}}))), ["session/load"]);
    let prompt = talk.answer(json!({}));
    assert_eq!(prompt[0]["params"]["sessionId"], "old", "the answer names no session");
}

#[test]
fn the_prompt_waits_for_a_late_replay_of_history() {
    let resume = Some("old".to_owned());
    let mut talk = Talk::open(AcpPlan { resume, replays_late: true, ..plan(Mode::ReadOnly, true) });
    talk.answer(json!({"agentCapabilities": {"loadSession": true}}));
    let update = json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}}}});
    let session = json!({"modes": {"currentModeId": "default", "availableModes": [{"id": "default"}]}});
    assert_eq!(methods(&talk.answer(session)), ["session/set_mode"]);
    for _ in 0..3 {
        talk.line(&update);
        assert_eq!(methods(&talk.answer(json!({}))), ["session/set_mode"], "the replay goes on");
    }
    assert_eq!(methods(&talk.answer(json!({}))), ["session/prompt"]);
}

#[test]
fn messages_are_the_next_prompts_and_confirmed_by_the_first_update() {
    let mut talk = Talk::begun(plan(Mode::ReadOnly, true));
    assert!(!talk.acp.can_take(Delivery::Next));
    talk.answer(json!({"stopReason": "end_turn"}));
    assert_eq!(talk.take_steps(), [Step::TurnEnded]);
    assert!(talk.acp.can_take(Delivery::Next));
    assert_eq!(methods(&talk.message(1, Delivery::Next)), ["session/prompt"]);
    assert_eq!(talk.take_steps(), []);
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": {}}});
    talk.line(&update);
    talk.line(&update);
    assert_eq!(talk.take_steps(), [Step::Accepted(MessageNumber(1))]);
    talk.answer(json!({"stopReason": "end_turn"}));
    talk.take_steps();
    talk.message(2, Delivery::Next);
    talk.fail(INVALID_REQUEST);
    let refused = Step::Refused { message: MessageNumber(2), reason: "no".to_owned() };
    assert_eq!(talk.take_steps(), [refused, Step::TurnEnded], "the agent is busy");
}

#[test]
fn a_running_turn_is_steered_if_the_agent_announced_it() {
    let mut talk = Talk::begun(plan(Mode::ReadOnly, true));
    assert!(talk.acp.can_take(Delivery::Now));
    assert_eq!(methods(&talk.message(1, Delivery::Now)), ["_session/steering"]);
    talk.answer(json!({"outcome": "injected"}));
    talk.message(2, Delivery::Now);
    talk.answer(json!({"outcome": "queued"}));
    let reason = "the agent did not take it up: queued".to_owned();
    let refused = Step::Refused { message: MessageNumber(2), reason };
    assert_eq!(talk.take_steps(), [Step::Accepted(MessageNumber(1)), refused]);
    let silent = replay("gemini.task", plan(Mode::WorkspaceWrite, true));
    assert!(!silent.acp.can_take(Delivery::Now) && silent.acp.can_take(Delivery::Next));
}

#[test]
fn the_user_is_asked_and_the_answer_is_passed_on_by_its_option() {
    let mut asking = plan(Mode::WorkspaceWrite, true);
    asking.permissions.ask = true;
    let mut talk = Talk::begun(asking);
    let call =
        json!({"toolCallId": "c", "kind": "execute", "title": "Shell", "rawInput": {"command": "make"}});
    for id in [json!(0), json!("u-1"), json!(7)] {
        assert_eq!(talk.line(&permission(id, &call)), Vec::<Value>::new());
    }
    let steps = talk.take_steps();
    let Step::Question(question) = &steps[0] else { panic!("{steps:?}") };
    assert_eq!((question.title.as_str(), question.detail.as_deref()), ("Run a command", Some("make")));
    let kinds = [OptionKind::RejectOnce, OptionKind::AllowAlways, OptionKind::AllowOnce];
    assert_eq!(question.options.iter().map(|option| option.kind).collect::<Vec<_>>(), kinds);
    let mut answer = |question: u32, option: Option<&str>| {
        let answer = Answer { option: option.map(str::to_owned), text: None };
        let sent = talk.control(Control::Answer { question: QuestionNumber(question), answer });
        (sent[0]["id"].clone(), sent[0]["result"]["outcome"]["optionId"].clone())
    };
    assert_eq!(answer(1, Some("aa")), (json!(0), json!("aa")));
    assert_eq!(answer(2, None), (json!("u-1"), json!("r")), "without an answer");
    talk.answer(json!({"stopReason": "end_turn"}));
    assert_eq!(talk.take_steps(), [Step::Withdrawn(QuestionNumber(3)), Step::TurnEnded]);
}

#[test]
fn a_question_about_a_command_contains_it_wherever_the_agent_writes_it() {
    let mut asking = plan(Mode::WorkspaceWrite, true);
    asking.permissions.ask = true;
    let mut talk = Talk::begun(asking);
    let mut question = |call: Value| {
        talk.line(&permission(call["toolCallId"].clone(), &call));
        let steps = talk.take_steps();
        let Step::Question(question) = &steps[0] else { panic!("{steps:?}") };
        (question.title.clone(), question.detail.clone().unwrap())
    };
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let gemini = json!({"toolCallId": "g", "kind": "execute", "title": "make", "content": text("[in /p]")});
    assert_eq!(question(gemini), ("Run a command".to_owned(), "make\n[in /p]".to_owned()));
    let kimi =
        json!({"toolCallId": "k", "kind": "execute", "title": "Bash", "content": text("Running: make")});
    assert_eq!(question(kimi), ("Run a command".to_owned(), "Bash\nRunning: make".to_owned()));
    let other = json!({"toolCallId": "o", "kind": "other", "title": "make"});
    assert_eq!(question(other), ("Use a tool".to_owned(), "make".to_owned()));
}

#[test]
fn a_question_names_each_file_once() {
    let mut asking = plan(Mode::WorkspaceWrite, true);
    asking.permissions.ask = true;
    let mut talk = Talk::begun(asking);
    let call = json!({"toolCallId": "c", "kind": "edit", "title": "Edit a", "locations": [{"path": "/p/a"}],
        "rawInput": {"file_path": "/p/a"}, "content": [{"type": "diff", "path": "/p/a", "newText": "x"}]});
    talk.line(&permission(json!(0), &call));
    let steps = talk.take_steps();
    let Step::Question(question) = &steps[0] else { panic!("{steps:?}") };
    assert_eq!(question.detail.as_deref(), Some("/p/a"), "claude-acp names it three times");
}

#[test]
fn an_interrupt_cancels_the_turn_and_every_open_request() {
    let mut asking = plan(Mode::WorkspaceWrite, true);
    asking.permissions.ask = true;
    let mut talk = Talk::begun(asking);
    let call = json!({"toolCallId": "c", "kind": "edit", "title": "Write", "locations": [{"path": "a"}]});
    talk.line(&permission(json!(0), &call));
    talk.take_steps();
    let sent = talk.control(Control::Interrupt);
    assert_eq!(methods(&sent), ["session/cancel", "answer"]);
    assert_eq!(sent[1]["result"]["outcome"], json!({"outcome": "cancelled"}));
    let late = talk.line(&permission(json!(1), &call));
    assert_eq!(late[0]["result"]["outcome"]["outcome"], "cancelled");
    talk.answer(json!({"stopReason": "cancelled"}));
    assert_eq!(talk.take_steps(), [Step::Withdrawn(QuestionNumber(1)), Step::TurnEnded]);
    assert!(!talk.acp.can_take(Delivery::Next), "no prompt follows an interrupt");
    talk.control(Control::Finish);
    assert!(talk.is_closed);
}

#[test]
fn an_interrupt_in_the_handshake_sends_no_prompt() {
    let mut talk = Talk::open(plan(Mode::ReadOnly, true));
    talk.control(Control::Interrupt);
    assert_eq!(talk.take_steps(), [Step::TurnEnded], "no turn runs");
    talk.answer(json!({}));
    assert_eq!(talk.answer(json!({"sessionId": "s"})), Vec::<Value>::new());
}

#[test]
fn edits_are_allowed_only_in_the_writable_directories() {
    let mut talk = Talk::begun(plan(Mode::WorkspaceWrite, true));
    let mut chosen = |call: Value| {
        let sent = talk.line(&permission(json!(0), &call));
        sent[0]["result"]["outcome"]["optionId"].as_str().unwrap().to_owned()
    };
    let diff = |path: &str| json!([{"type": "diff", "path": path, "newText": "x"}]);
    let inside = "/home/dev/project/a";
    assert_eq!(chosen(json!({"toolCallId": "1", "kind": "edit", "content": diff(inside)})), "a");
    assert_eq!(chosen(json!({"toolCallId": "2", "kind": "edit", "content": diff("/etc/a")})), "r");
    let two = json!([diff(inside)[0], diff("../a")[0]]);
    assert_eq!(chosen(json!({"toolCallId": "3", "content": two})), "r", "one of them is outside");
    let patch = "*** Begin Patch\n*** Add File: /etc/a\n+x\n*** End Patch";
    assert_eq!(chosen(json!({"toolCallId": "4", "kind": "other", "rawInput": {"input": patch}})), "r");
    assert_eq!(chosen(json!({"toolCallId": "5", "kind": "edit"})), "a", "it names no file");
    assert_eq!(
        chosen(json!({"toolCallId": "6", "kind": "other", "title": "mystery"})),
        "a",
        "it is enclosed"
    );
}

#[test]
fn the_facts_of_an_earlier_message_about_a_call_count() {
    let mut talk = Talk::begun(plan(Mode::ReadOnly, true));
    let announced = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "edit", "title": "Edit"});
    talk.line(&json!({"jsonrpc": "2.0", "method": "session/update", "params": {"update": announced}}));
    let sent = talk.line(&permission(json!(0), &json!({"toolCallId": "c", "title": "Edit"})));
    assert_eq!(sent[0]["result"]["outcome"]["optionId"], "r", "without the kind it would be a command");
}
