//! Codex's app server: a handshake, one thread, and turns on it.
//!
//! `initialize`, `thread/start` or `thread/resume`, then `turn/start` per message. The notification
//! `turn/completed` ends a turn. A message is put into the running turn (`turn/steer`) or begins the next
//! one. A steered message that the app server refuses, because the turn has just ended or cannot be steered,
//! begins the next turn instead. If the handshake fails, the conversation is over; the dialect reads the
//! reason from the same line.
//!
//! Measured with 0.166: `turn/interrupt` ends the turn and leaves its command running, so the background
//! terminals of the thread are ended afterwards.

use std::collections::VecDeque;
use std::path::PathBuf;

use delegator_domain::message::{Delivery, MessageNumber, OWN_MESSAGE};
use delegator_domain::question::{Answer, OptionKind, QuestionNumber};
use delegator_transcript::wire::app_server::{
    self as wire, Approval, ApprovalRequest, Client, Input, Response, ServerItem, ServerMessage,
    ServerNotification, ServerRequest, ThreadOptions, TurnEvent, TurnItem, TurnOptions, UserInputQuestion,
    WrittenAnswer,
};
use delegator_transcript::wire::json_rpc::RequestId;
use delegator_transcript::{ItemDetails, Text};

use super::open_questions::{AgentQuestion, OpenQuestions, Permission, Reply};
use super::outbox::{Control, Conversation, Outbox, Step};
use super::sent_requests::SentRequests;

const CLIENT: Client<'static> = Client { name: "mcp-delegator", version: env!("CARGO_PKG_VERSION") };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppServerPlan {
    pub prompt: String,
    pub images: Vec<PathBuf>,
    pub resume: Option<String>,
    pub thread: ThreadOptions,
    pub turn: TurnOptions,
    /// The user is asked for approvals; otherwise none is given.
    pub ask: bool,
}

#[derive(Debug)]
pub(crate) struct AppServer {
    plan: AppServerPlan,
    phase: Phase,
    thread_id: String,
    sent: SentRequests<SentRequest>,
    /// Messages that begin the next turns.
    waiting: VecDeque<(MessageNumber, String)>,
    is_interrupted: bool,
    questions: OpenQuestions<RequestId>,
    /// Changes of files that have begun, the last one first: the id of the item, and paths.
    started_changes: VecDeque<(String, String)>,
}

/// An approval is requested right after its change has begun.
const MAX_STARTED_CHANGES: usize = 16;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Handshake,
    /// A turn was requested.
    Starting,
    Running {
        turn_id: String,
    },
    Idle,
    /// The turn was interrupted, and its commands are being ended.
    Cleaning,
    /// The handshake failed.
    Over,
}

#[derive(Debug)]
enum SentRequest {
    Initialize,
    Thread,
    /// The turn of a message, or of the prompt.
    Turn(Option<MessageNumber>),
    Steer {
        message: MessageNumber,
        text: String,
    },
    Interrupt,
    Clean,
}

impl AppServer {
    pub(super) fn new(plan: AppServerPlan) -> AppServer {
        AppServer {
            plan,
            phase: Phase::Handshake,
            thread_id: String::new(),
            sent: SentRequests::default(),
            waiting: VecDeque::new(),
            is_interrupted: false,
            questions: OpenQuestions::default(),
            started_changes: VecDeque::new(),
        }
    }

    fn on_response(&mut self, request: SentRequest, response: Response<'_>, out: &mut Outbox) {
        match (request, response) {
            (SentRequest::Initialize, _) => {
                out.send(wire::initialized());
                let id = self.sent.add(SentRequest::Thread);
                out.send(match &self.plan.resume {
                    Some(thread) => wire::resume_thread(id, thread, &self.plan.thread),
                    None => wire::start_thread(id, &self.plan.thread),
                });
            }
            (SentRequest::Thread, Response::Thread { thread_id }) => {
                self.thread_id = thread_id.resolve().into_owned();
                let prompt = std::mem::take(&mut self.plan.prompt);
                let images = std::mem::take(&mut self.plan.images);
                self.start_turn(None, &prompt, &images, out);
            }
            (SentRequest::Turn(message), Response::Turn { turn_id }) => {
                out.report(message.map_or(Step::Ready, Step::Accepted));
                // The turn may have ended already.
                if self.phase == Phase::Starting {
                    self.phase = Phase::Running { turn_id: turn_id.resolve().into_owned() };
                }
            }
            (SentRequest::Steer { message, .. }, _) => out.report(Step::Accepted(message)),
            (SentRequest::Clean, _) => self.end_turn(out),
            (SentRequest::Interrupt, _) => {}
            (SentRequest::Thread | SentRequest::Turn(_), _) => self.give_up(out),
        }
    }

