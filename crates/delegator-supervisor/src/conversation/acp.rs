//! The Agent Client Protocol: handshake, settings of the session, prompts, permission requests, cancellation.
//!
//! Everything is one request after the other: `initialize`, `session/new` (or `load`, `resume`), the
//! settings, then a prompt per turn. The answer to a prompt ends its turn. An error in the handshake, and a
//! request to sign in, end the conversation; the dialect reads the reason from the same line.
//!
//! Gemini CLI replays the history of a loaded session after its answer. Until a request of ours is answered
//! without an update in between, the replay is not over and no prompt is sent.

mod calls;
mod settings;

use std::collections::VecDeque;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_domain::question::{Answer, QuestionNumber};
use delegator_transcript::wire::acp::outgoing::{self, ClientInfo};
use delegator_transcript::wire::acp::{
    AUTHENTICATION_REQUIRED, AgentMessage, InitializeResult, PermissionRequest, SessionResult, Update,
    steering_refusal,
};
use delegator_transcript::wire::json_rpc::{INVALID_PARAMS, INVALID_REQUEST, RequestId, RpcError};

use super::open_questions::{OpenQuestions, Permission, Reply};
use super::outbox::{Control, Conversation, Outbox, Step};
use super::permissions::{Decision, PermissionPolicy};
use super::sent_requests::SentRequests;
use calls::{KnownCalls, RequestedChange, answer_option, choose};
pub use settings::{AcpSetting, SettingValue};
use settings::{SettingRequest, setting_requests};

const CLIENT: ClientInfo<'static> =
    ClientInfo { name: "mcp-delegator", title: "mcp-delegator", version: env!("CARGO_PKG_VERSION") };
/// A replay of history is waited for with at most this many requests.
const MAX_REPLAY_CHECKS: u32 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpPlan {
    pub prompt: String,
    pub cwd: String,
    /// Further directories of the session, absolute paths. Passed on if the agent takes them.
    pub directories: Vec<String>,
    pub resume: Option<String>,
    /// In the order in which they are set, before the first prompt.
    pub settings: Vec<AcpSetting>,
    pub permissions: PermissionPolicy,
    /// It replays the history of a loaded session after it has answered.
    pub replays_late: bool,
}

#[derive(Debug)]
pub(crate) struct Acp {
    plan: AcpPlan,
    phase: Phase,
    sent: SentRequests<SentRequest>,
    session_id: String,
    settings: VecDeque<SettingRequest>,
    /// Requests sent to learn whether the replay of history is over.
    replay_checks: u32,
    saw_update: bool,
    can_steer: bool,
    is_interrupted: bool,
    /// The message of the running turn, until the agent does something.
    unconfirmed: Option<MessageNumber>,
    calls: KnownCalls,
    requests: OpenQuestions<WaitingPermission>,
}

#[derive(Debug)]
struct WaitingPermission {
    id: RequestId,
    /// What answers it if the user does not.
    refusal: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Handshake,
    Running,
    Idle,
    Over,
}

#[derive(Debug, Clone, Copy)]
enum SentRequest {
    Initialize,
    OpenSession,
    Setting,
    ReplayCheck,
    Prompt,
    Steering(MessageNumber),
}

impl Acp {
    pub(super) fn new(plan: AcpPlan) -> Acp {
        Acp {
            plan,
            phase: Phase::Handshake,
            sent: SentRequests::default(),
            session_id: String::new(),
            settings: VecDeque::new(),
            replay_checks: 0,
            saw_update: false,
            can_steer: false,
            is_interrupted: false,
            unconfirmed: None,
            calls: KnownCalls::default(),
            requests: OpenQuestions::default(),
        }
    }

    fn send(&mut self, request: SentRequest, out: &mut Outbox, write: impl FnOnce(i64, &Acp) -> Vec<u8>) {
        let id = self.sent.add(request);
        out.send(write(id, self));
    }

