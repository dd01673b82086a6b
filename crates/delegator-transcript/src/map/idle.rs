//! Translates the idle dialect into Codex exec events.
//!
//! A tool call becomes an `mcp_tool_call` of the server `agent`. The idle dialect has no event for the start
//! of a turn: the first activity while no turn is open starts one. `idle` and `done` end an open turn,
//! without usage. In a stream of another dialect, lines of the idle dialect neither start nor end a turn.

use std::collections::HashSet;

use super::effect::{Effect, Effects, UnmappedReason, tool_result};
use super::pending::{OpenCalls, Pending};
use crate::decode::IdleEvent;
use crate::event::{ChangeKind, FileChange, ItemDetails, ItemPhase, ItemStatus, McpToolCall, ThreadEvent};
use crate::json::Text;

/// Bounds on the number of files and on the length of a path.
const MAX_FILES: usize = 4096;
const MAX_PATH_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct IdleMapper {
    open_calls: OpenCalls,
    /// Calls that ended: agents may repeat the result that they were sent.
    ended_calls: Pending<()>,
    known_files: HashSet<String>,
}

impl IdleMapper {
    /// `turn_is_open` is `None` in a stream of another dialect.
    pub(super) fn apply<'a>(
        &mut self,
        event: IdleEvent<'a>,
        turn_is_open: Option<bool>,
        effects: &mut Effects<'_, 'a>,
    ) {
        let is_activity = !matches!(
            event,
            IdleEvent::Idle
                | IdleEvent::Done
                | IdleEvent::UserMessage
                | IdleEvent::ToolResult { call_id: None, .. }
        );
        if is_activity && turn_is_open == Some(false) {
            effects.emit(ThreadEvent::TurnStarted);
        }
        match event {
            IdleEvent::AgentMessage { content } => {
                effects.complete_item(ItemDetails::AgentMessage { text: content });
            }
            IdleEvent::ToolCall { name, call_id, arguments } => {
                let arguments = arguments.map(Text::plain);
                let call = McpToolCall { tool: name, arguments, ..agent_tool() };
                let call_id = Some(&call_id).filter(|id| !id.is_empty());
                self.open_calls.begin(call_id, call, effects);
            }
            IdleEvent::ToolResult { call_id: Some(call_id), output, error } => {
                self.end_call(&call_id, &output, error, effects);
            }
            // A message to the agent, echoed: not an action of the agent.
            IdleEvent::ToolResult { call_id: None, .. } | IdleEvent::UserMessage => {
                effects.unmapped(UnmappedReason::Ignored);
            }
            IdleEvent::FileChange { path, action } => {
                let kind = self.change_kind(&path, &action);
                let details = ItemDetails::FileChange { changes: vec![FileChange::of_path(path, kind)] };
                let id = effects.ids.next();
                effects.item(ItemPhase::Completed, id, Some(ItemStatus::Completed), details);
            }
            IdleEvent::Idle => end_turn(turn_is_open, Effect::Idle, effects),
            IdleEvent::Done => end_turn(turn_is_open, Effect::Done, effects),
        }
    }

    fn end_call<'a>(
        &mut self,
        call_id: &Text<'a>,
        output: &Text<'a>,
        error: Option<Text<'a>>,
        effects: &mut Effects<'_, 'a>,
    ) {
        let key = call_id.resolve();
        let is_open = self.open_calls.contains(&key);
        if self.ended_calls.contains(&key) && !is_open {
            return effects.unmapped(UnmappedReason::Redundant);
        }
        self.ended_calls.insert(&key, (), 0);
        let status = ItemStatus::of_result(error.is_none());
        let tool = if is_open { Text::default() } else { Text::plain("unknown") };
        let call = McpToolCall { tool, result: Some(tool_result(output, None)), error, ..agent_tool() };
        self.open_calls.end(call_id, call, status, effects);
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

fn end_turn<'a>(turn_is_open: Option<bool>, effect: Effect<'a>, effects: &mut Effects<'_, 'a>) {
    if turn_is_open == Some(true) {
        effects.emit(ThreadEvent::TurnCompleted { usage: None });
    } else {
        effects.unmapped(UnmappedReason::Redundant);
    }
    effects.push(effect);
}

fn agent_tool<'a>() -> McpToolCall<'a> {
    McpToolCall { server: Text::plain("agent"), ..McpToolCall::default() }
}
