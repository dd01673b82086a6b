//! Agents in order of preference: what the supervisor needs to run another agent if the first one cannot run.

use std::ffi::OsString;

use delegator_domain::task::TaskId;
use delegator_supervisor::agent::Agent;
use delegator_supervisor::enclosure::Mechanism;
use serde::{Deserialize, Serialize};

use super::chain::ChainTask;
use super::launch::Launch;
use super::submission::Submission;
use super::verification::Verify;
use crate::Engine;
use crate::error::EngineError;

/// An agent whose program was found, and the variables that the user's configuration passes to it.
#[derive(Debug, Clone)]
pub struct AgentChoice {
    pub agent: Agent,
    pub passed_variables: Vec<String>,
}

/// An agent that did not run, although it came first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedAgent {
    pub agent: String,
    /// Redacted.
    pub reason: String,
}

/// The part of a launch file that depends on the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fallback {
    agent: Agent,
    enclosure: Option<Mechanism>,
    variables: Vec<(OsString, OsString)>,
    verify: Option<Verify>,
}

impl Submission {
    /// The same submission for each agent, the preferred one first.
    pub(super) fn per_agent(&self) -> impl Iterator<Item = Submission> + '_ {
        let choice = |choice: &AgentChoice| Submission {
            agent: choice.agent.clone(),
            passed_variables: choice.passed_variables.clone(),
            fallbacks: Vec::new(),
            ..self.clone()
        };
        std::iter::once(self.clone()).chain(self.fallbacks.iter().map(choice))
    }
}

impl Engine {
    /// The checked launch file of a task, with all of its agents.
    pub(super) fn launch_of(&self, task: &ChainTask<'_>) -> Result<Launch, EngineError> {
        let id = &task.id;
        let mut launches = Vec::new();
        for submission in task.submission.per_agent() {
            let mut launch = Engine::build_launch(&submission, id)?;
            launch.refuse_reserved_state_dirs(&self.state_dir)?;
            launch.agent.validate(&launch.request(id, &self.state_dir))?;
            launch.decide_sandbox(id, &self.state_dir)?;
            launches.push(launch);
        }
        let mut preferred = launches.remove(0);
        preferred.fallbacks = launches.into_iter().map(Fallback::of).collect();
        preferred.reviews = task.reviewed().map(TaskId::to_string);
        Ok(preferred)
    }
}

impl Fallback {
    fn of(launch: Launch) -> Fallback {
        let Launch { agent, enclosure, variables, settings, .. } = launch;
        Fallback { agent, enclosure, variables, verify: settings.verify }
    }
}

impl Launch {
    /// Whether the agent, or one that may run instead of it, can write.
    pub(crate) fn may_write(&self) -> bool {
        let mode = self.settings.mode;
        self.agent.may_write(mode) || self.fallbacks.iter().any(|fallback| fallback.agent.may_write(mode))
    }

    /// Replaces the agent by the next one; false if there is none.
    pub(crate) fn use_next_agent(&mut self) -> bool {
        if self.fallbacks.is_empty() {
            return false;
        }
        let Fallback { agent, enclosure, variables, verify } = self.fallbacks.remove(0);
        (self.agent, self.enclosure, self.variables) = (agent, enclosure, variables);
        self.settings.verify = verify;
        true
    }
}
