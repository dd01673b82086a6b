//! The user's side of a conversation with a running agent: messages, questions and answers, and the end after
//! the last turn.

use std::time::Duration;

use delegator_domain::message::{Delivery, QueuedMessage};
use delegator_domain::question::{Answer, AnswerOption, Question, QuestionNumber};

use super::super::dialogue::Dialogue;
use super::super::ports::{ClosedQuestion, LogAction, MessageOutcome, QuestionEnd};
use super::RunContext;
use super::run_ending::RunEnding;
use super::salvage::Salvage;
use super::tool_commands::ToolCommands;
use crate::conversation::{Control, Step};
use crate::ending::Ending;
use crate::verdict::Cause;

/// So that the other sources get their turn.
const MAX_MESSAGES_PER_ROUND: usize = 256;
/// How long an agent that is idle may take to read messages that were written together.
const UNREAD_INPUT_GRACE: Duration = Duration::from_secs(60);

pub(super) struct Talk {
    pub(super) dialogue: Dialogue,
    pub(super) has_prompt: bool,
    /// When the agent ended its last turn; `None` while one runs.
    waiting_since: Option<Duration>,
    /// No further turn is begun.
    pub(super) is_over: bool,
    open_questions: Vec<OpenQuestion>,
    pub(super) tool_commands: ToolCommands,
    pub(super) salvage: Salvage,
}

#[derive(Debug)]
struct OpenQuestion {
    number: QuestionNumber,
    expires_at: Duration,
}

impl Talk {
    pub(super) fn new(dialogue: Dialogue) -> Talk {
        Talk {
            dialogue,
            has_prompt: false,
            waiting_since: None,
            is_over: false,
            open_questions: Vec::new(),
            tool_commands: ToolCommands::default(),
            salvage: Salvage::default(),
        }
    }

    /// Whether the agent waits for us: that is not its idle time.
    pub(super) fn is_agent_waiting(&self) -> bool {
        !self.open_questions.is_empty() || !self.tool_commands.is_empty() || self.waiting_since.is_some()
    }

    pub(super) fn control(&mut self, control: Control, run: &RunContext<'_>, ending: &mut RunEnding) {
        self.dialogue.control(control);
        self.act_on_steps(run, ending);
    }

    /// Acts on what happened since the last call. `buffer` is for reading.
    pub(super) fn settle(
        &mut self,
        now: Duration,
        run: &RunContext<'_>,
        ending: &mut RunEnding,
        buffer: &mut Vec<u8>,
    ) {
        self.act_on_steps(run, ending);
        self.expire_questions(now, run, ending);
        for (question, answer) in self.tool_commands.exchange(now, run.spec.answer_timeout, buffer) {
            self.control(Control::Answer { question, answer }, run, ending);
        }
    }

    /// Delivers messages, and ends an agent that has nothing left to do.
    pub(super) fn continue_turns(&mut self, now: Duration, run: &RunContext<'_>, ending: &mut RunEnding) {
        if self.dialogue.is_overflowing() {
            let message = "the agent does not read its input".to_owned();
            ending.force(Cause::Internal { message }, run);
        }
        if !self.is_over {
            self.deliver_messages(run, ending);
        }
        let has_waited = self.waiting_since.is_some_and(|since| now >= since + run.spec.plan.linger);
        if (has_waited || self.is_over) && !ending.has_begun() {
            self.control(Control::Finish, run, ending);
            let grace =
                if self.dialogue.conversation.may_have_input() { UNREAD_INPUT_GRACE } else { Duration::ZERO };
            ending.finishing = Some(Ending::start(run.spec.plan.finish.clone(), now + grace));
        }
    }

    /// When something is due that no event announces.
    pub(super) fn next_deadline(&self, run: &RunContext<'_>) -> Duration {
        let linger = self.waiting_since.map(|since| since + run.spec.plan.linger);
        let expiry = self.open_questions.iter().map(|question| question.expires_at);
        linger.into_iter().chain(expiry).chain(self.tool_commands.deadlines()).min().unwrap_or(Duration::MAX)
    }

