//! Past tasks by their words, and what all tasks used. What their rows do not have is read from their files
//! first, once for each task.

use std::collections::HashMap;
use std::path::Path;

use delegator_domain::task::WorkTree;
use delegator_registry::{GroupUsage, HistoryQuery, IndexedTask, Registry, Task, TaskFile, UsageGroup};

use super::groups::verification;
use crate::Results;
use crate::error::Result;
use crate::shared::connection_pool::PooledConnection;
use crate::shared::work_tree::find_work_tree;
use crate::supervise::task_report::Record;
use crate::upkeep::rescue::rescue_unless_recent;

/// Tasks that are stored in one transaction.
const BATCH: u32 = 200;
/// Characters of a final message whose words are stored. Almost none is longer.
const MAX_MESSAGE_CHARS: usize = 100_000;
/// Groups of usage that are listed.
const MAX_GROUPS: u32 = 366;

impl Results<'_> {
    /// The newest matching tasks. A repository may be given by a path in it.
    pub fn history(&self, query: &HistoryQuery, limit: u32) -> Result<Vec<Task>> {
        let Some(registry) = self.registry_with_history()? else { return Ok(Vec::new()) };
        let repository = query.repository.as_ref().map(|given| match Path::new(given).canonicalize() {
            Ok(path) if path.is_dir() => repository_of(&path),
            _ => given.clone(),
        });
        Ok(registry.history(&HistoryQuery { repository, ..query.clone() }, limit)?)
    }

    /// The usage of the tasks that ended since then, by group, and of all together.
    pub fn usage_by(&self, group: UsageGroup, since_ms: i64) -> Result<(Vec<GroupUsage>, GroupUsage)> {
        match self.registry_with_history()? {
            Some(registry) => Ok(registry.usage_by(group, since_ms, MAX_GROUPS)?),
            None => Ok(Default::default()),
        }
    }

    /// The registry, after the tasks that it does not know completely are read.
    fn registry_with_history(&self) -> Result<Option<PooledConnection>> {
        let Some(mut registry) = self.engine.find_registry()? else { return Ok(None) };
        rescue_unless_recent(self.engine, &mut registry)?;
        let mut repositories = HashMap::new();
        loop {
            let tasks = registry.not_in_history(BATCH)?;
            if tasks.is_empty() {
                return Ok(Some(registry));
            }
            let entries = tasks.iter().map(|task| read_task(&registry, task, &mut repositories));
            let entries = entries.collect::<Result<Vec<_>>>()?;
            registry.store_history(&entries)?;
        }
    }
}

fn read_task(
    registry: &Registry,
    task: &Task,
    repositories: &mut HashMap<String, String>,
) -> Result<IndexedTask> {
    let dir = registry.dir().task(&task.id);
    let text = dir.read(TaskFile::Text)?.unwrap_or_default();
    // A record that cannot be read hides only the final message.
    let record = Record::read(&dir).ok().flatten();
    let message = record.as_ref().and_then(|record| record.report.final_message.as_ref());
    let message = message.map(|message| message.text.chars().take(MAX_MESSAGE_CHARS).collect());
    let repository = repositories.entry(task.working_dir.clone());
    Ok(IndexedTask {
        id: task.id.clone(),
        has_ended: task.state.is_terminal(),
        verification: verification(task, record.as_ref()),
        repository: repository.or_insert_with(|| repository_of(Path::new(&task.working_dir))).clone(),
        title: task.title.clone(),
        text: String::from_utf8_lossy(&text).into_owned(),
        message: message.unwrap_or_default(),
    })
}

/// The top of the work tree; without one, the directory itself.
fn repository_of(directory: &Path) -> String {
    let tree = find_work_tree(directory);
    tree.as_ref().map_or(directory, WorkTree::root).display().to_string()
}
