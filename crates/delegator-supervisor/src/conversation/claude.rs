//! Claude Code: messages, permission requests and questions as JSON lines.
//!
//! Measured with 2.1.325: nothing is printed before the first message. A turn begins with `system/init` and
//! ends with `result`; then the next message can be sent. Requests for permission and questions of the agent
//! arrive as control requests and wait for our response; the agent withdraws them if the turn is interrupted.
//! A turn may also begin without a message, when something that the agent left running in the background has
//! ended.

use std::collections::BTreeSet;
use std::path::Path;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_domain::question::{Answer, OptionKind, QuestionNumber};
use delegator_transcript::Text;
use delegator_transcript::wire::claude::{
    self, ClaudeLine, ControlRequest, PermissionRequest, ToolAction, allow_tool, answer_questions, deny_tool,
    interrupt, refuse_request, user_message,
};

use super::open_questions::{AgentQuestion, OpenQuestions, Permission, Reply};
use super::outbox::{Control, Conversation, Outbox, Step};
use super::permissions::{Decision, PermissionPolicy, RequestedAction};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudePlan {
    pub prompt: String,
    pub permissions: PermissionPolicy,
}

#[derive(Debug)]
pub(crate) struct Claude {
    plan: ClaudePlan,
    state: ClaudeTurn,
    has_prompt: bool,
    is_interrupted: bool,
    /// The last message, until its turn begins.
    unconfirmed: Option<MessageNumber>,
    questions: OpenQuestions<WaitingTool>,
    /// Tools that the user has allowed until the task ends.
    allowed_tools: BTreeSet<String>,
}

#[derive(Debug)]
struct WaitingTool {
    id: String,
    tool: String,
    /// Raw JSON.
    input: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaudeTurn {
    /// A turn runs, or a message was sent that begins one.
    Running,
    Ended,
}

/// The only request that we send.
const INTERRUPT_ID: &str = "interrupt";
const REJECTED: &str = "The user did not allow this.";
const NO_ANSWER: &str = "The user did not answer. Continue with what you consider best.";

impl Claude {
    pub(super) fn new(plan: ClaudePlan) -> Claude {
        Claude {
            plan,
            state: ClaudeTurn::Running,
            has_prompt: false,
            is_interrupted: false,
            unconfirmed: None,
            questions: OpenQuestions::default(),
            allowed_tools: BTreeSet::new(),
        }
    }

    fn on_turn_start(&mut self, out: &mut Outbox) {
        self.report_ready(out);
        if let Some(message) = self.unconfirmed.take() {
            out.report(Step::Accepted(message));
        }
        if std::mem::replace(&mut self.state, ClaudeTurn::Running) == ClaudeTurn::Ended {
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
                let questions = questions.iter().map(agent_question).collect();
                return self.questions.ask_questions(waiting_tool(request_id, request), questions, out);
            }
            ToolAction::Command { .. } | ToolAction::McpTool => RequestedAction::Command,
            ToolAction::Edit { path: requested } => {
                path = requested.resolve();
                RequestedAction::Edit(Path::new(&*path))
            }
            ToolAction::Ask(_) | ToolAction::Other => RequestedAction::Harmless,
        };
        match self.plan.permissions.decide(action) {
            Decision::Allow => out.send(allow_tool(request_id, request.input)),
            Decision::Reject(reason) => out.send(deny_tool(request_id, reason)),
            Decision::AskUser => self.ask_permission(request_id, request, out),
        }
    }

