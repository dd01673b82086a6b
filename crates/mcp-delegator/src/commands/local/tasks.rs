//! Code shared by the task commands.
//!
//! It creates the engine for a call, and combines inputs, configuration and environment into a `Submission`.
//! It only collects values: the engine validates and decides.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use delegator_config::{Config, Containment, HideStateDir, IdleCounts};
use delegator_domain::agents::{ConfiguredAgent, DEFAULT_AGENT};
use delegator_domain::budget::Caps;
use delegator_domain::task::{Mode, Provider, RunSettings, State, TaskId};
use delegator_domain::text::first_line;
use delegator_domain::warning_code::WarningCode;
use delegator_engine::wait_thread::GroupWaitOutcome;
use delegator_engine::{
    Agent, AgentChoice, Capabilities, Ending, Engine, EngineError, HostedCodex, Isolation, Limits, Nesting,
    Notifications, NotifySettings, Providers, Reviewed, Settings, Submission, TaskFiles, Verify, WaitOutcome,
    Webhook, WorktreeRequest, WorktreeState, check_thread, own_task,
};
use delegator_registry::{Idempotency, Task, TaskFile};
use delegator_transcript::Usage;
use delegator_worker::FleetProvider;
use serde_json::{Value, json};

use crate::commands::context::{Context, variables};
use crate::commands::fleet::database::database;
use crate::commands::inputs::{self, AgentInputs, AgentNames, TaskRef};
use crate::commands::local::agent_candidates::{default_agent, locate_agents};
use crate::commands::local::task_input::TaskInput;
use crate::error::{AppError, ErrorCode};
use crate::input::agent_selection::{running_agent, select_agent};
use crate::output::data::stored_task as task_data;
use crate::output::data::task::{OutputExcerpt, TaskResult};
use crate::output::data::warnings;
use crate::output::outcome::{CommandOutput, Warning};
use crate::spec::paging::fingerprint;

