//! Finds the program of an agent and its version.
//!
//! Running a program to get its version costs more than the rest of a submission, so the version is cached in
//! `agents.json` in the state directory until size or modification time of the program change. A cache that cannot be
//! read or written never fails a submission.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use delegator_registry::{OpenOptions, StateDir};
use delegator_supervisor::agent::{Variables, allowed_variables, locate, probe_version};
use serde::{Deserialize, Serialize};

use super::launch::AgentProgram;
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
    /// The program with this name or path, and its version if it reports one.
    pub fn agent(
        &self,
        given: &OsStr,
        path: Option<&OsStr>,
        workdir: &Path,
        environment: &Variables,
    ) -> Result<AgentProgram, EngineError> {
        let located = locate(given, path, Some(workdir))?;
        let version = self.version_of(&located.program, environment);
        Ok(AgentProgram { program: located.program, leading_args: Vec::new(), version })
    }

    fn version_of(&self, program: &Path, environment: &Variables) -> Option<(u32, u32, u32)> {
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
        let version = probe_version(program, &allowed_variables(variables, &[]), PROBE_TIMEOUT).ok()?;
        let version = (version.major, version.minor, version.patch);
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
