//! Claude Code: messages, permission requests and questions as JSON lines.
//!
//! Measured with 2.1.325: nothing is printed before the first message. A turn begins with `system/init` and ends with
//! `result`; then the next message can be sent. Requests for permission and questions of the agent arrive as control
//! requests and wait for our response; the agent withdraws them if the turn is interrupted. A turn may also begin without a
//! message, when something that the agent left running in the background has ended.

mod open_requests;

use std::path::Path;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_transcript::Text;
use delegator_transcript::wire::claude::{
    ClaudeLine, ControlRequest, PermissionRequest, ToolAction, allow_tool, deny_tool, interrupt,
    refuse_request, user_message,
};

use super::permissions::{Decision, PermissionPolicy, RequestedAction};
use super::{Control, Outbox, Step};
use open_requests::OpenRequests;

/// What is said to Claude Code. Data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudePlan {
    pub prompt: String,
    pub permissions: PermissionPolicy,
}

#[derive(Debug)]
pub(crate) struct Claude {
    prompt: String,
    permissions: PermissionPolicy,
    state: TurnState,
    has_prompt: bool,
    is_interrupted: bool,
    /// The last message, until its turn begins.
    unconfirmed: Option<MessageNumber>,
    requests: OpenRequests,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnState {
    /// A turn runs, or a message was sent that begins one.
    Running,
    Ended,
}

/// The only request that we send.
const INTERRUPT_ID: &str = "interrupt";

impl Claude {
    pub(super) fn new(plan: ClaudePlan) -> Claude {
        Claude {
            prompt: plan.prompt,
            permissions: plan.permissions,
            state: TurnState::Running,
            has_prompt: false,
            is_interrupted: false,
            unconfirmed: None,
            requests: OpenRequests::default(),
        }
    }

    pub(super) fn open(&mut self, out: &mut Outbox) {
        out.send(user_message(&std::mem::take(&mut self.prompt)));
    }

    pub(super) fn on_line(&mut self, line: &str, out: &mut Outbox) {
        match ClaudeLine::read(line) {
            Some(ClaudeLine::Init { .. }) => self.on_turn_start(out),
            Some(ClaudeLine::Result(_)) => {
                self.report_ready(out);
                self.requests.withdraw_all(out);
                self.state = TurnState::Ended;
                out.report(Step::TurnEnded);
            }
            Some(ClaudeLine::ControlRequest { request_id, request }) => match request {
                ControlRequest::Permission(request) => self.on_permission_request(&request_id, &request, out),
                ControlRequest::Unknown { .. } => {
                    out.send(refuse_request(&request_id, "this client does not support the request"));
                }
            },
            Some(ClaudeLine::ControlCancel { request_id }) => {
                self.requests.withdraw(&request_id.resolve(), out);
            }
            _ => {}
        }
    }

    fn on_turn_start(&mut self, out: &mut Outbox) {
        self.report_ready(out);
        if let Some(message) = self.unconfirmed.take() {
            out.report(Step::Accepted(message));
        }
        if std::mem::replace(&mut self.state, TurnState::Running) == TurnState::Ended {
            out.report(Step::Working);
        }
    }

    fn report_ready(&mut self, out: &mut Outbox) {
        if !std::mem::replace(&mut self.has_prompt, true) {
            out.report(Step::Ready);
        }
    }

    fn on_permission_request(
        &mut self,
        request_id: &Text<'_>,
        request: &PermissionRequest<'_>,
        out: &mut Outbox,
    ) {
        let path;
        let action = match &request.action {
            ToolAction::Ask(questions) if !questions.is_empty() => {
                return self.requests.ask_questions(request_id, request.input, questions, out);
            }
            ToolAction::Command { .. } | ToolAction::McpTool => RequestedAction::Command,
            ToolAction::Edit { path: requested } => {
                path = requested.resolve();
                RequestedAction::Edit(Path::new(&*path))
            }
            ToolAction::Ask(_) | ToolAction::Other => RequestedAction::Harmless,
        };
        match self.permissions.decide(action) {
            Decision::Allow => out.send(allow_tool(request_id, request.input)),
            Decision::Reject(reason) => out.send(deny_tool(request_id, reason)),
            Decision::AskUser => self.requests.ask_permission(request_id, request, out),
        }
    }

    pub(super) fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } => {
                out.send(user_message(&text));
                self.unconfirmed = Some(number);
                self.state = TurnState::Running;
            }
            Control::Answer { question, answer } => self.requests.answer(question, &answer, out),
            Control::Interrupt => {
                self.is_interrupted = true;
                match self.state {
                    TurnState::Running => out.send(interrupt(INTERRUPT_ID)),
                    TurnState::Ended => out.report(Step::TurnEnded),
                }
            }
            Control::Finish => out.close_stdin(),
        }
    }

    pub(super) fn can_take(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Next && self.state == TurnState::Ended && !self.is_interrupted
    }
}

#[cfg(test)]
mod tests;
