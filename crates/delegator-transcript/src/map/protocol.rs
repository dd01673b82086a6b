//! Translates Codex protocol messages into Codex exec events, as the section "Mapping From Internal Protocol Events" of
//! their documentation specifies.
//!
//! Start and end are joined by `call_id`. The end of a command without a start is skipped with a warning; that of an
//! MCP call is synthesised. A patch is held until its end. A plan is started, updated, and completed at the end of the
//! turn. Token counts are held for `turn.completed`. A critical error turns the end of the turn into `turn.failed`; a
//! stream error does not.
//!
//! Newer session files report the same with `item_started` and `item_completed`, and some versions report both ways.
//! For each kind of item, the source that came first is used.

use super::pending::Pending;
use super::plan::Plan;
use super::response::OpenResponses;
use super::{
    Dialect, Effect, Effects, ItemIds, MapWarning, UnmappedReason, completed_item, item, phase_and_id,
    unmapped,
};
use crate::event::{
    AgentError, CommandExecution, FileChange, Item, ItemDetails, ItemPhase, ItemStatus, McpToolCall,
    ThreadEvent, Usage,
};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, ResponseItem};

#[derive(Debug, Default)]
pub(super) struct ProtocolMapper {
    thread_is_named: bool,
    saw_task_start: bool,
    saw_task_end: bool,
    commands: Pending<(Text<'static>, Text<'static>)>,
    calls: Pending<(Text<'static>, McpToolCall<'static>)>,
    patches: Pending<Vec<FileChange<'static>>>,
    items: Pending<Text<'static>>,
    plan: Plan,
    usage: Option<Usage>,
    critical_error: Option<AgentError<'static>>,
    accepted_source: [Option<ItemSource>; ItemKind::COUNT],
    pub(super) responses: OpenResponses,
}

/// How a stream reports an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemSource {
    BeginAndEnd,
    TurnItem,
}

/// Kinds of items that may be reported in both ways.
#[derive(Clone, Copy, Debug)]
enum ItemKind {
    Message,
    Reasoning,
    Command,
    Patch,
    Call,
    Search,
    Plan,
}

impl ItemKind {
    const COUNT: usize = 7;
}

impl ProtocolMapper {
    /// Whether this kind of stream announces the end of a turn.
    pub(super) fn announces_turn_ends(&self, dialect: Option<Dialect>) -> bool {
        self.saw_task_end || (dialect == Some(Dialect::Rollout) && self.saw_task_start)
    }

