//! Finds the program of a configured agent, and its version if the agent's protocol depends on it.
//!
//! Running a program to get its version costs more than the rest of a submission, so the version is cached in
//! `agents.json` in the state directory until size or modification time of the program change. A cache that cannot be
//! read or written never fails a submission.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use delegator_domain::agents::ConfiguredAgent;
use delegator_registry::{OpenOptions, StateDir};
use delegator_supervisor::agent::{Agent, Variables, allowed_variables};
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::error::EngineError;

const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The version of one program file, valid while size and modification time are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    size: u64,
    modified_ns: i64,
    version: (u32, u32, u32),
}

impl Engine {
    /// The agent with its program, and the program's version if it reports one.
    pub fn locate_agent(
        &self,
        configured: &ConfiguredAgent,
        workdir: &Path,
        environment: &Variables,
    ) -> Result<Agent, EngineError> {
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let agent = Agent::locate(configured, path, Some(workdir))
            .map_err(|problem| EngineError::Agent { name: configured.name.clone(), problem })?;
        let version = if agent.has_versions() { self.version_of(&agent, environment) } else { None };
        Ok(Agent { version, ..agent })
    }

    fn version_of(&self, agent: &Agent, environment: &Variables) -> Option<(u32, u32, u32)> {
        let program = &agent.program;
        let file = std::fs::metadata(program).ok()?;
        let (size, modified_ns) = (file.len(), file.mtime() * 1_000_000_000 + file.mtime_nsec());
        // A state directory of another owner is neither read nor written.
        let is_our_dir = matches!(StateDir::find(&self.state_dir, &OpenOptions::default()), Ok(Some(_)));
        let store = is_our_dir.then(|| self.state_dir.join("agents.json"));
        let name = program.display().to_string();
        let mut known: BTreeMap<String, CachedVersion> = store
            .as_ref()
            .and_then(|store| std::fs::read(store).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        if let Some(cached) =
            known.get(&name).filter(|known| (known.size, known.modified_ns) == (size, modified_ns))
        {
            return Some(cached.version);
        }
        // The probe gets no variable that an agent would not get.
        let variables = environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let variables = allowed_variables(agent.protocol, variables, &[]);
        let version = agent.probe_version(&variables, PROBE_TIMEOUT).ok()?;
        known.insert(name, CachedVersion { size, modified_ns, version });
        // Without the cache the next submission probes again.
        let _ = store.map(|store| save_cache(&store, &known));
        Some(version)
    }
}

fn save_cache(store: &Path, known: &BTreeMap<String, CachedVersion>) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(known)?;
    let temporary = store.with_extension(format!("json.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create(true).truncate(true), 0o600);
    std::io::Write::write_all(&mut options.open(&temporary)?, &bytes)?;
    std::fs::rename(temporary, store)
}
