//! Converts the engine's errors about messages and questions into [`AppError`].

use delegator_domain::question::{Question, QuestionState};
use delegator_domain::task::TaskId;
use delegator_engine::{AnswerProblem, ConversationError};
use delegator_registry::StoredQuestion;
use serde_json::Value;

use crate::error::suggestion::{NextCall, Suggestion};
use crate::error::{AppError, ErrorCode, Problem, truncate_text};

pub(super) fn conversation_error(error: ConversationError, message: String) -> AppError {
    match error {
        ConversationError::NoMessages { agent } => {
            AppError::new(ErrorCode::Unsupported, message).context("agent", agent)
        }
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
            .context("task_id", task.as_str())
            .suggest(see_status(&task)),
        ConversationError::UnknownQuestion { task, number } => AppError::new(ErrorCode::NotFound, message)
            .context("task_id", task.as_str())
            .context("question_number", number.0)
            .suggest(see_status(&task)),
        ConversationError::OwnQuestion { .. } => AppError::new(ErrorCode::PolicyBlocked, message)
            .suggest("Wait for the user, or continue without the answer."),
        ConversationError::SeveralQuestions { task, questions } => {
            several_questions(message, &task, &questions)
        }
        ConversationError::QuestionClosed { task, question } => question_closed(message, &task, &question),
        ConversationError::InvalidAnswer { question, problem } => invalid_answer(&question, &problem),
    }
}

fn see_status(task: &TaskId) -> Suggestion {
    let call = NextCall::for_task(&["local", "status"], task.as_str());
    Suggestion::with_call("See what the task does and asks: {call}", call)
}

fn several_questions(message: String, task: &TaskId, questions: &[Question]) -> AppError {
    let numbers: Vec<Value> = questions.iter().map(|question| question.number.0.into()).collect();
    let listed = questions.iter().map(|question| {
        let title = truncate_text(&question.title);
        format!("{} ({title})", question.number.0)
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    AppError::new(ErrorCode::MissingArgument, message)
        .context("task_id", task.as_str())
        .context("field", "question")
        .context("question_numbers", numbers)
        .suggest(format!("Give the number of one of them as {{input:question}}: {listed}."))
}

/// The question was answered before, or the agent does not wait any more.
fn question_closed(message: String, task: &TaskId, question: &StoredQuestion) -> AppError {
    let number = question.question.number.0;
    let answer = question.answer.as_ref().filter(|_| question.state == QuestionState::Answered);
    let option = answer.and_then(|answer| question.question.options.get(answer.option?));
    let option = option.map(|option| option.id.as_str());
    let text = answer.and_then(|answer| answer.text.as_deref());
    let message = match text.or(option) {
        Some(given) => {
            let given = truncate_text(given);
            format!("Question {number} of task {task} is answered already: {given}.")
        }
        None => message,
    };
    AppError::new(ErrorCode::WrongState, message)
        .context("task_id", task.as_str())
        .context("question_number", number)
        .context("question_state", question.state.name())
        .optional_context("answer_option", option)
        .optional_context("answer_text", text)
}

fn invalid_answer(question: &Question, problem: &AnswerProblem) -> AppError {
    let ids = question.options.iter().map(|option| option.id.as_str());
    let listed = match question.options.as_slice() {
        [] => "it has none, answer with a text".to_owned(),
        _ => format!("it has {}", ids.clone().collect::<Vec<_>>().join(", ")),
    };
    let problem = match problem {
        AnswerProblem::UnknownOption { given } => Problem::invalid("option", format!("{problem}; {listed}"))
            .value(given.as_str().into())
            .choose_from(given, ids),
        AnswerProblem::NoFreeText => {
            Problem::invalid("text", format!("{problem}; {listed}")).permit("Use one of the options.")
        }
        AnswerProblem::Empty => Problem::new(ErrorCode::MissingArgument, "answer", problem.to_string()),
    };
    problem.into()
}
