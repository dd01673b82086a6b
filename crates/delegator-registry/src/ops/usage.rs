//! Token usage and run times of ended tasks, by task, label and day; and typical durations.
//!
//! SQLite computes the sums from the rows that match the filter. Days are in UTC.

use delegator_domain::budget::{Amounts, BudgetScope};
use delegator_domain::task::TaskId;
use rusqlite::{Row, ToSql, params_from_iter};

use super::list::{Filter, WhereTerms};
use crate::columns::record;
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::task::Tokens;

record! {
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Cost {
        pub tasks: u64,
        /// Number of tasks whose agent reported no tokens.
        pub without_tokens: u64,
        pub ran_ms: i64,
        pub tokens: Tokens = Tokens::from_row,
        /// Millionths of a US dollar; `None` if no agent reported it.
        pub microdollars: Option<u64>,
    }
}

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TaskCost {
        pub id: TaskId,
        pub title: String,
        pub cost: Cost = Cost::from_row,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageTable {
    pub total: Cost,
    /// The last tasks to end, newest first.
    pub tasks: Vec<TaskCost>,
    /// By `key=value`; a task with several labels counts for each.
    pub labels: Vec<(String, Cost)>,
    /// By the day the task ended, newest first.
    pub days: Vec<(String, Cost)>,
}

/// Limit for labels and for days.
const MAX_GROUPS: u32 = 100;
/// Limit for ended tasks that are read to find durations.
const MAX_SCANNED: u32 = 500;

pub(crate) const SUMS: &str = "count(*) AS tasks, count(*) - count(usage.task) AS without_tokens, \
     coalesce(sum(ran_ms), 0) AS ran_ms, coalesce(sum(input_tokens), 0) AS input, \
     coalesce(sum(cached_input_tokens), 0) AS cached_input, coalesce(sum(output_tokens), 0) AS output, \
     coalesce(sum(reasoning_output_tokens), 0) AS reasoning_output, sum(cost_microdollars) AS microdollars";
pub(crate) const FROM_TASKS: &str = "FROM tasks LEFT JOIN usage ON usage.task = tasks.seq";

impl Registry {
    /// The usage of ended tasks; only of these, if there are any. Lists at most `limit` single tasks.
    pub fn usage(&self, filter: &Filter, only: &[TaskId], limit: u32) -> Result<UsageTable> {
        let mut terms = WhereTerms::of(filter);
        if !only.is_empty() {
            let marks = vec!["?"; only.len()].join(", ");
            terms.add(&format!("id IN ({marks})"), only.iter().map(TaskId::to_string));
        }
        terms.add::<i64>("ended_order IS NOT NULL", []);
        let (where_clause, values) = terms.into_statement(str::to_owned);
        let values = || params_from_iter(values.iter());
        self.read(|db| {
            let total = format!("SELECT {SUMS} {FROM_TASKS} {where_clause}");
            let tasks = format!(
                "SELECT {SUMS}, id, title {FROM_TASKS} {where_clause} GROUP BY seq ORDER BY ended_order DESC LIMIT {limit}"
            );
            let labels = format!(
                "SELECT {SUMS}, labels.key || '=' || labels.value AS name {FROM_TASKS} \
                 JOIN labels ON labels.task = tasks.seq {where_clause} \
                 GROUP BY labels.key, labels.value ORDER BY name LIMIT {MAX_GROUPS}"
            );
            let days = format!(
                "SELECT {SUMS}, date(ended_at_ms / 1000, 'unixepoch') AS name {FROM_TASKS} {where_clause} \
                 GROUP BY name ORDER BY name DESC LIMIT {MAX_GROUPS}"
            );
            Ok(UsageTable {
                total: db.prepare_cached(&total)?.query_row(values(), Cost::from_row)?,
                tasks: query_all(db, &tasks, values(), TaskCost::from_row)?,
                labels: query_all(db, &labels, values(), group_from)?,
                days: query_all(db, &days, values(), group_from)?,
            })
        })
    }

    /// What the ended tasks of a budget have used; of a day, since `day_start_ms`.
    pub fn used(&self, scope: &BudgetScope, day_start_ms: i64) -> Result<Amounts> {
        let amounts = "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(turns), 0), \
                       coalesce(sum(cost_microdollars), 0), coalesce(sum(ran_ms), 0)";
        let (condition, values): (_, Vec<&dyn ToSql>) = match scope {
            BudgetScope::Task => return Ok(Amounts::default()),
            BudgetScope::Day => ("WHERE ended_at_ms >= ?", vec![&day_start_ms]),
            BudgetScope::Label { key, value } => {
                let labels =
                    "JOIN labels ON labels.task = tasks.seq WHERE labels.key = ? AND labels.value = ?";
                (labels, vec![key, value])
            }
        };
        let sql = format!("{amounts} {FROM_TASKS} {condition} AND ended_order IS NOT NULL");
        self.read(|db| db.prepare_cached(&sql)?.query_row(params_from_iter(values), amounts_from))
    }

    /// Durations of the last completed tasks, newest first: in one directory, or in all.
    pub fn durations_ms(&self, working_dir: Option<&str>, limit: u32) -> Result<Vec<u64>> {
        self.read(|db| match working_dir {
            Some(dir) => query_all(db, DURATIONS_IN_DIR, (dir, limit), |row| row.get(0)),
            None => query_all(db, DURATIONS_ANYWHERE, (MAX_SCANNED, limit), |row| row.get(0)),
        })
    }

    /// Durations of completed tasks in the directory of this task, with its agent, mode and model, unordered.
    pub fn similar_durations_ms(&self, id: &TaskId, limit: u32) -> Result<Vec<u64>> {
        self.read(|db| query_all(db, SIMILAR_DURATIONS, (id.as_str(), MAX_SCANNED, limit), |row| row.get(0)))
    }
}

pub(crate) const DURATIONS_IN_DIR: &str = "SELECT ran_ms FROM tasks INDEXED BY tasks_dir WHERE working_dir = ?1 AND \
                                 state = 'completed' AND ran_ms IS NOT NULL ORDER BY created_at_ms DESC LIMIT ?2";
/// Reads a limited number of tasks, however many of them failed.
pub(crate) const DURATIONS_ANYWHERE: &str = "SELECT ran_ms FROM (SELECT ran_ms, state FROM tasks INDEXED BY tasks_ended WHERE ended_order IS NOT NULL \
     ORDER BY ended_order DESC LIMIT ?1) WHERE state = 'completed' AND ran_ms IS NOT NULL LIMIT ?2";

/// Reads a limited number of tasks, however many of them are different.
pub(crate) const SIMILAR_DURATIONS: &str = "SELECT ended.ran_ms FROM tasks AS own JOIN (SELECT ran_ms, agent, mode, model FROM tasks INDEXED BY tasks_dir \
     WHERE working_dir = (SELECT working_dir FROM tasks WHERE id = ?1) AND state = 'completed' AND ran_ms IS NOT NULL \
     ORDER BY created_at_ms DESC LIMIT ?2) AS ended \
     ON ended.agent = own.agent AND ended.mode = own.mode AND ended.model IS own.model WHERE own.id = ?1 LIMIT ?3";

fn amounts_from(row: &Row<'_>) -> rusqlite::Result<Amounts> {
    Ok(Amounts {
        tokens: row.get(0)?,
        turns: row.get(1)?,
        cost_microdollars: row.get(2)?,
        running_ms: row.get(3)?,
    })
}

fn group_from(row: &Row<'_>) -> rusqlite::Result<(String, Cost)> {
    Ok((row.get("name")?, Cost::from_row(row)?))
}
