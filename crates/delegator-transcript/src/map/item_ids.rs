//! The ids of items: `item_N`, unique within a stream.
//!
//! Ids of our own skip those that the stream uses. An agent's id of another form is replaced by the next free
//! one, and so is an `item_N` that was already given away: one id rule for every dialect. Memory is bounded:
//! beyond the limits, an id is replaced and not remembered.

use std::collections::HashMap;

use crate::json::Text;

const MAX_REPLACED: usize = 1024;
const MAX_ID_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct ItemIds {
    next: u64,
    replaced: HashMap<String, u64>,
}

impl ItemIds {
    pub(super) fn next(&mut self) -> Text<'static> {
        text(self.take_number())
    }

    /// The id of an item that has one, perhaps of another form.
    pub(super) fn of_agent<'a>(&mut self, id: Text<'a>) -> Text<'a> {
        // A missing id stays missing.
        if id.is_empty() {
            return id;
        }
        let number = id.simple().and_then(|id| id.strip_prefix("item_")).and_then(|n| n.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| !self.replaced.values().any(|taken| taken == number)) {
            self.next = self.next.max(number.saturating_add(1));
            return id;
        }
        let key = id.resolve();
        if let Some(number) = self.replaced.get(&*key) {
            return text(*number);
        }
        let number = self.take_number();
        if self.replaced.len() < MAX_REPLACED && key.len() <= MAX_ID_BYTES {
            self.replaced.insert(key.into_owned(), number);
        }
        text(number)
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }
}

fn text(number: u64) -> Text<'static> {
    Text::owned(format!("item_{number}"))
}
