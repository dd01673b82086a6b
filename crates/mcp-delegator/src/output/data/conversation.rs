//! The messages to an agent and its questions, in our JSON.

use delegator_domain::message::{Delivery, MessageState};
use delegator_domain::question::{AnswerOption, OptionKind, QuestionKind, QuestionState};
use delegator_engine::TaskMessages;
use delegator_registry::{Message, StoredQuestion};

use crate::output::prelude::*;
use crate::output::values::truncate_chars;

/// Characters of a question that are shown.
const MAX_TITLE_CHARS: usize = 500;
const MAX_DETAIL_CHARS: usize = 2_000;
const MAX_LABEL_CHARS: usize = 200;

/// The messages to the agent of a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MessagesData {
    pub queued_count: u64,
    pub delivered_count: u64,
    pub accepted_count: u64,
    pub failed_count: u64,
    /// The task ended before the agent confirmed them; they may have been read.
    pub unknown_count: u64,
    /// The last messages, oldest first; none in a list of several tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<MessageData>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MessageData {
    /// 1, 2, … per task.
    pub message_number: u32,
    #[schemars(extend("enum" = Delivery::NAMES))]
    pub delivery: &'static str,
    #[schemars(extend("enum" = MessageState::NAMES))]
    pub state: &'static str,
    /// Why it failed, or why its delivery is unknown.
    pub reason: Option<String>,
    /// The beginning of the text.
    pub excerpt: String,
    /// The length of the text.
    pub bytes: u64,
    pub sent_at: UtcTime,
    pub delivered_at: Option<UtcTime>,
    /// When it was accepted, or its delivery failed or became unknown.
    pub settled_at: Option<UtcTime>,
}

impl MessagesData {
    /// `None` if there are no messages.
    pub fn of(messages: &TaskMessages) -> Option<MessagesData> {
        let counts = messages.counts;
        (counts.total() > 0).then(|| MessagesData {
            queued_count: counts.queued,
            delivered_count: counts.delivered,
            accepted_count: counts.accepted,
            failed_count: counts.failed,
            unknown_count: counts.unknown,
            items: messages.last.iter().map(Into::into).collect(),
        })
    }
}

impl From<&Message> for MessageData {
    fn from(message: &Message) -> MessageData {
        MessageData {
            message_number: message.number.0,
            delivery: message.delivery.name(),
            state: message.state.name(),
            reason: message.reason.clone(),
            excerpt: message.excerpt.clone(),
            bytes: message.bytes,
            sent_at: UtcTime::from_ms(message.sent_at_ms),
            delivered_at: message.delivered_at_ms.map(UtcTime::from_ms),
            settled_at: message.settled_at_ms.map(UtcTime::from_ms),
        }
    }
}

/// A question of the agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuestionData {
    /// 1, 2, … per task.
    pub question_number: u32,
    #[schemars(extend("enum" = QuestionKind::NAMES))]
    pub kind: &'static str,
    #[schemars(extend("enum" = QuestionState::NAMES))]
    pub state: &'static str,
    pub title: String,
    /// The command, the paths or the reason.
    pub detail: Option<String>,
    /// The possible answers; empty if only a text answers it.
    pub options: Vec<OptionData>,
    /// A text can answer it.
    pub is_text_accepted: bool,
    pub asked_at: UtcTime,
    /// Without an answer until then, the agent gets none.
    pub expires_at: UtcTime,
    /// Set once it is answered.
    pub answer: Option<AnswerData>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OptionData {
    pub id: String,
    pub label: String,
    #[schemars(extend("enum" = OptionKind::NAMES))]
    pub kind: &'static str,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnswerData {
    /// The id of the chosen option.
    pub option: Option<String>,
    pub text: Option<String>,
}

impl From<&StoredQuestion> for QuestionData {
    fn from(stored: &StoredQuestion) -> QuestionData {
        let question = &stored.question;
        let option = |position: usize| question.options.get(position).map(|option| option.id.clone());
        QuestionData {
            question_number: question.number.0,
            kind: question.kind.name(),
            state: stored.state.name(),
            title: truncate_chars(&question.title, MAX_TITLE_CHARS),
            detail: question.detail.as_deref().map(|detail| truncate_chars(detail, MAX_DETAIL_CHARS)),
            options: question.options.iter().map(Into::into).collect(),
            is_text_accepted: question.free_text,
            asked_at: UtcTime::from_ms(stored.asked_at_ms),
            expires_at: UtcTime::from_ms(stored.expires_at_ms),
            answer: stored.answer.as_ref().map(|answer| AnswerData {
                option: answer.option.and_then(option),
                text: answer.text.clone(),
            }),
        }
    }
}

impl From<&AnswerOption> for OptionData {
    fn from(option: &AnswerOption) -> OptionData {
        OptionData {
            id: option.id.clone(),
            label: truncate_chars(&option.label, MAX_LABEL_CHARS),
            kind: option.kind.name(),
        }
    }
}

/// What a task that has not ended waits for, and its messages.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Conversation {
    /// Questions of the agent that wait for an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for_answer: Vec<QuestionData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesData>,
}

impl Conversation {
    pub fn of(open: &[StoredQuestion], messages: &TaskMessages) -> Conversation {
        Conversation {
            waiting_for_answer: open.iter().map(Into::into).collect(),
            messages: MessagesData::of(messages),
        }
    }
}
