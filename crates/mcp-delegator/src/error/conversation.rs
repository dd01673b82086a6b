//! Converts the engine's errors about messages and questions into [`AppError`].

use delegator_domain::question::{Question, QuestionState};
use delegator_domain::task::TaskId;
use delegator_engine::{AnswerProblem, ConversationError};
use delegator_registry::StoredQuestion;
use serde_json::Value;

use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, Problem};

pub(super) fn conversation_error(error: ConversationError, message: String) -> AppError {
    match error {
        ConversationError::NoMessages { agent } => AppError::new(ErrorCode::Unsupported, message)
            .context("agent", agent)
            .suggest(Suggestion::with_call(
                "Wait for the task, then continue its thread with {call}.",
                NextCall::new(&["local", "resume"]),
            )),
        ConversationError::NotSteerable { agent } => AppError::new(ErrorCode::Unsupported, message)
            .context("agent", agent)
            .context("field", "now")
            .suggest("Remove {input:now}: the agent gets the message as its next turn."),
        ConversationError::MessageTooLong { .. } => AppError::new(ErrorCode::InvalidValue, message)
            .context("field", "text")
            .suggest("Write the text to a file in the working directory, and send the name of the file."),
        ConversationError::TooManyMessages { task, .. } => AppError::new(ErrorCode::NotReady, message)
            .context("task_id", task.as_str())
            .suggest("Repeat the call when the agent has taken some of them."),
        ConversationError::NoOpenQuestion { task, state } => AppError::new(ErrorCode::WrongState, message)
            .context("state", state.public_name())
            .context("task_id", task.as_str()),
        ConversationError::UnknownQuestion { task, number } => AppError::new(ErrorCode::NotFound, message)
            .context("task_id", task.as_str())
            .context("question_number", number.0),
        ConversationError::SeveralQuestions { task, numbers } => {
            let numbers: Vec<Value> = numbers.iter().map(|number| number.0.into()).collect();
            several_questions(message, &task, numbers)
        }
        ConversationError::QuestionClosed { task, question } => question_closed(message, &task, &question),
        ConversationError::InvalidAnswer { question, problem } => invalid_answer(&question, &problem),
    }
}

fn several_questions(message: String, task: &TaskId, numbers: Vec<Value>) -> AppError {
    let listed: Vec<String> = numbers.iter().map(Value::to_string).collect();
    AppError::new(ErrorCode::MissingArgument, message)
        .context("task_id", task.as_str())
        .context("field", "question")
        .context("question_numbers", numbers)
        .suggest(format!("Give the number of one of them as {{input:question}}: {}.", listed.join(", ")))
}

/// The question was answered before, or the agent does not wait any more.
fn question_closed(message: String, task: &TaskId, question: &StoredQuestion) -> AppError {
    let error = AppError::new(ErrorCode::WrongState, message)
        .context("task_id", task.as_str())
        .context("question_number", question.question.number.0)
        .context("question_state", question.state.name());
    let Some(answer) = question.answer.as_ref().filter(|_| question.state == QuestionState::Answered) else {
        return error;
    };
    let option = answer.option.and_then(|position| question.question.options.get(position));
    let error = match option {
        Some(option) => error.context("answer_option", option.id.as_str()),
        None => error,
    };
    match &answer.text {
        Some(text) => error.context("answer_text", text.as_str()),
        None => error,
    }
}

fn invalid_answer(question: &Question, problem: &AnswerProblem) -> AppError {
    let ids = question.options.iter().map(|option| option.id.as_str());
    let problem = match problem {
        AnswerProblem::UnknownOption { given } => {
            Problem::new(ErrorCode::InvalidValue, "option", problem.to_string())
                .value(given.as_str().into())
                .choose_from(given, ids)
        }
        AnswerProblem::NoFreeText => {
            let listed: Vec<&str> = ids.collect();
            Problem::new(ErrorCode::InvalidValue, "text", problem.to_string())
                .suggest(Some(format!("Give one of its options: {}.", listed.join(", "))))
        }
        AnswerProblem::Empty => Problem::new(ErrorCode::MissingArgument, "answer", problem.to_string()),
    };
    AppError::from_problems(vec![problem])
}
