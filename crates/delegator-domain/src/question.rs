//! Questions of an agent to the user, and their answers.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

/// The questions of a task are numbered 1, 2, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuestionNumber(pub u32);

named_enum! {
    pub enum QuestionKind {
        /// The agent wants to do something that needs a permission.
        Permission = "permission",
        /// The agent wants to know something.
        Question = "question",
    }
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub number: QuestionNumber,
    pub kind: QuestionKind,
    pub title: String,
    /// The command, the paths or the reason.
    pub detail: Option<String>,
    pub options: Vec<AnswerOption>,
    /// The answer may be a text.
    pub free_text: bool,
}

/// A possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOption {
    pub id: String,
    pub label: String,
    pub kind: OptionKind,
}

named_enum! {
    /// What an option means, whatever its id and label are.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OptionKind {
        AllowOnce = "allow_once",
        AllowAlways = "allow_always",
        RejectOnce = "reject_once",
        RejectAlways = "reject_always",
        Other = "other",
    }
}

/// An answer to a question: an option, a text, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The id of the option.
    pub option: Option<String>,
    pub text: Option<String>,
}

named_enum! {
    pub enum QuestionState {
        Open = "open",
        Answered = "answered",
        /// No answer was given in time.
        Expired = "expired",
        /// The agent does not wait for an answer any more.
        Withdrawn = "withdrawn",
    }
}

/// How a question ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionEnd {
    Expired,
    Withdrawn,
}
