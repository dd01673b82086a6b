//! Errors about the messages to an agent and its questions.

use delegator_domain::question::{Question, QuestionNumber};
use delegator_domain::task::{State, TaskId};
use delegator_registry::StoredQuestion;

/// Why a message was not sent, or a question not answered.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    #[error("the agent {agent} takes no messages")]
    NoMessages { agent: String },
    #[error("the agent {agent} takes no message during a turn")]
    NotSteerable { agent: String },
    #[error("the message has {bytes} bytes; at most {allowed} are allowed")]
    MessageTooLong { bytes: usize, allowed: usize },
    #[error("{allowed} messages to task {task} are not delivered yet, and no more are accepted")]
    TooManyMessages { task: TaskId, allowed: u32 },
    #[error("task {task} has no open question: it is {}", state.public_name())]
    NoOpenQuestion { task: TaskId, state: State },
    #[error("task {task} has no question {}", number.0)]
    UnknownQuestion { task: TaskId, number: QuestionNumber },
    #[error("task {task} has {} open questions", numbers.len())]
    SeveralQuestions { task: TaskId, numbers: Vec<QuestionNumber> },
    #[error("question {} of task {task} is not open: it is {}", question.question.number.0, question.state.name())]
    QuestionClosed { task: TaskId, question: Box<StoredQuestion> },
    #[error("the answer {problem}")]
    InvalidAnswer { question: Box<Question>, problem: AnswerProblem },
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerProblem {
    #[error("is none of its options")]
    UnknownOption { given: String },
    #[error("cannot be a text: the question has options only")]
    NoFreeText,
    #[error("is empty")]
    Empty,
}
