//! Entries that were started and not ended yet, in bounded memory.
//!
//! Agents have a handful of open calls. A stream that opens calls without closing them must not grow memory,
//! so the oldest entries are dropped; their end then looks like an end without a start.

use std::collections::VecDeque;

use super::effect::{Effect, Effects, MapWarning};
use super::item_ids::ItemIds;
use crate::event::{ItemDetails, ItemPhase, ItemStatus, McpToolCall, Todo};
use crate::json::Text;

/// More than any agent runs in parallel.
const MAX_ENTRIES: usize = 1024;
/// Keys and values together.
const MAX_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Pending<T> {
    entries: VecDeque<Entry<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: String,
    value: T,
    bytes: usize,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Pending<T> {
    /// Stores `value`, which takes about `bytes`, and replaces the entry with that key.
    pub(super) fn insert(&mut self, key: &str, value: T, bytes: usize) {
        self.remove(key);
        let bytes = bytes + key.len();
        while self.entries.len() >= MAX_ENTRIES || self.bytes + bytes > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
        if bytes <= MAX_BYTES {
            self.bytes += bytes;
            self.entries.push_back(Entry { key: key.to_owned(), value, bytes });
        }
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.entries.iter().rev().any(|entry| entry.key == key)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        self.entries.iter_mut().rev().find(|entry| entry.key == key).map(|entry| &mut entry.value)
    }

    /// Removes and returns all entries, in the order in which they were stored.
    pub(super) fn take_all(&mut self) -> Vec<(String, T)> {
        let all = std::mem::take(self);
        all.entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        let at = self.entries.iter().rposition(|entry| entry.key == key)?;
        let entry = self.entries.remove(at)?;
        self.bytes -= entry.bytes;
        Some(entry.value)
    }
}

impl Pending<Text<'static>> {
    /// The phase and the id of an item that the agent starts and completes under the same key.
    pub(super) fn phase_and_id(
        &mut self,
        key: &str,
        is_completed: bool,
        ids: &mut ItemIds,
    ) -> (ItemPhase, Text<'static>) {
        if is_completed {
            return (ItemPhase::Completed, self.remove(key).unwrap_or_else(|| ids.next()));
        }
        let id = ids.next();
        self.insert(key, id.clone(), 0);
        (ItemPhase::Started, id)
    }
}

/// MCP tool calls that were started and not ended yet. Start and end are joined by the id of the call.
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

/// The plan of a turn as one item: started, updated, and completed at the end of the turn.
#[derive(Debug, Default)]
pub(super) struct Plan {
    open: Option<(Text<'static>, Vec<Todo<'static>>)>,
}

impl Plan {
    pub(super) fn is(&self, items: &[Todo<'_>]) -> bool {
        self.open.as_ref().is_some_and(|(_, open)| open.as_slice() == items)
    }

    pub(super) fn update<'a>(&mut self, items: Vec<Todo<'a>>, effects: &mut Effects<'_, 'a>) {
        let owned_items = items.iter().cloned().map(Todo::into_owned).collect();
        let (phase, id) = match self.open.take() {
            Some((id, _)) => (ItemPhase::Updated, id),
            None => (ItemPhase::Started, effects.ids.next()),
        };
        self.open = Some((id.clone(), owned_items));
        effects.item(phase, id, None, ItemDetails::TodoList { items });
    }

    pub(super) fn complete(&mut self, effects: &mut Effects<'_, '_>) {
        if let Some((id, items)) = self.open.take() {
            effects.item(ItemPhase::Completed, id, None, ItemDetails::TodoList { items });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_dropped_first() {
        let mut pending = Pending::default();
        for n in 0..3 * MAX_ENTRIES {
            pending.insert(&n.to_string(), n, 8);
        }
        assert_eq!(pending.entries.len(), MAX_ENTRIES);
        assert_eq!(pending.remove("0"), None);
        assert_eq!(pending.remove("3000"), Some(3000));
        for n in 0..100 {
            pending.insert(&format!("big{n}"), n, 1 << 20);
            assert!(pending.bytes <= MAX_BYTES);
        }
        pending.insert("too big", 1, MAX_BYTES + 1);
        assert_eq!(pending.remove("too big"), None);
    }
}
