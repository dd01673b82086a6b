//! The event streams of tasks.
//!
//! A stream is bytes: chunks of it are appended under the lock of the attempt, so that they are contiguous. A
//! reader's position is attempt and offset.

use delegator_domain::event_page::{EventPage, EventPosition};

use crate::database::Database;
use crate::error::FleetError;
use crate::session::FleetClaim;
use crate::statements::Statements;

impl Database {
    /// Appends events at `offset` and returns the end of the stored stream. Stored bytes are ignored.
    pub fn append_events(&self, claim: &FleetClaim, offset: u64, bytes: &[u8]) -> Result<u64, FleetError> {
        self.transaction(async |db| {
            let stored = sqlx::query_scalar!(
                "select delegator.append_events($1, $2, $3, $4, $5)",
                claim.session.secret,
                claim.task,
                claim.attempt,
                signed(offset),
                bytes,
            )
            .fetch_one(&mut *db)
            .await?;
            let stored = unsigned(stored.ok_or_else(|| claim.fenced())?);
            if offset > stored { Err(FleetError::Gap { stored }) } else { Ok(stored) }
        })
    }

    /// The events from a position on, at most about `max_bytes`.
    pub fn events(&self, id: &str, from: EventPosition, max_bytes: usize) -> Result<EventPage, FleetError> {
        self.transaction(async |db| {
            let attempt = sqlx::query!(
                r#"select t.attempt, coalesce(a.event_bytes, 0) as "event_bytes!"
                 from delegator.tasks t
                 left join delegator.attempts a on a.task = t.id and a.attempt = t.attempt where t.id = $1"#,
                id,
            )
            .fetch_optional(&mut *db)
            .await?;
            let attempt = attempt.ok_or_else(|| FleetError::UnknownTask { id: id.to_owned() })?;
            let is_restarted = from.attempt != 0 && from.attempt != attempt.attempt;
            let start = if is_restarted { 0 } else { from.offset };
            let bytes = if start < unsigned(attempt.event_bytes) {
                read_chunks(db, id, attempt.attempt, start, max_bytes).await?
            } else {
                Vec::new()
            };
            let next = EventPosition { attempt: attempt.attempt, offset: start + bytes.len() as u64 };
            Ok(EventPage { bytes, next, is_restarted })
        })
    }
}

/// The chunks from the one that contains `start` on, until there are enough bytes.
async fn read_chunks(
    db: &mut Statements,
    id: &str,
    attempt: i32,
    start: u64,
    max_bytes: usize,
) -> Result<Vec<u8>, FleetError> {
    let end = start.saturating_add(max_bytes as u64);
    let chunks = sqlx::query!(
        "select byte_offset, bytes from delegator.event_chunks
         where task = $1 and attempt = $2 and byte_offset < $4 and byte_offset >= (
            select coalesce(max(byte_offset), 0) from delegator.event_chunks
            where task = $1 and attempt = $2 and byte_offset <= $3)
         order by byte_offset",
        id,
        attempt,
        signed(start),
        signed(end),
    )
    .fetch_all(&mut *db)
    .await?;
    let first = chunks.first().map_or(start, |chunk| unsigned(chunk.byte_offset));
    let skipped = usize::try_from(start - first).unwrap_or(usize::MAX);
    let bytes = chunks.into_iter().flat_map(|chunk| chunk.bytes).skip(skipped).take(max_bytes);
    Ok(bytes.collect())
}

pub(crate) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