    fn deliver_messages(&mut self, run: &RunContext<'_>, ending: &mut RunEnding) {
        for _ in 0..MAX_MESSAGES_PER_ROUND {
            if ending.has_begun() {
                return;
            }
            let can_take_next = self.dialogue.conversation.can_take(Delivery::Next);
            if !can_take_next && !self.dialogue.conversation.can_take(Delivery::Now) {
                return;
            }
            let Some(message) = run.ports.next_message(!can_take_next) else {
                return self.control(Control::QueueEmpty, run, ending);
            };
            let QueuedMessage { number, text, delivery } = message;
            if can_take_next {
                self.waiting_since = None;
            }
            self.control(Control::Message { number, text, delivery }, run, ending);
        }
    }

    /// Whether the agent can be asked to stop and report. While no turn runs, there is nothing to stop.
    pub(super) fn can_request_report(&self) -> bool {
        !self.salvage.is_requested()
            && self.dialogue.conversation.can_take(Delivery::Now)
            && !self.dialogue.conversation.can_take(Delivery::Next)
    }

    pub(super) fn pass_on_answers(&mut self, run: &RunContext<'_>, ending: &mut RunEnding) {
        if self.open_questions.is_empty() {
            return;
        }
        for (number, answer) in run.ports.answers() {
            self.answer(number, answer, run, ending);
        }
    }

    fn answer(
        &mut self,
        question: QuestionNumber,
        answer: Answer,
        run: &RunContext<'_>,
        ending: &mut RunEnding,
    ) {
        if let Some(index) = self.open_questions.iter().position(|open| open.number == question) {
            self.open_questions.remove(index);
            self.control(Control::Answer { question, answer }, run, ending);
        }
    }

    fn expire_questions(&mut self, now: Duration, run: &RunContext<'_>, ending: &mut RunEnding) {
        let due = self.open_questions.iter_mut().find(|question| now >= question.expires_at);
        let Some(question) = due else { return };
        let number = question.number;
        match run.ports.close_question(number, QuestionEnd::Expired) {
            ClosedQuestion::Unanswered => self.answer(number, Answer::default(), run, ending),
            ClosedQuestion::Answered => self.pass_on_answers(run, ending),
            ClosedQuestion::Prolonged(by) => question.expires_at += by,
        }
    }

    pub(super) fn act_on_steps(&mut self, run: &RunContext<'_>, ending: &mut RunEnding) {
        for step in self.dialogue.take_steps() {
            self.act_on(step, run, ending);
        }
    }

    fn act_on(&mut self, step: Step, run: &RunContext<'_>, ending: &mut RunEnding) {
        let now = run.now();
        match step {
            Step::Ready => self.has_prompt = true,
            Step::Question(question) => self.open_question(&question, now, run),
            Step::ToolCalled { question, command, call } => {
                if let Err(answer) = self.tool_commands.start(question, &command, &call, run) {
                    self.control(Control::Answer { question, answer }, run, ending);
                }
            }
            Step::Withdrawn(number) => {
                self.tool_commands.end(number);
                self.open_questions.retain(|question| question.number != number);
                run.ports.close_question(number, QuestionEnd::Withdrawn);
            }
            Step::Accepted(number) => {
                if !self.salvage.settle(number, true) {
                    run.ports.on_message_settled(number, MessageOutcome::Accepted);
                }
            }
            Step::Refused { message, reason } => {
                if !self.salvage.settle(message, false) {
                    let reason = run.redact(&reason);
                    run.ports.on_message_settled(message, MessageOutcome::Refused { reason });
                }
            }
            Step::TurnEnded => {
                run.ports.on_log(LogAction::IdleDetected);
                self.waiting_since = Some(now);
                self.is_over |= self.salvage.end_turn();
                ending.turn_ended(now);
            }
            Step::Working => {
                self.waiting_since = None;
                ending.finishing = None;
            }
            Step::Done => {
                run.ports.on_log(LogAction::DoneDetected);
                self.is_over = true;
            }
            Step::Over => self.is_over = true,
        }
    }

    fn open_question(&mut self, question: &Question, now: Duration, run: &RunContext<'_>) {
        let timeout = run.spec.answer_timeout;
        self.open_questions.push(OpenQuestion { number: question.number, expires_at: now + timeout });
        let redacted_option =
            |option: &AnswerOption| AnswerOption { label: run.redact(&option.label), ..option.clone() };
        let redacted = Question {
            title: run.redact(&question.title),
            detail: question.detail.as_deref().map(|detail| run.redact(detail)),
            options: question.options.iter().map(redacted_option).collect(),
            ..question.clone()
        };
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        run.ports.on_question(&redacted, run.ports.now_ms().saturating_add(timeout_ms));
    }
}
