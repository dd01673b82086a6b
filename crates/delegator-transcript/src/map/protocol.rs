//! Translates Codex protocol messages into Codex exec events, as the section "Mapping From Internal Protocol
//! Events" of their documentation specifies.
//!
//! Start and end are joined by `call_id`. The end of a command without a start is skipped with a warning;
//! that of an MCP call is synthesised. A patch is held until its end. A plan is started, updated, and
//! completed at the end of the turn. Token counts are held for `turn.completed`. A critical error turns the
//! end of the turn into `turn.failed`; a stream error does not.
//!
//! Newer session files report the same with `item_started` and `item_completed`, and some versions report
//! both ways. For each kind of item, the source that came first is used.

use std::collections::HashMap;

use super::effect::{Effect, Effects, MapWarning, UnmappedReason};
use super::pending::{OpenCalls, Pending, Plan};
use super::response::OpenResponses;
use crate::event::{
    AgentError, CommandExecution, FileChange, Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent, Usage,
};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, ResponseItem, RolloutPayload};

#[derive(Debug, Default)]
pub(super) struct ProtocolMapper {
    thread_is_named: bool,
    saw_task_start: bool,
    saw_task_end: bool,
    commands: Pending<(Text<'static>, Text<'static>)>,
    calls: OpenCalls,
    patches: Pending<Vec<FileChange<'static>>>,
    items: Pending<Text<'static>>,
    plan: Plan,
    usage: Option<Usage>,
    critical_error: Option<AgentError<'static>>,
    accepted_sources: HashMap<&'static str, ItemSource>,
    responses: OpenResponses,
}

const PLAN: &str = "todo_list";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemSource {
    BeginAndEnd,
    TurnItem,
}

impl ProtocolMapper {
    pub(super) fn announces_turn_ends(&self, is_session_file: bool) -> bool {
        self.saw_task_end || (is_session_file && self.saw_task_start)
    }