    fn on_refusal(&mut self, request: SentRequest, message: &Text<'_>, out: &mut Outbox) {
        match request {
            SentRequest::Initialize | SentRequest::Thread | SentRequest::Turn(None) => self.give_up(out),
            SentRequest::Turn(Some(refused)) => {
                out.report(Step::Refused { message: refused, reason: message.resolve().into_owned() });
                self.end_turn(out);
            }
            SentRequest::Steer { message: OWN_MESSAGE, .. } => {
                let reason = message.resolve().into_owned();
                out.report(Step::Refused { message: OWN_MESSAGE, reason });
            }
            SentRequest::Steer { message, text } => {
                self.waiting.push_back((message, text));
                if self.phase == Phase::Idle {
                    self.end_turn(out);
                }
            }
            // The turn had ended before.
            SentRequest::Interrupt => self.clean_up(out),
            SentRequest::Clean => self.end_turn(out),
        }
    }

    fn give_up(&mut self, out: &mut Outbox) {
        self.phase = Phase::Over;
        out.report(Step::Over);
    }

    fn start_turn(
        &mut self,
        message: Option<MessageNumber>,
        text: &str,
        images: &[PathBuf],
        out: &mut Outbox,
    ) {
        let id = self.sent.add(SentRequest::Turn(message));
        self.phase = Phase::Starting;
        out.send(wire::start_turn(id, &self.thread_id, Input { text, images }, &self.plan.turn));
    }

    fn on_event(&mut self, event: TurnEvent<'_>, out: &mut Outbox) {
        match event {
            TurnEvent::Completed { .. } => {
                self.questions.withdraw(|_| true, out);
                if self.is_interrupted { self.clean_up(out) } else { self.end_turn(out) }
            }
            TurnEvent::Item { is_completed: false, item } => self.on_item_start(&item),
            TurnEvent::RequestResolved { request_id } => {
                self.questions.withdraw(|open| *open == request_id, out);
            }
            _ => {}
        }
    }

    /// Ends the commands that an interrupted turn left running; once.
    fn clean_up(&mut self, out: &mut Outbox) {
        if self.phase != Phase::Cleaning {
            self.phase = Phase::Cleaning;
            let id = self.sent.add(SentRequest::Clean);
            out.send(wire::clean_background_terminals(id, &self.thread_id));
        }
    }

    /// A request to approve a change of files does not name them.
    fn on_item_start(&mut self, item: &ServerItem<'_>) {
        let TurnItem::Work { details: ItemDetails::FileChange { changes }, .. } = &item.item else { return };
        let paths: Vec<_> = changes.iter().map(|change| change.path.resolve().into_owned()).collect();
        self.started_changes.truncate(MAX_STARTED_CHANGES - 1);
        self.started_changes.push_front((item.id.resolve().into_owned(), paths.join("\n")));
    }

    /// No turn runs: a message that waits begins the next one.
    fn end_turn(&mut self, out: &mut Outbox) {
        match self.waiting.pop_front().filter(|_| !self.is_interrupted) {
            Some((message, text)) => self.start_turn(Some(message), &text, &[], out),
            None => {
                self.phase = Phase::Idle;
                out.report(Step::TurnEnded);
            }
        }
    }

    fn on_server_request(&mut self, id: RequestId, request: &ServerRequest<'_>, out: &mut Outbox) {
        match request {
            ServerRequest::Approval(request) if self.plan.ask => self.ask_approval(id, request, out),
            ServerRequest::Approval(_) => out.send(wire::answer_approval(&id, Approval::Decline)),
            ServerRequest::Permissions => out.send(wire::refuse_permissions(&id)),
            ServerRequest::UserInput(questions) if !questions.is_empty() => {
                let question =
                    |it: &UserInputQuestion<'_>| AgentQuestion::new(&it.id, &it.question, &it.options, false);
                let questions = questions.iter().map(question).collect();
                self.questions.ask_questions(id, questions, out);
            }
            ServerRequest::UserInput(_) => out.send(wire::answer_user_input(&id, &[])),
            ServerRequest::Unknown { .. } => out.send(wire::refuse_request(&id)),
        }
    }

