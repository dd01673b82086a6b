//! Groups: several attempts at one task, compared with each other.

use delegator_domain::task::{
    GroupId, RankedAttempt, Recommendation, TaskEnd, TaskId, TestCounts, Verification, recommend,
};
use delegator_git::parse_unified_diff;
use delegator_registry::Task;
use delegator_supervisor::agent::Variables;
use delegator_transcript::TestReport;

use crate::Results;
use crate::error::{EngineError, Result};
use crate::supervise::task_report::Record;
use crate::upkeep::rescue::rescue_in;
use crate::worktrees::recorded::worktree_changes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Task(TaskId),
    Group(GroupId),
}

#[derive(Debug)]
pub struct ComparedGroup {
    pub attempts: Vec<ComparedAttempt>,
    pub recommendation: Recommendation,
}

#[derive(Debug)]
pub struct ComparedAttempt {
    pub number: u8,
    pub task: Task,
    pub record: Option<Record>,
    pub verification: Option<Verification>,
    pub tests: Option<TestCounts>,
    /// What its diff changes; `None` if that is unknown.
    pub changes: Option<DiffSize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffSize {
    pub files: usize,
    pub lines_added: u64,
    pub lines_deleted: u64,
}

impl DiffSize {
    pub fn of(diff: &[u8]) -> DiffSize {
        parse_unified_diff(diff).iter().fold(DiffSize::default(), |sum, file| {
            let (added, deleted) = file.line_counts();
            DiffSize {
                files: sum.files + 1,
                lines_added: sum.lines_added + added,
                lines_deleted: sum.lines_deleted + deleted,
            }
        })
    }
}

impl ComparedAttempt {
    fn facts(&self) -> RankedAttempt {
        RankedAttempt {
            attempt: self.number,
            is_completed: self.task.ended.as_ref().is_some_and(|ended| ended.end == TaskEnd::Completed),
            verification: self.verification,
            tests: self.tests.unwrap_or_default(),
            changed_lines: self.changes.map(|size| size.lines_added + size.lines_deleted),
        }
    }
}

impl Results<'_> {
    /// By an id or a unique beginning of one. That of a group begins with `G-local-`.
    pub fn resolve_target(&self, given: &str) -> Result<Target> {
        let Some(beginning) = GroupId::beginning(given) else {
            return self.resolve(given).map(Target::Task);
        };
        let found = self.engine.query(|registry| registry.groups_beginning_with(&beginning))?;
        let unknown = EngineError::UnknownGroup { given: given.to_owned() };
        only_match(found, given, unknown).map(Target::Group)
    }

    /// The attempts of a group in order, after an upkeep pass; at least one.
    pub fn group(&self, id: &GroupId) -> Result<Vec<Task>> {
        let unknown = || EngineError::UnknownGroup { given: id.to_string() };
        let mut registry = self.engine.find_registry()?.ok_or_else(unknown)?;
        rescue_in(self.engine, &mut registry)?;
        let tasks = registry.group(id)?;
        if tasks.is_empty() { Err(unknown()) } else { Ok(tasks) }
    }

    pub fn recorded_group(&self, id: &GroupId) -> Result<Vec<Task>> {
        self.engine.query(|registry| registry.group(id))
    }

    pub fn compare_group(&self, id: &GroupId, environment: &Variables) -> Result<ComparedGroup> {
        let tasks = self.group(id)?;
        if let Some(task) = tasks.iter().find(|task| !task.state.is_terminal()) {
            return Err(EngineError::NotEnded { task: task.id.clone(), state: task.state });
        }
        let attempts = tasks
            .into_iter()
            .map(|task| self.compared_attempt(task, environment))
            .collect::<Result<Vec<_>, _>>()?;
        let facts: Vec<RankedAttempt> = attempts.iter().map(ComparedAttempt::facts).collect();
        Ok(ComparedGroup { attempts, recommendation: recommend(&facts) })
    }

    pub fn verification(&self, task: &Task) -> Result<Option<Verification>> {
        Ok(verification(task, self.files(&task.id)?.record.as_ref()))
    }

    fn compared_attempt(&self, task: Task, environment: &Variables) -> Result<ComparedAttempt> {
        let record = self.files(&task.id)?.record;
        let check = record.as_ref().and_then(|record| record.check.as_ref());
        let of_agent = record.as_ref().and_then(|record| record.report.tests.as_ref());
        let tests = check.and_then(|check| check.tests.as_ref()).or(of_agent).and_then(counted_tests);
        // A worktree that cannot be read must not hide the other attempts.
        let changes = worktree_changes(&*self.engine.registry_of(&task.id)?, &task.id, environment).ok();
        Ok(ComparedAttempt {
            number: task.group.as_ref().map_or(1, |member| member.attempt),
            verification: verification(&task, record.as_ref()),
            tests,
            changes: changes
                .filter(|changes| changes.too_large.is_none())
                .map(|changes| DiffSize::of(&changes.diff)),
            task,
            record,
        })
    }
}

/// What an id or the beginning of one names.
pub(super) fn only_match<T: ToString>(mut found: Vec<T>, given: &str, unknown: EngineError) -> Result<T> {
    match found.len() {
        0 => Err(unknown),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let candidates = found.iter().map(T::to_string).collect();
            Err(EngineError::AmbiguousTask { given: given.to_owned(), candidates })
        }
    }
}

pub(super) fn verification(task: &Task, record: Option<&Record>) -> Option<Verification> {
    let has_verify = task.input.get("verify").is_some_and(|verify| !verify.is_null());
    let not_run =
        || task.ended.as_ref().filter(|_| has_verify).map(|ended| Verification::not_run(&ended.end));
    record.and_then(|record| record.check.as_ref()).map(|check| check.outcome).or_else(not_run)
}

/// `None` if no test was counted.
fn counted_tests(report: &TestReport) -> Option<TestCounts> {
    let counts = TestCounts { passed: report.passed, failed: report.failed };
    (counts != TestCounts::default() || report.skipped > 0).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_diff_is_counted_over_all_files() {
        let diff = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n\
                     diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+b\n";
        assert_eq!(DiffSize::of(diff), DiffSize { files: 2, lines_added: 3, lines_deleted: 1 });
        assert_eq!(DiffSize::of(b""), DiffSize::default());
    }
}
