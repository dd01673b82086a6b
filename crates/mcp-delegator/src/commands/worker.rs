//! `worker`: run tasks of the fleet on this machine.
//!
//! `delegator-worker` does the work; this command gives it settings, signals and log lines, and builds its
//! submissions from the configuration of this machine. The first SIGTERM or SIGINT drains the worker, the
//! second cancels its tasks.

use delegator_engine::Submission;
use delegator_fleet::Retention;
use delegator_registry::Idempotency;
use delegator_worker::{
    LocalRequest, StopSignals, WorkerError, WorkerEvent, WorkerPort, WorkerSettings, Workspace,
    WorkspaceError, run_worker,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::fleet::database::{DatabaseInput, database_from};
use crate::commands::local::followers::build_submission;
use crate::commands::prelude::*;
use crate::error::ExitCode;
use crate::spec::version::PRODUCT_VERSION;

/// Deleting old tasks is cheap, but need not be frequent.
const PRUNE_INTERVAL: Duration = Duration::from_secs(300);

/// After the third signal a worker that has not left by itself exits.
const EXIT_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Worker {
    #[serde(flatten)]
    pub database: DatabaseInput,
    /// Name of the worker, unique in the fleet (default: the host name)
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Maximum number of concurrent tasks
    #[serde(default = "default_number::<4>")]
    #[schemars(range(min = 1, max = 1024))]
    pub slots: u32,
    /// Labels of this machine, as key=value,key=value
    #[serde(default)]
    #[schemars(extend("default" = null, "x-markers" = [Marker::CommaSeparated]))]
    pub labels: BTreeMap<String, String>,
    /// Directory for mirrors and checkouts (default: beside the state directory)
    #[schemars(length(min = 1, max = 4096), extend("x-markers" = [Marker::Path]))]
    pub workspace: Option<PathBuf>,
    /// Exit when no task is queued or running, or if the database is away
    #[serde(default)]
    pub once: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StoppedWorker {
    pub worker: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Claims tasks of the fleet, checks out their repositories and runs them as tasks of this machine. The first SIGTERM or \
        Ctrl-C drains: nothing more is claimed, running tasks continue. The second cancels the running tasks. If the process \
        is killed, its tasks continue until fleet_cutoff_sec, and the next worker of the workspace takes them over.",
    shape: Shape::Action("worker_stopped"),
    network: true,
    open_ended: true,
    is_service: true,
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::AlreadyExists, ErrorCode::WrongState],
    examples: &[example(
        "mcp-delegator worker --database-url-file db-url --slots 8 --labels os=linux,gpu=no",
        "on stderr, what the worker does",
    )],
    ..CommandSpec::new::<Worker, StoppedWorker>(&["worker"], "Run fleet tasks on this machine")
};

pub fn run(context: &Context<'_>, input: Worker) -> Result<CommandOutput, AppError> {
    context.config.check_lease()?;
    let database = database_from(context, &input.database)?;
    let slots = input.slots.try_into().unwrap_or(usize::MAX);
    // Tasks of the fleet must wait neither for each other nor for other tasks of this machine.
    // Their submitters are notified where they submitted them.
    let engine = engine(context)?
        .with_max_concurrent(context.config.settings.max_concurrent.saturating_add(slots))
        .with_notifications(None);
    let workspace_dir = match &input.workspace {
        Some(dir) => context.process.current_dir.join(dir),
        None => default_workspace(&engine),
    };
    let workspace = Workspace::open(&workspace_dir)?;
    let settings = settings(context, &input);
    let signals = StopSignals::default();
    receive_signals(signals.clone())?;
    let port = Port { context, engine: &engine, workspace: &workspace };
    run_worker(&engine, &database, &port, &settings, &workspace, &signals)?;
    Ok(CommandOutput::done(StoppedWorker { worker: settings.name }))
}

fn settings(context: &Context<'_>, input: &Worker) -> WorkerSettings {
    let config = &context.config.settings;
    WorkerSettings {
        name: input.name.clone().unwrap_or_else(host_name),
        slots: input.slots,
        labels: input.labels.clone(),
        version: PRODUCT_VERSION.to_owned(),
        lease: config.fleet_lease,
        heartbeat_interval: config.fleet_heartbeat,
        cutoff: config.fleet_cutoff,
        retention: Retention {
            max_age: Some(config.fleet_retention),
            max_bytes: Some(config.fleet_max_bytes),
            interval: PRUNE_INTERVAL,
        },
        exit_when_idle: input.once,
        variables: variables(context),
        redactor: context.screen.printer.redactor().clone(),
    }
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "worker".to_owned() } else { name }
}

/// Beside the state directory: a task may not work inside it.
fn default_workspace(engine: &Engine) -> PathBuf {
    let name = engine.state_dir.file_name().unwrap_or_default().to_string_lossy();
    engine.state_dir.with_file_name(format!("{name}-workspace"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread that waits for the database cannot be ended otherwise"
)]
fn receive_signals(stop: StopSignals) -> Result<(), AppError> {
    let failed = |error: std::io::Error| io_error("Installing the signal handlers", &error);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let receive = move || {
        for _ in signals.forever() {
            stop.add();
            if stop.is_abandoning() {
                // A call of the database may take longer; the next process finds the tasks either way.
                std::thread::sleep(EXIT_GRACE);
                std::process::exit(i32::from(ExitCode::Incomplete.number()));
            }
        }
    };
    thread.spawn(receive).map_err(failed)?;
    Ok(())
}

struct Port<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    workspace: &'a Workspace,
}

impl WorkerPort for Port<'_> {
    fn build_submission(&self, request: &LocalRequest) -> Result<Submission, String> {
        let (task, labels) = (request.text.clone(), request.labels.clone());
        let working_dir = Some(request.working_dir.clone());
        let input = TaskInput {
            submission: SubmissionInputs { task, labels, ..SubmissionInputs::default() },
            mode: RunMode::Sandbox(request.mode),
            agent: AgentInputs { working_dir, ..AgentInputs::default() },
            ..TaskInput::default()
        };
        let built = build_submission(self.context, self.engine, TaskRequest::new(input));
        let mut built = built.map_err(|error| error.message)?;
        built.title.clone_from(&request.title);
        // The key alone identifies the task, even if the configuration has changed since it was submitted.
        built.idempotency = Some(Idempotency::new(&request.idempotency_key, &request.idempotency_key));
        if !built.settings.allowed_roots.is_empty() {
            built.settings.allowed_roots.push(self.workspace.dir().to_owned());
        }
        Ok(built)
    }

    fn report(&self, event: &WorkerEvent) {
        if event.is_warning() { tracing::warn!("{event}") } else { tracing::info!("{event}") }
    }
}

impl From<WorkspaceError> for AppError {
    fn from(error: WorkspaceError) -> Self {
        match &error {
            WorkspaceError::InUse { dir } => AppError::new(
                ErrorCode::WrongState,
                format!("Another worker uses the workspace {}.", dir.display()),
            )
            .suggest("Stop that worker, or choose another directory with --workspace."),
            WorkspaceError::Unusable { dir, source } => {
                io_error(&format!("Opening the workspace {}", dir.display()), source)
            }
        }
    }
}

impl From<WorkerError> for AppError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Fleet(error) => error.into(),
            WorkerError::Engine(error) => error.into(),
        }
    }
}

impl CommandData for StoppedWorker {
    fn document(&self) -> Document {
        Document::titled(format!("The worker {} has stopped", self.worker))
    }
}
