//! The place of a task in a chain: the task that it follows, and those that follow it.

use delegator_domain::task::{ChainOutcome, Follows};

use crate::output::data::stored_task::state_names;
use crate::output::prelude::*;

/// The task that a task follows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FollowsData {
    pub task_id: String,
    /// The outcome of that task after which this one starts.
    #[schemars(extend("enum" = ChainOutcome::NAMES))]
    pub on: &'static str,
}

impl From<&Follows> for FollowsData {
    fn from(follows: &Follows) -> FollowsData {
        FollowsData { task_id: follows.task.to_string(), on: follows.on.name() }
    }
}

/// A task that follows another one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FollowerData {
    pub task_id: String,
    pub follows: FollowsData,
    #[schemars(extend("enum" = state_names(|_| true)))]
    pub state: &'static str,
    pub title: String,
}

pub fn followers(tasks: &[Task]) -> Vec<FollowerData> {
    let follower = |task: &Task| {
        Some(FollowerData {
            task_id: task.id.to_string(),
            follows: task.follows.as_ref()?.into(),
            state: task.state.public_name(),
            title: task.title.clone(),
        })
    };
    tasks.iter().filter_map(follower).collect()
}

/// Whether a task never started, because its predecessor ended with another outcome.
pub fn is_branch_not_taken(task: &Task) -> bool {
    task.follows.is_some() && task.state == State::Cancelled && task.cancel.is_none() && task.starts == 0
}

impl FollowsData {
    /// `T-… (on success)`.
    pub fn text(&self) -> String {
        format!("{} (on {})", self.task_id, self.on)
    }
}

pub fn append_to(document: Document, followers: &[FollowerData]) -> Document {
    if followers.is_empty() {
        return document;
    }
    let row = |follower: &FollowerData| {
        let after = format!("{} of {}", follower.follows.on, follower.follows.task_id);
        vec![follower.task_id.clone(), after, follower.state.to_owned(), follower.title.clone()]
    };
    document
        .text("Followed by:")
        .table(&["task", "after", "state", "title"], followers.iter().map(row).collect())
}
