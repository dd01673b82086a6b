//! The open questions and the messages of a task in a document.

use serde_json::Value;

use crate::error::suggestion::{NextCall, Suggestion};
use crate::output::documents::document::{Block, Document, scalar, table, truncate_cell};

const MAX_EXCERPT_BYTES: usize = 80;
const MAX_REASON_BYTES: usize = 80;

/// The open questions of a task, each with its possible answers and the call that answers it.
pub fn append_questions(document: Document, task: &Value) -> Document {
    let open = task["waiting_for_answer"].as_array().into_iter().flatten();
    open.fold(document, |document, question| append_question(document, &task["task_id"], question))
}

/// One question with its possible answers. An open one also has the call that answers it.
pub fn append_question(document: Document, task: &Value, question: &Value) -> Document {
    let label = match question["kind"].as_str() {
        Some("permission") => "The agent asks for permission",
        _ => "The agent asks",
    };
    let number = scalar(&question["question_number"]);
    let title = scalar(&question["title"]);
    let mut document = document.block(Block::Text(format!("{label} (question {number}): {title}")));
    if let Some(detail) = question["detail"].as_str() {
        document = document.block(Block::Verbatim(detail.to_owned()));
    }
    let options = question["options"].as_array().into_iter().flatten();
    let row = |option: &Value| vec![scalar(&option["id"]), scalar(&option["label"])];
    document.blocks.extend(table(&["answer", "meaning"], options.map(row).collect()));
    if question["state"] != "open" {
        return document;
    }
    let facts = vec![("open until".to_owned(), scalar(&question["expires_at"]))];
    document.block(Block::Facts(facts)).block(Block::ForPeople(how_to_answer(task, question)))
}

/// The call that answers a question, with its first option.
pub fn how_to_answer(task: &Value, question: &Value) -> Suggestion {
    let call = NextCall::new(&["answer"]).with("task_id", task.clone());
    let (call, text) = match question["options"][0]["id"].as_str() {
        Some(first) if question["is_text_accepted"] == true => {
            (call.with("option", first), "Answer with one of them or with a text, for example: {call}")
        }
        Some(first) => (call.with("option", first), "Answer with one of them, for example: {call}"),
        None => (call.with("text", "…"), "Answer: {call}"),
    };
    Suggestion::with_call(text, call.with("question", question["question_number"].clone()))
}

/// The last messages of a task.
pub fn append_messages(document: Document, task: &Value) -> Document {
    let items = task["messages"]["items"].as_array().into_iter().flatten();
    let row = |message: &Value| {
        vec![
            scalar(&message["message_number"]),
            scalar(&message["state"]),
            truncate_cell(&scalar(&message["excerpt"]), MAX_EXCERPT_BYTES),
            truncate_cell(&scalar(&message["reason"]), MAX_REASON_BYTES),
        ]
    };
    let mut document = document;
    document.blocks.extend(table(&["message", "state", "text", "reason"], items.map(row).collect()));
    document
}

/// `2 queued, 1 accepted`; `None` if there are no messages.
pub fn message_counts(task: &Value) -> Option<String> {
    let messages = task.get("messages").filter(|messages| messages.is_object())?;
    let counts = ["queued", "delivered", "accepted", "failed", "unknown"].into_iter().filter_map(|state| {
        let count = messages[format!("{state}_count")].as_u64().filter(|count| *count > 0)?;
        Some(format!("{count} {state}"))
    });
    Some(counts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::call_syntax::CallSyntax;
    use crate::output::documents::text::TextStyle;

    #[test]
    fn a_question_is_shown_with_its_answers_and_the_command_that_answers_it() {
        let option = |id: &str, label: &str| json!({"id": id, "label": label, "kind": "other"});
        let question = json!({
            "question_number": 2, "kind": "permission", "state": "open", "title": "Run a command?",
            "detail": "rm -r build", "expires_at": "2026-01-01T00:00:00.000Z",
            "options": [option("yes", "Allow once"), option("no", "Reject")],
        });
        let task = json!({"task_id": "T-local-0123456789", "waiting_for_answer": [question]});
        let document = append_questions(Document::default(), &task);
        let text = document.to_text(TextStyle::default());
        for part in [
            "The agent asks for permission (question 2): Run a command?",
            "rm -r build",
            "Allow once",
            "mcp-delegator answer T-local-0123456789 --option yes --question 2",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(document.to_markdown(CallSyntax::Commands).contains("Allow once"));
    }

    #[test]
    fn counts_of_zero_are_not_shown() {
        let messages = json!({"queued_count": 2, "delivered_count": 0, "accepted_count": 1, "failed_count": 0,
            "unknown_count": 0});
        assert_eq!(message_counts(&json!({"messages": messages})).as_deref(), Some("2 queued, 1 accepted"));
        assert_eq!(message_counts(&json!({})), None);
    }
}
