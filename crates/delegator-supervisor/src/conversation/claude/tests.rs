//! The conversation with Claude Code, line by line.

use delegator_domain::question::{Answer, OptionKind, Question, QuestionNumber};
use delegator_domain::task::Mode;

use super::*;
use crate::conversation::recorded_lines::{Sender, message_of_text};

fn policy(ask: bool) -> PermissionPolicy {
    PermissionPolicy {
        mode: Mode::WorkspaceWrite,
        ask,
        is_enforced: true,
        writable_roots: vec!["/home/dev/project".into()],
    }
}

/// A conversation that was opened.
fn opened(prompt: &str, permissions: PermissionPolicy) -> (Claude, String) {
    let mut claude = Claude::new(ClaudePlan { prompt: prompt.to_owned(), permissions });
    let mut out = Outbox::default();
    claude.open(&mut out);
    assert!(out.steps.is_empty());
    (claude, sent(&out).remove(0))
}

fn sent(out: &Outbox) -> Vec<String> {
    out.lines.iter().map(|line| String::from_utf8(line.clone()).unwrap()).collect()
}

fn on_line(claude: &mut Claude, line: &str) -> (Vec<String>, Vec<Step>) {
    let mut out = Outbox::default();
    claude.on_line(line, &mut out);
    (sent(&out), out.steps)
}

fn control(claude: &mut Claude, control: Control) -> (Vec<String>, Vec<Step>) {
    let mut out = Outbox::default();
    claude.on_control(control, &mut out);
    (sent(&out), out.steps)
}

fn message(number: u32, text: &str) -> Control {
    Control::Message { number: MessageNumber(number), text: text.to_owned(), delivery: Delivery::Next }
}

fn answer(question: u32, option: Option<&str>, text: Option<&str>) -> Control {
    let answer = Answer { option: option.map(str::to_owned), text: text.map(str::to_owned) };
    Control::Answer { question: QuestionNumber(question), answer }
}

fn recording(name: &str) -> String {
    let transcripts =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../delegator-transcript/tests/transcripts/claude/");
    std::fs::read_to_string(format!("{transcripts}{name}.jsonl")).unwrap()
}

fn as_json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

/// Plays the agent's side of a recording and checks that we send what was sent then. Returns the steps.
fn replay(
    name: &str,
    permissions: PermissionPolicy,
    mut user: impl FnMut(&mut Claude, &Step) -> Vec<String>,
) -> Vec<Step> {
    let recording = recording(name);
    let mut lines = recording.lines();
    let (Sender::Us, first) = message_of_text(lines.next().unwrap()) else {
        panic!("the prompt comes first")
    };
    let prompt = as_json(first)["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    let (mut claude, prompt_line) = opened(&prompt, permissions);
    assert_eq!(as_json(&prompt_line), as_json(first));
    let (mut all_steps, mut expected, mut actual) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        match message_of_text(line) {
            (Sender::Us, message) => expected.push(as_json(message)),
            (Sender::Agent, line) => {
                let (sent, steps) = on_line(&mut claude, line);
                actual.extend(sent.iter().map(|line| as_json(line)));
                for step in steps {
                    actual.extend(user(&mut claude, &step).iter().map(|line| as_json(line)));
                    all_steps.push(step);
                }
            }
        }
    }
    assert_eq!(actual, expected, "{name}");
    all_steps
}

