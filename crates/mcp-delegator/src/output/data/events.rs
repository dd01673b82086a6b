//! The last events of an agent in our JSON, as the agent wrote them.
//!
//! To save space, long events are shortened and the oldest are dropped. None is lost: the cursor always
//! points to the first event of the list, so the caller can page backwards.

use crate::output::prelude::*;
use crate::spec::paging::{cursor_positions, position_cursor};

/// A longer event may be shortened.
pub const LONG_BYTES: usize = 2 << 10;
/// A longer type or id is ignored.
const MAX_NAME_BYTES: usize = 128;

/// JSON pointers to the id of an event, in all dialects.
const ID_POINTERS: [&str; 4] = ["/item/id", "/id", "/call_id", "/thread_id"];

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventsPage {
    pub included: bool,
    /// All events of the task.
    pub count: u64,
    /// Why they are not included.
    pub reason: Option<&'static str>,
    pub items: Option<Vec<Value>>,
    /// Leads to the events before these.
    pub next_cursor: Option<String>,
}

pub fn cursor_query(task_id: &str) -> Value {
    json!(["events", task_id])
}

/// Replaces long events by their type, id and size.
fn shorten(items: &mut [Value]) {
    for item in items {
        let size = item.to_string().len();
        if size > LONG_BYTES {
            let (kind, id) = (name_at(item, &["/type", "/msg/type"]), name_at(item, &ID_POINTERS));
            *item = json!({"type": kind, "id": id, "truncated": true, "size": size});
        }
    }
}

fn name_at(event: &Value, pointers: &[&str]) -> Value {
    let found = pointers.iter().filter_map(|pointer| event.pointer(pointer)?.as_str());
    found.filter(|name| name.len() <= MAX_NAME_BYTES).map(Value::from).next().unwrap_or_default()
}

impl EventsPage {
    /// Shortens long events and drops the oldest, as the plan says. The cursor moves to the new beginning of
    /// the list.
    pub fn shrink(&mut self, task_id: &str, plan: TruncationPlan) {
        let Some(items) = &mut self.items else { return };
        let dropped = truncate(items, plan);
        if dropped == 0 {
            return;
        }
        let query = cursor_query(task_id);
        let start = match &self.next_cursor {
            Some(cursor) => cursor_positions("events_cursor", cursor, &query).map(|[position]| position),
            None => Ok(0),
        };
        if let Ok(start) = start {
            let position = start.saturating_add(i64::try_from(dropped).unwrap_or(i64::MAX));
            self.next_cursor = Some(position_cursor([position], &query));
        }
    }

    /// Adds the events to a document, with the call for earlier ones.
    pub fn append_to(&self, document: Document, task_id: &str) -> Document {
        let Some(items) = &self.items else { return document };
        let label = if self.count > items.len() as u64 {
            format!("The agent's events, {} of {}:", items.len(), self.count)
        } else {
            "The agent's events:".to_owned()
        };
        let lines: Vec<String> = items.iter().map(Value::to_string).collect();
        document.quote(label, lines.join("\n")).with(self.next_cursor.as_deref(), |document, cursor| {
            let results = NextCall::for_task(&["local", "results"], task_id);
            document.block(Block::Next(results.with("events_cursor", cursor)))
        })
    }
}

/// Shortens long events and drops the oldest. Returns how many were dropped.
pub fn truncate(items: &mut Vec<Value>, plan: TruncationPlan) -> usize {
    if plan.shorten_events {
        shorten(items);
    }
    let dropped = items.len().saturating_sub(plan.max_events);
    items.drain(..dropped);
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, length: usize) -> Value {
        let item = json!({"id": id, "type": "agent_message", "text": "x".repeat(length)});
        json!({"type": "item.completed", "item": item})
    }

    #[test]
    fn shortened_events_retain_type_id_and_size() {
        let around = message("item_1", 0).to_string().len();
        let (fits, long) = (message("item_1", LONG_BYTES - around), message("item_2", LONG_BYTES));
        let failed = json!({"type": "turn.failed", "error": {"message": "é".repeat(LONG_BYTES)}});
        let old = json!({"id": "7", "msg": {"type": "agent_message", "message": "x".repeat(LONG_BYTES)}});
        let mut items = [fits.clone(), long, failed, "not JSON ".repeat(LONG_BYTES).into(), old];
        shorten(&mut items);
        assert_eq!(items[0], fits);
        let size = LONG_BYTES + around;
        assert_eq!(
            items[1],
            json!({"type": "item.completed", "id": "item_2", "truncated": true, "size": size})
        );
        assert_eq!((&items[2]["type"], &items[2]["id"]), (&json!("turn.failed"), &Value::Null));
        assert!(items[2]["size"].as_u64().unwrap() > 2 * LONG_BYTES as u64);
        assert_eq!((&items[3]["type"], &items[3]["truncated"]), (&Value::Null, &json!(true)));
        assert_eq!((&items[4]["type"], &items[4]["id"]), (&json!("agent_message"), &json!("7")));
    }

    #[test]
    fn cursor_points_to_the_first_listed_event() {
        let page = |start: Option<i64>| EventsPage {
            included: true,
            count: 9,
            reason: None,
            items: Some(vec![json!(4), json!(5), json!(6)]),
            next_cursor: start.map(|position| position_cursor([position], &cursor_query("T-1"))),
        };
        let position = |page: &EventsPage| {
            page.next_cursor.as_deref().map(|cursor| {
                let [position] = cursor_positions("events_cursor", cursor, &cursor_query("T-1")).unwrap();
                position
            })
        };
        for (start, max_events, left, now) in [
            (None, 5, json!([4, 5, 6]), None),
            (None, 2, json!([5, 6]), Some(1)),
            (Some(4), 3, json!([4, 5, 6]), Some(4)),
            (Some(4), 1, json!([6]), Some(6)),
            (Some(4), 0, json!([]), Some(7)),
        ] {
            let mut page = page(start);
            page.shrink("T-1", TruncationPlan { max_events, ..TruncationPlan::NONE });
            assert_eq!((json!(page.items), position(&page)), (left, now), "{start:?}, {max_events}");
        }
    }
}
