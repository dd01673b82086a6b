//! Counts MCP tool calls, web searches and sub-agents. Per-tool counts are stored for the first [`MAX_TOOLS`] tools.

use super::report::{McpCalls, ToolCalls};
use crate::event::{CollabToolCall, ItemStatus, McpToolCall};

const MAX_TOOLS: usize = 100;
const MAX_NAME_BYTES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct CallLog {
    finished: u64,
    failed: u64,
    by_tool: Vec<ToolCalls>,
    web_searches: u64,
    sub_agents: u64,
}

impl CallLog {
    pub(super) fn mcp_call(&mut self, call: &McpToolCall<'_>, status: ItemStatus) {
        let failed = u64::from(status != ItemStatus::Completed);
        self.finished += 1;
        self.failed += failed;
        let (server, tool) = (call.server.resolve(), call.tool.resolve());
        let known = self.by_tool.iter().position(|calls| calls.tool == tool && calls.server == server);
        let at = match known {
            Some(at) => at,
            None if self.by_tool.len() < MAX_TOOLS && server.len().max(tool.len()) <= MAX_NAME_BYTES => {
                let (server, tool) = (server.into_owned(), tool.into_owned());
                self.by_tool.push(ToolCalls { server, tool, finished: 0, failed: 0 });
                self.by_tool.len() - 1
            }
            None => return,
        };
        self.by_tool[at].finished += 1;
        self.by_tool[at].failed += failed;
    }

    pub(super) fn web_search(&mut self) {
        self.web_searches += 1;
    }

    pub(super) fn collab_call(&mut self, call: &CollabToolCall<'_>, status: ItemStatus) {
        let spawned = call.tool == *"spawn_agent" && status == ItemStatus::Completed;
        self.sub_agents += u64::from(spawned);
    }

    pub(super) fn mcp_report(&self) -> McpCalls {
        McpCalls { finished: self.finished, failed: self.failed, by_tool: self.by_tool.clone() }
    }

    pub(super) fn web_searches(&self) -> u64 {
        self.web_searches
    }

    pub(super) fn sub_agents(&self) -> u64 {
        self.sub_agents
    }
}
