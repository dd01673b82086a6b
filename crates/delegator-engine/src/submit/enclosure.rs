//! Decides at submission how an agent without a sandbox of its own is enclosed, and refuses the task if it
//! cannot be.

use std::path::{Path, PathBuf};

use delegator_domain::task::{EnclosureChoice, SandboxKind};
use delegator_supervisor::agent::{self, Agent, UntrustedTrees, Variables, VerifySandbox, variable};
use delegator_supervisor::enclosure::{Enclosure, Mechanism, PathRules, Unavailable, find_mechanism};

use super::launch_file::{Launch, Settings};
use super::verification::{PROBE_TIMEOUT, forbidden_path, writing_request};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::shared::work_tree::untrusted_trees;

/// The mechanism that encloses the agent; `None` if the task needs no enclosure.
pub(super) fn find_enclosure(
    agent: &Agent,
    settings: &Settings,
    environment: &Variables,
) -> Result<Option<Mechanism>> {
    let mode = settings.run.effective_mode();
    if agent.sandbox(mode) != SandboxKind::Enforced {
        return Ok(None);
    }
    let directories = [&settings.run.working_dir].into_iter().chain(&settings.run.add_dirs);
    let untrusted = untrusted_trees(directories.map(PathBuf::as_path));
    let found = find_mechanism(settings.enclosure, variable(environment, "PATH"), &untrusted);
    found.map(Some).map_err(|problem| EngineError::ModeNotEnforced {
        agent: agent.name.clone(),
        mode,
        problem,
    })
}

impl Launch {
    pub(crate) fn renew_enclosure(&mut self) -> Result<()> {
        self.enclosure = find_enclosure(&self.agent, &self.settings, &self.variables)?;
        Ok(())
    }

    /// An agent that can write there could grant itself every right.
    pub(super) fn refuse_reserved_state_dirs(&self, state_dir: &Path) -> Result<()> {
        if self.enclosure.is_none() {
            return Ok(());
        }
        let paths = self.agent.state_paths(&self.variables);
        paths.iter().try_for_each(|path| self.check_state_dir(&path.real_path(), state_dir))
    }

    /// `path` has no symbolic links.
    pub(crate) fn check_state_dir(&self, path: &Path, state_dir: &Path) -> Result<()> {
        match self.settings.reserved_overlap(path, state_dir) {
            None => Ok(()),
            Some(own) => Err(EngineError::ReservedStateDir {
                agent: self.agent.name.clone(),
                path: path.to_owned(),
                own,
            }),
        }
    }
}

/// Runs a command in an enclosure: whether the kernel lists a feature does not show that it works.
/// Returns a description of the mechanism.
pub fn probe_enclosure(
    engine: &Engine,
    choice: EnclosureChoice,
    environment: &Variables,
) -> Result<String, EnclosureProblem> {
    let mechanism = find_mechanism(choice, variable(environment, "PATH"), &UntrustedTrees::default())
        .map_err(EnclosureProblem::Unavailable)?;
    let name = format!("process-{}", std::process::id());
    let forbidden = forbidden_path(environment, &name);
    let (launcher, paths) = (engine.program.clone(), PathRules::default());
    let enclosure = Enclosure { mechanism, launcher, paths };
    let request = writing_request(&forbidden, VerifySandbox::Enclosure, name);
    agent::probe_enclosure(&enclosure, &request, environment, &forbidden, PROBE_TIMEOUT)
        .map(|()| enclosure.mechanism.describe())
        .map_err(|problem| EnclosureProblem::DoesNotWork(problem.to_string()))
}

#[derive(Debug, thiserror::Error)]
pub enum EnclosureProblem {
    #[error(transparent)]
    Unavailable(Unavailable),
    #[error("{0}")]
    DoesNotWork(String),
}
