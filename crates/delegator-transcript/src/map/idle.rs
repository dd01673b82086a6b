//! Translates the idle dialect into Codex exec events.
//!
//! A tool call becomes an `mcp_tool_call` of the server `agent`. The idle dialect has no event for the start of a turn:
//! the first activity while no turn is open starts one. `idle` and `done` end an open turn, without usage. In a stream
//! of another dialect, lines of the idle dialect neither start nor end a turn.

use std::collections::HashSet;

use super::pending::Pending;
use super::{Effect, Effects, ItemIds, MapWarning, UnmappedReason, completed_item, item, tool_result};
use crate::event::{
    ChangeKind, FileChange, IdleEvent, ItemDetails, ItemPhase, ItemStatus, McpToolCall, ThreadEvent,
};
use crate::json::Text;

/// Bounds on the number of files and on the length of a path.
const MAX_FILES: usize = 4096;
const MAX_PATH_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct IdleMapper {
    open_calls: Pending<OpenCall>,
    /// Calls that ended: agents may repeat the result that they were sent.
    ended_calls: Pending<()>,
    known_files: HashSet<String>,
}

#[derive(Debug)]
struct OpenCall {
    item_id: Text<'static>,
    tool: Text<'static>,
    arguments: Option<Text<'static>>,
}

impl IdleMapper {
    /// `turn_is_open` is `None` in a stream of another dialect.
    pub(super) fn apply<'a>(
        &mut self,
        event: IdleEvent<'a>,
        turn_is_open: Option<bool>,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let mut effects = Vec::new();
        let is_activity = !matches!(
            event,
            IdleEvent::Idle
                | IdleEvent::Done
                | IdleEvent::UserMessage
                | IdleEvent::ToolResult { call_id: None, .. }
        );
        if is_activity && turn_is_open == Some(false) {
            effects.push(Effect::Emit(ThreadEvent::TurnStarted));
        }
        match event {
            IdleEvent::AgentMessage { content } => {
                effects.push(completed_item(ids, ItemDetails::AgentMessage { text: content }));
            }
            IdleEvent::ToolCall { name, call_id, arguments } => {
                effects.push(self.begin_call(name, &call_id, arguments, ids));
            }
            IdleEvent::ToolResult { call_id: Some(call_id), output, error } => {
                self.end_call(&call_id, &output, error, ids, &mut effects);
            }
            // A message to the agent, echoed: not an action of the agent.
            IdleEvent::ToolResult { call_id: None, .. } | IdleEvent::UserMessage => {
                effects.push(Effect::Unmapped(UnmappedReason::Ignored));
            }
            IdleEvent::FileChange { path, action } => {
                let kind = self.change_kind(&path, &action);
                let details = ItemDetails::FileChange { changes: vec![FileChange { path, kind }] };
                effects.push(item(ItemPhase::Completed, ids.next(), Some(ItemStatus::Completed), details));
            }
            IdleEvent::Idle => end_turn(turn_is_open, Effect::Idle, &mut effects),
            IdleEvent::Done => end_turn(turn_is_open, Effect::Done, &mut effects),
        }
        effects
    }

    fn begin_call<'a>(
        &mut self,
        name: Text<'a>,
        call_id: &Text<'a>,
        arguments: Option<&'a str>,
        ids: &mut ItemIds,
    ) -> Effect<'a> {
        let item_id = ids.next();
        let arguments = arguments.map(Text::plain);
        let open_call = OpenCall {
            item_id: item_id.clone(),
            tool: name.clone().into_owned(),
            arguments: arguments.clone().map(Text::into_owned),
        };
        let bytes = name.len() + arguments.as_ref().map_or(0, Text::len);
        // Calls without an id cannot be joined with a result.
        if !call_id.is_empty() {
            self.open_calls.insert(&call_id.resolve(), open_call, bytes);
        }
        let call =
            McpToolCall { server: Text::plain("agent"), tool: name, arguments, ..McpToolCall::default() };
        item(ItemPhase::Started, item_id, Some(ItemStatus::InProgress), ItemDetails::McpToolCall(call))
    }

    fn end_call<'a>(
        &mut self,
        call_id: &Text<'a>,
        output: &Text<'a>,
        error: Option<Text<'a>>,
        ids: &mut ItemIds,
        effects: &mut Effects<'a>,
    ) {
        let call_id = call_id.resolve();
        if self.ended_calls.contains(&call_id) && !self.open_calls.contains(&call_id) {
            return effects.push(Effect::Unmapped(UnmappedReason::Redundant));
        }
        self.ended_calls.insert(&call_id, (), 0);
        let open_call = self.open_calls.remove(&call_id).unwrap_or_else(|| {
            effects.push(Effect::Warn(MapWarning::CallEndWithoutBegin { call_id: call_id.into_owned() }));
            OpenCall { item_id: ids.next(), tool: Text::plain("unknown"), arguments: None }
        });
        let status = ItemStatus::of_result(error.is_none());
        let call = McpToolCall {
            server: Text::plain("agent"),
            tool: open_call.tool,
            arguments: open_call.arguments,
            result: Some(tool_result(output, None)),
            error,
        };
        let details = ItemDetails::McpToolCall(call);
        effects.push(item(ItemPhase::Completed, open_call.item_id, Some(status), details));
    }

    fn change_kind(&mut self, path: &Text<'_>, action: &Text<'_>) -> ChangeKind {
        let path = path.resolve().into_owned();
        let action = action.resolve();
        if action == "delete" {
            self.known_files.remove(&path);
            return ChangeKind::Delete;
        }
        let can_remember = self.known_files.len() < MAX_FILES && path.len() <= MAX_PATH_BYTES;
        let is_new =
            if can_remember { self.known_files.insert(path) } else { !self.known_files.contains(&path) };
        if action == "write" && is_new { ChangeKind::Add } else { ChangeKind::Update }
    }
}

fn end_turn<'a>(turn_is_open: Option<bool>, effect: Effect<'a>, effects: &mut Effects<'a>) {
    effects.push(match turn_is_open {
        Some(true) => Effect::Emit(ThreadEvent::TurnCompleted { usage: None }),
        Some(false) | None => Effect::Unmapped(UnmappedReason::Redundant),
    });
    effects.push(effect);
}
