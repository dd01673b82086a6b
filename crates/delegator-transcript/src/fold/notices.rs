//! Collects messages that may occur many times; each different message is stored once, with its count.

use delegator_domain::text::beginning;
use serde::{Deserialize, Serialize};

use crate::json::Text;

const MAX_NOTICES: usize = 32;
const MAX_NOTICE_BYTES: usize = 2 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Truncated to 2 KiB.
    pub message: String,
    pub count: u64,
}

#[derive(Debug, Default)]
pub(super) struct Notices {
    pub(super) list: Vec<Notice>,
    pub(super) total: u64,
}

fn truncate(message: &Text<'_>) -> String {
    beginning(&message.resolve(), MAX_NOTICE_BYTES).to_owned()
}

impl Notices {
    pub(super) fn add(&mut self, message: &Text<'_>) {
        self.total += 1;
        let message = truncate(message);
        if let Some(known) = self.list.iter_mut().find(|notice| notice.message == message) {
            known.count += 1;
            return;
        }
        if self.list.len() >= MAX_NOTICES {
            self.list.remove(0);
        }
        self.list.push(Notice { message, count: 1 });
    }

    /// Removes one occurrence of a message that turned out to be a failure.
    pub(super) fn retract(&mut self, message: &Text<'_>) {
        let message = truncate(message);
        let Some(at) = self.list.iter().rposition(|notice| notice.message == message) else { return };
        self.total = self.total.saturating_sub(1);
        self.list[at].count -= 1;
        if self.list[at].count == 0 {
            self.list.remove(at);
        }
    }
}
