//! The message queue of a task.
//!
//! A message is stored by [`Registry::enqueue`], marked as delivered by the supervisor *before* it is written
//! to the agent, and settled when the agent has confirmed or refused it. So after a crash in between, the
//! state is `delivered`, the end of the task makes it `unknown`, and it is never written twice. The end of a
//! task settles every message of it in its own transaction: none stays queued.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::message::{Delivery, MessageNumber, MessageState, QueuedMessage};
use delegator_domain::task::{State, TaskId};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::columns::{Column, record};
use crate::compare_and_set::{Cas, Lost, Nonce};
use crate::error::{RegistryError, Result};
use crate::registry::{Registry, query_all};
use crate::row;

/// Limit for the messages of one task that are not delivered yet.
pub const MAX_QUEUED_MESSAGES: u32 = 1000;
/// Characters of a message that are stored to show it.
const EXCERPT_CHARS: usize = 200;
const NOT_DELIVERED: &str = "the task ended before it was delivered";
const NOT_CONFIRMED: &str = "the task ended before the agent confirmed it";
const TEXT_LOST: &str = "its text could not be read";

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Message {
        pub number: MessageNumber,
        pub delivery: Delivery,
        pub state: MessageState,
        /// Why it failed, or why its delivery is unknown.
        pub reason: Option<String>,
        /// The beginning of the text, redacted.
        pub excerpt: String,
        /// The length of the text.
        pub bytes: u64,
        pub sent_at_ms: i64,
        pub delivered_at_ms: Option<i64>,
        pub settled_at_ms: Option<i64>,
    }
}

/// Only a queued message is stored. `Full`: [`MAX_QUEUED_MESSAGES`] messages wait already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueOutcome {
    Queued(Message),
    Ended { state: State },
    Full,
    Unknown,
}

struct Change {
    message: MessageNumber,
    from: MessageState,
    to: MessageState,
    reason: Option<String>,
}

record! {
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct MessageCounts {
        pub queued: u64,
        pub delivered: u64,
        pub accepted: u64,
        pub failed: u64,
        pub unknown: u64,
    }
}

impl MessageCounts {
    pub fn total(&self) -> u64 {
        self.queued + self.delivered + self.accepted + self.failed + self.unknown
    }
}

const INSERT: &str = "INSERT INTO messages (task, number, file, delivery, state, excerpt, bytes, sent_at_ms) \
     SELECT seq, 1 + coalesce((SELECT max(number) FROM messages WHERE task = seq), 0), \
     :file, :delivery, 'queued', :excerpt, :bytes, :now FROM tasks WHERE id = :id RETURNING *";
pub(crate) const FIRST_QUEUED: &str = "SELECT number, file FROM messages INDEXED BY messages_state \
     WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND state = 'queued' AND delivery = ?2 ORDER BY number LIMIT 1";
pub(crate) const COUNT_BY_STATE: &str = "SELECT count(*) FILTER (WHERE state = 'queued') AS queued, \
     count(*) FILTER (WHERE state = 'delivered') AS delivered, count(*) FILTER (WHERE state = 'accepted') AS accepted, \
     count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE state = 'unknown') AS unknown \
     FROM messages INDEXED BY messages_state WHERE task = (SELECT seq FROM tasks WHERE id = ?1)";
pub(crate) const LAST: &str = "SELECT * FROM messages \
     WHERE task = (SELECT seq FROM tasks WHERE id = ?1) ORDER BY number DESC LIMIT ?2";
pub(crate) const SETTLE_ALL: &str = "UPDATE messages INDEXED BY messages_state SET state = ?2, reason = ?3, settled_at_ms = ?4 \
     WHERE task = ?1 AND state = ?5";

impl Registry {
    /// Stores a message durably at the end of the queue; `file` is a fresh name for its text.
    pub fn enqueue(
        &mut self,
        id: &TaskId,
        text: &str,
        delivery: Delivery,
        file: &Nonce,
        now_ms: i64,
    ) -> Result<EnqueueOutcome> {
        if let Some(refusal) = self.read(|db| refusal(db, id))? {
            return Ok(refusal);
        }
        self.dir.check_space_for(text.len())?;
        let dir = self.dir.task(id);
        if let Err(error) = dir.write_message(file, text) {
            // The end of the task removes the folder.
            return self.read(|db| refusal(db, id))?.ok_or(error);
        }
        crash_point(CrashPoint::MessageWritten);
        let excerpt = self.sink.excerpt(text, EXCERPT_CHARS);
        let outcome = self.write(|db| {
            if let Some(refusal) = refusal(db, id)? {
                return Ok(refusal);
            }
            let values = named_params! {
                ":file": file.as_str(), ":delivery": delivery.name(), ":excerpt": excerpt,
                ":bytes": text.len(), ":now": now_ms, ":id": id.as_str(),
            };
            db.prepare_cached(INSERT)?.query_row(values, Message::from_row).map(EnqueueOutcome::Queued)
        });
        crash_point(CrashPoint::MessageQueued);
        // After a disk error it is unknown whether the row was committed; the file stays until the end of the
        // task.
        if !matches!(outcome, Ok(EnqueueOutcome::Queued(_)) | Err(RegistryError::Database { .. })) {
            dir.remove_message(file);
        }
        outcome
    }

