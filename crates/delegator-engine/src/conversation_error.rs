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
    #[error("task {task} cannot answer its own question")]
    OwnQuestion { task: TaskId },
    #[error("task {task} has {} open questions", questions.len())]
    SeveralQuestions { task: TaskId, questions: Vec<Question> },
    #[error("question {} of task {task} is not open: it is {}", question.question.number.0, question.state.name())]
    QuestionClosed { task: TaskId, question: Box<StoredQuestion> },
    #[error("the answer {problem}")]
    InvalidAnswer { question: Box<Question>, problem: AnswerProblem },
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerProblem {
    #[error("is not an option of the question")]
    UnknownOption { given: String },
    #[error("is not accepted: the question has only options")]
    NoFreeText,
    #[error("is empty")]
    Empty,
}
