//! What ended lately, the last to end first, page by page, and how much there is in all.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

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
        let (rows, row_values) = select(filter, since_ms, limit.saturating_add(1), before);
        let (count, count_values) = count(filter, since_ms);
        let (mut tasks, total) = self.read(|db| {
            let total = db.query_row(&count, params_from_iter(count_values), |row| row.get::<_, u32>(0))?;
            Ok((all(db, &rows, params_from_iter(row_values), row::task_from)?, total))
        })?;
        let shown = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = tasks.len() > shown;
        tasks.truncate(shown);
        let next = tasks.last().filter(|_| more).and_then(|last| Some(last.ended.as_ref()?.order));
        Ok(EndedPage { tasks, total: total.into(), next })
    }
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