    /// Asks the user whether a tool may be used, unless the user has allowed it until the end.
    fn ask_permission(&mut self, request_id: &Text<'_>, request: &PermissionRequest<'_>, out: &mut Outbox) {
        let tool = request.tool.resolve();
        if self.allowed_tools.contains(&*tool) {
            return out.send(allow_tool(request_id, request.input));
        }
        let (title, subject) = match &request.action {
            ToolAction::Command { command } => ("Run a command".to_owned(), command.resolve().into_owned()),
            ToolAction::Edit { path } => ("Change a file".to_owned(), path.resolve().into_owned()),
            _ => (format!("Use the tool {tool}"), request.input.to_owned()),
        };
        let reason = request.reason.as_ref().map(|reason| format!("\n({})", reason.resolve()));
        let options = [
            (OptionKind::AllowOnce, "Allow once".to_owned()),
            (OptionKind::AllowAlways, format!("Allow {tool} until the task ends")),
            (OptionKind::RejectOnce, "Reject".to_owned()),
        ];
        let detail = subject + &reason.unwrap_or_default();
        let permission = Permission::new(title, detail, &options);
        self.questions.ask_permission(waiting_tool(request_id, request), permission, out);
    }

    fn on_answer(&mut self, question: QuestionNumber, answer: Answer, out: &mut Outbox) {
        let Some((request, reply)) = self.questions.answer(question, answer, out) else { return };
        let id = Text::plain(&request.id);
        out.send(match reply {
            Reply::Permission { chosen, text } => match chosen.map(|option| option.kind) {
                Some(OptionKind::AllowOnce) => allow_tool(&id, &request.input),
                Some(OptionKind::AllowAlways) => {
                    let allowed = allow_tool(&id, &request.input);
                    self.allowed_tools.insert(request.tool);
                    allowed
                }
                _ => deny_tool(&id, text.as_deref().unwrap_or(REJECTED)),
            },
            Reply::Answers(answers) => {
                let mut given =
                    answers.iter().filter_map(|it| Some((it.key.as_str(), it.answer.as_deref()?))).peekable();
                match given.peek() {
                    Some(_) => answer_questions(&id, &request.input, given),
                    None => deny_tool(&id, NO_ANSWER),
                }
            }
        });
    }
}

impl Conversation for Claude {
    fn open(&mut self, out: &mut Outbox) {
        out.send(user_message(&std::mem::take(&mut self.plan.prompt)));
    }

    fn on_line(&mut self, line: &str, out: &mut Outbox) {
        match ClaudeLine::read(line) {
            Some(ClaudeLine::Init { .. }) => self.on_turn_start(out),
            Some(ClaudeLine::Result(_)) => {
                self.report_ready(out);
                self.questions.withdraw(|_| true, out);
                self.state = ClaudeTurn::Ended;
                out.report(Step::TurnEnded);
            }
            Some(ClaudeLine::ControlRequest { request_id, request }) => match request {
                ControlRequest::Permission(request) => self.on_permission_request(&request_id, &request, out),
                ControlRequest::Unknown { .. } => {
                    out.send(refuse_request(&request_id, "this client does not support the request"));
                }
            },
            Some(ClaudeLine::ControlCancel { request_id }) => {
                let id = request_id.resolve();
                self.questions.withdraw(|request| request.id == id, out);
            }
            _ => {}
        }
    }

    fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } => {
                out.send(user_message(&text));
                self.unconfirmed = Some(number);
                self.state = ClaudeTurn::Running;
            }
            Control::Answer { question, answer } => self.on_answer(question, answer, out),
            Control::Interrupt => {
                self.is_interrupted = true;
                match self.state {
                    ClaudeTurn::Running => out.send(interrupt(INTERRUPT_ID)),
                    ClaudeTurn::Ended => out.report(Step::TurnEnded),
                }
            }
            Control::Finish => out.close_stdin(),
            Control::QueueEmpty | Control::Completed => {}
        }
    }

    fn can_take(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Next && self.state == ClaudeTurn::Ended && !self.is_interrupted
    }
}

fn waiting_tool(request_id: &Text<'_>, request: &PermissionRequest<'_>) -> WaitingTool {
    WaitingTool {
        id: request_id.resolve().into_owned(),
        tool: request.tool.resolve().into_owned(),
        input: request.input.to_owned(),
    }
}

/// The agent knows a question by its text.
fn agent_question(question: &claude::AgentQuestion<'_>) -> AgentQuestion {
    let text = &question.question;
    AgentQuestion::new(text, text, &question.options, question.multiple)
}

#[cfg(test)]
mod tests;