    pub(super) fn critical_error(&self) -> Option<&AgentError<'static>> {
        self.critical_error.as_ref()
    }

    /// `SessionConfigured`, or the first line of a session file. A fork repeats its parent's line, so only the first
    /// counts.
    pub(super) fn on_session<'a>(&mut self, thread_id: Text<'a>) -> Effects<'a> {
        if std::mem::replace(&mut self.thread_is_named, true) {
            return unmapped(UnmappedReason::Redundant);
        }
        vec![Effect::Emit(ThreadEvent::ThreadStarted { thread_id })]
    }

    /// Applies an event of a session file. Old files have no turn start; there, a user message starts a turn.
    pub(super) fn apply_rollout<'a>(&mut self, event: ProtocolEvent<'a>, ids: &mut ItemIds) -> Effects<'a> {
        if matches!(event, ProtocolEvent::UserMessage { .. }) && !self.saw_task_start {
            return self.begin_turn();
        }
        if let ProtocolEvent::TurnItem { item, .. } = &event {
            self.responses.discard(&item.id.resolve());
        }
        self.apply(event, ids)
    }

    /// Applies a model input or output that no event reports.
    pub(super) fn on_response<'a>(&mut self, response: ResponseItem<'a>, ids: &mut ItemIds) -> Effects<'a> {
        if let Some(todos) = self.responses.plan(&response) {
            return if self.accepts(ItemKind::Plan, ItemSource::TurnItem) {
                vec![self.plan.update(todos, ids)]
            } else {
                unmapped(UnmappedReason::Redundant)
            };
        }
        match self.responses.apply(response) {
            Ok((status, details)) => vec![item(ItemPhase::Completed, ids.next(), Some(status), details)],
            Err(reason) => unmapped(reason),
        }
    }

    pub(super) fn apply<'a>(&mut self, event: ProtocolEvent<'a>, ids: &mut ItemIds) -> Effects<'a> {
        if kind_of(&event).is_some_and(|kind| !self.accepts(kind, ItemSource::BeginAndEnd)) {
            return unmapped(UnmappedReason::Redundant);
        }
        match event {
            ProtocolEvent::SessionConfigured { session_id } => self.on_session(session_id),
            ProtocolEvent::TaskStarted => {
                self.saw_task_start = true;
                self.begin_turn()
            }
            ProtocolEvent::TaskComplete { error } => self.end_turn(error),
            ProtocolEvent::TurnAborted => {
                self.saw_task_end = true;
                self.critical_error = None;
                self.plan.complete().into_iter().chain([Effect::Interrupted]).collect()
            }
            ProtocolEvent::AgentMessage { message } => {
                vec![completed_item(ids, ItemDetails::AgentMessage { text: message })]
            }
            ProtocolEvent::AgentReasoning { text } => {
                vec![completed_item(ids, ItemDetails::Reasoning { text })]
            }
            ProtocolEvent::ExecCommandBegin { call_id, command } => {
                self.begin_command(&call_id, command, ids)
            }
            ProtocolEvent::ExecCommandEnd { call_id, output, exit_code } => {
                self.end_command(&call_id, output, exit_code)
            }
            ProtocolEvent::McpToolCallBegin { call_id, call } => self.begin_call(&call_id, call, ids),
            ProtocolEvent::McpToolCallEnd { call_id, call, success } => {
                self.end_call(&call_id, call, success, ids)
            }
            ProtocolEvent::PatchApplyBegin { call_id, changes } => self.begin_patch(&call_id, changes),
            ProtocolEvent::PatchApplyEnd { call_id, success, changes } => {
                self.end_patch(&call_id, success, changes, ids)
            }
            ProtocolEvent::WebSearchEnd { query, action } => {
                vec![completed_item(ids, ItemDetails::WebSearch { query, action })]
            }
            ProtocolEvent::PlanUpdate { items } => vec![self.plan.update(items, ids)],
            ProtocolEvent::TokenCount { usage, request } => {
                let total = usage.or_else(|| request.map(|more| self.usage.unwrap_or_default().plus(more)));
                self.usage = total.or(self.usage);
                let usage_effect = total.map(Effect::Usage);
                usage_effect.into_iter().chain(unmapped(UnmappedReason::Held)).collect()
            }
            ProtocolEvent::Error { error } => {
                self.critical_error = Some(error.clone().into_owned());
                vec![Effect::Emit(ThreadEvent::Error { message: error.message })]
            }
            ProtocolEvent::StreamError { message } => vec![Effect::Emit(ThreadEvent::Error { message })],
            ProtocolEvent::Warning { message } => vec![completed_item(ids, ItemDetails::Error { message })],
            ProtocolEvent::TurnItem { completed, item } => self.turn_item(completed, item, ids),
            ProtocolEvent::UserMessage { .. } | ProtocolEvent::Ignored => unmapped(UnmappedReason::Ignored),
            ProtocolEvent::Unknown { .. } => unmapped(UnmappedReason::Unknown),
        }
    }

    fn accepts(&mut self, kind: ItemKind, source: ItemSource) -> bool {
        *self.accepted_source[kind as usize].get_or_insert(source) == source
    }

    /// If the previous turn had no end event, its plan is completed when the next turn starts.
    fn begin_turn<'a>(&mut self) -> Effects<'a> {
        self.critical_error = None;
        self.plan.complete().into_iter().chain([Effect::Emit(ThreadEvent::TurnStarted)]).collect()
    }

    fn end_turn<'a>(&mut self, error: Option<AgentError<'a>>) -> Effects<'a> {
        self.saw_task_end = true;
        let mut effects: Effects<'a> = self.plan.complete().into_iter().collect();
        let error = error.or_else(|| self.critical_error.take());
        self.critical_error = None;
        effects.push(Effect::Emit(match error {
            Some(error) => ThreadEvent::TurnFailed { error },
            None => ThreadEvent::TurnCompleted { usage: Some(self.usage.unwrap_or_default()) },
        }));
        effects
    }

    fn begin_command<'a>(&mut self, call_id: &Text<'a>, command: Text<'a>, ids: &mut ItemIds) -> Effects<'a> {
        self.responses.discard(&call_id.resolve());
        let id = ids.next();
        let open_command = (id.clone(), command.clone().into_owned());
        self.commands.insert(&call_id.resolve(), open_command, command.len());
        let details = ItemDetails::CommandExecution(CommandExecution::started(command));
        vec![item(ItemPhase::Started, id, Some(ItemStatus::InProgress), details)]
    }

    fn end_command<'a>(&mut self, call_id: &Text<'a>, output: Text<'a>, exit_code: i32) -> Effects<'a> {
        let call_id = call_id.resolve();
        let Some((id, command)) = self.commands.remove(&call_id) else {
            let warning = MapWarning::CommandEndWithoutBegin { call_id: call_id.into_owned() };
            return vec![Effect::Warn(warning), Effect::Unmapped(UnmappedReason::Redundant)];
        };
        let execution = CommandExecution::ended(command, output, Some(exit_code));
        let status = ItemStatus::of_result(exit_code == 0);
        vec![item(ItemPhase::Completed, id, Some(status), ItemDetails::CommandExecution(execution))]
    }

    fn begin_call<'a>(
        &mut self,
        call_id: &Text<'a>,
        call: McpToolCall<'a>,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let id = ids.next();
        let bytes = call.arguments.as_ref().map_or(0, Text::len);
        self.calls.insert(&call_id.resolve(), (id.clone(), call.clone().into_owned()), bytes);
        vec![item(ItemPhase::Started, id, Some(ItemStatus::InProgress), ItemDetails::McpToolCall(call))]
    }

    fn end_call<'a>(
        &mut self,
        call_id: &Text<'a>,
        mut call: McpToolCall<'a>,
        success: bool,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let mut effects = Vec::new();
        let call_id = call_id.resolve();
        let id = match self.calls.remove(&call_id) {
            Some((id, open_call)) => {
                if call.tool.is_empty() {
                    (call.server, call.tool) = (open_call.server, open_call.tool);
                }
                call.arguments = call.arguments.or(open_call.arguments);
                id
            }
            None => {
                effects.push(Effect::Warn(MapWarning::CallEndWithoutBegin { call_id: call_id.into_owned() }));
                ids.next()
            }
        };
        let status = ItemStatus::of_result(success);
        effects.push(item(ItemPhase::Completed, id, Some(status), ItemDetails::McpToolCall(call)));
        effects
    }

    fn begin_patch<'a>(&mut self, call_id: &Text<'a>, changes: Vec<FileChange<'a>>) -> Effects<'a> {
        let call_id = call_id.resolve();
        self.responses.discard(&call_id);
        let bytes = changes.iter().map(|change| change.path.len()).sum();
        let changes = changes.into_iter().map(FileChange::into_owned).collect();
        self.patches.insert(&call_id, changes, bytes);
        unmapped(UnmappedReason::Held)
    }

    fn end_patch<'a>(
        &mut self,
        call_id: &Text<'a>,
        success: bool,
        changes: Vec<FileChange<'a>>,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let mut effects = Vec::new();
        let call_id = call_id.resolve();
        self.responses.discard(&call_id);
        let changes = match self.patches.remove(&call_id) {
            Some(started) => started,
            None => {
                let call_id = call_id.into_owned();
                effects.push(Effect::Warn(MapWarning::PatchEndWithoutBegin { call_id }));
                if changes.is_empty() {
                    effects.push(Effect::Unmapped(UnmappedReason::Redundant));
                    return effects;
                }
                changes
            }
        };
        let (status, details) = (ItemStatus::of_result(success), ItemDetails::FileChange { changes });
        effects.push(item(ItemPhase::Completed, ids.next(), Some(status), details));
        effects
    }

    /// Applies an item of the protocol. Its id is the call id, which joins start and end.
    fn turn_item<'a>(&mut self, completed: bool, mut turn_item: Item<'a>, ids: &mut ItemIds) -> Effects<'a> {
        let kind = match &turn_item.details {
            ItemDetails::AgentMessage { .. } => Some(ItemKind::Message),
            ItemDetails::Reasoning { .. } => Some(ItemKind::Reasoning),
            ItemDetails::CommandExecution(_) => Some(ItemKind::Command),
            ItemDetails::FileChange { .. } => Some(ItemKind::Patch),
            ItemDetails::McpToolCall(_) => Some(ItemKind::Call),
            ItemDetails::WebSearch { .. } => Some(ItemKind::Search),
            ItemDetails::TodoList { .. } => Some(ItemKind::Plan),
            _ => None,
        };
        if kind.is_some_and(|kind| !self.accepts(kind, ItemSource::TurnItem)) {
            return unmapped(UnmappedReason::Redundant);
        }
        // Messages and reasoning have no start event among Codex exec events.
        let is_text = matches!(kind, Some(ItemKind::Message | ItemKind::Reasoning));
        if is_text && !completed {
            return unmapped(UnmappedReason::Held);
        }
        let (phase, id) = phase_and_id(&mut self.items, &turn_item.id.resolve(), completed, ids);
        turn_item.id = id;
        vec![Effect::Emit(ThreadEvent::Item { phase, item: turn_item })]
    }
}

/// The kind of the item that an event reports. A patch counts when it ends.
fn kind_of(event: &ProtocolEvent<'_>) -> Option<ItemKind> {
    Some(match event {
        ProtocolEvent::AgentMessage { .. } => ItemKind::Message,
        ProtocolEvent::AgentReasoning { .. } => ItemKind::Reasoning,
        ProtocolEvent::ExecCommandBegin { .. } | ProtocolEvent::ExecCommandEnd { .. } => ItemKind::Command,
        ProtocolEvent::McpToolCallBegin { .. } | ProtocolEvent::McpToolCallEnd { .. } => ItemKind::Call,
        ProtocolEvent::PatchApplyEnd { .. } => ItemKind::Patch,
        ProtocolEvent::WebSearchEnd { .. } => ItemKind::Search,
        ProtocolEvent::PlanUpdate { .. } => ItemKind::Plan,
        _ => return None,
    })
}