pub fn engine(context: &Context<'_>) -> Result<Engine, AppError> {
    let state_dir = context.state_dir.clone().ok_or_else(|| {
        AppError::new(ErrorCode::ConfigInvalid, "The state directory is unknown.")
            .suggest("Set HOME or MCP_DELEGATOR_HOME to an absolute path.")
    })?;
    let config = &context.config.settings;
    let retention_ms = |retention: Duration| Some(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
    let redactor = context.screen.printer.redactor().clone();
    Ok(Engine::new(state_dir, "/proc/self/exe")
        .with_max_concurrent(config.max_concurrent)
        .with_retention(retention_ms(config.retention), retention_ms(config.restore_point_retention))
        .with_notifications(notifications(context))
        .with_connections(context.connections.clone().with_redactor(redactor))
        .with_providers(providers(context)))
}

/// The notifications of the tasks that this call submits; `None` if no channel is configured.
pub fn notifications(context: &Context<'_>) -> Option<Notifications> {
    let config = &context.config.settings;
    let webhook = config.notify_webhook.as_ref().map(|url| Webhook {
        url: url.reveal().to_owned(),
        secret_file: config.notify_webhook_secret_file.clone(),
        format: config.notify_webhook_format,
    });
    let settings = NotifySettings {
        answer_timeout_sec: Some(config.notified_answer_timeout.as_secs()),
        ..NotifySettings::new(
            config.notify_command.clone(),
            webhook,
            config.notify_template.clone(),
            &context.process.environment,
        )
    };
    Some(Notifications { plan: config.notify_plan()?, settings })
}

/// The providers of cloud environments. Nothing is started or connected before it is needed.
fn providers(context: &Context<'_>) -> Providers {
    let mut providers = Providers::default();
    if let Some(codex) = context.config.agent(DEFAULT_AGENT) {
        let scratch = context.state_dir.clone().unwrap_or_default().join("codex-cloud");
        let hosted = HostedCodex::new(codex, variables(context), scratch);
        providers = providers.with(Provider::CodexCloud, Arc::new(hosted));
    }
    // Without a usable URL there is no fleet; a submission reports what is wrong with it.
    if let Ok(database) = database(context) {
        providers = providers.with(Provider::Fleet, Arc::new(FleetProvider::new(database)));
    }
    providers
}

#[derive(Debug, Clone, Default)]
pub struct TaskRequest {
    pub input: TaskInput,
    pub resume: Option<Task>,
    pub thread: Option<String>,
    pub program: Option<Agent>,
    pub call_budget: Option<Duration>,
    pub reviews: Option<Reviewed>,
    /// An ended task whose report is added to the prompt.
    pub report_of: Option<TaskId>,
}

impl TaskRequest {
    /// A request of the configured agent for a new thread, whose caller does not wait.
    pub fn new(input: TaskInput) -> TaskRequest {
        TaskRequest { input, ..TaskRequest::default() }
    }
}

pub fn build_task(
    context: &Context<'_>,
    engine: &Engine,
    request: TaskRequest,
) -> Result<Submission, AppError> {
    let input = &request.input;
    let working_dir = working_dir(context, &request);
    let directories = directories(&input.agent, &working_dir);
    let default = || default_agent(context, &directories);
    let names = agent_names(&input.agent, request.resume.as_ref(), default);
    let select = |config| {
        let agents: Result<Vec<_>, _> = names.iter().map(|name| select_agent(config, name)).collect();
        agents.map_err(|problem| AppError::from_problems(vec![problem]))
    };
    // No project file defines agents, so the protocol is known before the files of the work trees are read.
    let may_write = select(context.config)?.iter().any(|agent| may_write(agent, input.mode.sandbox()));
    let add_dirs = input.agent.add_dirs.iter().filter(|_| may_write).map(PathBuf::as_path);
    let config = &tree_config(context, &working_dir, add_dirs)?;
    let isolation = isolation(context, engine, config, &request, &working_dir)?;
    let configured = select(config)?;
    if let (Some(thread), [agent, ..]) = (&request.thread, configured.as_slice()) {
        check_thread(engine, agent, &variables(context), thread)?;
    }
    let (mut choices, skipped) = match (request.program, configured.first()) {
        (Some(agent), Some(first)) => {
            (vec![AgentChoice { agent, passed_variables: first.variables.clone() }], Vec::new())
        }
        _ => locate_agents(context, engine, configured, &directories)?,
    };
    let AgentChoice { agent, passed_variables } = choices.remove(0);
    let labels = labels(config, &input.submission.labels);
    let parent = own_task(engine)?;
    let settings = Settings {
        depth: parent.as_ref().map_or(0, |parent| parent.depth.saturating_add(1)),
        budgets: config.settings.budgets(task_caps(&input.agent), &labels),
        usage_before: request.resume.as_ref().map(|task| thread_usage(engine, task)).transpose()?.flatten(),
        ..build_settings(context, config, input, working_dir, request.thread)
    };
    let idempotency = idempotency(input, &names, &settings, request.call_budget);
    Ok(Submission {
        text: input.submission.task.clone(),
        settings,
        agent,
        fallbacks: choices,
        skipped,
        max_mode: config.settings.max_mode,
        environment: variables(context),
        passed_variables,
        secret_names: config.settings.redact_names.clone(),
        umask: umask(),
        title: title(context, &input.submission.task),
        labels,
        input: json!(input),
        allow_parallel_writes: input.agent.allow_parallel_writes,
        nesting: Nesting {
            parent,
            max_depth: config.settings.max_depth,
            max_children: config.settings.max_children,
        },
        idempotency,
        isolation,
        reviews: request.reviews,
        report_of: request.report_of,
        followers: Vec::new(),
    })
}

fn idempotency(
    input: &TaskInput,
    agents: &[&str],
    settings: &Settings,
    call_budget: Option<Duration>,
) -> Option<Idempotency> {
    let key = input.submission.idempotency_key.clone()?;
    let resolved = resolved_input(input, agents, settings, call_budget);
    Some(Idempotency { key, request_hash: fingerprint(&json!([input.submission.task, resolved])) })
}

/// Where the task works: one that continues or reviews another task in the worktree of that task, if it
/// exists.
fn isolation(
    context: &Context<'_>,
    engine: &Engine,
    config: &Config,
    request: &TaskRequest,
    working_dir: &Path,
) -> Result<Isolation, AppError> {
    let inputs = &request.input.agent;
    let earlier = match (&request.resume, &request.reviews) {
        (Some(task), _) => Some(task.clone()),
        (None, Some(Reviewed::Task(id))) => Some(engine.results().task(id)?),
        (None, Some(Reviewed::Predecessor) | None) => None,
    };
    let worktree = earlier.map(|task| engine.worktrees().of(&task)).transpose()?.flatten();
    // One that was removed because nothing had changed in it is created again.
    let is_usable = |state| matches!(state, WorktreeState::Present | WorktreeState::Unchanged);
    let present = worktree.filter(|worktree| is_usable(worktree.state));
    Ok(match (inputs.isolation, present) {
        (Some(inputs::Isolation::None), _) | (None, None) => Isolation::None,
        (_, Some(worktree)) => Isolation::Of(worktree.owner),
        (Some(inputs::Isolation::Worktree), None) => {
            engine.worktrees().enforce_quota(config.settings.worktree_quota_bytes, &variables(context))?;
            let repository = config.settings.repository(working_dir);
            Isolation::New(WorktreeRequest {
                base: inputs.base.clone(),
                carry_dirty: inputs.carry_dirty,
                copy: repository.map(|settings| settings.worktree_copy.clone()).unwrap_or_default(),
                setup: repository.and_then(|settings| settings.worktree_setup.clone()),
            })
        }
    })
}

fn working_dir(context: &Context<'_>, request: &TaskRequest) -> PathBuf {
    match (&request.input.agent.working_dir, &request.resume) {
        (Some(given), _) => given.clone(),
        (None, Some(task)) => PathBuf::from(&task.working_dir),
        (None, None) => context.process.current_dir.clone(),
    }
}

fn directories<'a>(inputs: &'a AgentInputs, working_dir: &'a Path) -> Vec<&'a Path> {
    std::iter::once(working_dir).chain(inputs.add_dirs.iter().map(PathBuf::as_path)).collect()
}

fn agent_names<'a>(
    inputs: &'a AgentInputs,
    resumed: Option<&'a Task>,
    default: impl FnOnce() -> &'a str,
) -> Vec<&'a str> {
    let names = match (&inputs.agent, resumed) {
        (Some(given), _) => given.names().iter().map(String::as_str).collect(),
        (None, Some(task)) => vec![task.agent.as_str()],
        (None, None) => vec![default()],
    };
    names.into_iter().map(|name| running_agent(name, inputs.live)).collect()
}

