//! Translates the Agent Client Protocol into Codex exec events.
//!
//! A stored stream contains both directions, so the mapper knows which request an answer belongs to. A turn
//! begins when we send a prompt and ends with its answer. Chunks are joined into messages; tool calls are
//! joined by their id; updates outside a turn are replays of history and are dropped. In a stream of agent
//! lines alone, answers are recognised by their members, and the first update begins a turn.
//!
//! Usage in events is the running total of the stream, as in Codex's own events. Memory is bounded for any
//! input.

mod answers;
mod call;
mod text;
mod turn;

use super::effect::{Effect, Effects, UnmappedReason};
use super::pending::{Pending, Plan};
use crate::event::{Item, ItemDetails, ItemPhase, ThreadEvent, Todo, Usage};
use crate::json::Text;
use crate::wire::acp::{
    AgentMessage, Chunk, ClientMessage, ClientRequest, PermissionRequest, SessionInfo, ToolCall, Update,
};
use crate::wire::json_rpc::RequestId;
use call::Call;
use text::{JoinedText, TextKind, bounded};
use turn::{KnownAgent, ObservedTurn, bounded_error};

const MAX_ID_BYTES: usize = 1 << 10;
/// More prompts than this at once are not counted: a client sends one.
const MAX_PROMPTS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct AcpMapper {
    /// False in a stream of agent lines alone.
    has_sent_lines: bool,
    agent: KnownAgent,
    sign_in_methods: Vec<String>,
    thread_id: Option<String>,
    requests: Pending<ClientRequest>,
    permissions: Pending<OpenPermission>,
    /// The history of a loaded session is being replayed.
    is_replaying: bool,
    prompts: Vec<RequestId>,
    turn_is_open: bool,
    turn: ObservedTurn,
    text: Option<JoinedText>,
    calls: Pending<CallState>,
    plan: Plan,
    /// The total of the turns that ended.
    usage: Option<Usage>,
}

#[derive(Debug)]
struct OpenPermission {
    call_id: String,
    allowing: Vec<String>,
    /// No message before was about the call.
    announces_call: bool,
}

#[derive(Debug)]
enum CallState {
    Open(Box<Call>),
    /// Later messages about it change nothing.
    Done,
}

/// Ids of both sides are looked up in separate tables, so a number and a text of the same digits is the only
/// case to tell apart.
fn key(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => format!("\"{text}"),
    }
}

impl AcpMapper {
    pub(super) fn on_sent(&mut self, message: ClientMessage<'_>, effects: &mut Effects<'_, '_>) {
        self.has_sent_lines = true;
        match message {
            ClientMessage::Request { id, request } => {
                let mut bytes = 0;
                match &request {
                    ClientRequest::OpenSession { session_id, is_replayed } => {
                        self.is_replaying |= is_replayed;
                        bytes = session_id.len();
                    }
                    ClientRequest::Prompt => {
                        if self.prompts.len() < MAX_PROMPTS {
                            self.prompts.push(id.clone());
                        }
                        self.begin_turn(effects);
                    }
                    _ => {}
                }
                self.requests.insert(&key(&id), request, bytes);
            }
            ClientMessage::PermissionAnswer { id, option } => {
                self.on_permission_answer(&id, option.as_ref(), effects);
            }
            ClientMessage::Cancel => self.turn.is_cancelled = true,
            ClientMessage::Other => effects.unmapped(UnmappedReason::Ignored),
        }
    }

