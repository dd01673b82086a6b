//! Refuses to resume a thread that does not exist, before the agent's program is run and before a task is
//! stored.
//!
//! A thread exists if the agent's own store holds it, or if the agent of one of our tasks announced it: an
//! agent behind a wrapper (a container, another machine) keeps its threads where we cannot look. An agent
//! that has lost an announced thread fails the task with `thread_not_found`.

use delegator_domain::agents::ConfiguredAgent;
use delegator_domain::similar_names;
use delegator_supervisor::agent::{Capabilities, ThreadLookup, Variables, allowed_variables, find_thread};

use crate::Engine;
use crate::error::{EngineError, Result};

/// How many of our threads are compared with an unknown id.
const MAX_COMPARED: u32 = 10_000;

/// An error if the agent certainly cannot resume the thread. `environment` is the submitter's.
pub fn check_thread(
    engine: &Engine,
    agent: &ConfiguredAgent,
    environment: &Variables,
    thread_id: &str,
) -> Result<()> {
    if !Capabilities::of(agent.kind()).threads {
        return Err(EngineError::NoThreads { agent: agent.name.clone() });
    }
    let variables = allowed_variables(agent.kind(), environment, &agent.variables);
    let given = || thread_id.to_owned();
    match find_thread(agent.protocol, &variables, thread_id) {
        ThreadLookup::Stored | ThreadLookup::NotSearchable => Ok(()),
        ThreadLookup::Archived { unarchive } => {
            Err(EngineError::ArchivedThread { given: given(), unarchive })
        }
        ThreadLookup::Unknown { nearest } => {
            let Some(registry) = engine.find_registry()? else {
                return Err(EngineError::UnknownThread { given: given(), nearest });
            };
            if registry.knows_thread(thread_id)? {
                return Ok(());
            }
            let ours = registry.threads(MAX_COMPARED)?;
            let known = ours.iter().map(String::as_str).chain(nearest.as_deref());
            let nearest = similar_names::nearest(thread_id, known).map(str::to_owned);
            Err(EngineError::UnknownThread { given: given(), nearest })
        }
    }
}