fn may_write(agent: &ConfiguredAgent, mode: Mode) -> bool {
    let sandbox = Capabilities::of(agent.kind()).sandbox_of(mode, agent.unsandboxed);
    mode.may_write(sandbox.enforces_mode())
}

fn task_caps(agent: &AgentInputs) -> Caps {
    Caps {
        tokens: agent.budget,
        turns: agent.max_turns.map(u64::from),
        cost_cents: agent.max_cost_cents,
        running_sec: None,
    }
}

/// The input with defaults filled in, keys sorted and the directory resolved. Explicit defaults then give the
/// same idempotency fingerprint as omitted ones.
fn resolved_input(
    input: &TaskInput,
    agents: &[&str],
    settings: &Settings,
    call_budget: Option<Duration>,
) -> Value {
    let working_dir = &settings.run.working_dir;
    let seconds = |limit: u64| Some(u32::try_from(limit).unwrap_or(u32::MAX));
    let agent = match agents {
        [agent] => AgentNames::One((*agent).to_owned()),
        agents => AgentNames::Several(agents.iter().map(|agent| (*agent).to_owned()).collect()),
    };
    let resolved = TaskInput {
        agent: AgentInputs {
            agent: Some(agent),
            working_dir: Some(working_dir.canonicalize().unwrap_or_else(|_| working_dir.clone())),
            idle_timeout_sec: seconds(settings.limits.idle_sec),
            hard_timeout_sec: seconds(settings.limits.hard_sec),
            env_policy: Some(input.agent.env_policy.unwrap_or_default()),
            ..input.agent.clone()
        },
        call_budget_sec: call_budget.map(|budget| budget.as_secs()).or(input.call_budget_sec),
        ..input.clone()
    };
    let mut resolved = json!(resolved);
    resolved.sort_all_objects();
    resolved
}

