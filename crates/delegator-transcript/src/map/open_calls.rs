//! MCP tool calls that were started and not ended yet. Start and end are joined by the id of the call.

use super::effect::{Effect, Effects, MapWarning};
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
        effects: &mut Effects<'_, 'a>,
    ) {
        let id = effects.start_item(ItemDetails::McpToolCall(call.clone()));
        if let Some(call_id) = call_id {
            let bytes = call.tool.len() + call.arguments.as_ref().map_or(0, Text::len);
            self.0.insert(&call_id.resolve(), (id, call.into_owned()), bytes);
        }
    }

    /// `call` has the result, and perhaps neither tool nor arguments. A call that was not started is emitted,
    /// too.
    pub(super) fn end<'a>(
        &mut self,
        call_id: &Text<'a>,
        mut call: McpToolCall<'a>,
        status: ItemStatus,
        effects: &mut Effects<'_, 'a>,
    ) {
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
                effects.ids.next()
            }
        };
        effects.item(ItemPhase::Completed, id, Some(status), ItemDetails::McpToolCall(call));
    }
}