    pub(super) fn on_received<'a>(&mut self, message: AgentMessage<'a>, effects: &mut Effects<'_, 'a>) {
        match message {
            AgentMessage::Update(update) => self.on_update(update, effects),
            AgentMessage::PermissionRequest { id, request } => {
                self.on_permission_request(&id, &request, effects);
            }
            AgentMessage::Result { id, result } => self.on_result(&id, result, effects),
            AgentMessage::Error { id, error } => self.on_error(id.as_ref(), &error, effects),
            AgentMessage::OtherRequest { .. } | AgentMessage::OtherNotification => {
                effects.unmapped(UnmappedReason::Ignored);
            }
        }
    }

    /// In a stream of agent lines alone, the first sign of work begins a turn.
    fn begin_unannounced_turn(&mut self, effects: &mut Effects<'_, '_>) {
        if !self.has_sent_lines {
            self.begin_turn(effects);
        }
    }

    fn begin_turn(&mut self, effects: &mut Effects<'_, '_>) {
        if !std::mem::replace(&mut self.turn_is_open, true) {
            self.turn = ObservedTurn::default();
            effects.emit(ThreadEvent::TurnStarted);
        }
    }

    fn on_update<'a>(&mut self, update: Update<'a>, effects: &mut Effects<'_, 'a>) {
        if self.is_replaying {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        let is_work = match &update {
            Update::MessageChunk(_) | Update::ThoughtChunk(_) | Update::Plan(_) => true,
            // The end of a call that its turn did not wait for.
            Update::ToolCall(call) => !self.calls.contains(&call.id.resolve()),
            _ => false,
        };
        if is_work {
            self.begin_unannounced_turn(effects);
            if !self.turn_is_open {
                return effects.unmapped(UnmappedReason::Redundant);
            }
        }
        match update {
            Update::MessageChunk(chunk) => self.on_message_chunk(&chunk, effects),
            Update::ThoughtChunk(chunk) => self.on_chunk(TextKind::Reasoning, &chunk, effects),
            Update::ToolCall(call) => {
                self.flush_text(effects);
                self.on_tool_call(*call, effects);
            }
            Update::Plan(items) => {
                self.flush_text(effects);
                self.update_plan(items, effects);
            }
            Update::Cost(cost) => effects.push(Effect::Cost(cost)),
            Update::Notice(message) => effects.complete_item(ItemDetails::Error { message }),
            Update::SessionInfo(SessionInfo { is_codex, retried_error, has_failed }) => {
                if is_codex {
                    self.agent = KnownAgent::CodexAcp;
                }
                self.turn.has_failed |= has_failed;
                match retried_error {
                    Some(message) => effects.emit(ThreadEvent::Error { message }),
                    None if !has_failed => effects.unmapped(UnmappedReason::Ignored),
                    None => {}
                }
            }
            Update::Other => effects.unmapped(UnmappedReason::Ignored),
        }
    }

    /// A part of a message, or a remark of the program itself that an adapter writes as a message.
    fn on_message_chunk(&mut self, chunk: &Chunk<'_>, effects: &mut Effects<'_, '_>) {
        let text = chunk.text.resolve();
        let is_remark = match self.agent {
            KnownAgent::CodexAcp => chunk.message_id.is_none(),
            KnownAgent::Copilot => {
                self.turn.has_failed |= text.starts_with("Error: ");
                text.starts_with("Info: ") || text.starts_with("Error: ")
            }
            KnownAgent::ClaudeAcp | KnownAgent::Kimi | KnownAgent::Other => false,
        };
        if !is_remark {
            self.turn.note_chunk(&text);
            return self.on_chunk(TextKind::Message, chunk, effects);
        }
        self.flush_text(effects);
        self.turn.remark = Some(bounded_error(text.strip_prefix("Error: ").unwrap_or(&text)));
        effects.complete_item(ItemDetails::Error { message: Text::owned(text.trim()) });
    }

    fn on_chunk(&mut self, kind: TextKind, chunk: &Chunk<'_>, effects: &mut Effects<'_, '_>) {
        if let Some(counts) = chunk.usage {
            let calls_usage = self.turn.calls_usage.unwrap_or_default().plus(counts.usage());
            self.turn.calls_usage = Some(calls_usage);
            effects.push(Effect::Usage(self.usage.unwrap_or_default().plus(calls_usage)));
        }
        if chunk.text.is_empty() {
            return;
        }
        match &mut self.text {
            Some(text) if text.continues(kind, chunk) => text.push(&chunk.text),
            _ => {
                self.flush_text(effects);
                self.text = Some(JoinedText::begin(kind, chunk));
            }
        }
    }

    /// Emits the message of which chunks arrived.
    pub(super) fn flush_text(&mut self, effects: &mut Effects<'_, '_>) {
        let Some(text) = self.text.take().filter(|text| !text.text.trim().is_empty()) else { return };
        let full_bytes = text.full_bytes();
        let details = match text.kind {
            TextKind::Message => {
                self.turn.has_output = true;
                // Copilot remarks on a refusal, too.
                self.turn.ends_with_refusal &= text.text.starts_with("Info: ");
                self.turn.last_message = Some(bounded_error(&text.text));
                ItemDetails::AgentMessage { text: Text::owned(text.text) }
            }
            TextKind::Reasoning => ItemDetails::Reasoning { text: Text::owned(text.text) },
        };
        let item = Item { id: effects.ids.next(), status: None, details, full_bytes };
        effects.emit(ThreadEvent::Item { phase: ItemPhase::Completed, item });
    }

    fn on_tool_call<'a>(&mut self, message: ToolCall<'a>, effects: &mut Effects<'_, 'a>) {
        self.turn.has_output = true;
        self.turn.error_chunk = None;
        let call_id = bounded(&message.id, MAX_ID_BYTES);
        let mut call = match self.calls.remove(&call_id) {
            Some(CallState::Open(call)) => call,
            Some(CallState::Done) => return self.store_call(&call_id, CallState::Done),
            None => Box::default(),
        };
        call.merge(&message);
        call.completes_with_zero = matches!(self.agent, KnownAgent::ClaudeAcp | KnownAgent::Kimi);
        self.turn.ends_with_refusal &= call.is_rejected;
        if let Some(todos) = message.todos {
            call.is_plan = true;
            self.update_plan(todos, effects);
        }
        if !call.is_plan {
            if call.can_start() {
                call.start(effects);
            }
            if call.has_ended() {
                call.end(effects);
                return self.store_call(&call_id, CallState::Done);
            }
        }
        self.store_call(&call_id, CallState::Open(call));
    }

    fn store_call(&mut self, call_id: &str, state: CallState) {
        let bytes = match &state {
            CallState::Open(call) => call.stored_bytes(),
            CallState::Done => 0,
        };
        self.calls.insert(call_id, state, bytes);
    }

    fn update_plan<'a>(&mut self, items: Vec<Todo<'a>>, effects: &mut Effects<'_, 'a>) {
        self.turn.has_output = true;
        if !self.plan.is(&items) {
            self.plan.update(items, effects);
        }
    }

    fn on_permission_request<'a>(
        &mut self,
        id: &RequestId,
        request: &PermissionRequest<'a>,
        effects: &mut Effects<'_, 'a>,
    ) {
        self.begin_unannounced_turn(effects);
        self.flush_text(effects);
        let call_id = bounded(&request.call.id, MAX_ID_BYTES);
        let options = request.options.iter().filter(|option| option.kind.is_allow());
        let allowing: Vec<String> =
            options.map(|option| bounded(&option.id, MAX_ID_BYTES)).take(16).collect();
        let bytes = call_id.len() + allowing.iter().map(String::len).sum::<usize>();
        let announces_call = !self.calls.contains(&call_id);
        self.permissions.insert(&key(id), OpenPermission { call_id, allowing, announces_call }, bytes);
        // The request describes the call; its status says nothing about whether the call runs.
        let call = ToolCall { status: None, ..request.call.clone() };
        self.on_tool_call(call, effects);
    }

    /// Marks the call as refused unless the chosen option allows it. An allowed call that only the question
    /// mentioned runs from now on: Gemini CLI does not mention it again before it ends.
    fn on_permission_answer(
        &mut self,
        id: &RequestId,
        option: Option<&Text<'_>>,
        effects: &mut Effects<'_, '_>,
    ) {
        let Some(request) = self.permissions.remove(&key(id)) else { return };
        let is_allowed = option.is_some_and(|option| request.allowing.iter().any(|id| *option == **id));
        self.turn.ends_with_refusal |= !is_allowed;
        let Some(mut state) = self.calls.remove(&request.call_id) else { return };
        if let CallState::Open(call) = &mut state {
            call.is_rejected |= !is_allowed;
            if is_allowed && request.announces_call {
                call.start(effects);
            }
        }
        self.store_call(&request.call_id, state);
    }
}