/// The configuration of a task in these directories, with the strictest limits of their work trees.
pub fn tree_config<'a>(
    context: &Context<'_>,
    working_dir: &'a Path,
    add_dirs: impl Iterator<Item = &'a Path>,
) -> Result<Config, AppError> {
    // A missing directory is refused by the engine.
    let real = |directory: &Path| directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut config = context.config.for_work_tree(&real(working_dir))?;
    for directory in add_dirs {
        config = config.with_limits_of(&real(directory))?;
    }
    Ok(config)
}

pub fn labels(config: &Config, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut labels = config.settings.labels.clone();
    labels.extend(given.clone());
    labels
}

/// Without the depth, the budgets and the earlier usage of the thread, which [`build_task`] sets.
fn build_settings(
    context: &Context<'_>,
    config: &Config,
    input: &TaskInput,
    working_dir: PathBuf,
    resume: Option<String>,
) -> Settings {
    let (agent, configured) = (&input.agent, &config.settings);
    let seconds = |given: Option<u32>, limit: Duration| given.map_or_else(|| limit.as_secs(), u64::from);
    Settings {
        run: RunSettings {
            working_dir,
            resume,
            ..agent.run_settings(input.mode, &context.process.current_dir)
        },
        allowed_roots: configured.allowed_roots.clone(),
        output_schema: agent.output_schema.clone().map(Value::Object),
        no_restore_point: agent.no_restore_point,
        salvage: agent.salvage,
        answer_timeout_sec: configured.answer_timeout.as_secs(),
        limits: Limits {
            idle_sec: seconds(agent.idle_timeout_sec, configured.idle_timeout),
            hard_sec: seconds(agent.hard_timeout_sec, configured.hard_timeout),
            only_output_counts: configured.idle_counts == IdleCounts::Output,
        },
        ending: Ending {
            interrupt_grace_sec: configured.interrupt_grace.as_secs(),
            terminate_grace_sec: configured.terminate_grace.as_secs(),
        },
        max_stream_bytes: configured.max_stream_bytes,
        max_processes: configured.max_processes,
        sweep_exempt: configured.sweep_exempt.clone(),
        niceness: configured.niceness,
        without_group: configured.containment == Containment::Subreaper,
        enclosure: configured.enclosure,
        hide_state_dir: hides_state_dir(configured.hide_state_dir, input.mode.sandbox()),
        protected: config.user_directory().map(Path::to_owned).into_iter().collect(),
        hidden: hidden_paths(context, config),
        verify: agent.verify.clone().map(|command| Verify::new(command, configured.verify_unsandboxed)),
        ..Settings::default()
    }
}

/// The file in the state directory that names a token file of the HTTP server elsewhere.
pub const TOKEN_FILE_PATH: &str = "http-token-path";

/// What an enclosed agent must not read: our configuration, the database URL, and the token of the HTTP
/// server.
fn hidden_paths(context: &Context<'_>, config: &Config) -> Vec<PathBuf> {
    let token_path = context.state_dir.as_ref().and_then(|dir| std::fs::read(dir.join(TOKEN_FILE_PATH)).ok());
    let token_file = token_path.map(|path| PathBuf::from(OsString::from_vec(path)));
    let known = config.user_directory().into_iter().chain(config.database_url_file()).map(Path::to_owned);
    known.chain(token_file).collect()
}

fn hides_state_dir(configured: HideStateDir, mode: Mode) -> bool {
    match configured {
        HideStateDir::Always => true,
        HideStateDir::ReadOnly => mode == Mode::ReadOnly,
        HideStateDir::Never => false,
    }
}

/// Token usage of a thread at the end of its last task. Codex reports a running total; a task's own usage is
/// the difference.
fn thread_usage(engine: &Engine, task: &Task) -> Result<Option<Usage>, AppError> {
    let record = engine.results().files(&task.id)?.record;
    Ok(record.and_then(|record| record.report.usage).map(|usage| usage.thread_total))
}

fn umask() -> u32 {
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    umask.bits()
}

pub fn title(context: &Context<'_>, text: &str) -> String {
    // Redact before truncating: a truncated secret is not recognised.
    let clean = context.screen.printer.redactor().redact_str(text.trim());
    context.screen.printer.redact(&first_line(&clean, 120))
}

