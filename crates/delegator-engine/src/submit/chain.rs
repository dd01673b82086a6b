//! Chains: the tasks that follow a submitted one.
//!
//! The followers of a submission are submissions of their own, with their own agent, mode and limits, and are checked and
//! stored together with it. They take environment and umask from the same submitter, even if another process starts them later.

use delegator_domain::task::{ChainOutcome, Follows, GroupMember, TaskId, TaskLocation};

use super::submission::Submission;
use crate::Engine;
use crate::error::EngineError;

/// A task that starts when the one it follows has ended with this outcome.
#[derive(Debug, Clone)]
pub struct Follower {
    pub on: ChainOutcome,
    pub submission: Submission,
}

/// The task whose changes a task reviews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    Task(TaskId),
    /// The task that the review follows.
    Predecessor,
}

/// One of the tasks of a submission.
#[derive(Debug)]
pub(super) struct ChainTask<'a> {
    pub(super) id: TaskId,
    pub(super) submission: &'a Submission,
    pub(super) follows: Option<Follows>,
    /// Set of an attempt, but not of the tasks that follow it.
    pub(super) group: Option<GroupMember>,
}

impl ChainTask<'_> {
    /// The task that it reviews.
    pub(super) fn reviewed(&self) -> Option<&TaskId> {
        match self.submission.reviews.as_ref()? {
            Reviewed::Task(id) => Some(id),
            Reviewed::Predecessor => self.follows.as_ref().map(|follows| &follows.task),
        }
    }
}

impl Engine {
    /// All tasks of a submission, each after the one it follows. The first has the given id, the others new ones.
    pub(super) fn chain_of<'a>(
        &self,
        submission: &'a Submission,
        (first, group): (TaskId, Option<GroupMember>),
    ) -> Result<Vec<ChainTask<'a>>, EngineError> {
        let mut chain = vec![ChainTask { id: first, submission, follows: None, group }];
        let mut next = 0;
        while let Some(ChainTask { id, submission, .. }) = chain.get(next) {
            let (predecessor, followers) = (id.clone(), &submission.followers);
            for Follower { on, submission } in followers {
                let id = TaskId::from_random(TaskLocation::Local, self.system.random_bytes()?);
                let follows = Some(Follows { task: predecessor.clone(), on: *on });
                chain.push(ChainTask { id, submission, follows, group: None });
            }
            next += 1;
        }
        Ok(chain)
    }
}
