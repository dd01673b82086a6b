//! Lists ended tasks, the last to end first, in pages, with their total number.
//!
//! The statement names the index for each filter, as in `list`.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::list::{Filter, WhereTerms, truncate_page};
use crate::error::Result;
use crate::registry::{Registry, query_all};
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
    /// Lists the tasks that match the filter and ended at or after `since_ms`; with `before`, the page after
    /// that one.
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
            let (sql, values) = count(filter, since_ms);
            let total = db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
            let (sql, values) = select(filter, since_ms, limit.saturating_add(1), before);
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
    statement(terms(filter, since_ms), filter, "ended_order, seq", "")
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
    statement(terms, filter, "*", &format!("ORDER BY ended_order DESC LIMIT {limit}"))
}

pub(crate) fn count(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    statement(terms(filter, since_ms), filter, "count(*)", "")
}

fn terms(filter: &Filter, since_ms: i64) -> WhereTerms {
    let mut terms = WhereTerms::of(filter);
    terms.add("ended_order IS NOT NULL AND ended_at_ms >= ?", [since_ms]);
    terms
}

fn statement(terms: WhereTerms, filter: &Filter, columns: &str, order: &str) -> (String, Vec<Value>) {
    // A directory or a label is more selective than a time.
    let index = if filter.working_dir.is_some() {
        "INDEXED BY tasks_dir"
    } else if !filter.labels.is_empty() {
        "NOT INDEXED"
    } else {
        "INDEXED BY tasks_ended"
    };
    terms.into_statement(|where_clause| format!("SELECT {columns} FROM tasks {index} {where_clause} {order}"))
}
