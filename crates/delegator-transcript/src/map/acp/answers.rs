//! The agent's answers to our requests: they name the thread, end turns, and report why the session could not
//! be opened.

use super::text::bounded;
use super::turn::{KnownAgent, ObservedTurn};
use super::{AcpMapper, CallState, MAX_ID_BYTES, key};
use crate::event::{AgentError, ErrorCode, ThreadEvent};
use crate::json::Text;
use crate::map::effect::{Effect, Effects, UnmappedReason};
use crate::wire::acp::{
    ClientRequest, InitializeResult, PromptResult, SessionResult, StopReason, error_code, error_message,
};
use crate::wire::json_rpc::{RequestId, RpcError};

const MAX_SIGN_IN_METHODS: usize = 8;
const MAX_METHOD_BYTES: usize = 200;

impl AcpMapper {
    pub(super) fn on_result(&mut self, id: &RequestId, result: &str, effects: &mut Effects<'_, '_>) {
        match self.requests.remove(&key(id)) {
            Some(ClientRequest::Initialize) => self.on_initialized(&InitializeResult::read(result)),
            Some(ClientRequest::NewSession) => {
                self.on_session(SessionResult::read(result).session_id, None, effects);
            }
            Some(ClientRequest::OpenSession { session_id, .. }) => {
                self.is_replaying = false;
                let requested = bounded(&Text::owned(session_id), MAX_ID_BYTES);
                self.on_session(SessionResult::read(result).session_id, Some(requested), effects);
            }
            Some(ClientRequest::Prompt) => self.on_prompt_answer(id, &PromptResult::read(result), effects),
            Some(ClientRequest::Setting | ClientRequest::Model | ClientRequest::Other) => {
                effects.unmapped(UnmappedReason::Ignored);
            }
            None if self.has_sent_lines => effects.unmapped(UnmappedReason::Redundant),
            None => self.on_unknown_answer(id, result, effects),
        }
    }

    /// An answer in a stream of agent lines alone: its members show what it is.
    fn on_unknown_answer(&mut self, id: &RequestId, result: &str, effects: &mut Effects<'_, '_>) {
        let prompt = PromptResult::read(result);
        if !matches!(prompt.stop_reason, StopReason::Missing) {
            return self.on_prompt_answer(id, &prompt, effects);
        }
        match SessionResult::read(result).session_id {
            Some(session_id) => self.on_session(Some(session_id), None, effects),
            None => self.on_initialized(&InitializeResult::read(result)),
        }
    }

    fn on_initialized(&mut self, result: &InitializeResult<'_>) {
        if let Some(name) = &result.agent_name {
            self.agent = KnownAgent::from_name(&name.resolve());
        }
        let methods = result.sign_in_methods.iter().take(MAX_SIGN_IN_METHODS);
        self.sign_in_methods = methods.map(|name| bounded(name, MAX_METHOD_BYTES)).collect();
    }

    fn on_session(
        &mut self,
        announced: Option<Text<'_>>,
        requested: Option<String>,
        effects: &mut Effects<'_, '_>,
    ) {
        let announced = announced.map(|id| bounded(&id, MAX_ID_BYTES)).filter(|id| !id.is_empty());
        let Some(id) = announced.or(requested) else { return };
        if self.thread_id.as_ref() == Some(&id) {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        self.thread_id = Some(id.clone());
        effects.emit(ThreadEvent::ThreadStarted { thread_id: Text::owned(id) });
    }

    fn on_prompt_answer(&mut self, id: &RequestId, result: &PromptResult<'_>, effects: &mut Effects<'_, '_>) {
        if !self.end_prompt(id, effects) {
            return;
        }
        let failure = self.turn.failure(result).map(|error| self.with_sign_in_methods(error));
        let end = match failure {
            Some(error) => Effect::Emit(ThreadEvent::TurnFailed { error }),
            None if matches!(result.stop_reason, StopReason::Cancelled) => Effect::Interrupted,
            None => Effect::Emit(ThreadEvent::TurnCompleted { usage: None }),
        };
        self.end_turn(end, result, effects);
    }

    fn end_turn<'a>(
        &mut self,
        mut end: Effect<'a>,
        result: &PromptResult<'_>,
        effects: &mut Effects<'_, 'a>,
    ) {
        if matches!(end, Effect::Interrupted) {
            self.end_withdrawn_calls(effects);
        } else {
            self.end_open_calls(effects);
        }
        let has_usage = self.add_usage(result);
        self.plan.complete(effects);
        self.turn = ObservedTurn::default();
        // Only a completed turn carries its usage.
        match (&mut end, self.usage.filter(|_| has_usage)) {
            (Effect::Emit(ThreadEvent::TurnCompleted { usage }), _) => *usage = self.usage,
            (_, Some(usage)) => effects.push(Effect::Usage(usage)),
            (_, None) => {}
        }
        effects.push(end);
    }

