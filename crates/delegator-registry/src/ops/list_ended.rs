//! Lists ended tasks, the last to end first, in pages, with their total number.
//!
//! The statement names the index for each filter, as in `list`.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::list::{Filter, WhereTerms};
use super::queries::query_all;
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::row;
use crate::task::Task;

#[derive(Debug, Clone, PartialEq)]
pub struct EndedPage {
    pub tasks: Vec<Task>,
    /// The number of matching tasks on all pages.
    pub total: u64,
    /// The `before` of the next page, if there is one.
    pub next: Option<i64>,
}

impl Registry {
    /// Lists the tasks that match the filter and ended at or after `since_ms`; with `before`, the page after that one.
    pub fn list_ended(
        &self,
        filter: &Filter,
        since_ms: i64,
        limit: u32,
        before: Option<i64>,
    ) -> Result<EndedPage, RegistryError> {
        if filter.is_live_only() {
            return Ok(EndedPage { tasks: Vec::new(), total: 0, next: None });
        }
        let fetch_limit = limit.saturating_add(1);
        let (mut tasks, total) = self.read(|db| match filter.labels.is_empty() {
            true => page(db, filter, since_ms, fetch_limit, before),
            false => labelled_page(db, filter, since_ms, fetch_limit, before),
        })?;
        let page_size = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = tasks.len() > page_size;
        tasks.truncate(page_size);
        let next = tasks.last().filter(|_| has_more).and_then(|last| Some(last.ended.as_ref()?.order));
        Ok(EndedPage { tasks, total, next })
    }
}

fn page(
    db: &Connection,
    filter: &Filter,
    since_ms: i64,
    fetch_limit: u32,
    before: Option<i64>,
) -> rusqlite::Result<(Vec<Task>, u64)> {
    let (count, values) = count(filter, since_ms);
    let total = db.prepare_cached(&count)?.query_row(params_from_iter(values), |row| row.get::<_, u32>(0))?;
    let (rows, values) = select(filter, since_ms, fetch_limit, before);
    Ok((query_all(db, &rows, params_from_iter(values), row::task_from)?, total.into()))
}

/// A label is looked up row by row, and rows are wide. So read the matching rows once, for both the page and the total.
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
    let (where_clause, values) = terms(filter, since_ms).into_where_clause();
    (format!("SELECT ended_order, seq FROM tasks {} {where_clause}", index_clause(filter)), values)
}

pub(crate) fn select(
    filter: &Filter,
    since_ms: i64,
    limit: u32,
    before: Option<i64>,
) -> (String, Vec<Value>) {
    let mut terms = terms(filter, since_ms);
    if let Some(before) = before {
        terms.add("ended_order < ?", [before]);
    }
    let (where_clause, mut values) = terms.into_where_clause();
    values.push(Value::Integer(limit.into()));
    let index = index_clause(filter);
    (format!("SELECT * FROM tasks {index} {where_clause} ORDER BY ended_order DESC LIMIT ?"), values)
}

pub(crate) fn count(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    let (where_clause, values) = terms(filter, since_ms).into_where_clause();
    (format!("SELECT count(*) FROM tasks {} {where_clause}", index_clause(filter)), values)
}

fn terms(filter: &Filter, since_ms: i64) -> WhereTerms {
    let mut terms = WhereTerms::of(filter);
    terms.add("ended_order IS NOT NULL AND ended_at_ms >= ?", [since_ms]);
    terms
}

/// A directory or a label is more selective than a time.
fn index_clause(filter: &Filter) -> &'static str {
    if filter.working_dir.is_some() {
        "INDEXED BY tasks_dir"
    } else if !filter.labels.is_empty() {
        "NOT INDEXED"
    } else {
        "INDEXED BY tasks_ended"
    }
}