    fn on_result(&mut self, request: SentRequest, result: &str, out: &mut Outbox) {
        match request {
            SentRequest::Initialize => self.open_session(&InitializeResult::read(result), out),
            SentRequest::OpenSession => self.on_session(&SessionResult::read(result), out),
            SentRequest::Setting => self.send_next_setting(out),
            SentRequest::ReplayCheck => self.check_replay(out),
            SentRequest::Prompt => self.end_turn(out),
            SentRequest::Steering(message) => out.report(match steering_refusal(result) {
                None => Step::Accepted(message),
                Some(outcome) => {
                    let reason = format!("the agent did not take it up: {}", outcome.resolve());
                    Step::Refused { message, reason }
                }
            }),
        }
    }

    fn on_error(&mut self, request: SentRequest, error: &RpcError<'_>, out: &mut Outbox) {
        match request {
            SentRequest::Steering(message) => {
                let reason = error.message.resolve().into_owned();
                out.report(Step::Refused { message, reason });
            }
            // The agent refuses the request itself; all other errors are those of a turn that has begun.
            SentRequest::Prompt if matches!(error.code, INVALID_REQUEST | INVALID_PARAMS) => {
                if let Some(message) = self.unconfirmed.take() {
                    let reason = error.message.resolve().into_owned();
                    out.report(Step::Refused { message, reason });
                }
                self.end_turn(out);
            }
            SentRequest::Prompt if error.code != AUTHENTICATION_REQUIRED => self.end_turn(out),
            _ => {
                self.confirm_message(out);
                self.requests.withdraw(|_| true, out);
                self.phase = Phase::Over;
                out.report(Step::Over);
            }
        }
    }

    fn open_session(&mut self, agent: &InitializeResult<'_>, out: &mut Outbox) {
        self.can_steer = agent.can_steer;
        if !agent.can_add_directories {
            self.plan.directories.clear();
        }
        // Without an announced way to continue a session, the agent's answer to the usual one is the reason
        // to fail.
        let can_resume = agent.can_resume;
        self.send(SentRequest::OpenSession, out, |id, acp| {
            let AcpPlan { cwd, directories, resume, .. } = &acp.plan;
            match resume {
                None => outgoing::new_session(id, cwd, directories),
                Some(session) if can_resume => outgoing::resume_session(id, session, cwd, directories),
                Some(session) => outgoing::load_session(id, session, cwd, directories),
            }
        });
        self.plan.replays_late &= self.plan.resume.is_some() && !can_resume;
    }

    fn on_session(&mut self, session: &SessionResult<'_>, out: &mut Outbox) {
        let announced = session.session_id.as_ref().map(|id| id.resolve().into_owned());
        self.session_id = announced.or_else(|| self.plan.resume.clone()).unwrap_or_default();
        self.settings = setting_requests(&self.plan.settings, session).into();
        match session.current_mode.as_ref().filter(|_| self.plan.replays_late) {
            Some(mode) => {
                // Setting the mode that it has changes nothing.
                let mode = mode.resolve().into_owned();
                self.settings.push_front(SettingRequest::Mode(mode));
                self.check_replay(out);
            }
            None => self.send_next_setting(out),
        }
    }

    /// Asks again while updates arrive; then goes on.
    fn check_replay(&mut self, out: &mut Outbox) {
        let is_first = self.replay_checks == 0;
        if (is_first || std::mem::take(&mut self.saw_update)) && self.replay_checks < MAX_REPLAY_CHECKS {
            self.replay_checks += 1;
            self.saw_update = false;
            let request = self.settings.front().cloned();
            if let Some(request) = request {
                return self
                    .send(SentRequest::ReplayCheck, out, |id, acp| request.write(id, &acp.session_id));
            }
        }
        self.settings.pop_front();
        self.send_next_setting(out);
    }

    fn send_next_setting(&mut self, out: &mut Outbox) {
        match self.settings.pop_front() {
            // The process is ended afterwards.
            _ if self.is_interrupted => {}
            Some(request) => {
                self.send(SentRequest::Setting, out, |id, acp| request.write(id, &acp.session_id));
            }
            None => {
                let prompt = std::mem::take(&mut self.plan.prompt);
                self.send_prompt(&prompt, out);
                out.report(Step::Ready);
            }
        }
    }

    fn send_prompt(&mut self, text: &str, out: &mut Outbox) {
        self.phase = Phase::Running;
        self.send(SentRequest::Prompt, out, |id, acp| outgoing::prompt(id, &acp.session_id, text));
    }

