//! The questions that the agent of a task asks, and their answers. An answer is stored durably, then the
//! supervisor is woken, which passes it to the agent. The first answer wins.

use delegator_domain::question::{Answer, Question, QuestionNumber, QuestionState};
use delegator_domain::task::TaskId;
use delegator_registry::{AnswerOutcome, Registry, StoredAnswer, StoredQuestion};

use crate::Conversations;
use crate::error::{AnswerProblem, ConversationError, EngineError, Result};
use crate::shared::task_of_process::own_task;
use crate::supervise::wake_socket;
use crate::upkeep::rescue::rescue_task;

impl Conversations<'_> {
    /// The question that a caller means: the one with this number, or the only open one.
    pub fn question(&self, id: &TaskId, number: Option<QuestionNumber>) -> Result<StoredQuestion> {
        let mut registry = self.engine.registry_of(id)?;
        rescue_task(self.engine, &mut registry, id)?;
        find(&registry, id, number)
    }

    pub fn open_questions(&self, ids: &[TaskId]) -> Result<Vec<(TaskId, StoredQuestion)>> {
        let open = self.engine.query(Registry::all_open_questions)?;
        Ok(open.into_iter().filter(|(task, _)| ids.contains(task)).collect())
    }

    pub fn answer(&self, id: &TaskId, number: QuestionNumber, answer: &Answer) -> Result<StoredQuestion> {
        let mut registry = self.engine.registry_of(id)?;
        let stored = find(&registry, id, Some(number))?;
        let closed =
            |question| ConversationError::QuestionClosed { task: id.clone(), question: Box::new(question) };
        if stored.state != QuestionState::Open {
            return Err(closed(stored).into());
        }
        // A permission that an agent gives itself is none.
        if own_task(self.engine)?.is_some_and(|caller| caller.is_inside(id)) {
            return Err(ConversationError::OwnQuestion { task: id.clone() }.into());
        }
        let answer = checked_answer(&stored.question, answer).map_err(|problem| {
            ConversationError::InvalidAnswer { question: Box::new(stored.question), problem }
        })?;
        match registry.answer(
            id,
            number,
            &answer,
            &self.engine.system.fresh_nonce()?,
            self.engine.now_ms(),
        )? {
            AnswerOutcome::Recorded(question) => {
                wake_socket::wake(&registry.dir().task(id));
                Ok(question)
            }
            AnswerOutcome::Closed(question) => Err(closed(question).into()),
            AnswerOutcome::Unknown => {
                Err(ConversationError::UnknownQuestion { task: id.clone(), number }.into())
            }
        }
    }
}

fn find(registry: &Registry, id: &TaskId, number: Option<QuestionNumber>) -> Result<StoredQuestion> {
    let task = registry.get(id)?.ok_or_else(|| EngineError::unknown(id))?;
    if let Some(number) = number {
        let found = registry.question(id, number)?;
        return found.ok_or_else(|| ConversationError::UnknownQuestion { task: id.clone(), number }.into());
    }
    let mut open = registry.open_questions(id)?;
    match open.len() {
        0 if task.state.is_terminal() => {
            Err(EngineError::AlreadyEnded { task: id.clone(), state: task.state })
        }
        0 => Err(ConversationError::NoOpenQuestion { task: id.clone(), state: task.state }.into()),
        1 => Ok(open.swap_remove(0)),
        _ => {
            let questions = open.into_iter().map(|found| found.question).collect();
            Err(ConversationError::SeveralQuestions { task: id.clone(), questions }.into())
        }
    }
}

fn checked_answer(question: &Question, answer: &Answer) -> Result<StoredAnswer, AnswerProblem> {
    let position = |id: &String| {
        let position = question.options.iter().position(|option| option.id == *id);
        position.ok_or_else(|| AnswerProblem::UnknownOption { given: id.clone() })
    };
    let option = answer.option.as_ref().map(position).transpose()?;
    match (&answer.text, option) {
        (Some(_), _) if !question.free_text => Err(AnswerProblem::NoFreeText),
        (None, None) => Err(AnswerProblem::Empty),
        (text, option) => Ok(StoredAnswer { option, text: text.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::question::{AnswerOption, OptionKind, QuestionKind};

    use super::*;

    #[test]
    fn an_answer_must_fit_the_question() {
        let option = |id: &str| AnswerOption { id: id.into(), label: id.into(), kind: OptionKind::Other };
        let question = |free_text| Question {
            number: QuestionNumber(1),
            kind: QuestionKind::Question,
            title: "Which?".into(),
            detail: None,
            options: vec![option("a"), option("b")],
            free_text,
        };
        let answer = |option: Option<&str>, text: Option<&str>| Answer {
            option: option.map(str::to_owned),
            text: text.map(str::to_owned),
        };
        let second = Ok(StoredAnswer { option: Some(1), text: None });
        assert_eq!(checked_answer(&question(false), &answer(Some("b"), None)), second);
        let unknown = AnswerProblem::UnknownOption { given: "c".into() };
        assert_eq!(checked_answer(&question(true), &answer(Some("c"), None)), Err(unknown));
        let free = checked_answer(&question(true), &answer(None, Some("neither")));
        assert_eq!(free, Ok(StoredAnswer { option: None, text: Some("neither".into()) }));
        let refused = checked_answer(&question(false), &answer(None, Some("neither")));
        assert_eq!(refused, Err(AnswerProblem::NoFreeText));
        assert_eq!(checked_answer(&question(true), &answer(None, None)), Err(AnswerProblem::Empty));
    }
}
