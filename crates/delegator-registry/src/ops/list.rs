//! Lists tasks by filter, in pages: newest first, oldest first, or ended ones, the last to end first.
//!
//! The statement names the index for each filter. Otherwise SQLite would scan the table to avoid a sort, and
//! a filter with few matches would read every row.

use std::collections::BTreeMap;

use delegator_domain::task::{State, TaskLocation};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::row;
use crate::task::{SUMMARY_COLUMNS, Task, TaskSummary};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these; empty for all states.
    pub states: Vec<State>,
    /// This directory or one below it.
    pub working_dir: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Submitted at or after this time.
    pub since_ms: Option<i64>,
    /// Tasks of this machine, or those of providers; `None` for both.
    pub location: Option<TaskLocation>,
    /// Only tasks in this environment of a provider.
    pub environment: Option<String>,
    /// Only tasks whose result was not read.
    pub is_unread: bool,
}

impl Filter {
    /// Whether only live tasks can match.
    pub(crate) fn is_live_only(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| !state.is_terminal())
    }
}

/// The position before the first task.
const FIRST: i64 = 0;

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub tasks: Vec<Task>,
    pub next: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldestPage<T> {
    pub tasks: Vec<T>,
    pub total: u64,
    /// Those from the beginning of this page on.
    pub remaining: u64,
}

// Not derived: a page of any type can be empty.
impl<T> Default for OldestPage<T> {
    fn default() -> OldestPage<T> {
        OldestPage { tasks: Vec::new(), total: 0, remaining: 0 }
    }
}

impl Registry {
    /// The first matching tasks that were submitted after the task `after`.
    pub fn oldest(&self, filter: &Filter, after: i64, limit: u32) -> Result<OldestPage<TaskSummary>> {
        self.read(|db| {
            let count_after = |after: i64| {
                let (sql, values) = count(filter, after);
                db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))
            };
            let total = count_after(FIRST)?;
            let remaining = if after == FIRST { total } else { count_after(after)? };
            let (sql, values) = oldest(filter, after, limit);
            let tasks = query_all(db, &sql, params_from_iter(values), TaskSummary::from_row)?;
            Ok(OldestPage { tasks, total, remaining })
        })
    }

    /// Lists the newest tasks; with `before`, the page after that one.
    pub fn list(&self, filter: &Filter, limit: u32, before: Option<i64>) -> Result<Page> {
        let (sql, values) = select(filter, limit.saturating_add(1), before);
        let tasks = self.read(|db| query_all(db, &sql, params_from_iter(values), Task::from_row))?;
        let (tasks, has_more) = truncate_page(tasks, limit);
        let next = tasks.last().filter(|_| has_more).map(|last| last.seq);
        Ok(Page { tasks, next })
    }
}

/// Removes the task beyond the page, which was read to find out whether there are more.
pub(crate) fn truncate_page(mut tasks: Vec<Task>, limit: u32) -> (Vec<Task>, bool) {
    let page_size = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = tasks.len() > page_size;
    tasks.truncate(page_size);
    (tasks, has_more)
}

pub(crate) fn select(filter: &Filter, limit: u32, before: Option<i64>) -> (String, Vec<Value>) {
    let mut terms = WhereTerms::of(filter);
    if let Some(before) = before {
        terms.add("seq < ?", [before]);
    }
    page_of("*", "DESC", filter, terms, limit)
}

pub(crate) fn oldest(filter: &Filter, after: i64, limit: u32) -> (String, Vec<Value>) {
    page_of(SUMMARY_COLUMNS, "ASC", filter, submitted_after(filter, after), limit)
}

/// Rows are wide, so the inner select finds them by index only, and the outer select reads just the rows of
/// the page.
fn page_of(
    columns: &str,
    order: &str,
    filter: &Filter,
    terms: WhereTerms,
    limit: u32,
) -> (String, Vec<Value>) {
    let index = index_clause(filter);
    terms.into_statement(|where_clause| {
        format!(
            "SELECT {columns} FROM tasks WHERE seq IN (SELECT seq FROM tasks {index} {where_clause} \
             ORDER BY seq {order} LIMIT {limit}) ORDER BY seq {order}"
        )
    })
}

