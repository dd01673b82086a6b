//! Messages that a caller sends to the agent of a task while it runs.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

/// Identifies a message of one task: 1, 2, … in the order in which they were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u32);

named_enum! {
    /// When the agent shall get a message.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Delivery {
        /// During the running turn.
        Now = "now",
        /// As the next turn.
        Next = "next",
    }
}

named_enum! {
    pub enum MessageState {
        /// Stored, and not yet given to the agent.
        Queued = "queued",
        /// Written to the agent, or about to be.
        Delivered = "delivered",
        /// The agent has taken it.
        Accepted = "accepted",
        /// The agent did not get it, or refused it.
        Failed = "failed",
        /// The task ended after the delivery and before the agent confirmed it.
        Unknown = "unknown",
    }
}

/// A message to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    pub id: MessageId,
    pub text: String,
    pub when: Delivery,
}

/// How the delivery of a message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageOutcome {
    Accepted,
    /// With the reason.
    Failed(String),
}
