//! Counts MCP tool calls, web searches and sub-agents. Per-tool counts are stored for the first [`MAX_TOOLS`] tools.

use super::report::{McpCalls, ToolCalls};
use crate::event::{CollabToolCall, ItemStatus, McpToolCall};

const MAX_TOOLS: usize = 100;
const MAX_NAME_BYTES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct CallLog {
    pub(super) mcp: McpCalls,
    pub(super) web_searches: u64,
    pub(super) sub_agents: u64,
    /// Items of unknown types.
    pub(super) unknown: u64,
}

impl CallLog {
    pub(super) fn mcp_call(&mut self, call: &McpToolCall<'_>, status: ItemStatus) {
        let failed = u64::from(status != ItemStatus::Completed);
        self.mcp.finished += 1;
        self.mcp.failed += failed;
        let by_tool = &mut self.mcp.by_tool;
        let (server, tool) = (call.server.resolve(), call.tool.resolve());
        if let Some(known) = by_tool.iter_mut().find(|known| known.tool == tool && known.server == server) {
            known.finished += 1;
            known.failed += failed;
        } else if by_tool.len() < MAX_TOOLS && server.len().max(tool.len()) <= MAX_NAME_BYTES {
            let (server, tool) = (server.into_owned(), tool.into_owned());
            by_tool.push(ToolCalls { server, tool, finished: 1, failed });
        }
    }

    pub(super) fn collab_call(&mut self, call: &CollabToolCall<'_>, status: ItemStatus) {
        let spawned = call.tool == *"spawn_agent" && status == ItemStatus::Completed;
        self.sub_agents += u64::from(spawned);
    }
}
