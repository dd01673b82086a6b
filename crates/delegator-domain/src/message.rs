//! Messages to the agent of a task, sent while it runs.

use serde::{Deserialize, Serialize};

use crate::named_enum::named_enum;

/// Identifies a message within its task: 1, 2, …, in the order in which they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageNumber(pub u32);

/// A message of the supervisor itself, about the running turn. It never begins a turn.
pub const OWN_MESSAGE: MessageNumber = MessageNumber(0);

impl std::fmt::Display for MessageNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Delivery {
        /// Into the running turn. It overtakes messages that wait for the next turn.
        Now = "now",
        /// As the next turn, when the running one has ended.
        Next = "next",
    }
}

named_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MessageState {
        /// Stored; the agent cannot take it yet.
        Queued = "queued",
        /// Passed to the agent, which has not confirmed it yet.
        Delivered = "delivered",
        /// The agent confirmed it or began to work on it.
        Accepted = "accepted",
        /// The agent refused it, or the task ended first.
        Failed = "failed",
        /// The task ended between delivery and confirmation: the agent may have read it.
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    pub number: MessageNumber,
    pub text: String,
    pub delivery: Delivery,
}
