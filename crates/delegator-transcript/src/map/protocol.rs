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

use std::collections::HashMap;

use super::effect::{Effect, Effects, MapWarning, UnmappedReason, completed_item, item, unmapped};
use super::item_ids::ItemIds;
use super::open_calls::OpenCalls;
use super::pending::Pending;
use super::plan::Plan;
use super::response::OpenResponses;
use crate::event::{
    AgentError, CommandExecution, FileChange, Item, ItemDetails, ItemPhase, ItemStatus, ThreadEvent, Usage,
};
use crate::json::Text;
use crate::protocol::{ProtocolEvent, ResponseItem};

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
    /// By the type of the item.
    accepted_sources: HashMap<&'static str, ItemSource>,
    pub(super) responses: OpenResponses,
}

/// The type of the item of a plan.
const PLAN: &str = "todo_list";

/// How a stream reports an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemSource {
    BeginAndEnd,
    TurnItem,
}

impl ProtocolMapper {
    /// Whether this kind of stream announces the end of a turn.
    pub(super) fn announces_turn_ends(&self, is_session_file: bool) -> bool {
        self.saw_task_end || (is_session_file && self.saw_task_start)
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
            return if self.accepts(PLAN, ItemSource::TurnItem) {
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
        if item_type(&event).is_some_and(|kind| !self.accepts(kind, ItemSource::BeginAndEnd)) {
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
            ProtocolEvent::McpToolCallBegin { call_id, call } => {
                vec![self.calls.begin(Some(&call_id), call, ids)]
            }
            ProtocolEvent::McpToolCallEnd { call_id, call, success } => {
                self.calls.end(&call_id, call, ItemStatus::of_result(success), ids)
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

    fn accepts(&mut self, item_type: &'static str, source: ItemSource) -> bool {
        *self.accepted_sources.entry(item_type).or_insert(source) == source
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
        if !self.accepts(turn_item.details.type_name(), ItemSource::TurnItem) {
            return unmapped(UnmappedReason::Redundant);
        }
        // Messages and reasoning have no start event among Codex exec events.
        let is_text =
            matches!(turn_item.details, ItemDetails::AgentMessage { .. } | ItemDetails::Reasoning { .. });
        if is_text && !completed {
            return unmapped(UnmappedReason::Held);
        }
        let (phase, id) = self.items.phase_and_id(&turn_item.id.resolve(), completed, ids);
        turn_item.id = id;
        vec![Effect::Emit(ThreadEvent::Item { phase, item: turn_item })]
    }
}

/// The type of the item that an event reports. A patch counts when it ends.
fn item_type(event: &ProtocolEvent<'_>) -> Option<&'static str> {
    Some(match event {
        ProtocolEvent::AgentMessage { .. } => "agent_message",
        ProtocolEvent::AgentReasoning { .. } => "reasoning",
        ProtocolEvent::ExecCommandBegin { .. } | ProtocolEvent::ExecCommandEnd { .. } => "command_execution",
        ProtocolEvent::McpToolCallBegin { .. } | ProtocolEvent::McpToolCallEnd { .. } => "mcp_tool_call",
        ProtocolEvent::PatchApplyEnd { .. } => "file_change",
        ProtocolEvent::WebSearchEnd { .. } => "web_search",
        ProtocolEvent::PlanUpdate { .. } => PLAN,
        _ => return None,
    })
}
