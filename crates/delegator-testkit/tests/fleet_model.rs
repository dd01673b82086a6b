//! The model of the fleet's tasks accepts a legal history and rejects each kind of violation.

#![expect(clippy::unwrap_used, reason = "a history that is accepted fails the test")]

use delegator_testkit::fleet_history::{Ack, Change, History, Owner, Row, Stream, Unfinished, check};

fn row(state: &str, attempt: i32, session: &str) -> Option<Row> {
    let session = Some(session.to_owned()).filter(|session| !session.is_empty());
    Some(Row { state: state.to_owned(), attempt, session })
}

/// A history of the task `t`, given as its rows one after the other.
fn history(rows: &[Option<Row>]) -> History {
    let before = std::iter::once(&None).chain(rows);
    let changes = before.zip(rows).map(|(old, new)| Change {
        task: "t".to_owned(),
        old: old.clone(),
        new: new.clone(),
        result: None,
    });
    History { changes: changes.collect(), ..History::default() }
}

fn owner(attempt: i32, session: &str) -> Owner {
    Owner { task: "t".to_owned(), attempt, session: session.to_owned() }
}

/// Lost by `a`, retried by `b`, taken over by `c`, completed.
fn legal() -> History {
    let mut history = history(&[
        row("queued", 0, ""),
        row("claimed", 1, "a"),
        row("running", 1, "a"),
        row("queued", 1, ""),
        row("claimed", 2, "b"),
        row("running", 2, "b"),
        row("running", 2, "c"),
        row("completed", 2, ""),
    ]);
    history.changes[7].result = Some("2/c".to_owned());
    history.acks = vec![
        Ack::Submitted { task: "t".to_owned() },
        Ack::Claimed(owner(1, "a")),
        Ack::Started(owner(2, "b")),
        Ack::Stored { owner: owner(2, "c"), event_bytes: 7 },
        Ack::Fenced(owner(1, "a")),
        Ack::Fenced(owner(2, "b")),
        Ack::Finished { owner: owner(2, "c"), state: "completed" },
    ];
    let chunks = vec![(0, 5), (5, 3)];
    history.streams = vec![Stream { task: "t".to_owned(), attempt: 2, event_bytes: 8, chunks }];
    history
}

#[track_caller]
fn rejects(history: &History, problem: &str) {
    let found = check(history, Unfinished::Allowed).unwrap_err();
    assert!(found.contains(problem), "{found}");
}

#[test]
fn a_legal_history_is_accepted() {
    assert_eq!(check(&legal(), Unfinished::Forbidden), Ok(()));
    let cancelled = history(&[row("queued", 0, ""), row("cancelled", 0, ""), None]);
    assert_eq!(check(&cancelled, Unfinished::Forbidden), Ok(()));
}

#[test]
fn an_illegal_change_is_rejected() {
    let (queued, claimed) = (row("queued", 0, ""), row("claimed", 1, "a"));
    let running = row("running", 1, "a");
    for (rows, problem) in [
        (vec![row("running", 1, "a")], "not simply queued"),
        (vec![queued.clone(), row("running", 0, "a")], "a change that the model does not know"),
        (vec![queued.clone(), row("completed", 0, "")], "a change that the model does not know"),
        (
            vec![queued.clone(), claimed.clone(), row("completed", 1, "")],
            "a change that the model does not know",
        ),
        (
            vec![queued.clone(), claimed.clone(), row("running", 1, "b")],
            "a change that the model does not know",
        ),
        (
            vec![queued.clone(), claimed.clone(), row("claimed", 1, "b")],
            "a change that the model does not know",
        ),
        (vec![queued.clone(), row("claimed", 2, "a")], "grow by one"),
        (vec![queued.clone(), row("claimed", 0, "a")], "grow by one"),
        (vec![queued.clone(), claimed.clone(), row("queued", 0, "")], "grow by one"),
        (vec![queued.clone(), row("claimed", 1, "")], "a session exactly while"),
        (vec![queued.clone(), claimed.clone(), row("queued", 1, "a")], "a session exactly while"),
        (vec![queued.clone(), claimed.clone(), None], "an unfinished task was deleted"),
        (
            vec![queued, claimed, running, row("failed", 1, ""), row("completed", 1, "")],
            "a task that has ended changed",
        ),
    ] {
        rejects(&history(&rows), problem);
    }
}

#[test]
fn a_missing_change_is_rejected() {
    let mut history = legal();
    history.changes.remove(3);
    rejects(&history, "does not begin where the last one ended");
}

#[test]
fn the_result_of_a_stale_owner_is_rejected() {
    for result in ["1/c", "2/b"] {
        let mut history = legal();
        history.changes[7].result = Some(result.to_owned());
        rejects(&history, "the result is of another attempt or session");
    }
}

#[test]
fn a_task_without_an_end_is_rejected_if_all_must_end() {
    let unfinished = history(&[row("queued", 0, ""), row("claimed", 1, "a")]);
    assert_eq!(check(&unfinished, Unfinished::Allowed), Ok(()));
    assert!(check(&unfinished, Unfinished::Forbidden).is_err());
}

#[test]
fn lost_acknowledgements_are_rejected() {
    for (ack, problem) in [
        (Ack::Submitted { task: "other".to_owned() }, "is lost"),
        (Ack::Claimed(owner(1, "b")), "two sessions claimed the same attempt"),
        (Ack::Claimed(owner(3, "c")), "not in the history"),
        (Ack::Claimed(owner(2, "c")), "not in the history"),
        (Ack::Started(owner(2, "c")), "not in the history"),
        (Ack::Stored { owner: owner(2, "c"), event_bytes: 9 }, "not in the history"),
        (Ack::Stored { owner: owner(2, "a"), event_bytes: 1 }, "not in the history"),
        (Ack::Finished { owner: owner(2, "c"), state: "failed" }, "not in the history"),
        (Ack::Finished { owner: owner(2, "b"), state: "completed" }, "not in the history"),
        (Ack::Finished { owner: owner(1, "a"), state: "completed" }, "not in the history"),
        (Ack::Fenced(owner(2, "c")), "the owner of the task was refused"),
    ] {
        let mut history = legal();
        history.acks.push(ack);
        rejects(&history, problem);
    }
    let mut running = history(&[row("queued", 0, ""), row("claimed", 1, "a"), row("running", 1, "a")]);
    running.acks.push(Ack::Fenced(owner(1, "a")));
    rejects(&running, "the owner of the task was refused");
}

#[test]
fn events_with_a_gap_an_overlap_or_a_wrong_length_are_rejected() {
    for (chunks, event_bytes) in
        [(vec![(0, 5), (6, 2)], 8), (vec![(0, 5), (4, 4)], 8), (vec![(1, 7)], 8), (vec![(0, 5)], 8)]
    {
        let mut history = legal();
        history.acks.clear();
        history.streams[0] = Stream { chunks, event_bytes, ..history.streams[0].clone() };
        rejects(&history, "events");
    }
}
