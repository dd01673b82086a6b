//! Tests that every query uses an index and none scans the table.
//!
//! A plan depends on the schema and the statement, not on the number of rows. Times with 100,000 tasks are
//! measured in `benches/`.

use delegator_domain::task::{State, TaskLocation};
use rusqlite::{Connection, params_from_iter, types::Value};

use super::list::{self, Filter};
use super::{
    chain, claim, end, history, messages, notes, notifications, queries, questions, remote, submit, usage,
};
use crate::database::schema;

fn database() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    schema::create(&db).unwrap();
    db
}

fn plan(db: &Connection, sql: &str, values: Option<Vec<Value>>) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let values = values.unwrap_or_else(|| vec![Value::Integer(1); statement.parameter_count()]);
    let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>("detail")).unwrap();
    steps.map(Result::unwrap).collect()
}

/// Asserts that the plan uses this index and never scans the whole table.
fn assert_uses_index(db: &Connection, sql: &str, values: Option<Vec<Value>>, index: &str) {
    let steps = plan(db, sql, values);
    assert!(steps.iter().any(|step| step.contains(index)), "{sql}\nwithout {index}: {steps:#?}");
    for step in &steps {
        let scans_table = step.starts_with("SCAN tasks") && !step.contains("INDEX");
        assert!(!scans_table, "{sql}\n{steps:#?}");
    }
}

#[test]
fn queries_use_their_index() {
    let db = database();
    for (sql, index) in [
        (queries::COUNTS, "COVERING INDEX tasks_state"),
        (queries::ACTIVE, "SEARCH tasks USING INDEX tasks_local_state"),
        (queries::BY_THREAD, "INDEX tasks_thread"),
        (queries::BY_THREAD, "INDEX tasks_resumed"),
        (queries::KNOWS_THREAD, "INDEX tasks_thread"),
        (queries::KNOWS_THREAD, "INDEX tasks_resumed"),
        (queries::THREADS, "COVERING INDEX tasks_thread"),
        (queries::ENDED_BEFORE, "INDEX tasks_retention"),
        (queries::COUNT_ENDED_BEFORE, "INDEX tasks_retention"),
        (queries::QUEUE, "SEARCH tasks USING INDEX tasks_local_state"),
        (claim::WAITING, "SEARCH tasks USING INDEX tasks_local_state"),
        (claim::RUNNING, "SEARCH tasks USING INDEX tasks_local_state"),
        (claim::RUNNING_COUNT, "SEARCH tasks USING COVERING INDEX tasks_local_state"),
        (claim::MAY_CLAIM, "SEARCH tasks USING INDEX tasks_local_state"),
        (end::AWAITING, "SEARCH tasks USING INDEX tasks_awaits"),
        (end::STOP_AWAITING, "INDEX tasks_awaits"),
        (chain::FOLLOWERS, "SEARCH tasks USING INDEX tasks_follows"),
        (chain::IS_NEEDED, "SEARCH tasks USING INDEX tasks_follows"),
        (chain::GROUP, "SEARCH tasks USING INDEX tasks_group"),
        (chain::IS_GROUP, "SEARCH tasks USING COVERING INDEX tasks_group"),
        (chain::GROUPS_BY_BEGINNING, "SEARCH tasks USING COVERING INDEX tasks_group"),
        (queries::POSITION, "INDEX tasks_awaits"),
        (history::NOT_IN_HISTORY, "SEARCH tasks USING COVERING INDEX tasks_state"),
        (history::NOT_IN_HISTORY, "COVERING INDEX tasks_ended"),
        (messages::FIRST_QUEUED, "SEARCH messages USING INDEX messages_state"),
        (messages::COUNT_BY_STATE, "SEARCH messages USING COVERING INDEX messages_state"),
        (messages::LAST, "SEARCH messages USING PRIMARY KEY"),
        (messages::SETTLE_ALL, "INDEX messages_state"),
        (questions::ONE, "SEARCH questions USING PRIMARY KEY"),
        (questions::OPEN, "SEARCH questions USING INDEX questions_open"),
        (questions::ALL_OPEN, "SCAN questions USING INDEX questions_open"),
        (questions::WITHDRAW_ALL, "SEARCH questions USING"),
        (queries::RUNNING_WRITERS, "SEARCH tasks USING INDEX tasks_state"),
        (queries::ENDED_WRITERS, "INDEX tasks_ended"),
        (queries::START_ORDER, "INDEX transitions_task"),
        (queries::POSITION, "SEARCH tasks USING COVERING INDEX tasks_local_state"),
        (remote::UNFINISHED_REMOTE, "SEARCH tasks USING INDEX tasks_remote_state"),
        (submit::ID_IN_USE, "SEARCH tasks USING COVERING INDEX"),
        (submit::ID_IN_USE, "SEARCH restore_points USING"),
        (queries::PREFIX, "SEARCH tasks USING COVERING INDEX"),
        (queries::UNREAD, "SEARCH tasks USING COVERING INDEX tasks_unread"),
        (queries::UNREAD_IDS, "SEARCH tasks USING COVERING INDEX tasks_unread"),
        (notes::MARK_ALL_READ, "INDEX tasks_unread"),
        (usage::DURATIONS_IN_DIR, "SEARCH tasks USING INDEX tasks_dir"),
        (usage::DURATIONS_ANYWHERE, "INDEX tasks_ended"),
        (usage::SIMILAR_DURATIONS, "SEARCH tasks USING INDEX tasks_dir"),
    ] {
        assert_uses_index(&db, sql, None, index);
    }
}

