//! Chains: tasks that follow each other.
//!
//! A follower starts after its predecessor has ended with the outcome that the follower names. A cancelled
//! task has no outcome, so the rest of its chain never starts.

use serde::{Deserialize, Serialize};

use super::end::TaskEnd;
use super::id::TaskId;
use super::verification::Verification;
use crate::named_enum::named_enum;

/// The depth of a chain: the number of tasks that start one after the other.
pub const MAX_CHAIN_DEPTH: usize = 8;
/// All tasks of a chain, including those that never start.
pub const MAX_CHAIN_TASKS: usize = 16;

named_enum! {
    /// How a task ended, as far as its followers are concerned.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChainOutcome {
        Success = "success",
        Failure = "failure",
    }
}

/// The predecessor of a task, and after which outcome of it the task starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follows {
    pub task: TaskId,
    pub on: ChainOutcome,
}

impl ChainOutcome {
    /// Success is a completed task whose work was verified if it has a verify command (`verification`).
    /// `None` if the task was cancelled.
    pub fn of(end: &TaskEnd, verification: Option<Verification>) -> Option<ChainOutcome> {
        match end {
            TaskEnd::Cancelled { .. } => None,
            TaskEnd::Completed if verification.is_none_or(|check| check == Verification::Verified) => {
                Some(ChainOutcome::Success)
            }
            TaskEnd::Completed | TaskEnd::Failed { .. } | TaskEnd::Timeout(_) => Some(ChainOutcome::Failure),
        }
    }
}

impl Follows {
    /// Why the task never starts, if its predecessor ended like this.
    pub fn obstacle(&self, end: &TaskEnd, verification: Option<Verification>) -> Option<String> {
        let outcome = ChainOutcome::of(end, verification);
        if outcome == Some(self.on) {
            return None;
        }
        let predecessor = &self.task;
        let ended = match (end, outcome) {
            (TaskEnd::Cancelled { .. }, _) => return Some(format!("{predecessor} was cancelled")),
            (TaskEnd::Completed, Some(ChainOutcome::Failure)) => "completed and was not verified",
            (TaskEnd::Completed, _) => "completed",
            (TaskEnd::Timeout(_), _) => "exceeded a time limit",
            (TaskEnd::Failed { .. }, _) => "failed",
        };
        Some(format!("{predecessor} {ended}, and this task follows its {}", self.on.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{FailureKind, LimitKind, TaskLocation};

    fn failed() -> TaskEnd {
        TaskEnd::Failed { kind: FailureKind::AgentExit, message: String::new(), retry_at_ms: None }
    }

    #[test]
    fn a_task_with_a_verify_command_succeeds_only_if_it_is_verified() {
        let completed = |verification| ChainOutcome::of(&TaskEnd::Completed, verification);
        assert_eq!(completed(None), Some(ChainOutcome::Success));
        assert_eq!(completed(Some(Verification::Verified)), Some(ChainOutcome::Success));
        for check in [Verification::Refuted, Verification::SandboxFailed, Verification::Unknown] {
            assert_eq!(completed(Some(check)), Some(ChainOutcome::Failure), "{check:?}");
        }
        assert_eq!(ChainOutcome::of(&failed(), None), Some(ChainOutcome::Failure));
        assert_eq!(ChainOutcome::of(&TaskEnd::Timeout(LimitKind::Idle), None), Some(ChainOutcome::Failure));
        assert_eq!(ChainOutcome::of(&TaskEnd::Cancelled { reason: None }, None), None);
    }

    #[test]
    fn exactly_the_followers_of_another_outcome_have_an_obstacle() {
        let task = TaskId::from_random(TaskLocation::Local, [7; 16]);
        let follows = |on| Follows { task: task.clone(), on };
        let (success, failure) = (follows(ChainOutcome::Success), follows(ChainOutcome::Failure));
        assert_eq!(success.obstacle(&TaskEnd::Completed, None), None);
        let reason = failure.obstacle(&TaskEnd::Completed, None).unwrap();
        assert_eq!(reason, format!("{task} completed, and this task follows its failure"));
        let refuted = Some(Verification::Refuted);
        assert_eq!(failure.obstacle(&TaskEnd::Completed, refuted), None);
        assert!(success.obstacle(&TaskEnd::Completed, refuted).unwrap().contains("was not verified"));
        assert!(
            success.obstacle(&failed(), None).unwrap().contains("failed, and this task follows its success")
        );
        for follower in [success, failure] {
            let reason = follower.obstacle(&TaskEnd::Cancelled { reason: None }, None);
            assert_eq!(reason, Some(format!("{task} was cancelled")));
        }
    }
}
