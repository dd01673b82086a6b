//! MCP tool calls that were started and not ended yet. Start and end are joined by the id of the call.

use super::effect::{Effect, Effects, MapWarning, item};
use super::item_ids::ItemIds;
use super::pending::Pending;
use crate::event::{ItemDetails, ItemPhase, ItemStatus, McpToolCall};
use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct OpenCalls(Pending<(Text<'static>, McpToolCall<'static>)>);

impl OpenCalls {
    pub(super) fn contains(&self, call_id: &str) -> bool {
        self.0.contains(call_id)
    }

    /// A call without an id cannot be joined with its result.
    pub(super) fn begin<'a>(
        &mut self,
        call_id: Option<&Text<'a>>,
        call: McpToolCall<'a>,
        ids: &mut ItemIds,
    ) -> Effect<'a> {
        let id = ids.next();
        if let Some(call_id) = call_id {
            let bytes = call.tool.len() + call.arguments.as_ref().map_or(0, Text::len);
            self.0.insert(&call_id.resolve(), (id.clone(), call.clone().into_owned()), bytes);
        }
        item(ItemPhase::Started, id, Some(ItemStatus::InProgress), ItemDetails::McpToolCall(call))
    }

    /// `call` has the result, and perhaps neither tool nor arguments. A call that was not started is emitted nevertheless.
    pub(super) fn end<'a>(
        &mut self,
        call_id: &Text<'a>,
        mut call: McpToolCall<'a>,
        status: ItemStatus,
        ids: &mut ItemIds,
    ) -> Effects<'a> {
        let mut effects = Vec::new();
        let call_id = call_id.resolve();
        let id = match self.0.remove(&call_id) {
            Some((id, started)) => {
                if call.tool.is_empty() {
                    (call.server, call.tool) = (started.server, started.tool);
                }
                call.arguments = call.arguments.or(started.arguments);
                id
            }
            None => {
                effects.push(Effect::Warn(MapWarning::CallEndWithoutBegin { call_id: call_id.into_owned() }));
                ids.next()
            }
        };
        effects.push(item(ItemPhase::Completed, id, Some(status), ItemDetails::McpToolCall(call)));
        effects
    }
}