pub fn task_result(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    files: &TaskFiles,
    include_output: bool,
    budget: u32,
) -> Result<TaskResult, AppError> {
    let streams = task_data::includes_output(task.state, include_output).then(|| -> Result<_, AppError> {
        match engine.remote().fetch_events(task) {
            // The result is complete without the output, unless the caller requested it.
            Err(error) if include_output => return Err(error.into()),
            _ => {}
        }
        // The excerpt has no more than the budget of the beginning, or of the end.
        let ends = |which| -> Result<(String, u64), AppError> {
            let (bytes, size) = engine
                .results()
                .read_dir(&task.id, |dir| Ok(dir.read_ends(which, budget.into())?.unwrap_or_default()))?;
            Ok((String::from_utf8_lossy(&bytes).into_owned(), size))
        };
        let ((stdout, stdout_size), (stderr, stderr_size)) =
            (ends(TaskFile::Events)?, ends(TaskFile::Stderr)?);
        Ok(OutputExcerpt {
            stdout,
            stderr,
            stored_sizes: (stdout_size, stderr_size),
            budget: budget as usize,
            is_requested: include_output,
        })
    });
    Ok(TaskResult::of(
        task,
        files,
        streams.transpose()?,
        context.config.settings.max_mode,
        context.screen.presentation.call_syntax(),
    ))
}

/// Reads the unfinished tasks again: meanwhile the thread id may be known, or the task may have ended.
pub fn refresh(engine: &Engine, watched: GroupWaitOutcome) -> Result<GroupWaitOutcome, AppError> {
    // The wait has queried the providers of tasks that run elsewhere.
    let reload = |task: Task| match (task.state.is_terminal(), &task.remote) {
        (true, _) => Ok(task),
        (false, None) => engine.results().task(&task.id),
        (false, Some(_)) => engine.results().recorded_task(&task.id),
    };
    let tasks = watched.tasks.into_iter().map(reload).collect::<Result<Vec<Task>, _>>()?;
    let expired = watched.expired && !tasks.iter().any(|task| task.state.is_terminal());
    Ok(GroupWaitOutcome { tasks, expired })
}

/// Adds a warning if one of the tasks is queued and waiting longer does not help: the queue or the fleet is
/// paused, or there is no worker.
pub fn report_obstacles(engine: &Engine, tasks: &[Task], output: &mut CommandOutput) -> Result<(), AppError> {
    let queued = tasks.iter().filter(|task| task.state == State::Queued && task.remote.is_none());
    let queued_agents: Vec<&str> = queued.map(|task| task.agent.as_str()).collect();
    if !queued_agents.is_empty() {
        if engine.queue().is_paused()? {
            output.facts.insert("is_queue_paused".into(), true.into());
            output.warnings.push(warnings::queue_paused());
        }
        let pauses = engine.queue().agent_pauses()?;
        let concerned = pauses.iter().filter(|pause| queued_agents.contains(&pause.agent.as_str()));
        output.warnings.extend(concerned.map(warnings::agent_paused));
    }
    let obstacles = engine.remote().obstacles(tasks.iter().map(|task| &task.id));
    output.warnings.extend(warnings::fleet_obstacles(&obstacles));
    Ok(())
}

/// The task that ended first, or else the first requested one.
pub fn first_ended(watched: &GroupWaitOutcome) -> Result<WaitOutcome, AppError> {
    let order = |task: &Task| task.ended.as_ref().map_or(i64::MAX, |ended| ended.order);
    let first = watched.tasks.iter().min_by_key(|task| order(task)).cloned();
    first.map(|task| WaitOutcome { task, expired: watched.expired }).ok_or_else(|| {
        AppError::new(ErrorCode::Internal, "There was no task to wait for; this is a bug in mcp-delegator.")
    })
}

/// Marks a task as read. An error is only a warning: the response is complete without it, and the task is
/// listed as unread.
pub fn mark_read(engine: &Engine, id: &TaskId) -> Option<Warning> {
    let error = engine.results().mark_read(id).err()?;
    Some(Warning::new(WarningCode::NotMarkedRead, format!("{id} could not be marked as read: {error}")))
}

pub fn ended(task: Task) -> Result<Task, AppError> {
    if task.state.is_terminal() {
        Ok(task)
    } else {
        Err(EngineError::NotEnded { task: task.id, state: task.state }.into())
    }
}

pub fn resolve_task(engine: &Engine, given: &TaskRef) -> Result<TaskId, AppError> {
    Ok(engine.results().resolve(given.as_str())?)
}
