//! What ended lately, the last to end first, page by page, and how much there is in all.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::list::{Filter, Terms};
use super::queries::all;
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::row;
use crate::task::Task;

#[derive(Debug, Clone, PartialEq)]
pub struct EndedPage {
    pub tasks: Vec<Task>,
    /// How many there are, shown or not.
    pub total: u64,
    /// Where to go on, if there is more: what ended before this.
    pub next: Option<i64>,
}

impl Registry {
    /// Those that pass the filter and ended since; from `before` on, if given.
    pub fn ended(
        &self,
        filter: &Filter,
        since_ms: i64,
        limit: u32,
        before: Option<i64>,
    ) -> Result<EndedPage, RegistryError> {
        if filter.wants_only_living() {
            return Ok(EndedPage { tasks: Vec::new(), total: 0, next: None });
        }
        let at_most = limit.saturating_add(1);
        let (mut tasks, total) = self.read(|db| match filter.labels.is_empty() {
            true => page(db, filter, since_ms, at_most, before),
            false => labelled_page(db, filter, since_ms, at_most, before),
        })?;
        let shown = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = tasks.len() > shown;
        tasks.truncate(shown);
        let next = tasks.last().filter(|_| more).and_then(|last| Some(last.ended.as_ref()?.order));
        Ok(EndedPage { tasks, total, next })
    }
}

fn page(
    db: &Connection,
    filter: &Filter,
    since_ms: i64,
    at_most: u32,
    before: Option<i64>,
) -> rusqlite::Result<(Vec<Task>, u64)> {
    let (count, values) = count(filter, since_ms);
    let total = db.prepare_cached(&count)?.query_row(params_from_iter(values), |row| row.get::<_, u32>(0))?;
    let (rows, values) = select(filter, since_ms, at_most, before);
    Ok((all(db, &rows, params_from_iter(values), row::task_from)?, total.into()))
}

/// A label leads to rows one by one, and rows are wide: they are looked at once, for both answers.
fn labelled_page(
    db: &Connection,
    filter: &Filter,
    since_ms: i64,
    at_most: u32,
    before: Option<i64>,
) -> rusqlite::Result<(Vec<Task>, u64)> {
    let (sql, values) = orders(filter, since_ms);
    let mut found: Vec<(i64, i64)> =
        all(db, &sql, params_from_iter(values), |row| Ok((row.get("ended_order")?, row.get("seq")?)))?;
    let total = found.len() as u64;
    found.retain(|(order, _)| before.is_none_or(|before| *order < before));
    found.sort_unstable_by(|one, other| other.cmp(one));
    let shown = found.into_iter().take(usize::try_from(at_most).unwrap_or(usize::MAX));
    Ok((shown.map(|(_, seq)| row::task_at(db, seq)).collect::<rusqlite::Result<_>>()?, total))
}

pub(crate) fn orders(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    let (wanted, values) = terms(filter, since_ms).wanted();
    (format!("SELECT ended_order, seq FROM tasks {} {wanted}", index(filter)), values)
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
    let (wanted, mut values) = terms.wanted();
    values.push(Value::Integer(limit.into()));
    let index = index(filter);
    (format!("SELECT * FROM tasks {index} {wanted} ORDER BY ended_order DESC LIMIT ?"), values)
}

pub(crate) fn count(filter: &Filter, since_ms: i64) -> (String, Vec<Value>) {
    let (wanted, values) = terms(filter, since_ms).wanted();
    (format!("SELECT count(*) FROM tasks {} {wanted}", index(filter)), values)
}

fn terms(filter: &Filter, since_ms: i64) -> Terms {
    let mut terms = Terms::of(filter);
    terms.add("ended_order IS NOT NULL AND ended_at_ms >= ?", [since_ms]);
    terms
}

/// A directory and a label are rarer than a day.
fn index(filter: &Filter) -> &'static str {
    if filter.working_dir.is_some() {
        "INDEXED BY tasks_dir"
    } else if !filter.labels.is_empty() {
        "NOT INDEXED"
    } else {
        "INDEXED BY tasks_ended"
    }
}
