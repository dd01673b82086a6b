//! `answer`: answer a question of a running agent, or show it.
//!
//! The first answer wins; later ones fail with the one that won. The agent of a task cannot answer its own
//! questions.

use delegator_domain::question::{Answer as QuestionAnswer, Question, QuestionNumber, QuestionState};
use delegator_registry::StoredQuestion;

use crate::commands::prelude::*;
use crate::output::data::conversation::QuestionData;
use crate::output::documents::conversation;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Answer {
    #[serde(flatten)]
    pub task: TaskIdInput,
    /// An option of the question, by its id or label; or a text, if the question accepts one
    #[schemars(length(min = 1, max = 100_000), extend("x-markers" = [Marker::Positional]))]
    pub answer: Option<String>,
    /// Number of the question; needed only if several are open
    #[schemars(range(min = 1, max = 1_000_000))]
    pub question: Option<u32>,
    /// Id of an option
    #[schemars(length(min = 1, max = 10_000))]
    pub option: Option<String>,
    /// A text
    #[schemars(length(min = 1, max = 100_000), extend("x-markers" = [Marker::Stdin]))]
    pub text: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnsweredQuestion {
    pub task_id: String,
    #[serde(flatten)]
    pub question: QuestionData,
}

const QUESTION_SHOWN: &str = "question_shown";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Without an answer it shows the open question. The first answer wins. An agent cannot answer its own question.",
    shape: Shape::Action("question_answered"),
    other_actions: &[QUESTION_SHOWN],
    toolset: Toolset::Worktree,
    failures: &[ErrorCode::WrongState, ErrorCode::PolicyBlocked],
    examples: &[
        example("mcp-delegator answer T-local-…", "the open question and its options"),
        example("mcp-delegator answer T-local-… allow_once", "the question, answered with that option"),
    ],
    input: InputType::with_rules::<Answer>(),
    ..CommandSpec::new::<Answer, AnsweredQuestion>(&["answer"], "Answer a question of a running agent")
};

impl InputRules for Answer {
    fn problems(&self) -> Vec<Problem> {
        let explicit = [("option", self.option.is_some()), ("text", self.text.is_some())];
        let other = explicit.into_iter().find(|(_, is_given)| *is_given && self.answer.is_some());
        other.map(|(other, _)| Problem::excluded("answer", other)).into_iter().collect()
    }
}

pub fn run(context: &Context<'_>, input: Answer) -> Result<CommandOutput, AppError> {
    let engine = engine(context)?;
    let id = resolve_task(&engine, &input.task.task_id)?;
    let stored = engine.conversations().question(&id, input.question.map(QuestionNumber))?;
    let Some(answer) = requested_answer(&stored.question, &input) else {
        let output = output(&id, &stored);
        return Ok(CommandOutput { shape: Some(Shape::Action(QUESTION_SHOWN)), ..output });
    };
    let answered = engine.conversations().answer(&id, stored.question.number, &answer)?;
    let message = format!("Question {} of {id} answered", answered.question.number);
    Ok(output(&id, &answered).message(message))
}

/// The answer in the input; `None` if there is none.
fn requested_answer(question: &Question, input: &Answer) -> Option<QuestionAnswer> {
    if input.option.is_some() || input.text.is_some() {
        return Some(QuestionAnswer { option: input.option.clone(), text: input.text.clone() });
    }
    Some(unspecific_answer(question, input.answer.as_ref()?))
}

/// An answer that does not say whether it is an option: one with this id or label, else a text.
pub fn unspecific_answer(question: &Question, given: &str) -> QuestionAnswer {
    let by_id = question.options.iter().find(|option| option.id == given);
    let by_label = || question.options.iter().find(|option| option.label.eq_ignore_ascii_case(given));
    let option = by_id.or_else(by_label).map(|option| option.id.clone());
    match option {
        None if question.free_text => QuestionAnswer { option: None, text: Some(given.to_owned()) },
        None => QuestionAnswer { option: Some(given.to_owned()), text: None },
        option => QuestionAnswer { option, text: None },
    }
}

fn output(id: &TaskId, question: &StoredQuestion) -> CommandOutput {
    CommandOutput::done(AnsweredQuestion { task_id: id.to_string(), question: question.into() })
}

impl CommandData for AnsweredQuestion {
    fn document(&self) -> Document {
        let (question, task) = (&self.question, &self.task_id);
        let (number, state) = (question.question_number, question.state);
        if state != QuestionState::Answered.name() {
            let title = format!("Question {number} of {task} is {state}");
            return conversation::append_question(Document::titled(title), task, question);
        }
        let answer = question.answer.as_ref();
        Document::titled(format!("Question {number} of {task} answered")).block(Block::facts([
            ("question", Some(question.title.clone())),
            ("option", answer.and_then(|answer| answer.option.clone())),
            ("text", answer.and_then(|answer| answer.text.clone())),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::question::{AnswerOption, OptionKind, QuestionKind};

    use super::*;
    use crate::commands::inputs::TaskRef;

    #[test]
    fn an_answer_is_an_option_if_one_has_this_id_or_label() {
        let option = |id: &str, label: &str| AnswerOption {
            id: id.into(),
            label: label.into(),
            kind: OptionKind::Other,
        };
        let question = |free_text| Question {
            number: QuestionNumber(1),
            kind: QuestionKind::Question,
            title: "Which?".into(),
            detail: None,
            options: vec![option("a", "First"), option("first", "Second")],
            free_text,
        };
        let answer = |free_text, given: &str| {
            let input = Answer {
                task: TaskIdInput { task_id: TaskRef::from_text("abcd").unwrap() },
                answer: Some(given.to_owned()),
                question: None,
                option: None,
                text: None,
            };
            let answer = requested_answer(&question(free_text), &input).unwrap();
            (answer.option, answer.text)
        };
        assert_eq!(answer(true, "a"), (Some("a".into()), None));
        assert_eq!(answer(true, "first"), (Some("first".into()), None), "an id comes before a label");
        assert_eq!(answer(true, "SECOND"), (Some("first".into()), None));
        assert_eq!(answer(true, "neither"), (None, Some("neither".into())));
        assert_eq!(answer(false, "neither"), (Some("neither".into()), None), "which is then refused");
    }
}
