//! Translates notifications of Codex's app server into Codex exec events.
//!
//! The stream is about one thread: the first that is begun or resumed. Threads of sub-agents are left out, as
//! in Codex exec events. Items keep their content; messages and reasoning are emitted when they are complete.
//! A plan is one item per turn. Tokens are the running total of the thread.

use std::collections::HashSet;

use super::effect::{Effect, Effects, UnmappedReason};
use super::pending::{Pending, Plan};
use crate::event::{AgentError, ItemDetails, ThreadEvent, TurnOutcome, Usage};
use crate::json::Text;
use crate::wire::app_server::{
    Response, SentRequest, ServerItem, ServerMessage, ServerNotification, TurnEvent, TurnItem,
};
use crate::wire::json_rpc::RequestId;

#[derive(Debug, Default)]
pub(super) struct AppServerMapper {
    thread_id: Option<String>,
    open_items: Pending<Text<'static>>,
    plan: Plan,
    usage: Option<Usage>,
    has_turn: bool,
    /// Requests of ours without which no work is done, until they are answered.
    essential_requests: HashSet<RequestId>,
}

/// We have at most a few open requests.
const MAX_REQUESTS: usize = 64;

impl AppServerMapper {
    pub(super) fn on_sent(&mut self, request: SentRequest, effects: &mut Effects<'_, '_>) {
        if request.is_essential && self.essential_requests.len() < MAX_REQUESTS {
            self.essential_requests.insert(request.id);
        }
        effects.unmapped(UnmappedReason::Sent);
    }

    pub(super) fn on_received<'a>(&mut self, message: ServerMessage<'a>, effects: &mut Effects<'_, 'a>) {
        match message {
            ServerMessage::Notification(notification) => self.on_notification(notification, effects),
            ServerMessage::Response { id, response } => {
                self.essential_requests.remove(&id);
                match response {
                    Response::Thread { thread_id } => self.on_thread(thread_id, effects),
                    Response::Turn { .. } | Response::Other => effects.unmapped(UnmappedReason::Context),
                }
            }
            ServerMessage::Error { id: Some(id), message } if self.essential_requests.remove(&id) => {
                effects.emit(ThreadEvent::TurnStarted);
                effects.emit(ThreadEvent::TurnFailed { error: AgentError { message, code: None } });
            }
            ServerMessage::Request { .. } | ServerMessage::Error { .. } => {
                effects.unmapped(UnmappedReason::Context);
            }
        }
    }

    fn on_notification<'a>(&mut self, notification: ServerNotification<'a>, effects: &mut Effects<'_, 'a>) {
        match notification {
            ServerNotification::ThreadStarted { thread_id } => self.on_thread(thread_id, effects),
            ServerNotification::OfThread { thread_id, event } => match self.thread_id.as_deref() {
                Some(own) if own == thread_id.resolve() => self.on_event(event, effects),
                Some(_) => effects.unmapped(UnmappedReason::Ignored),
                // A stream without our requests may begin in the middle.
                None => {
                    self.on_thread(thread_id, effects);
                    self.on_event(event, effects);
                }
            },
            ServerNotification::Warning { message } => effects.complete_item(ItemDetails::Error { message }),
            ServerNotification::RateLimits { exceeded_until } => {
                effects.push(Effect::LimitReset(exceeded_until));
                effects.unmapped(UnmappedReason::Context);
            }
            ServerNotification::Other => effects.unmapped(UnmappedReason::Context),
        }
    }

    fn on_thread<'a>(&mut self, thread_id: Text<'a>, effects: &mut Effects<'_, 'a>) {
        if self.thread_id.is_some() {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        self.thread_id = Some(thread_id.resolve().into_owned());
        effects.emit(ThreadEvent::ThreadStarted { thread_id });
    }

    fn on_event<'a>(&mut self, event: TurnEvent<'a>, effects: &mut Effects<'_, 'a>) {
        match event {
            TurnEvent::Started { .. } => {
                self.has_turn = true;
                effects.emit(ThreadEvent::TurnStarted);
            }
            TurnEvent::Completed { outcome, .. } => {
                self.plan.complete(effects);
                effects.push(match outcome {
                    TurnOutcome::Completed => Effect::Emit(ThreadEvent::TurnCompleted { usage: self.usage }),
                    TurnOutcome::Interrupted => Effect::Interrupted,
                    TurnOutcome::Failed(error) => Effect::Emit(ThreadEvent::TurnFailed { error }),
                });
            }
            TurnEvent::Item { is_completed, item } => self.on_item(is_completed, item, effects),
            TurnEvent::Plan(steps) => self.plan.update(steps, effects),
            TurnEvent::Usage(usage) => {
                self.usage = Some(usage);
                // A thread that was resumed reports what it has used before.
                effects.push(if self.has_turn { Effect::Usage(usage) } else { Effect::UsageBefore(usage) });
                effects.unmapped(UnmappedReason::Held);
            }
            TurnEvent::Error { message } => effects.emit(ThreadEvent::Error { message }),
            TurnEvent::Warning { message } => effects.complete_item(ItemDetails::Error { message }),
            TurnEvent::RequestResolved { .. } | TurnEvent::Other => effects.unmapped(UnmappedReason::Context),
        }
    }

    fn on_item<'a>(&mut self, is_completed: bool, item: ServerItem<'a>, effects: &mut Effects<'_, 'a>) {
        let TurnItem::Work { status, details } = item.item else {
            return effects.unmapped(UnmappedReason::Ignored);
        };
        // Messages and reasoning have no start event among Codex exec events.
        if let ItemDetails::AgentMessage { text } | ItemDetails::Reasoning { text } = &details {
            if !is_completed || text.resolve().trim().is_empty() {
                return effects.unmapped(UnmappedReason::Held);
            }
            return effects.complete_item(details);
        }
        let (phase, id) = self.open_items.phase_and_id(&item.id.resolve(), is_completed, effects.ids);
        effects.item(phase, id, status, details);
    }
}
