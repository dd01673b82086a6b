//! Messages and questions of a running task, as its supervisor sees them.
//!
//! The supervision loop asks for messages and answers after every line of the agent, so the registry is read
//! only if it has changed since the last read found nothing.
//!
//! An error is treated like an empty registry: the next call tries again, and the end of the task reports
//! what was not delivered or confirmed.

use std::cell::{Cell, RefCell};

use delegator_domain::message::{MessageNumber, QueuedMessage};
use delegator_domain::question::{Answer, Question, QuestionNumber, QuestionState};
use delegator_domain::task::TaskId;
use delegator_registry::{Cas, ChangeMark, Nonce, Registry, StoredAnswer};
use delegator_supervisor::run::{MessageOutcome, QuestionEnd};

#[derive(Debug, Default)]
pub(crate) struct UserDialogue {
    /// The change mark at which there was no message for the running turn.
    no_message_now: Cell<Option<ChangeMark>>,
    /// The change mark at which there was no message at all.
    no_message: Cell<Option<ChangeMark>>,
    /// The change mark at which there was no answer.
    no_answer: Cell<Option<ChangeMark>>,
    /// The questions without an answer, with the ids of their options as the agent knows them.
    unanswered: RefCell<Vec<Question>>,
}

/// The task of a supervisor, and the attempt that it runs.
pub(crate) struct Supervised<'a> {
    pub(crate) registry: &'a mut Registry,
    pub(crate) id: &'a TaskId,
    pub(crate) nonce: &'a Nonce,
    pub(crate) now_ms: i64,
}

impl UserDialogue {
    /// Marks the next message as delivered, and returns it.
    pub(crate) fn next_message(&self, task: Supervised<'_>, now_only: bool) -> Option<QueuedMessage> {
        let Supervised { registry, id, nonce, now_ms } = task;
        let none_at = if now_only { &self.no_message_now } else { &self.no_message };
        let mark = registry.change_mark().ok();
        if mark.is_some() && none_at.get() == mark {
            return None;
        }
        let taken = registry.take_next_message(id, nonce, now_only, now_ms);
        none_at.set(mark.filter(|_| matches!(taken, Ok(None))));
        taken.ok().flatten()
    }

    pub(crate) fn ask(&self, task: Supervised<'_>, question: &Question, expires_ms: i64) {
        let Supervised { registry, id, nonce, now_ms } = task;
        let _ = registry.ask(id, nonce, question, expires_ms, now_ms);
        self.unanswered.borrow_mut().push(question.clone());
    }

    /// Whether the question was closed; false if it was answered first.
    pub(crate) fn close_question(
        &self,
        task: Supervised<'_>,
        number: QuestionNumber,
        reason: QuestionEnd,
    ) -> bool {
        let Supervised { registry, id, nonce, now_ms } = task;
        let state = match reason {
            QuestionEnd::Expired => QuestionState::Expired,
            QuestionEnd::Withdrawn => QuestionState::Withdrawn,
        };
        let closed = registry.close_question(id, nonce, number, state, now_ms);
        let was_answered = matches!(closed, Ok(Cas::Lost(_)))
            && registry
                .question(id, number)
                .is_ok_and(|found| found.is_some_and(|found| found.state == QuestionState::Answered));
        // An agent that withdrew its question takes no answer.
        if was_answered && reason == QuestionEnd::Expired {
            return false;
        }
        self.unanswered.borrow_mut().retain(|question| question.number != number);
        true
    }

    /// The answers since the last call.
    pub(crate) fn answers(&self, task: Supervised<'_>) -> Vec<(QuestionNumber, Answer)> {
        let Supervised { registry, id, .. } = task;
        let mut unanswered = self.unanswered.borrow_mut();
        let mark = registry.change_mark().ok();
        if unanswered.is_empty() || (mark.is_some() && self.no_answer.get() == mark) {
            return Vec::new();
        }
        let numbers: Vec<QuestionNumber> = unanswered.iter().map(|question| question.number).collect();
        let Ok(taken) = registry.take_answers(id, &numbers) else { return Vec::new() };
        self.no_answer.set(mark);
        let mut answers = Vec::new();
        for (number, StoredAnswer { option, text }) in taken {
            let Some(index) = unanswered.iter().position(|question| question.number == number) else {
                continue;
            };
            let question = unanswered.swap_remove(index);
            let option = option.and_then(|position| question.options.into_iter().nth(position));
            answers.push((number, Answer { option: option.map(|option| option.id), text }));
        }
        answers
    }
}

/// Records what the agent did with a message.
pub(crate) fn settle_message(task: Supervised<'_>, message: MessageNumber, outcome: &MessageOutcome) {
    let Supervised { registry, id, nonce, now_ms } = task;
    let refusal = match outcome {
        MessageOutcome::Accepted => None,
        MessageOutcome::Refused { reason } => Some(reason.as_str()),
    };
    let _ = registry.settle_message(id, nonce, message, refusal, now_ms);
}
