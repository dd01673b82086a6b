//! Translates notifications of Codex's app server into Codex exec events.
//!
//! The stream is about one thread: the first that is begun or resumed. Threads of sub-agents are left out, as in Codex exec
//! events. Items keep their content; messages and reasoning are emitted when they are complete. A plan is one item per
//! turn. Tokens are the running total of the thread.

use std::collections::HashSet;

use super::effect::{Effect, Effects, UnmappedReason, completed_item, item, unmapped};
use super::item_ids::ItemIds;
use super::pending::Pending;
use super::plan::Plan;
use crate::decode::AppServerEvent;
use crate::event::{AgentError, ItemDetails, ThreadEvent, TurnOutcome, Usage};
use crate::json::Text;
use crate::wire::app_server::{
    Notification, Response, SentRequest, ServerItem, ServerMessage, TurnEvent, TurnItem,
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
    pub(super) fn apply<'a>(&mut self, event: AppServerEvent<'a>, ids: &mut ItemIds) -> Effects<'a> {
        let message = match event {
            AppServerEvent::Received(message) => message,
            AppServerEvent::Sent(SentRequest { id, is_essential }) => {
                if is_essential && self.essential_requests.len() < MAX_REQUESTS {
                    self.essential_requests.insert(id);
                }
                return unmapped(UnmappedReason::Sent);
            }
        };
        match message {
            ServerMessage::Notification(notification) => self.on_notification(notification, ids),
            ServerMessage::Response { id, response } => {
                self.essential_requests.remove(&id);
                match response {
                    Response::Thread { thread_id } => self.on_thread(thread_id),
                    Response::Turn { .. } | Response::Other => unmapped(UnmappedReason::Context),
                }
            }
            ServerMessage::Request { .. } => unmapped(UnmappedReason::Context),
            ServerMessage::Error { id, message } => match id {
                Some(id) if self.essential_requests.remove(&id) => vec![
                    Effect::Emit(ThreadEvent::TurnStarted),
                    Effect::Emit(ThreadEvent::TurnFailed { error: AgentError { message, code: None } }),
                ],
                _ => unmapped(UnmappedReason::Context),
            },
        }
    }

    fn on_notification<'a>(&mut self, notification: Notification<'a>, ids: &mut ItemIds) -> Effects<'a> {
        match notification {
            Notification::ThreadStarted { thread_id } => self.on_thread(thread_id),
            Notification::OfThread { thread_id, event } => {
                match self.thread_id.as_deref() {
                    Some(own) if own == thread_id.resolve() => self.on_event(event, ids),
                    Some(_) => unmapped(UnmappedReason::Ignored),
                    // A stream without our requests may begin in the middle.
                    None => {
                        self.thread_id = Some(thread_id.resolve().into_owned());
                        let mut effects = vec![Effect::Emit(ThreadEvent::ThreadStarted { thread_id })];
                        effects.extend(self.on_event(event, ids));
                        effects
                    }
                }
            }
            Notification::Warning { message } => {
                vec![completed_item(ids, ItemDetails::Error { message })]
            }
            Notification::RateLimits { exceeded_until } => {
                vec![Effect::LimitReset(exceeded_until), Effect::Unmapped(UnmappedReason::Context)]
            }
            Notification::Other => unmapped(UnmappedReason::Context),
        }
    }

    fn on_thread<'a>(&mut self, thread_id: Text<'a>) -> Effects<'a> {
        if self.thread_id.is_some() {
            return unmapped(UnmappedReason::Redundant);
        }
        self.thread_id = Some(thread_id.resolve().into_owned());
        vec![Effect::Emit(ThreadEvent::ThreadStarted { thread_id })]
    }

    fn on_event<'a>(&mut self, event: TurnEvent<'a>, ids: &mut ItemIds) -> Effects<'a> {
        match event {
            TurnEvent::Started { .. } => {
                self.has_turn = true;
                vec![Effect::Emit(ThreadEvent::TurnStarted)]
            }
            TurnEvent::Completed { outcome, .. } => self.end_turn(outcome),
            TurnEvent::Item { is_completed, item } => self.on_item(is_completed, item, ids),
            TurnEvent::Plan(steps) => vec![self.plan.update(steps, ids)],
            TurnEvent::Usage(usage) => {
                self.usage = Some(usage);
                // A thread that was resumed reports what it has used before.
                let effect = if self.has_turn { Effect::Usage(usage) } else { Effect::UsageBefore(usage) };
                vec![effect, Effect::Unmapped(UnmappedReason::Held)]
            }
            TurnEvent::Error { message } => vec![Effect::Emit(ThreadEvent::Error { message })],
            TurnEvent::Warning { message } => {
                vec![completed_item(ids, ItemDetails::Error { message })]
            }
            TurnEvent::RequestResolved { .. } | TurnEvent::Other => unmapped(UnmappedReason::Context),
        }
    }

    fn on_item<'a>(
        &mut self,
        is_completed: bool,
        server_item: ServerItem<'a>,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let TurnItem::Work { status, details } = server_item.item else {
            return unmapped(UnmappedReason::Ignored);
        };
        // Messages and reasoning have no start event among Codex exec events.
        if let ItemDetails::AgentMessage { text } | ItemDetails::Reasoning { text } = &details {
            if !is_completed || text.resolve().trim().is_empty() {
                return unmapped(UnmappedReason::Held);
            }
            return vec![completed_item(ids, details)];
        }
        let server_id = server_item.id.resolve();
        let (phase, id) = self.open_items.phase_and_id(&server_id, is_completed, ids);
        vec![item(phase, id, status, details)]
    }

    fn end_turn<'a>(&mut self, outcome: TurnOutcome<'a>) -> Effects<'a> {
        let end = match outcome {
            TurnOutcome::Completed => Effect::Emit(ThreadEvent::TurnCompleted { usage: self.usage }),
            TurnOutcome::Interrupted => Effect::Interrupted,
            TurnOutcome::Failed(error) => Effect::Emit(ThreadEvent::TurnFailed { error }),
        };
        self.plan.complete().into_iter().chain([end]).collect()
    }
}