#[test]
fn queries_of_the_outbox_use_their_index() {
    let db = database();
    for (sql, index) in [
        (notifications::DUE, "INDEX notifications_due"),
        (notifications::NEXT, "INDEX notifications_due"),
        (notifications::PENDING, "INDEX notifications_due"),
        (notifications::FAILED, "INDEX notifications_given_up"),
        (notifications::RECENT, "INDEX notifications_recent"),
        (notifications::LAST_DELIVERY, "SEARCH notifications USING INDEX notifications_recent"),
        (notifications::OF_TASK, "SEARCH notifications USING INDEX notifications_task"),
        (notifications::IS_NEEDED, "SEARCH notifications USING INDEX notifications_task"),
        (notifications::RETRY, "SEARCH notifications USING PRIMARY KEY"),
        (notifications::SUBMITTED_TOGETHER, "SEARCH tasks USING INDEX tasks_submission"),
    ] {
        assert_uses_index(&db, sql, None, index);
    }
}

#[test]
fn ended_and_queue_queries_need_no_sort() {
    let db = database();
    for sql in [
        queries::ENDED_BEFORE,
        queries::QUEUE,
        queries::PREFIX,
        claim::WAITING,
        messages::FIRST_QUEUED,
        messages::LAST,
        questions::OPEN,
        usage::DURATIONS_IN_DIR,
        usage::DURATIONS_ANYWHERE,
        usage::SIMILAR_DURATIONS,
    ] {
        let steps = plan(&db, sql, None);
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}\n{steps:#?}");
    }
}

#[test]
fn lists_use_the_index_of_their_filter() {
    let db = database();
    let any = Filter::default;
    let label = || [("team".to_owned(), "x".to_owned())].into();
    let failed = || vec![State::Failed, State::Timeout];
    let dir = || Some("/p".to_owned());
    for (filter, index) in [
        (any(), "SEARCH tasks USING INTEGER PRIMARY KEY"),
        (Filter { states: failed(), ..any() }, "COVERING INDEX tasks_state"),
        (Filter { working_dir: dir(), ..any() }, "COVERING INDEX tasks_dir"),
        (
            Filter { working_dir: dir(), states: failed(), since_ms: Some(1), ..any() },
            "COVERING INDEX tasks_dir",
        ),
        (Filter { since_ms: Some(1), ..any() }, "COVERING INDEX tasks_created"),
        (Filter { labels: label(), ..any() }, "SEARCH labels USING PRIMARY KEY"),
        (Filter { labels: label(), states: failed(), ..any() }, "SEARCH labels USING PRIMARY KEY"),
        (Filter { labels: label(), working_dir: dir(), ..any() }, "COVERING INDEX tasks_dir"),
    ] {
        let (sql, values) = list::select(&filter, 5, None);
        let steps = plan(&db, &sql, Some(values.clone()));
        // Without a filter the newest tasks are at the end of the table, which is read backwards up to the
        // limit.
        let scans_table = steps.iter().any(|step| step.starts_with("SCAN tasks") && !step.contains("INDEX"));
        assert_eq!(scans_table, filter == any(), "{sql}\n{steps:#?}");
        if filter != any() {
            assert_uses_index(&db, &sql, Some(values), index);
        }
    }
}

#[test]
fn live_tasks_are_listed_and_counted_by_index() {
    let db = database();
    let living = Filter { states: vec![State::Starting, State::Working], ..Filter::default() };
    for (location, index) in [
        (None, "COVERING INDEX tasks_state"),
        (Some(TaskLocation::Local), "COVERING INDEX tasks_local_state"),
        (Some(TaskLocation::Cloud), "COVERING INDEX tasks_remote_state"),
    ] {
        let living = Filter { location, ..living.clone() };
        for (sql, values) in [
            list::oldest(&living, 0, 5),
            list::oldest(&living, 7, 5),
            list::count(&living, 0),
            list::count(&living, 7),
        ] {
            assert_uses_index(&db, &sql, Some(values), index);
        }
    }
}

#[test]
fn ended_tasks_are_listed_by_index() {
    let db = database();
    let any = Filter::default;
    let labels = [("team".to_owned(), "x".to_owned())].into();
    for (filter, index) in [
        (any(), "INDEX tasks_ended"),
        (Filter { states: vec![State::Failed], ..any() }, "INDEX tasks_ended"),
        (Filter { working_dir: Some("/p".to_owned()), ..any() }, "INDEX tasks_dir"),
        (Filter { is_unread: true, ..any() }, "INDEX tasks_unread"),
    ] {
        for (sql, values) in [list::select_ended(&filter, 1, 5, Some(9)), list::count_ended(&filter, 1)] {
            assert_uses_index(&db, &sql, Some(values), index);
        }
    }
    let labelled = Filter { labels, ..any() };
    let (sql, values) = list::select_orders(&labelled, 1);
    assert_uses_index(&db, &sql, Some(values), "SEARCH labels USING PRIMARY KEY");
    let (sql, values) = list::count_ended(&any(), 1);
    assert_uses_index(&db, &sql, Some(values), "COVERING INDEX tasks_ended");
    let (sql, values) = list::select_ended(&any(), 1, 5, Some(9));
    let steps = plan(&db, &sql, Some(values));
    assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:#?}");
}

#[test]
fn pruning_finds_dependent_rows_by_index() {
    let db = database();
    for (table, index) in [
        ("transitions", "transitions_task"),
        ("labels", "labels_task"),
        ("messages", "PRIMARY KEY"),
        ("questions", "PRIMARY KEY"),
        ("notifications", "notifications_task"),
    ] {
        let steps = plan(&db, &format!("SELECT * FROM {table} WHERE task = ?1"), None);
        assert!(steps.iter().all(|step| step.contains(index)), "{steps:#?}");
    }
}
