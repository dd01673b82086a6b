//! Finds the program of a configured agent, and its version if the agent's protocol depends on it.
//!
//! Running a program costs more than the rest of a submission, so versions are cached in `agents.json` in the
//! state directory until size or modification time of their files change, and in this process, because the
//! first submission validates its agent before the state directory exists. An unusable cache never fails a
//! submission.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use delegator_domain::agents::ConfiguredAgent;
use delegator_registry::{OpenOptions, StateDir};
use delegator_supervisor::agent::health::HealthCheck;
use delegator_supervisor::agent::{Agent, Variables, allowed_variables, variable};
use serde::{Deserialize, Serialize};

use super::work_tree::untrusted_trees;
use crate::Engine;
use crate::error::{EngineError, Result};

const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// What this process has probed, by cache key.
static PROBED: Mutex<BTreeMap<String, CachedVersion>> = Mutex::new(BTreeMap::new());

/// The version of one program with its arguments, valid while its files are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    files: Vec<FileStamp>,
    version: (u32, u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    size: u64,
    modified_ns: i64,
}

/// Without its version: no program is run. `directories` are those in which the task works.
pub fn find_agent(
    configured: &ConfiguredAgent,
    directories: &[&Path],
    environment: &Variables,
) -> Result<Agent> {
    let path = variable(environment, "PATH");
    Agent::locate(configured, path, &untrusted_trees(directories.iter().copied()))
        .map_err(|problem| EngineError::Agent { name: configured.name.clone(), problem })
}

/// Whether the agent can authenticate, as far as that is known without using the network.
pub fn check_sign_in(agent: &Agent, named: &[String], environment: &Variables) -> Option<HealthCheck> {
    let given = allowed_variables(agent.kind(), environment, named);
    agent.check_sign_in(&given, environment, PROBE_TIMEOUT)
}

/// The agent with its program, and the program's version if it reports one and a run depends on it.
pub fn locate_agent(
    engine: &Engine,
    configured: &ConfiguredAgent,
    directories: &[&Path],
    environment: &Variables,
) -> Result<Agent> {
    let agent = find_agent(configured, directories, environment)?;
    let version = agent.depends_on_version().then(|| agent_version(engine, &agent, environment)).flatten();
    Ok(Agent { version, ..agent })
}

pub fn agent_version(engine: &Engine, agent: &Agent, environment: &Variables) -> Option<(u32, u32, u32)> {
    let (key, files) = (cache_key(agent), file_stamps(agent));
    if let Some(probed) = PROBED.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
        && probed.files == files
    {
        return Some(probed.version);
    }
    // A state directory of another owner is neither read nor written.
    let is_our_dir = matches!(StateDir::find(&engine.state_dir, &OpenOptions::default()), Ok(Some(_)));
    let store = is_our_dir.then(|| engine.state_dir.join("agents.json"));
    let mut known: BTreeMap<String, CachedVersion> = store
        .as_ref()
        .and_then(|store| std::fs::read(store).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    if let Some(cached) = known.get(&key).filter(|known| known.files == files) {
        return Some(cached.version);
    }
    // The probe gets no variable that an agent would not get.
    let variables = allowed_variables(agent.kind(), environment, &[]);
    let version = agent.probe_version(&variables, PROBE_TIMEOUT)?;
    let probed = CachedVersion { files, version };
    PROBED.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), probed.clone());
    known.insert(key, probed);
    // Without the cache the next submission probes again.
    let _ = store.map(|store| save_cache(&store, &known));
    Some(version)
}

/// Protocol, program and arguments, separated by NUL, which none of them contains.
fn cache_key(agent: &Agent) -> String {
    let program = agent.program.as_os_str();
    let command = [program].into_iter().chain(agent.args.iter().map(OsString::as_os_str));
    let words = command.map(|word| word.to_string_lossy());
    [agent.protocol.name().into()].into_iter().chain(words).collect::<Vec<_>>().join("\0")
}

/// The stamps of the program and of the arguments that name files by an absolute path, such as a script.
fn file_stamps(agent: &Agent) -> Vec<FileStamp> {
    let arguments = agent.args.iter().map(Path::new).filter(|path| path.is_absolute());
    let files = [agent.program.as_path()].into_iter().chain(arguments);
    let stamp = |file: Metadata| FileStamp {
        size: file.len(),
        modified_ns: file.mtime() * 1_000_000_000 + file.mtime_nsec(),
    };
    files.filter_map(|path| std::fs::metadata(path).ok().map(stamp)).collect()
}

fn save_cache(store: &Path, known: &BTreeMap<String, CachedVersion>) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(known)?;
    let temporary = store.with_extension(format!("json.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create(true).truncate(true), 0o600);
    std::io::Write::write_all(&mut options.open(&temporary)?, &bytes)?;
    std::fs::rename(temporary, store)
}

#[cfg(test)]
mod tests {
    use delegator_domain::agents::AgentProtocol;

    use super::*;

    /// An agent that is a shell script.
    fn configured(protocol: AgentProtocol, script: &str) -> ConfiguredAgent {
        ConfiguredAgent {
            name: "x".into(),
            protocol,
            program: "/bin/sh".into(),
            args: vec![script.into()],
            variables: Vec::new(),
            unsandboxed: true,
            state_dirs: Vec::new(),
            linger: Duration::ZERO,
            tool_command: Vec::new(),
        }
    }

    #[test]
    fn a_program_is_probed_once_even_before_the_state_directory_exists() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(folder.path().join("state"), "/bin/false");
        let (script, probes) = (folder.path().join("agent"), folder.path().join("probes"));
        std::fs::write(&script, format!("echo x >> {}; echo codex-cli 0.150.2", probes.display())).unwrap();
        let configured = configured(AgentProtocol::CodexExec, &script.display().to_string());
        for _ in ["validation", "submission"] {
            let agent = locate_agent(&engine, &configured, &[folder.path()], &Vec::new()).unwrap();
            assert_eq!(agent.version, Some((0, 150, 2)));
        }
        assert_eq!(std::fs::read_to_string(probes).unwrap(), "x\n");
        assert!(!folder.path().join("state").exists());
    }

    #[test]
    fn the_version_is_that_of_program_and_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(folder.path().join("state"), "/bin/false");
        engine.open_registry().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let version = |protocol, script: &str| {
            let configured = configured(protocol, script);
            locate_agent(&engine, &configured, &[folder.path()], &Vec::new()).unwrap().version
        };
        let old = script("old", "echo codex-cli 0.150.2");
        let new = script("new", "echo codex-cli 0.166.0");
        for _ in ["probed", "cached"] {
            assert_eq!(version(AgentProtocol::CodexExec, &old), Some((0, 150, 2)));
            assert_eq!(version(AgentProtocol::CodexExec, &new), Some((0, 166, 0)));
        }
        assert_eq!(
            version(AgentProtocol::Plain, &old),
            None,
            "a plain agent is not run to learn its version"
        );
        script("old", "echo codex-cli 0.151.10");
        assert_eq!(version(AgentProtocol::CodexExec, &old), Some((0, 151, 10)), "the script changed");
    }
}