    fn end_turn(&mut self, out: &mut Outbox) {
        self.confirm_message(out);
        self.requests.withdraw(|_| true, out);
        self.phase = Phase::Idle;
        out.report(Step::TurnEnded);
    }

    /// The agent does something: it has the message.
    fn confirm_message(&mut self, out: &mut Outbox) {
        if let Some(message) = self.unconfirmed.take() {
            out.report(Step::Accepted(message));
        }
    }

    fn on_permission_request(&mut self, id: RequestId, request: &PermissionRequest<'_>, out: &mut Outbox) {
        if self.is_interrupted {
            return out.send(outgoing::cancel_request(&id));
        }
        let call = self.calls.record(&request.call);
        let change = RequestedChange::of(&call);
        let options: Vec<_> = request.options.iter().map(answer_option).collect();
        match change.decide(&self.plan.permissions) {
            Decision::Allow => out.send(choose(&id, &options, true)),
            Decision::Reject(_) => out.send(choose(&id, &options, false)),
            Decision::AskUser => {
                let (title, detail) = change.question(&call);
                let refusal = choose(&id, &options, false);
                let permission = Permission { title, detail, options };
                self.requests.ask_permission(WaitingPermission { id, refusal }, permission, out);
            }
        }
    }

    fn on_answer(&mut self, question: QuestionNumber, answer: Answer, out: &mut Outbox) {
        if let Some((request, Reply::Permission { chosen, .. })) = self.requests.answer(question, answer, out)
        {
            out.send(match chosen {
                Some(option) => outgoing::select_option(&request.id, &option.id),
                None => request.refusal,
            });
        }
    }
}

impl Conversation for Acp {
    fn open(&mut self, out: &mut Outbox) {
        self.send(SentRequest::Initialize, out, |id, _| outgoing::initialize(id, CLIENT));
    }

    fn on_line(&mut self, line: &str, out: &mut Outbox) {
        match AgentMessage::read(line) {
            Some(AgentMessage::Update(update)) => {
                self.saw_update = true;
                self.confirm_message(out);
                if let Update::ToolCall(call) = update {
                    self.calls.record(&call);
                }
            }
            Some(AgentMessage::PermissionRequest { id, request }) => {
                self.confirm_message(out);
                self.on_permission_request(id, &request, out);
            }
            Some(AgentMessage::OtherRequest { id, method }) => {
                out.send(outgoing::refuse(&id, &method.resolve()));
            }
            Some(AgentMessage::Result { id, result }) => {
                if let Some(request) = self.sent.take(&id) {
                    self.on_result(request, result, out);
                }
            }
            Some(AgentMessage::Error { id, error }) => {
                if let Some(request) = id.and_then(|id| self.sent.take(&id)) {
                    self.on_error(request, &error, out);
                }
            }
            Some(AgentMessage::OtherNotification { .. }) | None => {}
        }
    }

    fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } if self.phase == Phase::Running => {
                let steering = SentRequest::Steering(number);
                self.send(steering, out, |id, acp| outgoing::steer(id, &acp.session_id, &text));
            }
            Control::Message { number, text, .. } => {
                self.unconfirmed = Some(number);
                self.send_prompt(&text, out);
            }
            Control::Answer { question, answer } => self.on_answer(question, answer, out),
            Control::Interrupt => {
                self.is_interrupted = true;
                match self.phase {
                    Phase::Running => out.send(outgoing::cancel(&self.session_id)),
                    Phase::Handshake | Phase::Idle | Phase::Over => out.report(Step::TurnEnded),
                }
                // The agent must get this answer to every open request.
                for request in self.requests.withdraw(|_| true, out) {
                    out.send(outgoing::cancel_request(&request.id));
                }
            }
            Control::Finish => out.close_stdin(),
            Control::QueueEmpty | Control::Completed => {}
        }
    }

    fn can_take(&self, delivery: Delivery) -> bool {
        let is_ready = match delivery {
            Delivery::Now => self.phase == Phase::Running && self.can_steer,
            Delivery::Next => self.phase == Phase::Idle,
        };
        is_ready && !self.is_interrupted
    }
}

#[cfg(test)]
mod tests;
