//! Questions of a running agent to its user, and their answers.
//!
//! An agent that wants to know something, or that needs permission for an action, asks a question and waits.
//! The first answer counts; without one in time, the agent learns that there is none.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;
use crate::terminal;

/// Identifies a question within its task: 1, 2, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionNumber(pub u32);

impl std::fmt::Display for QuestionNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum QuestionKind {
        /// The agent wants to do something that needs permission.
        Permission = "permission",
        /// The agent wants to know something.
        Question = "question",
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OptionKind {
        AllowOnce = "allow_once",
        AllowAlways = "allow_always",
        RejectOnce = "reject_once",
        RejectAlways = "reject_always",
        /// Neither permission nor refusal: one of the answers that the agent proposes.
        Other = "other",
    }
}

impl OptionKind {
    pub fn is_allow(self) -> bool {
        matches!(self, OptionKind::AllowOnce | OptionKind::AllowAlways)
    }
}

named_enum! {
    /// Only an open question can be answered.
    pub enum QuestionState {
        Open = "open",
        Answered = "answered",
        /// No answer was given in time.
        Expired = "expired",
        /// The agent does not wait for an answer any more.
        Withdrawn = "withdrawn",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOption {
    /// Identifies the option within its question.
    pub id: String,
    pub label: String,
    pub kind: OptionKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub number: QuestionNumber,
    pub kind: QuestionKind,
    /// One line.
    pub title: String,
    /// The command, the paths or the reason, if the title does not contain them.
    pub detail: Option<String>,
    /// Empty if only text can answer it.
    pub options: Vec<AnswerOption>,
    /// Whether text can answer it.
    pub free_text: bool,
}

impl Question {
    /// As a person or a model may see it: what they decide by hides nothing. The options keep their order and ids.
    pub fn revealed(&self) -> Question {
        let reveal = |text: &String| terminal::reveal(text).into_owned();
        let option = |option: &AnswerOption| AnswerOption { label: reveal(&option.label), ..option.clone() };
        Question {
            title: reveal(&self.title),
            detail: self.detail.as_ref().map(reveal),
            options: self.options.iter().map(option).collect(),
            ..self.clone()
        }
    }
}

/// An answer to a question. Without option and text it says that there was none: permission is not given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The id of the chosen option.
    pub option: Option<String>,
    pub text: Option<String>,
}
