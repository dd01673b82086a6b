//! The open questions and the messages of a task in a document.

use delegator_domain::question::{QuestionKind, QuestionState};

use crate::output::data::conversation::{MessageData, MessagesData, QuestionData};
use crate::output::documents::document::truncate_cell;
use crate::output::prelude::*;

const MAX_EXCERPT_BYTES: usize = 80;
const MAX_REASON_BYTES: usize = 80;

/// The open questions of a task, each with its possible answers and the call that answers it.
pub fn append_questions(document: Document, task_id: &str, open: &[QuestionData]) -> Document {
    open.iter().fold(document, |document, question| append_question(document, task_id, question))
}

/// One question with its possible answers. An open one also has the call that answers it.
pub fn append_question(document: Document, task_id: &str, question: &QuestionData) -> Document {
    let label = if question.kind == QuestionKind::Permission.name() {
        "The agent asks for permission"
    } else {
        "The agent asks"
    };
    let (number, title) = (question.question_number, &question.title);
    let mut document = document.text(format!("{label} (question {number}): {title}"));
    if let Some(detail) = &question.detail {
        document = document.block(Block::Verbatim(detail.clone()));
    }
    let rows = question.options.iter().map(|option| vec![option.id.clone(), option.label.clone()]);
    let document = document.table(&["answer", "meaning"], rows.collect());
    if question.state != QuestionState::Open.name() {
        return document;
    }
    document
        .block(Block::facts([("open until", Some(question.expires_at.0.clone()))]))
        .block(Block::ForPeople(how_to_answer(task_id, question)))
}

fn how_to_answer(task_id: &str, question: &QuestionData) -> Suggestion {
    let call = NextCall::for_task(&["answer"], task_id);
    let (call, text) = match question.options.first() {
        Some(first) if question.is_text_accepted => (
            call.with("option", first.id.as_str()),
            "Answer with one of them or with a text, for example: {call}",
        ),
        Some(first) => {
            (call.with("option", first.id.as_str()), "Answer with one of them, for example: {call}")
        }
        None => (call.with("text", "…"), "Answer: {call}"),
    };
    Suggestion::with_call(text, call.with("question", question.question_number))
}

pub fn append_messages(document: Document, messages: Option<&MessagesData>) -> Document {
    let row = |message: &MessageData| {
        vec![
            message.message_number.to_string(),
            message.state.to_owned(),
            truncate_cell(&message.excerpt, MAX_EXCERPT_BYTES),
            truncate_cell(&cell(message.reason.as_ref()), MAX_REASON_BYTES),
        ]
    };
    let rows = messages.into_iter().flat_map(|messages| &messages.items).map(row);
    document.table(&["message", "state", "text", "reason"], rows.collect())
}

impl MessagesData {
    /// `2 queued, 1 accepted`.
    pub fn counts_text(&self) -> String {
        let counts = [
            (self.queued_count, "queued"),
            (self.delivered_count, "delivered"),
            (self.accepted_count, "accepted"),
            (self.failed_count, "failed"),
            (self.unknown_count, "unknown"),
        ];
        let known = counts.into_iter().filter(|(count, _)| *count > 0);
        known.map(|(count, state)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::call_syntax::CallSyntax;
    use crate::output::data::conversation::OptionData;
    use crate::output::documents::text::TextStyle;
    use crate::output::values::UtcTime;

    #[test]
    fn a_question_is_shown_with_its_answers_and_the_command_that_answers_it() {
        let option =
            |id: &str, label: &str| OptionData { id: id.to_owned(), label: label.to_owned(), kind: "other" };
        let question = QuestionData {
            question_number: 2,
            kind: "permission",
            state: "open",
            title: "Run a command?".to_owned(),
            detail: Some("rm -r build".to_owned()),
            options: vec![option("yes", "Allow once"), option("no", "Reject")],
            is_text_accepted: false,
            asked_at: UtcTime::from_ms(0),
            expires_at: UtcTime::from_ms(1),
            answer: None,
        };
        let document = append_questions(Document::default(), "T-local-0123456789", &[question]);
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
        let messages = MessagesData {
            queued_count: 2,
            delivered_count: 0,
            accepted_count: 1,
            failed_count: 0,
            unknown_count: 0,
            items: Vec::new(),
        };
        assert_eq!(messages.counts_text(), "2 queued, 1 accepted");
    }
}