pub(crate) fn count(filter: &Filter, after: i64) -> (String, Vec<Value>) {
    let index = index_clause(filter);
    submitted_after(filter, after)
        .into_statement(|where_clause| format!("SELECT count(*) FROM tasks {index} {where_clause}"))
}

fn submitted_after(filter: &Filter, after: i64) -> WhereTerms {
    let mut terms = WhereTerms::of(filter);
    if after > FIRST {
        terms.add("seq > ?", [after]);
    }
    terms
}

fn index_clause(filter: &Filter) -> &'static str {
    if filter.is_live_only() {
        // There are always few live tasks.
        match filter.location {
            Some(TaskLocation::Local) => "INDEXED BY tasks_local_state",
            Some(TaskLocation::Cloud) => "INDEXED BY tasks_remote_state",
            None => "INDEXED BY tasks_state",
        }
    } else if filter.working_dir.is_some() {
        "INDEXED BY tasks_dir"
    } else if !filter.labels.is_empty() {
        // A label is more selective than a state or a time.
        "NOT INDEXED"
    } else if !filter.states.is_empty() {
        "INDEXED BY tasks_state"
    } else if filter.since_ms.is_some() {
        "INDEXED BY tasks_created"
    } else {
        ""
    }
}

const NO_VALUES: [Value; 0] = [];

#[derive(Debug, Default)]
pub(crate) struct WhereTerms {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl WhereTerms {
    pub(crate) fn of(filter: &Filter) -> WhereTerms {
        let mut terms = WhereTerms::default();
        if let Some(dir) = &filter.working_dir {
            let DirectoryRange { dir, inside, until } = DirectoryRange::new(dir);
            terms.add("working_dir >= ? AND working_dir < ?", [dir.clone(), until]);
            terms.add("(working_dir = ? OR working_dir >= ?)", [dir, inside]);
        }
        if !filter.states.is_empty() {
            let marks = vec!["?"; filter.states.len()].join(", ");
            let names = filter.states.iter().map(|state| state.name().to_owned());
            terms.add(&format!("state IN ({marks})"), names);
        }
        for (key, value) in &filter.labels {
            let term = "seq IN (SELECT task FROM labels WHERE key = ? AND value = ?)";
            terms.add(term, [key.clone(), value.clone()]);
        }
        if let Some(since_ms) = filter.since_ms {
            terms.add("created_at_ms >= ?", [since_ms]);
        }
        match filter.location {
            Some(TaskLocation::Local) => terms.add("provider IS NULL", NO_VALUES),
            Some(TaskLocation::Cloud) => terms.add("provider IS NOT NULL", NO_VALUES),
            None => {}
        }
        if let Some(environment) = &filter.environment {
            terms.add("environment = ?", [environment.clone()]);
        }
        if filter.is_unread {
            terms.add("read_at_ms IS NULL", NO_VALUES);
        }
        terms
    }

    pub(crate) fn add<V: Into<Value>>(&mut self, term: &str, values: impl IntoIterator<Item = V>) {
        self.sql.push(term.to_owned());
        self.values.extend(values.into_iter().map(V::into));
    }