#[test]
fn permissions_are_given_by_the_mode() {
    let steps = replay("task_ask", policy(false), |_, _| Vec::new());
    assert_eq!(steps, [Step::Ready, Step::TurnEnded]);
    let read_only = PermissionPolicy { mode: Mode::ReadOnly, ..policy(false) };
    let (mut claude, _) = opened("task", read_only);
    let requests = recording("task_ask");
    let requests = requests.lines().filter(|line| line.contains(r#""subtype":"can_use_tool""#));
    let behaviors: Vec<_> = requests
        .map(|request| {
            as_json(&on_line(&mut claude, request).0[0])["response"]["response"]["behavior"].clone()
        })
        .collect();
    assert_eq!(behaviors, ["deny", "deny", "allow"], "two edits and a command");
}

#[test]
fn permissions_and_questions_are_answered_by_the_user() {
    let allow = |claude: &mut Claude, step: &Step| match step {
        Step::Question(Question { number, options, detail, .. }) => {
            assert!(detail.as_ref().is_some_and(|detail| !detail.is_empty()));
            let option = options.iter().find(|option| option.kind == OptionKind::AllowOnce).unwrap();
            control(claude, answer(number.0, Some(&option.id), None)).0
        }
        _ => Vec::new(),
    };
    let steps = replay("task_ask", policy(true), allow);
    let titles = steps.iter().filter_map(|step| match step {
        Step::Question(question) => Some((question.number.0, question.title.as_str())),
        _ => None,
    });
    assert_eq!(
        titles.collect::<Vec<_>>(),
        [(1, "Change a file"), (2, "Change a file"), (3, "Run a command")]
    );
}

#[test]
fn questions_of_the_agent_are_asked_one_after_the_other() {
    let mut answers = Vec::new();
    let reply = |claude: &mut Claude, step: &Step| match step {
        Step::Question(question) if question.title == "Which colour?" => {
            let labels: Vec<_> = question.options.iter().map(|option| option.label.as_str()).collect();
            assert_eq!((labels, question.free_text), (vec!["Red", "Blue"], true));
            assert_eq!(question.detail.as_deref(), Some("Red: like fire\nBlue: like water"));
            let (sent, steps) = control(claude, answer(question.number.0, Some("Blue"), None));
            let [Step::Question(next)] = &steps[..] else { panic!("{steps:?}") };
            assert!(sent.is_empty() && next.title == "Which sizes?");
            let (sent, _) = control(claude, answer(next.number.0, None, Some("S, L")));
            answers.clone_from(&sent);
            sent
        }
        _ => Vec::new(),
    };
    let steps = replay("ask", policy(false), reply);
    assert!(matches!(steps[..], [Step::Ready, Step::Question(_), Step::TurnEnded]), "{steps:?}");
    assert_eq!(answers.len(), 1);
}

#[test]
fn without_an_answer_nothing_is_allowed() {
    let recording = recording("task_ask");
    let request = recording.lines().find(|line| line.contains("can_use_tool")).unwrap();
    let (mut claude, _) = opened("task", policy(true));
    on_line(&mut claude, request);
    let (sent, _) = control(&mut claude, answer(1, None, None));
    assert_eq!(as_json(&sent[0])["response"]["response"]["behavior"], "deny");
    let (again, _) = control(&mut claude, answer(1, Some("allow_once"), None));
    assert!(again.is_empty(), "a second answer says nothing to the agent");
    let recording = self::recording("ask");
    let request = recording.lines().find(|line| line.contains("can_use_tool")).unwrap();
    on_line(&mut claude, request);
    control(&mut claude, answer(2, None, None));
    let (sent, _) = control(&mut claude, answer(3, None, None));
    assert_eq!(as_json(&sent[0])["response"]["response"]["behavior"], "deny");
}

#[test]
fn a_tool_that_is_allowed_until_the_end_is_not_asked_for_again() {
    let recording = recording("task_ask");
    let edits: Vec<_> = recording.lines().filter(|line| line.contains(r#""tool_name":"Edit""#)).collect();
    let (mut claude, _) = opened("task", policy(true));
    on_line(&mut claude, edits[0]);
    control(&mut claude, answer(1, Some("allow_always"), None));
    let (sent, steps) = on_line(&mut claude, edits[0]);
    assert_eq!((sent.len(), steps.len()), (1, 0));
}

#[test]
fn the_next_message_begins_the_next_turn() {
    let mut messages = vec!["Please do lab:second"];
    let steps = replay("two_messages", policy(false), |claude, step| match messages.pop() {
        Some(text) if *step == Step::TurnEnded => {
            assert!(claude.can_take(Delivery::Next) && !claude.can_take(Delivery::Now));
            let (sent, _) = control(claude, message(1, text));
            assert!(!claude.can_take(Delivery::Next));
            sent
        }
        unused => {
            messages.extend(unused);
            Vec::new()
        }
    });
    let accepted = Step::Accepted(MessageNumber(1));
    assert_eq!(steps, [Step::Ready, Step::TurnEnded, accepted, Step::TurnEnded]);
}

#[test]
fn an_interrupt_withdraws_open_questions_and_no_message_follows() {
    let recording = recording("interrupt_permission");
    let (mut claude, _) = opened("Please do lab:touch", policy(true));
    let mut steps = Vec::new();
    for line in recording.lines() {
        match message_of_text(line) {
            (Sender::Us, line) if line.contains(r#""subtype":"interrupt""#) => {
                let (sent, _) = control(&mut claude, Control::Interrupt);
                assert_eq!(as_json(&sent[0])["request"], as_json(line)["request"]);
            }
            (Sender::Us, _) => {}
            (Sender::Agent, line) => steps.extend(on_line(&mut claude, line).1),
        }
        if steps.last() == Some(&Step::TurnEnded) {
            break;
        }
    }
    let withdrawn = Step::Withdrawn(QuestionNumber(1));
    assert!(
        matches!(&steps[..], [Step::Ready, Step::Question(_), w, Step::TurnEnded] if *w == withdrawn),
        "{steps:?}"
    );
    assert!(!claude.can_take(Delivery::Next));
    let (sent, steps) = control(&mut claude, Control::Interrupt);
    assert_eq!((sent.len(), steps), (0, vec![Step::TurnEnded]), "no turn is left to be interrupted");
}

#[test]
fn a_turn_that_begins_by_itself_is_reported() {
    let steps = replay("sub_agent_background", policy(false), |_, _| Vec::new());
    assert_eq!(steps, [Step::Ready, Step::TurnEnded, Step::Working, Step::TurnEnded]);
}

#[test]
fn a_session_that_cannot_be_resumed_ends_its_turn() {
    assert_eq!(replay("resume_unknown", policy(false), |_, _| Vec::new()), [Step::Ready, Step::TurnEnded]);
}

#[test]
fn unknown_requests_are_refused() {
    let (mut claude, _) = opened("task", policy(false));
    let line = r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback"}}"#;
    let (sent, _) = on_line(&mut claude, line);
    assert_eq!(as_json(&sent[0])["response"]["subtype"], "error");
}