    /// Ends a prompt. Returns whether its turn ended: prompts that are open at the same time are one turn.
    fn end_prompt(&mut self, id: &RequestId, effects: &mut Effects<'_, '_>) -> bool {
        self.begin_unannounced_turn(effects);
        self.flush_text(effects);
        self.prompts.retain(|prompt| prompt != id);
        self.turn_is_open = !self.prompts.is_empty();
        !self.turn_is_open
    }

    /// Adds the tokens of the turn; returns whether there were any.
    fn add_usage(&mut self, result: &PromptResult<'_>) -> bool {
        let reported = result.usage.or(result.quota).filter(|counts| !counts.is_zero());
        let usage = reported.map(|counts| counts.usage()).or(self.turn.calls_usage);
        match usage {
            // Copilot counts the tokens of the whole session, the others those of the turn or of its last
            // call.
            Some(usage) if self.agent == KnownAgent::Copilot => self.usage = Some(usage),
            Some(usage) => self.usage = Some(self.usage.unwrap_or_default().plus(usage)),
            None => {}
        }
        usage.is_some()
    }

    /// Calls that the agent never ended. Gemini CLI does not mention a call again whose permission was
    /// refused.
    fn end_open_calls(&mut self, effects: &mut Effects<'_, '_>) {
        for (call_id, state) in self.calls.take_all() {
            if let CallState::Open(mut call) = state {
                if call.is_rejected {
                    call.start(effects);
                }
                call.end(effects);
            }
            self.store_call(&call_id, CallState::Done);
        }
    }

    /// Calls of a cancelled turn that were never allowed to run: their permission was refused, or the
    /// cancellation withdrew the question. The other calls stay open, because agents report their end later
    /// or never.
    fn end_withdrawn_calls(&mut self, effects: &mut Effects<'_, '_>) {
        let withdrawn = if self.has_sent_lines { self.permissions.take_all() } else { Vec::new() };
        for (call_id, state) in self.calls.take_all() {
            let is_withdrawn = withdrawn.iter().any(|(_, permission)| permission.call_id == call_id);
            let state = match state {
                CallState::Open(mut call) if call.is_rejected || is_withdrawn => {
                    call.is_rejected = true;
                    call.end(effects);
                    CallState::Done
                }
                state => state,
            };
            self.store_call(&call_id, state);
        }
    }

    pub(super) fn on_error(
        &mut self,
        id: Option<&RequestId>,
        error: &RpcError<'_>,
        effects: &mut Effects<'_, '_>,
    ) {
        let request = id.and_then(|id| self.requests.remove(&key(id)));
        match (request, id) {
            (Some(ClientRequest::Prompt), Some(id)) => self.on_failed_prompt(id, error, effects),
            (None, Some(id)) if !self.has_sent_lines && self.thread_id.is_some() => {
                self.on_failed_prompt(id, error, effects);
            }
            (Some(ClientRequest::Other), _) => effects.unmapped(UnmappedReason::Ignored),
            (None, _) if self.has_sent_lines => effects.unmapped(UnmappedReason::Ignored),
            // Without a session, mode or model as requested, there is no turn.
            (request, _) => {
                self.is_replaying = false;
                let mut error = self.agent_error(error);
                if matches!(request, Some(ClientRequest::Model)) {
                    error.code = Some(ErrorCode::ModelNotFound);
                }
                effects.emit(ThreadEvent::TurnFailed { error });
            }
        }
    }

    fn on_failed_prompt(&mut self, id: &RequestId, error: &RpcError<'_>, effects: &mut Effects<'_, '_>) {
        if self.end_prompt(id, effects) {
            let end = Effect::Emit(ThreadEvent::TurnFailed { error: self.agent_error(error) });
            self.end_turn(end, &PromptResult::default(), effects);
        }
    }

    fn agent_error(&self, error: &RpcError<'_>) -> AgentError<'static> {
        let message = Text::owned(error_message(error));
        self.with_sign_in_methods(AgentError { message, code: error_code(error) })
    }

    /// An error of an agent that needs a sign-in names the agent's ways to do so.
    fn with_sign_in_methods(&self, error: AgentError<'static>) -> AgentError<'static> {
        if error.code != Some(ErrorCode::Unauthorized) || self.sign_in_methods.is_empty() {
            return error;
        }
        let (message, methods) = (error.message.resolve(), self.sign_in_methods.join(", "));
        let message = format!("{}. Ways to sign in to this agent: {methods}", message.trim_end_matches('.'));
        AgentError { message: Text::owned(message), code: error.code }
    }
}
