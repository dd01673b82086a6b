//! Finds tasks by the words of their title, text and final message, and sums up what they used.
//!
//! The words are stored by the first query after a task was submitted or has ended, so that neither costs
//! more: the caller first stores what [`Registry::not_in_history`] returns. What is stored can be read from
//! the files of the tasks again, so it is not synced.

use delegator_domain::task::{TaskId, Verification};
use rusqlite::{Connection, named_params, params_from_iter};

use super::list::WhereTerms;
use super::usage::{Cost, FROM_TASKS, SUMS};
use crate::columns::record;
use crate::error::Result;
use crate::registry::{Registry, query_all};
use crate::task::Task;

/// What is stored about a task, from its row and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedTask {
    pub id: TaskId,
    pub has_ended: bool,
    /// Unless its row has it: a program that stored no verification may have ended the task.
    pub verification: Option<Verification>,
    pub repository: String,
    pub title: String,
    pub text: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// The beginnings of words that a task has, in any of its texts.
    pub words: Option<String>,
    pub agent: Option<String>,
    /// Submitted at or after this time.
    pub since_ms: Option<i64>,
    pub outcome: Option<HistoryOutcome>,
    /// The path of a repository, or its last part.
    pub repository: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryOutcome {
    Verified,
    /// Failed, timed out, or its verify command failed.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGroup {
    Agent,
    Repository,
    /// The day on which a task ended, in UTC.
    Day,
}

record! {
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct GroupUsage {
        pub name: String,
        pub cost: Cost = Cost::from_row,
        pub without_cost: u64,
        /// Tasks with a verify command.
        pub with_verify: u64,
        pub verified: u64,
    }
}

impl Registry {
    /// Tasks of which not everything is stored, the newest first.
    pub fn not_in_history(&self, limit: u32) -> Result<Vec<Task>> {
        self.read(|db| query_all(db, NOT_IN_HISTORY, [limit], Task::from_row))
    }

    /// Stores what is known about tasks, in place of what was stored before.
    pub fn store_history(&mut self, entries: &[IndexedTask]) -> Result<()> {
        self.write_unsynced(|db| {
            for entry in entries {
                let sql = "INSERT OR REPLACE INTO history (task, has_ended, repository) \
                           SELECT seq, :has_ended, :repository FROM tasks WHERE id = :id";
                let stored = db.prepare_cached(sql)?.execute(named_params! {
                    ":id": entry.id.as_str(),
                    ":has_ended": entry.has_ended,
                    ":repository": entry.repository,
                })?;
                // The task may have been pruned meanwhile.
                if stored == 1 {
                    let sql =
                        "INSERT OR REPLACE INTO history_text (rowid, title, task, message) VALUES (?1, ?2, ?3, ?4)";
                    let values = (db.last_insert_rowid(), &entry.title, &entry.text, &entry.message);
                    db.prepare_cached(sql)?.execute(values)?;
                    let sql = "UPDATE tasks SET verification = ?2 WHERE id = ?1 AND verification IS NULL";
                    let outcome = entry.verification.map(Verification::name);
                    db.prepare_cached(sql)?.execute((entry.id.as_str(), outcome))?;
                }
            }
            Ok(())
        })
    }

    /// The newest matching tasks.
    pub fn history(&self, query: &HistoryQuery, limit: u32) -> Result<Vec<Task>> {
        let Some(terms) = terms_of(query) else { return Ok(Vec::new()) };
        let (sql, values) = terms.into_statement(|where_clause| {
            format!(
                "SELECT tasks.* FROM history JOIN tasks ON tasks.seq = history.task \
                 {where_clause} ORDER BY history.task DESC LIMIT {limit}"
            )
        });
        self.read(|db| query_all(db, &sql, params_from_iter(values), Task::from_row))
    }