    /// Marks the next message as delivered, durably, and returns it: the oldest for now, else the oldest for
    /// the next turn, unless `only_now`. The caller must write it to the agent at most once. A message whose
    /// text is lost fails.
    pub fn take_next_message(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        only_now: bool,
        now_ms: i64,
    ) -> Result<Option<QueuedMessage>> {
        while let Some((number, file, delivery)) = self.read(|db| first_queued(db, id, only_now))? {
            let text = self.dir.task(id).read_message(&file);
            let (to, reason) = match &text {
                Ok(Some(_)) => (MessageState::Delivered, None),
                _ => (MessageState::Failed, Some(TEXT_LOST.to_owned())),
            };
            let change = Change { message: number, from: MessageState::Queued, to, reason };
            if let Cas::Lost(_) = self.change_message(id, nonce, &change, now_ms)? {
                return Ok(None);
            }
            crash_point(CrashPoint::MessageDelivered);
            if let Ok(Some(text)) = text {
                return Ok(Some(QueuedMessage { number, text, delivery }));
            }
        }
        Ok(None)
    }

    /// Records that the agent accepted a delivered message, or why it refused it, and removes its text.
    pub fn settle_message(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        message: MessageNumber,
        refusal: Option<&str>,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        let to = if refusal.is_some() { MessageState::Failed } else { MessageState::Accepted };
        let reason = self.sink.optional(refusal);
        let change = Change { message, from: MessageState::Delivered, to, reason };
        let file = match self.change_message(id, nonce, &change, now_ms)? {
            Cas::Applied(file) => file,
            Cas::Lost(lost) => return Ok(Cas::Lost(lost)),
        };
        crash_point(CrashPoint::MessageSettled);
        self.dir.task(id).remove_message(&file);
        Ok(Cas::Applied(()))
    }

    /// Changes the state of a message of the current attempt. Returns the name of its file.
    fn change_message(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        Change { message, from, to, reason }: &Change,
        now_ms: i64,
    ) -> Result<Cas<Nonce>> {
        let column = if *to == MessageState::Delivered { "delivered_at_ms" } else { "settled_at_ms" };
        let sql = format!(
            "UPDATE messages SET state = :to, reason = :reason, {column} = :now \
             WHERE task = :task AND number = :number AND state = :from RETURNING file"
        );
        self.write_working(id, nonce, |db, stored| {
            let values = named_params! {
                ":to": to.name(), ":reason": reason, ":now": now_ms,
                ":task": stored.seq, ":number": message.0, ":from": from.name(),
            };
            let file = db.prepare_cached(&sql)?.query_row(values, file_from).optional()?;
            Ok(file.map_or(Cas::Lost(Lost { actual: Some(stored.state) }), Cas::Applied))
        })
    }

    pub fn message_counts(&self, id: &TaskId) -> Result<MessageCounts> {
        self.read(|db| db.prepare_cached(COUNT_BY_STATE)?.query_row([id.as_str()], MessageCounts::from_row))
    }

    pub fn last_messages(&self, id: &TaskId, limit: u32) -> Result<Vec<Message>> {
        let mut messages = self.read(|db| query_all(db, LAST, (id.as_str(), limit), Message::from_row))?;
        messages.reverse();
        Ok(messages)
    }
}

/// Settles the messages of a task that ends: one that was not delivered has failed; whether the agent got one
/// that it has not confirmed is unknown.
pub(crate) fn settle_all(db: &Connection, seq: i64, now_ms: i64) -> rusqlite::Result<()> {
    let mut settle = db.prepare_cached(SETTLE_ALL)?;
    for (from, to, reason) in [
        (MessageState::Queued, MessageState::Failed, NOT_DELIVERED),
        (MessageState::Delivered, MessageState::Unknown, NOT_CONFIRMED),
    ] {
        settle.execute((seq, to.name(), reason, now_ms, from.name()))?;
    }
    Ok(())
}

/// Why a message cannot be stored.
fn refusal(db: &Connection, id: &TaskId) -> rusqlite::Result<Option<EnqueueOutcome>> {
    let Some(stored) = row::load_state(db, id)? else { return Ok(Some(EnqueueOutcome::Unknown)) };
    if stored.state.is_terminal() {
        return Ok(Some(EnqueueOutcome::Ended { state: stored.state }));
    }
    let sql = "SELECT count(*) FROM messages INDEXED BY messages_state WHERE task = ?1 AND state = 'queued'";
    let queued: u32 = db.prepare_cached(sql)?.query_row([stored.seq], |row| row.get(0))?;
    Ok((queued >= MAX_QUEUED_MESSAGES).then_some(EnqueueOutcome::Full))
}

fn first_queued(
    db: &Connection,
    id: &TaskId,
    only_now: bool,
) -> rusqlite::Result<Option<(MessageNumber, Nonce, Delivery)>> {
    let mut statement = db.prepare_cached(FIRST_QUEUED)?;
    let mut first = |delivery: Delivery| {
        let read = |row: &Row<'_>| Ok((MessageNumber(row.get("number")?), file_from(row)?, delivery));
        statement.query_row((id.as_str(), delivery.name()), read).optional()
    };
    match first(Delivery::Now)? {
        None if !only_now => first(Delivery::Next),
        found => Ok(found),
    }
}

fn file_from(row: &Row<'_>) -> rusqlite::Result<Nonce> {
    Column::read(row, "file")
}
