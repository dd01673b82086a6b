//! What a notification about a running task says.

use delegator_domain::notification::Topic;
use serde_json::json;

use crate::live::tests::asking_task;
use crate::live::{LiveNeed, NeedyTask};
use crate::notification::Notification;
use crate::notification::tests::settings;

#[test]
fn a_question_has_its_options_and_the_command_that_answers_it() {
    let task = asking_task();
    let sent = Notification::of_need(&task, 1, &settings(None), 1_700_000_000_000);
    let (id, command) =
        (&task.id, format!("mcp-delegator answer {} --option 'allow it' --question 2", task.id));
    let text = format!(
        "make all\n1. Allow\n2. Reject\nAnswer within 2 min 5 s, for example:\n{command}\n\
         Task: fix the test\nRepository: site (/home/me/site)\nAgent: claude"
    );
    let expected = json!({
        "version": 1, "id": format!("{id}.question_2"), "event": "task.question", "is_test": false,
        "delivery_attempt": 1, "title": "Permission: Run a command?", "text": text, "section": "needs_you",
        "subject": {"kind": "task", "id": id, "state": "working", "title": "fix the test"},
        "tasks": [{
            "task_id": id, "attempt": null, "state": "working", "title": "fix the test",
            "working_dir": "/home/me/site/src", "repository": {"name": "site", "path": "/home/me/site"},
            "agent": "claude", "labels": {},
        }],
        "question": {
            "number": 2, "kind": "permission", "title": "Run a command?", "detail": "make all",
            "options": [{"id": "allow it", "label": "Allow"}, {"id": "deny", "label": "Reject"}],
            "is_text_accepted": false, "deadline_at_ms": 1_700_000_125_000_i64,
        },
        "command": command,
    });
    assert_eq!(serde_json::to_value(&sent).unwrap(), expected);
}

#[test]
fn a_silent_task_and_a_used_budget_say_what_follows() {
    for (topic, event, title, command) in [
        (Topic::Stuck, "task.stuck", "Stuck: quiet", "logs"),
        (Topic::Budget, "task.budget", "Budget: quiet", "show"),
    ] {
        let need = LiveNeed::Attention { topic, detail: "quiet\nIt is stopped.".to_owned() };
        let task = NeedyTask { need, ..asking_task() };
        let sent = Notification::of_need(&task, 1, &settings(None), 0);
        assert_eq!((sent.event.as_str(), sent.title.as_str()), (event, title));
        let begin = format!("It is stopped.\nmcp-delegator {command} {0}\nmcp-delegator cancel {0}", task.id);
        assert!(sent.text.starts_with(&begin), "{}", sent.text);
        assert_eq!(serde_json::to_value(&sent).unwrap()["question"], json!(null));
    }
}

#[test]
fn texts_of_an_agent_are_redacted_and_bounded() {
    let key = format!("sk-proj-{}", "A1b2C3d4".repeat(6));
    let mut task = asking_task();
    let LiveNeed::Answer { question, .. } = &mut task.need else { unreachable!() };
    question.title = format!("Use {key}?\u{1b}[31m");
    question.detail = Some("x".repeat(9_000));
    question.options = vec![question.options[0].clone(); 100];
    let sent = serde_json::to_string(&Notification::of_need(&task, 1, &settings(None), 0)).unwrap();
    assert!(!sent.contains("A1b2") && !sent.contains("\\u001b"), "{sent}");
    assert!(sent.len() < 16 << 10, "{}", sent.len());
}
