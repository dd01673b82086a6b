//! The idle dialect (`idle-jsonl`): a program from the user's configuration that reads messages as JSON lines, prints events as JSON
//! lines and reports when it is idle.
//!
//! The task is its first message. Its input stays open until it is idle and no further message has come. Its tool calls are
//! answered by the user or by a configured command. It gets no arguments of ours, has no threads and no sandbox, and does
//! not report tokens.

use super::capabilities::{Capabilities, MessageSupport};
use super::plain;

pub(super) const CAPABILITIES: Capabilities =
    Capabilities { messages: MessageSupport::NextTurn, ..plain::CAPABILITIES };
