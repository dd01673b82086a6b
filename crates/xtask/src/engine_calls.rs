//! Calls to the engine and the registry that servers and tiers share.

#![expect(clippy::disallowed_methods, reason = "a server submits with the environment it was started with")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_domain::task::{Mode, RunSettings, State, TaskEnd, TaskId, TaskLocation};
use delegator_engine::{
    Agent, Ending, Engine, Isolation, Limits, Nesting, OverviewRequest, Settings, Submission,
};
use delegator_registry::{
    Finish, Idempotency, ImportedSession, Leftover, NewTask, OpenOptions, Registry, RegistryError, StateDir,
    Task,
};

use crate::error::LoadError;
use crate::server::ServerConfig;

/// The newest measured Codex version; the scripted agent itself is not probed.
const AGENT_VERSION: (u32, u32, u32) = (0, 166, 0);

/// The engine of one test bed.
#[derive(Debug)]
pub(crate) struct EngineClient {
    engine: Engine,
    config: ServerConfig,
}

impl EngineClient {
    pub(crate) fn new(config: ServerConfig) -> EngineClient {
        let engine = Engine::new(&config.state_dir, &config.program).with_max_concurrent(config.slots);
        EngineClient { engine, config }
    }

    /// Submits a task. Returns its id and its queue position.
    pub(crate) fn submit(
        &self,
        agent: &Path,
        text: &str,
        key: Option<&str>,
    ) -> Result<(TaskId, u64), LoadError> {
        let submitted = self.engine.submissions().submit(Submission {
            text: text.to_owned(),
            settings: self.settings(),
            agent: Agent::built_in(agent, Some(AGENT_VERSION)),
            fallbacks: Vec::new(),
            skipped: Vec::new(),
            max_mode: Mode::WorkspaceWrite,
            environment: std::env::vars_os().collect::<Vec<(OsString, OsString)>>(),
            passed_variables: Vec::new(),
            secret_names: Vec::new(),
            umask: 0o022,
            title: text.to_owned(),
            labels: Default::default(),
            input: serde_json::json!({}),
            allow_parallel_writes: true,
            nesting: Nesting { parent: None, max_depth: 0, max_children: 0 },
            isolation: Isolation::None,
            idempotency: key.map(|key| Idempotency::new(key, text)),
            reviews: None,
            report_of: None,
            followers: Vec::new(),
        })?;
        Ok((submitted.task.id, submitted.queue_position))
    }

    fn settings(&self) -> Settings {
        let (interrupt_grace_sec, terminate_grace_sec) = self.config.graces;
        let plain = Settings::plain(Mode::ReadOnly, self.config.project.clone());
        Settings {
            run: RunSettings { skip_git_repo_check: true, ..plain.run },
            limits: Limits { idle_sec: 600, hard_sec: 1200, only_output_counts: false },
            ending: Ending { interrupt_grace_sec, terminate_grace_sec },
            ..plain
        }
    }

    /// Waits for a task and returns its state.
    pub(crate) fn wait(&self, id: &TaskId, limit: Duration) -> Result<State, LoadError> {
        Ok(self.engine.waits().for_task(id, Some(Instant::now() + limit), |_| {})?.task.state)
    }

    pub(crate) fn cancel(&self, id: &TaskId, limit: Duration) -> Result<State, LoadError> {
        match self.engine.cancellations().cancel(id, None, limit) {
            Ok(cancelled) => Ok(cancelled.task.state),
            Err(delegator_engine::EngineError::AlreadyEnded { state, .. }) => Ok(state),
            Err(error) => Err(error.into()),
        }
    }

    /// A complete status query, as a server answers it. Returns the number of running and queued tasks.
    pub(crate) fn status(&self) -> Result<(u64, u64), LoadError> {
        let overview = self.engine.results().overview(&OverviewRequest {
            under: self.config.project.display().to_string(),
            ended_since_ms: crate::clock::wall_ms() - 24 * 60 * 60 * 1000,
            ended_limit: 5,
            unfinished_limit: 1000,
            ..OverviewRequest::default()
        })?;
        Ok(overview.map_or((0, 0), |overview| (overview.running.total, overview.queued.total)))
    }

    /// Reads one task, which runs the engine's upkeep as any call does.
    pub(crate) fn run_upkeep(&self, id: &TaskId) -> Result<Task, LoadError> {
        Ok(self.engine.results().task(id)?)
    }

    pub(crate) fn registry(&self) -> Result<Registry, LoadError> {
        let dir =
            StateDir::open(&self.config.state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
        Ok(Registry::open(&dir)?)
    }

    /// Number of tasks that have not ended.
    pub(crate) fn open_tasks(&self) -> Result<u64, LoadError> {
        let counts = self.engine.results().counts()?;
        Ok(counts.map_or(0, |(counts, _)| {
            counts.iter().filter(|(state, _)| !state.is_terminal()).map(|(_, count)| count).sum()
        }))
    }
}

/// Files that crashes have left behind.
pub(crate) fn leftovers(registry: &Registry) -> Result<Vec<Leftover>, LoadError> {
    Ok(registry.orphans(i64::MAX)?)
}

/// Pids of the running supervisors.
pub(crate) fn supervisors(registry: &Registry) -> Result<Vec<u32>, LoadError> {
    Ok(registry
        .active()?
        .into_iter()
        .filter_map(|active| active.supervisor)
        .map(|identity| identity.pid)
        .collect())
}

/// Fills a registry with ended tasks, one for each of these times.
pub(crate) fn import_ended_tasks(
    state_dir: &Path,
    project: &Path,
    ended_at_ms: &[i64],
    random: &mut fastrand::Rng,
) -> Result<Vec<TaskId>, LoadError> {
    let dir = StateDir::open(state_dir, &OpenOptions::default()).map_err(RegistryError::from)?;
    let mut registry = Registry::open(&dir)?;
    let mut ids = Vec::with_capacity(ended_at_ms.len());
    for (index, at_ms) in ended_at_ms.iter().enumerate() {
        let id = TaskId::from_random(TaskLocation::Local, random.u128(..).to_be_bytes());
        let past = ImportedSession {
            thread_id: format!("thread-{index}"),
            started_at_ms: at_ms - 60_000,
            ended_at_ms: *at_ms,
            imported_at_ms: *at_ms,
        };
        let summary = Some("Completed: changed 3 files, ran 7 commands".to_owned());
        let finish = Finish { summary, ran_ms: Some(60_000), ..Finish::bare(TaskEnd::Completed) };
        registry.import(&past_task(id.clone(), project), &past, &finish, &[])?;
        ids.push(id);
    }
    Ok(ids)
}

fn past_task(id: TaskId, project: &Path) -> NewTask {
    NewTask {
        mode: Mode::WorkspaceWrite,
        input: serde_json::json!({"mode": "workspace-write", "idle_timeout_sec": 300}),
        ..NewTask::reading(id, project.display().to_string(), "make the failing test of the parser pass")
    }
}

/// The registry's files, without the tasks' directories.
pub(crate) fn database_files(state_dir: &Path) -> Vec<PathBuf> {
    vec![state_dir.join("registry.db")]
}
