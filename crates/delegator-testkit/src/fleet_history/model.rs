//! The model of a task that every recorded history must fit. Pure: it knows only the history.

use std::collections::BTreeMap;

use super::{Ack, Change, History, Owner, Row, Stream, result_of};

const ENDS: [&str; 4] = ["completed", "failed", "timeout", "cancelled"];

/// Whether every task must have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    Allowed,
    Forbidden,
}

/// What the changes of one task amount to.
#[derive(Debug, Default)]
struct Task {
    now: Option<Row>,
    /// The sessions that have owned an attempt, in order: the first by its claim, the others by taking over.
    owners: BTreeMap<i32, Vec<String>>,
    started: Vec<(i32, String)>,
    /// The attempt and the session whose end was accepted; no session for a task that no worker had.
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    state: String,
    attempt: i32,
    session: Option<String>,
}

/// The first contradiction to the model, in words.
pub fn check(history: &History, unfinished: Unfinished) -> Result<(), String> {
    let mut tasks: BTreeMap<&str, Task> = BTreeMap::new();
    for change in &history.changes {
        let task = tasks.entry(&change.task).or_default();
        task.apply(change).map_err(|problem| format!("{problem}: {change:?}"))?;
    }
    if unfinished == Unfinished::Forbidden
        && let Some((id, task)) = tasks.iter().find(|(_, task)| task.end.is_none())
    {
        return Err(format!("the task {id} has not ended: {task:?}"));
    }
    check_claims_have_one_winner(&history.acks)?;
    for ack in &history.acks {
        check_ack(&tasks, &history.streams, ack).map_err(|problem| format!("{problem}: {ack:?}"))?;
    }
    history.streams.iter().try_for_each(check_stream)
}

impl Task {
    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        if change.old != self.now {
            return Err("the change does not begin where the last one ended");
        }
        match (&change.old, &change.new) {
            (None, Some(new)) => {
                let is_fresh = new.attempt == 0 && new.session.is_none();
                match new.state.as_str() {
                    "queued" if is_fresh => {}
                    // A submission that was refused for good.
                    "failed" if is_fresh => {
                        self.end = Some(End { state: new.state.clone(), attempt: 0, session: None });
                    }
                    _ => return Err("a new task is not simply queued"),
                }
            }
            (Some(_), None) => {
                self.end.is_some().then_some(()).ok_or("an unfinished task was deleted")?;
            }
            (Some(old), Some(new)) => self.move_on(old, new, change.result.as_deref())?,
            (None, None) => return Err("nothing changed"),
        }
        self.now.clone_from(&change.new);
        Ok(())
    }

    fn move_on(&mut self, old: &Row, new: &Row, result: Option<&str>) -> Result<(), &'static str> {
        if ENDS.contains(&old.state.as_str()) {
            return Err("a task that has ended changed");
        }
        let is_claim = old.state == "queued" && new.state == "claimed";
        if new.attempt != old.attempt + i32::from(is_claim) {
            return Err("the attempt must grow by one at each claim and never otherwise");
        }
        if new.session.is_some() != matches!(new.state.as_str(), "claimed" | "running") {
            return Err("a task has a session exactly while it is claimed or running");
        }
        match (old.state.as_str(), new.state.as_str()) {
            ("queued", "claimed") => self.owners.entry(new.attempt).or_default().extend(new.session.clone()),
            ("claimed", "running") if new.session == old.session => {
                self.started.push((new.attempt, new.session.clone().unwrap_or_default()));
            }
            ("running", "running") => {
                if new.session != old.session {
                    self.owners.entry(new.attempt).or_default().extend(new.session.clone());
                }
            }
            // A claimed task fails if too many workers were lost with it.
            ("claimed" | "running", "queued")
            | ("queued" | "claimed", "cancelled")
            | ("claimed", "failed") => {}
            ("running", end) if ENDS.contains(&end) => {
                let accepted = result_of(old.attempt, old.session.as_deref().unwrap_or_default());
                if result.is_some_and(|result| result != accepted) {
                    return Err("the result is of another attempt or session");
                }
            }
            _ => return Err("a change that the model does not know"),
        }
        if ENDS.contains(&new.state.as_str()) {
            let (state, attempt, session) = (new.state.clone(), old.attempt, old.session.clone());
            self.end = Some(End { state, attempt, session });
        }
        Ok(())
    }

    fn owners_of(&self, owner: &Owner) -> &[String] {
        self.owners.get(&owner.attempt).map(Vec::as_slice).unwrap_or_default()
    }

    /// The state in which this owner ended the task.
    fn end_by(&self, owner: &Owner) -> Option<&str> {
        let end = self.end.as_ref()?;
        let is_same = end.attempt == owner.attempt && end.session.as_ref() == Some(&owner.session);
        is_same.then_some(end.state.as_str())
    }
}

/// At most one session may learn that it has an attempt.
fn check_claims_have_one_winner(acks: &[Ack]) -> Result<(), String> {
    let mut winners: BTreeMap<(&str, i32), &Owner> = BTreeMap::new();
    for ack in acks {
        if let Ack::Claimed(owner) = ack {
            let winner = winners.entry((&owner.task, owner.attempt)).or_insert(owner);
            if winner.session != owner.session {
                return Err(format!("two sessions claimed the same attempt: {winner:?} and {owner:?}"));
            }
        }
    }
    Ok(())
}

fn check_ack(tasks: &BTreeMap<&str, Task>, streams: &[Stream], ack: &Ack) -> Result<(), &'static str> {
    let find = |id: &str| tasks.get(id).ok_or("the task was acknowledged and is lost");
    let is_in_history = match ack {
        Ack::Submitted { task } => find(task).map(|_| true)?,
        Ack::Claimed(owner) => find(&owner.task)?.owners_of(owner).first() == Some(&owner.session),
        Ack::Started(owner) => find(&owner.task)?.started.contains(&(owner.attempt, owner.session.clone())),
        Ack::Stored { owner, event_bytes } => {
            let task = find(&owner.task)?;
            let is_same = |stream: &&Stream| stream.task == owner.task && stream.attempt == owner.attempt;
            let stored =
                streams.iter().find(is_same).is_some_and(|stream| stream.event_bytes >= *event_bytes);
            task.owners_of(owner).contains(&owner.session) && (stored || task.now.is_none())
        }
        Ack::Finished { owner, state } => find(&owner.task)?.end_by(owner) == Some(state),
        Ack::Fenced(owner) => {
            let task = find(&owner.task)?;
            let is_owner =
                |row: &Row| row.attempt == owner.attempt && row.session.as_ref() == Some(&owner.session);
            // The database itself ends a task as failed or cancelled if its worker is lost.
            let is_own_end = matches!(task.end_by(owner), Some("completed" | "timeout"));
            if task.now.as_ref().is_some_and(is_owner) || is_own_end {
                return Err("the owner of the task was refused");
            }
            true
        }
    };
    if is_in_history { Ok(()) } else { Err("what was acknowledged is not in the history") }
}

fn check_stream(stream: &Stream) -> Result<(), String> {
    let mut end = 0;
    for (offset, length) in &stream.chunks {
        if *offset != end {
            return Err(format!("the events have a gap or an overlap at {end}: {stream:?}"));
        }
        end += length;
    }
    if end == stream.event_bytes { Ok(()) } else { Err(format!("events are missing: {stream:?}")) }
}
