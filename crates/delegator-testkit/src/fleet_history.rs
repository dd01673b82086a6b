//! What happened to the tasks of a fleet: every change of a row, recorded by a trigger in the order of the commits, and
//! every answer that a client got. A model checks it, see [`check`].

use crate::postgres::PostgresServer;

mod model;

pub use model::{Unfinished, check};

/// The lock of a row orders its changes, so the numbers of one task grow in the order of the commits.
const RECORDER: &str = "
create table public.changes (
    seq bigint generated always as identity, task text, old_state text, new_state text, old_attempt integer,
    new_attempt integer, old_session text, new_session text, cancel_requested boolean, result text,
    at timestamptz default clock_timestamp());
create function public.record_change() returns trigger language plpgsql security definer as $$
begin
    insert into public.changes (task, old_state, new_state, old_attempt, new_attempt, old_session, new_session,
            cancel_requested, result)
        values (coalesce(new.id, old.id), old.state, new.state, old.attempt, new.attempt, old.session, new.session,
            coalesce(new.cancel_requested_at, old.cancel_requested_at) is not null, new.result);
    return null;
end
$$;
create trigger record_change after insert or update or delete on delegator.tasks
    for each row execute function public.record_change()";

/// A change of one task. No old state: it was submitted. No new state: it was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub task: String,
    pub old: Option<Row>,
    pub new: Option<Row>,
    /// What the worker stored at the end: its attempt and session, see [`result_of`].
    pub result: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: String,
    pub attempt: i32,
    pub session: Option<String>,
}

/// The right of a session to an attempt, as a client named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub task: String,
    pub attempt: i32,
    pub session: String,
}

/// An answer of the database to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ack {
    Submitted {
        task: String,
    },
    Claimed(Owner),
    Started(Owner),
    Stored {
        owner: Owner,
        event_bytes: u64,
    },
    Finished {
        owner: Owner,
        state: &'static str,
    },
    /// A change in the name of this owner was refused.
    Fenced(Owner),
}

/// The stored events of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    pub task: String,
    pub attempt: i32,
    pub event_bytes: u64,
    /// Offset and length, by offset.
    pub chunks: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    pub changes: Vec<Change>,
    pub acks: Vec<Ack>,
    pub streams: Vec<Stream>,
}

/// The result that a worker reports, so that the model can tell whose end was accepted.
pub fn result_of(attempt: i32, session: &str) -> String {
    format!("{attempt}/{session}")
}

pub fn install_recorder(server: &PostgresServer) {
    server.execute(RECORDER);
}

pub fn read_history(server: &PostgresServer, acks: Vec<Ack>) -> History {
    let changes = server.query(
        "select task, old_state, old_attempt, old_session, new_state, new_attempt, new_session, result
         from public.changes order by seq",
    );
    let streams = server.query(
        "select a.task, a.attempt, a.event_bytes, string_agg(c.byte_offset || ':' || length(c.bytes), ',' order by c.byte_offset)
         from delegator.attempts a left join delegator.event_chunks c on c.task = a.task and c.attempt = a.attempt
         group by a.task, a.attempt",
    );
    History {
        changes: changes.iter().map(|row| change(row)).collect(),
        acks,
        streams: streams.iter().map(|row| stream(row)).collect(),
    }
}

fn change(columns: &[String]) -> Change {
    let text = |index: usize| Some(columns[index].clone()).filter(|text| !text.is_empty());
    let row = |first: usize| {
        let attempt = text(first + 1)?.parse().unwrap();
        Some(Row { state: text(first)?, attempt, session: text(first + 2) })
    };
    Change { task: columns[0].clone(), old: row(1), new: row(4), result: text(7) }
}

fn stream(columns: &[String]) -> Stream {
    let chunks = columns[3].split(',').filter(|chunk| !chunk.is_empty()).map(|chunk| {
        let (offset, length) = chunk.split_once(':').unwrap();
        (offset.parse().unwrap(), length.parse().unwrap())
    });
    Stream {
        task: columns[0].clone(),
        attempt: columns[1].parse().unwrap(),
        event_bytes: columns[2].parse().unwrap(),
        chunks: chunks.collect(),
    }
}
