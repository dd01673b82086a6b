//! The user's side of a conversation with a running agent: messages, questions and answers, and the end after the last turn.

use std::time::Duration;

use delegator_domain::message::{Delivery, QueuedMessage};
use delegator_domain::question::{Answer, AnswerOption, Question, QuestionNumber};

use super::super::ending::Ending;
use super::super::ports::{LogAction, MessageOutcome, QuestionEnd};
use super::Run;
use crate::conversation::{Control, Step};
use crate::verdict::Cause;

/// So that the other sources get their turn.
const MAX_MESSAGES_PER_ROUND: usize = 256;
/// How long an agent that is idle may take to read messages that were written together.
const UNREAD_INPUT_GRACE: Duration = Duration::from_secs(60);

/// What the supervision loop knows of the conversation.
#[derive(Debug, Default)]
pub(super) struct Talk {
    /// The agent has the prompt.
    pub(super) has_prompt: bool,
    /// When the agent ended its last turn; `None` while one runs.
    waiting_since: Option<Duration>,
    /// The agent takes nothing more.
    is_over: bool,
    open_questions: Vec<OpenQuestion>,
}

#[derive(Debug)]
struct OpenQuestion {
    number: QuestionNumber,
    expires_at: Duration,
}

impl Talk {
    /// No further turn is begun.
    pub(super) fn take_no_more(&mut self) {
        self.is_over = true;
    }
}

impl Run<'_> {
    /// Passes a wish on to the conversation.
    pub(super) fn control(&mut self, control: Control) {
        self.dialogue.control(control);
        self.act_on_steps();
    }

    /// Acts on what happened since the last call, delivers messages, and ends an agent that has nothing left to do.
    pub(super) fn continue_talk(&mut self, now: Duration) {
        self.act_on_steps();
        self.expire_questions(now);
        self.continue_tool_commands(now);
        if self.ending.is_some() {
            return self.send_pending();
        }
        let is_asked = !self.talk.open_questions.is_empty() || !self.tool_commands.is_empty();
        if is_asked || self.talk.waiting_since.is_some() {
            // The agent waits for us: that is not its idle time.
            self.limit_timers.record_activity(now);
        }
        if self.dialogue.is_overflowing() {
            let message = "the agent does not read its input".to_owned();
            self.begin_ending(Cause::Internal { message });
        }
        if !self.talk.is_over {
            self.deliver_messages();
        }
        let has_waited = self.talk.waiting_since.is_some_and(|since| now >= since + self.spec.plan.linger);
        if (has_waited || self.talk.is_over) && self.finishing.is_none() && self.ending.is_none() {
            self.control(Control::Finish);
            let grace = if self.dialogue.may_have_input() { UNREAD_INPUT_GRACE } else { Duration::ZERO };
            self.finishing = Some(Ending::start(self.spec.plan.finish.clone(), now + grace));
        }
        self.send_pending();
    }

    /// When something is due that no event announces.
    pub(super) fn next_talk_deadline(&self) -> Duration {
        let linger = self.talk.waiting_since.map(|since| since + self.spec.plan.linger);
        let expiry = self.talk.open_questions.iter().map(|question| question.expires_at);
        linger.into_iter().chain(expiry).chain(self.tool_command_deadlines()).min().unwrap_or(Duration::MAX)
    }

    fn send_pending(&mut self) {
        match &mut self.stdout {
            Some(events) => events.send_pending(&mut self.dialogue),
            None => self.dialogue.flush(|_| {}),
        }
    }

    fn deliver_messages(&mut self) {
        for _ in 0..MAX_MESSAGES_PER_ROUND {
            if self.finishing.is_some() || self.ending.is_some() {
                return;
            }
            let can_take_next = self.dialogue.can_take(Delivery::Next);
            if !can_take_next && !self.dialogue.can_take(Delivery::Now) {
                return;
            }
            let Some(message) = self.ports.next_message(!can_take_next) else {
                return self.control(Control::QueueEmpty);
            };
            let QueuedMessage { number, text, delivery } = message;
            if can_take_next {
                self.talk.waiting_since = None;
            }
            self.control(Control::Message { number, text, delivery });
        }
    }

    /// Passes answers of the user on to the agent.
    pub(super) fn pass_on_answers(&mut self) {
        if self.talk.open_questions.is_empty() {
            return;
        }
        for (number, answer) in self.ports.answers() {
            self.answer(number, answer);
        }
    }

    fn answer(&mut self, number: QuestionNumber, answer: Answer) {
        let open = &mut self.talk.open_questions;
        if let Some(index) = open.iter().position(|question| question.number == number) {
            open.remove(index);
            self.control(Control::Answer { question: number, answer });
        }
    }

    fn expire_questions(&mut self, now: Duration) {
        let due = self.talk.open_questions.iter().find(|question| now >= question.expires_at);
        let Some(number) = due.map(|question| question.number) else { return };
        if self.ports.close_question(number, QuestionEnd::Expired) {
            self.answer(number, Answer::default());
        } else {
            self.pass_on_answers();
        }
    }

    pub(super) fn act_on_steps(&mut self) {
        for step in self.dialogue.take_steps() {
            self.act_on(step);
        }
    }

    fn act_on(&mut self, step: Step) {
        let now = self.now();
        match step {
            Step::Ready => self.talk.has_prompt = true,
            Step::Asked(question) => self.open_question(&question, now),
            Step::ToolCalled { question, command, call } => {
                self.start_tool_command(question, &command, call);
            }
            Step::Withdrawn(number) => {
                self.end_tool_command(number);
                self.talk.open_questions.retain(|question| question.number != number);
                self.ports.close_question(number, QuestionEnd::Withdrawn);
            }
            Step::Accepted(number) => {
                if !self.salvage.settle(number, true) {
                    self.ports.on_message_settled(number, MessageOutcome::Accepted);
                }
            }
            Step::Refused { message, reason } => {
                if !self.salvage.settle(message, false) {
                    let reason = self.spec.redactor.redact_str(&reason).into_owned();
                    self.ports.on_message_settled(message, MessageOutcome::Refused { reason });
                }
            }
            Step::TurnEnded => {
                self.ports.on_log(LogAction::IdleDetected);
                self.talk.waiting_since = Some(now);
                self.talk.is_over |= self.salvage.end_turn();
                if let Some(ending) = &mut self.ending {
                    ending.turn_ended(now);
                }
            }
            Step::Working => {
                self.talk.waiting_since = None;
                self.finishing = None;
            }
            Step::Done => {
                self.ports.on_log(LogAction::DoneDetected);
                self.talk.is_over = true;
            }
            Step::Over => self.talk.is_over = true,
        }
    }

    fn open_question(&mut self, question: &Question, now: Duration) {
        let timeout = self.spec.answer_timeout;
        self.talk.open_questions.push(OpenQuestion { number: question.number, expires_at: now + timeout });
        let redact = |text: &str| self.spec.redactor.redact_str(text).into_owned();
        let redacted_option =
            |option: &AnswerOption| AnswerOption { label: redact(&option.label), ..option.clone() };
        let redacted = Question {
            title: redact(&question.title),
            detail: question.detail.as_deref().map(redact),
            options: question.options.iter().map(redacted_option).collect(),
            ..question.clone()
        };
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        self.ports.on_question(&redacted, self.ports.now_ms().saturating_add(timeout_ms));
    }
}