    fn ask_approval(&mut self, id: RequestId, request: &ApprovalRequest<'_>, out: &mut Outbox) {
        let (title, subject) = match &request.command {
            Some(command) => ("Run a command outside of the sandbox", command.resolve().into_owned()),
            None => {
                let item = request.item_id.resolve();
                let paths = self.started_changes.iter().find(|(id, _)| *id == item);
                let paths = paths.map(|(_, paths)| paths.clone());
                ("Change files outside of the sandbox", paths.unwrap_or_default())
            }
        };
        let line = |before: &str, text: &Option<Text<'_>>| {
            text.as_ref().map(|text| format!("{before}{}", text.resolve()))
        };
        let lines = [Some(subject), line("in ", &request.directory), line("because: ", &request.reason)];
        let detail: Vec<String> = lines.into_iter().flatten().filter(|line| !line.is_empty()).collect();
        let options =
            [(OptionKind::AllowOnce, "Allow once".to_owned()), (OptionKind::RejectOnce, "Reject".to_owned())];
        let permission = Permission::new(title.to_owned(), detail.join("\n"), &options);
        self.questions.ask_permission(id, permission, out);
    }

    fn interrupt(&mut self, out: &mut Outbox) {
        self.is_interrupted = true;
        match &self.phase {
            Phase::Running { turn_id } => {
                let turn_id = turn_id.clone();
                let id = self.sent.add(SentRequest::Interrupt);
                out.send(wire::interrupt_turn(id, &self.thread_id, &turn_id));
            }
            _ => out.report(Step::TurnEnded),
        }
    }

    fn on_answer(&mut self, question: QuestionNumber, answer: Answer, out: &mut Outbox) {
        let Some((id, reply)) = self.questions.answer(question, answer, out) else { return };
        out.send(match reply {
            Reply::Permission { chosen, .. } => {
                let is_allowed = chosen.is_some_and(|option| option.kind == OptionKind::AllowOnce);
                wire::answer_approval(&id, if is_allowed { Approval::Accept } else { Approval::Decline })
            }
            Reply::Answers(answers) => {
                let answers: Vec<WrittenAnswer> = answers
                    .into_iter()
                    .map(|it| WrittenAnswer { question_id: it.key, texts: it.answer.into_iter().collect() })
                    .collect();
                wire::answer_user_input(&id, &answers)
            }
        });
    }
}

impl Conversation for AppServer {
    fn open(&mut self, out: &mut Outbox) {
        let id = self.sent.add(SentRequest::Initialize);
        out.send(wire::initialize(id, CLIENT));
    }

    fn on_line(&mut self, line: &str, out: &mut Outbox) {
        match ServerMessage::read(line) {
            Some(ServerMessage::Response { id, response }) => {
                if let Some(request) = self.sent.take(&id) {
                    self.on_response(request, response, out);
                }
            }
            Some(ServerMessage::Error { id: Some(id), message }) => {
                if let Some(request) = self.sent.take(&id) {
                    self.on_refusal(request, &message, out);
                }
            }
            Some(ServerMessage::Request { id, request }) => self.on_server_request(id, &request, out),
            Some(ServerMessage::Notification(ServerNotification::OfThread { thread_id, event }))
                if self.thread_id == thread_id.resolve() =>
            {
                self.on_event(event, out);
            }
            _ => {}
        }
    }

    fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } => match &self.phase {
                Phase::Running { turn_id } => {
                    let turn_id = turn_id.clone();
                    let id = self.sent.add(SentRequest::Steer { message: number, text: text.clone() });
                    out.send(wire::steer_turn(id, &self.thread_id, &turn_id, &text));
                }
                _ => self.start_turn(Some(number), &text, &[], out),
            },
            Control::Answer { question, answer } => self.on_answer(question, answer, out),
            Control::Interrupt => self.interrupt(out),
            Control::Finish => out.close_stdin(),
            Control::QueueEmpty | Control::Completed => {}
        }
    }

    fn can_take(&self, delivery: Delivery) -> bool {
        match (&self.phase, delivery) {
            _ if self.is_interrupted => false,
            (Phase::Running { .. }, Delivery::Now) | (Phase::Idle, _) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