    pub(super) fn critical_error(&self) -> Option<&AgentError<'static>> {
        self.critical_error.as_ref()
    }

    /// `SessionConfigured`, or the first line of a session file. A fork repeats its parent's line, so only
    /// the first counts.
    fn on_session<'a>(&mut self, thread_id: Text<'a>, effects: &mut Effects<'_, 'a>) {
        if std::mem::replace(&mut self.thread_is_named, true) {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        effects.emit(ThreadEvent::ThreadStarted { thread_id });
    }

    /// Applies a line of a session file. Old files have no turn start; there, a user message starts a turn,
    /// unless the line is in a stream of another dialect.
    pub(super) fn apply_rollout<'a>(
        &mut self,
        payload: RolloutPayload<'a>,
        is_own: bool,
        effects: &mut Effects<'_, 'a>,
    ) {
        match payload {
            RolloutPayload::SessionMeta(head) => self.on_session(Text::owned(head.thread_id), effects),
            RolloutPayload::Event(ProtocolEvent::UserMessage { .. }) if is_own && !self.saw_task_start => {
                self.begin_turn(effects);
            }
            RolloutPayload::Event(event) => {
                if let ProtocolEvent::TurnItem { item, .. } = &event
                    && is_own
                {
                    self.responses.discard(&item.id.resolve());
                }
                self.apply(event, effects);
            }
            RolloutPayload::Response(item) => self.on_response(item, effects),
            RolloutPayload::TurnContext { .. } | RolloutPayload::Other => {
                effects.unmapped(UnmappedReason::Context);
            }
        }
    }

    /// Applies a model input or output that no event reports.
    fn on_response<'a>(&mut self, response: ResponseItem<'a>, effects: &mut Effects<'_, 'a>) {
        if let Some(todos) = self.responses.plan(&response) {
            if self.accepts(PLAN, ItemSource::TurnItem) {
                return self.plan.update(todos, effects);
            }
            return effects.unmapped(UnmappedReason::Redundant);
        }
        match self.responses.apply(response) {
            Ok((status, details)) => {
                let id = effects.ids.next();
                effects.item(ItemPhase::Completed, id, Some(status), details);
            }
            Err(reason) => effects.unmapped(reason),
        }
    }

    pub(super) fn apply<'a>(&mut self, event: ProtocolEvent<'a>, effects: &mut Effects<'_, 'a>) {
        if item_type(&event).is_some_and(|kind| !self.accepts(kind, ItemSource::BeginAndEnd)) {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        match event {
            ProtocolEvent::SessionConfigured { session_id } => self.on_session(session_id, effects),
            ProtocolEvent::TaskStarted => {
                self.saw_task_start = true;
                self.begin_turn(effects);
            }
            ProtocolEvent::TaskComplete { error } => self.end_turn(error, effects),
            ProtocolEvent::TurnAborted => {
                self.saw_task_end = true;
                self.critical_error = None;
                self.plan.complete(effects);
                effects.push(Effect::Interrupted);
            }
            ProtocolEvent::Item(details) => effects.complete_item(details),
            ProtocolEvent::ExecCommandBegin { call_id, command } => {
                self.begin_command(&call_id, command, effects)
            }
            ProtocolEvent::ExecCommandEnd { call_id, output, exit_code } => {
                self.end_command(&call_id, output, exit_code, effects)
            }
            ProtocolEvent::McpToolCallBegin { call_id, call } => {
                self.calls.begin(Some(&call_id), call, effects)
            }
            ProtocolEvent::McpToolCallEnd { call_id, call, success } => {
                self.calls.end(&call_id, call, ItemStatus::of_result(success), effects)
            }
            ProtocolEvent::PatchApplyBegin { call_id, changes } => {
                self.begin_patch(&call_id, changes);
                effects.unmapped(UnmappedReason::Held);
            }
            ProtocolEvent::PatchApplyEnd { call_id, success, changes } => {
                self.end_patch(&call_id, success, changes, effects)
            }
            ProtocolEvent::PlanUpdate { items } => self.plan.update(items, effects),
            ProtocolEvent::TokenCount { usage, request } => {
                let total = usage.or_else(|| request.map(|more| self.usage.unwrap_or_default().plus(more)));
                self.count_tokens(total, effects);
            }
            ProtocolEvent::Error { error } => {
                self.critical_error = Some(error.clone().into_owned());
                effects.emit(ThreadEvent::Error { message: error.message });
            }
            ProtocolEvent::StreamError { message } => effects.emit(ThreadEvent::Error { message }),
            ProtocolEvent::TurnItem { completed, item } => self.turn_item(completed, item, effects),
            ProtocolEvent::UserMessage { .. } | ProtocolEvent::Ignored => {
                effects.unmapped(UnmappedReason::Ignored);
            }
            ProtocolEvent::Unknown { .. } => effects.unmapped(UnmappedReason::Unknown),
        }
    }

    fn count_tokens(&mut self, total: Option<Usage>, effects: &mut Effects<'_, '_>) {
        self.usage = total.or(self.usage);
        if let Some(total) = total {
            effects.push(Effect::Usage(total));
        }
        effects.unmapped(UnmappedReason::Held);
    }

    fn accepts(&mut self, item_type: &'static str, source: ItemSource) -> bool {
        *self.accepted_sources.entry(item_type).or_insert(source) == source
    }

    /// If the previous turn had no end event, its plan is completed when the next turn starts.
    fn begin_turn(&mut self, effects: &mut Effects<'_, '_>) {
        self.critical_error = None;
        self.plan.complete(effects);
        effects.emit(ThreadEvent::TurnStarted);
    }

    fn end_turn<'a>(&mut self, error: Option<AgentError<'a>>, effects: &mut Effects<'_, 'a>) {
        self.saw_task_end = true;
        self.plan.complete(effects);
        let critical_error = self.critical_error.take();
        effects.emit(match error.or(critical_error) {
            Some(error) => ThreadEvent::TurnFailed { error },
            None => ThreadEvent::TurnCompleted { usage: Some(self.usage.unwrap_or_default()) },
        });
    }

    fn begin_command<'a>(&mut self, call_id: &Text<'a>, command: Text<'a>, effects: &mut Effects<'_, 'a>) {
        let call_id = call_id.resolve();
        self.responses.discard(&call_id);
        let details = ItemDetails::CommandExecution(CommandExecution::started(command.clone()));
        let open_command = (effects.start_item(details), command.into_owned());
        let bytes = open_command.1.len();
        self.commands.insert(&call_id, open_command, bytes);
    }

    fn end_command<'a>(
        &mut self,
        call_id: &Text<'a>,
        output: Text<'a>,
        exit_code: i32,
        effects: &mut Effects<'_, 'a>,
    ) {
        let call_id = call_id.resolve();
        let Some((id, command)) = self.commands.remove(&call_id) else {
            let call_id = call_id.into_owned();
            effects.push(Effect::Warn(MapWarning::CommandEndWithoutBegin { call_id }));
            return effects.unmapped(UnmappedReason::Redundant);
        };
        let execution = CommandExecution::ended(command, output, Some(exit_code));
        let status = ItemStatus::of_result(exit_code == 0);
        effects.item(ItemPhase::Completed, id, Some(status), ItemDetails::CommandExecution(execution));
    }

    fn begin_patch(&mut self, call_id: &Text<'_>, changes: Vec<FileChange<'_>>) {
        let call_id = call_id.resolve();
        self.responses.discard(&call_id);
        let bytes = changes.iter().map(FileChange::stored_bytes).sum();
        let changes = changes.into_iter().map(FileChange::into_owned).collect();
        self.patches.insert(&call_id, changes, bytes);
    }

    fn end_patch<'a>(
        &mut self,
        call_id: &Text<'a>,
        success: bool,
        changes: Vec<FileChange<'a>>,
        effects: &mut Effects<'_, 'a>,
    ) {
        let call_id = call_id.resolve();
        self.responses.discard(&call_id);
        let started = self.patches.remove(&call_id);
        if started.is_none() {
            let call_id = call_id.into_owned();
            effects.push(Effect::Warn(MapWarning::PatchEndWithoutBegin { call_id }));
            if changes.is_empty() {
                return effects.unmapped(UnmappedReason::Redundant);
            }
        }
        let details = ItemDetails::FileChange { changes: started.unwrap_or(changes) };
        let id = effects.ids.next();
        effects.item(ItemPhase::Completed, id, Some(ItemStatus::of_result(success)), details);
    }

    /// Applies an item of the protocol. Its id is the call id, which joins start and end.
    fn turn_item<'a>(&mut self, completed: bool, mut item: Item<'a>, effects: &mut Effects<'_, 'a>) {
        if !self.accepts(item.details.type_name(), ItemSource::TurnItem) {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        // Messages and reasoning have no start event among Codex exec events.
        let is_text =
            matches!(item.details, ItemDetails::AgentMessage { .. } | ItemDetails::Reasoning { .. });
        if is_text && !completed {
            return effects.unmapped(UnmappedReason::Held);
        }
        let (phase, id) = self.items.phase_and_id(&item.id.resolve(), completed, effects.ids);
        item.id = id;
        effects.emit(ThreadEvent::Item { phase, item });
    }
}

/// The type of the item that an event reports. A patch counts when it ends.
fn item_type(event: &ProtocolEvent<'_>) -> Option<&'static str> {
    Some(match event {
        ProtocolEvent::Item(details) => details.type_name(),
        ProtocolEvent::ExecCommandBegin { .. } | ProtocolEvent::ExecCommandEnd { .. } => "command_execution",
        ProtocolEvent::McpToolCallBegin { .. } | ProtocolEvent::McpToolCallEnd { .. } => "mcp_tool_call",
        ProtocolEvent::PatchApplyEnd { .. } => "file_change",
        ProtocolEvent::PlanUpdate { .. } => PLAN,
        _ => return None,
    })
}