    /// The usage of the tasks that ended at or after a time, by group, and of all together.
    pub fn usage_by(
        &self,
        group: UsageGroup,
        since_ms: i64,
        limit: u32,
    ) -> Result<(Vec<GroupUsage>, GroupUsage)> {
        let (name, order) = match group {
            UsageGroup::Agent => ("agent", "tasks DESC, name"),
            UsageGroup::Repository => ("coalesce(history.repository, working_dir)", "tasks DESC, name"),
            UsageGroup::Day => ("date(ended_at_ms / 1000, 'unixepoch')", "name DESC"),
        };
        let select = |name: &str| {
            format!(
                "SELECT {SUMS}, {name} AS name, count(*) - count(cost_microdollars) AS without_cost, \
                 count(verification) AS with_verify, \
                 coalesce(sum(verification = '{}'), 0) AS verified \
                 {FROM_TASKS} LEFT JOIN history ON history.task = tasks.seq \
                 WHERE ended_order IS NOT NULL AND ended_at_ms >= ?1",
                Verification::Verified.name()
            )
        };
        let by_group = format!("{} GROUP BY name ORDER BY {order} LIMIT {limit}", select(name));
        self.read(|db| {
            let total = db.prepare_cached(&select("''"))?.query_row([since_ms], GroupUsage::from_row)?;
            Ok((query_all(db, &by_group, [since_ms], GroupUsage::from_row)?, total))
        })
    }
}

/// Deletes the words of a task. The row about it goes with that of the task.
pub(crate) fn delete_words(db: &Connection, seq: i64) -> rusqlite::Result<()> {
    let is_stored = "SELECT EXISTS (SELECT 1 FROM history WHERE task = ?1)";
    if db.prepare_cached(is_stored)?.query_row([seq], |row| row.get(0))? {
        db.prepare_cached("DELETE FROM history_text WHERE rowid = ?1")?.execute([seq])?;
    }
    Ok(())
}

/// The status of a verification that failed.
const FAILED: &str = "verify_failed";

/// Live tasks are few, so they are found by their state, and the ended ones by an index that has only them.
pub(crate) const NOT_IN_HISTORY: &str = "SELECT * FROM tasks WHERE seq IN ( \
     SELECT seq FROM tasks INDEXED BY tasks_state WHERE state IN ('queued', 'starting', 'working') \
     AND NOT EXISTS (SELECT 1 FROM history WHERE task = seq) \
     UNION ALL SELECT seq FROM tasks INDEXED BY tasks_ended WHERE ended_order IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM history WHERE task = seq AND has_ended)) ORDER BY seq DESC LIMIT ?1";

/// `None` if no task can match.
fn terms_of(query: &HistoryQuery) -> Option<WhereTerms> {
    let mut terms = WhereTerms::default();
    if let Some(words) = &query.words {
        let matching = "history.task IN (SELECT rowid FROM history_text WHERE history_text MATCH ?)";
        terms.add(matching, [match_expression(words)?]);
    }
    if let Some(agent) = &query.agent {
        terms.add("agent = ?", [agent.clone()]);
    }
    if let Some(since_ms) = query.since_ms {
        terms.add("created_at_ms >= ?", [since_ms]);
    }
    match query.outcome {
        Some(HistoryOutcome::Verified) => {
            terms.add("verification = ?", [Verification::Verified.name().to_owned()]);
        }
        Some(HistoryOutcome::Failed) => {
            let failed = Verification::ALL.into_iter().filter(|outcome| outcome.status() == FAILED);
            let names: Vec<String> = failed.map(|outcome| outcome.name().to_owned()).collect();
            let marks = vec!["?"; names.len()].join(", ");
            terms.add(&format!("(state IN ('failed', 'timeout') OR verification IN ({marks}))"), names);
        }
        None => {}
    }
    if let Some(repository) = &query.repository {
        let name = format!("/{}", repository.trim_matches('/'));
        let is_named = "(repository = ? OR substr(repository, -length(?)) = ?)";
        terms.add(is_named, [repository.clone(), name.clone(), name]);
    }
    Some(terms)
}

/// The words as strings of the full-text query language, in which nothing is an operator. Each may be the
/// beginning of a word. `None` if there is no word.
fn match_expression(words: &str) -> Option<String> {
    let has_letters = |word: &&str| word.chars().any(char::is_alphanumeric);
    let quote = |word: &str| format!("\"{}\"*", word.replace('"', "\"\"").replace('\0', " "));
    let words: Vec<String> = words.split_whitespace().filter(has_letters).map(quote).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_query_is_an_operator() {
        assert_eq!(match_expression("fix leap.sh"), Some("\"fix\"* \"leap.sh\"*".to_owned()));
        assert_eq!(match_expression("a OR \"b"), Some("\"a\"* \"OR\"* \"\"\"b\"*".to_owned()));
        assert_eq!(match_expression(" -- * \" "), None);
    }
}