    pub(crate) fn into_statement(self, sql: impl FnOnce(&str) -> String) -> (String, Vec<Value>) {
        let keyword = if self.sql.is_empty() { "" } else { "WHERE " };
        (sql(&format!("{keyword}{}", self.sql.join(" AND "))), self.values)
    }
}

/// The range of paths that are a directory or below it: one index range, from which siblings with the same
/// prefix (`/a-b` beside `/a`) are excluded.
#[derive(Debug)]
pub(crate) struct DirectoryRange {
    pub(crate) dir: String,
    pub(crate) inside: String,
    pub(crate) until: String,
}

impl DirectoryRange {
    pub(crate) fn new(dir: &str) -> DirectoryRange {
        let dir = dir.trim_end_matches('/');
        // `0` is the character after `/`. Every path is below the root.
        let (inside, until) = (format!("{dir}/"), format!("{dir}0"));
        let dir = if dir.is_empty() { "/" } else { dir }.to_owned();
        DirectoryRange { dir, inside, until }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndedPage {
    pub tasks: Vec<Task>,
    pub total: u64,
    pub next: Option<i64>,
}

impl Registry {
    /// Lists matching tasks that ended at or after `since_ms`; with `before`, the page after that one.
    pub fn list_ended(
        &self,
        filter: &Filter,
        since_ms: i64,
        limit: u32,
        before: Option<i64>,
    ) -> Result<EndedPage> {
        if filter.is_live_only() {
            return Ok(EndedPage { tasks: Vec::new(), total: 0, next: None });
        }
        let (tasks, total) = self.read(|db| {
            if !filter.labels.is_empty() {
                return labelled_page(db, filter, since_ms, limit.saturating_add(1), before);
            }
            let (sql, values) = count_ended(filter, since_ms);
            let total = db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
            let (sql, values) = select_ended(filter, since_ms, limit.saturating_add(1), before);
            Ok((query_all(db, &sql, params_from_iter(values), Task::from_row)?, total))
        })?;
        let (tasks, has_more) = truncate_page(tasks, limit);
        let next = tasks.last().filter(|_| has_more).and_then(|last| Some(last.ended.as_ref()?.order));
        Ok(EndedPage { tasks, total, next })
    }
}

/// A label is looked up row by row, and rows are wide. So read the matching rows once, for both the page and
/// the total.
fn labelled_page(
    db: &Connection,
    filter: &Filter,
    since_ms: i64,
    fetch_limit: u32,
    before: Option<i64>,
) -> rusqlite::Result<(Vec<Task>, u64)> {
    let (sql, values) = select_orders(filter, since_ms);
    let mut found: Vec<(i64, i64)> =
        query_all(db, &sql, params_from_iter(values), |row| Ok((row.get("ended_order")?, row.get("seq")?)))?;
    let total = found.len() as u64;
    found.retain(|(order, _)| before.is_none_or(|before| *order < before));
    found.sort_unstable_by(|left, right| right.cmp(left));
    let page = found.into_iter().take(usize::try_from(fetch_limit).unwrap_or(usize::MAX));
    Ok((page.map(|(_, seq)| row::task_at(db, seq)).collect::<rusqlite::Result<_>>()?, total))
}

pub(crate) fn select_orders(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    ended_statement(ended_terms(filter, since_ms), filter, "ended_order, seq", "")
}

pub(crate) fn select_ended(
    filter: &Filter,
    since_ms: i64,
    limit: u32,
    before: Option<i64>,
) -> (String, Vec<Value>) {
    let mut terms = ended_terms(filter, since_ms);
    if let Some(before) = before {
        terms.add("ended_order < ?", [before]);
    }
    ended_statement(terms, filter, "*", &format!("ORDER BY ended_order DESC LIMIT {limit}"))
}

pub(crate) fn count_ended(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    ended_statement(ended_terms(filter, since_ms), filter, "count(*)", "")
}

fn ended_terms(filter: &Filter, since_ms: i64) -> WhereTerms {
    let mut terms = WhereTerms::of(filter);
    terms.add("ended_order IS NOT NULL AND ended_at_ms >= ?", [since_ms]);
    terms
}

fn ended_statement(terms: WhereTerms, filter: &Filter, columns: &str, order: &str) -> (String, Vec<Value>) {
    // A directory or a label is more selective than a time.
    let index = if filter.working_dir.is_some() {
        "INDEXED BY tasks_dir"
    } else if !filter.labels.is_empty() {
        "NOT INDEXED"
    } else if filter.is_unread {
        "INDEXED BY tasks_unread"
    } else {
        "INDEXED BY tasks_ended"
    };
    terms.into_statement(|where_clause| format!("SELECT {columns} FROM tasks {index} {where_clause} {order}"))
}
