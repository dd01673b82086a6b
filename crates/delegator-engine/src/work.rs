//! The life of a supervisor process: lock, begin, run, record, end, start the next ones.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{End, FailureKind, Mode, TaskId};
use delegator_registry::{
    Attempt, Began, Cas, Finish, Identity, LockAttempt, Nonce, Registry, TaskDir, TaskFile,
};
use delegator_supervisor::agent::codex::{LaunchRequest, plan};
use delegator_supervisor::agent::{environment::codex_home, project::project_trust, task_marker};
use delegator_supervisor::process::{Cgroup, ProcessIdentity, SweepLimits};
use delegator_supervisor::run::{Ended, RunSpec, supervise};
use delegator_transcript::FoldOptions;
use rustix::fs::{Mode as FileMode, OFlags};

use crate::clock::now_ms;
use crate::detach::open_session;
use crate::directory::{UnfitDirectory, within};
use crate::end_signals::EndSignals;
use crate::error::EngineError;
use crate::evidence::{self, Circumstances};
use crate::insist::insist;
use crate::launch::{Launch, Limits, Settings};
use crate::ports::TaskPorts;
use crate::record::{Record, tokens};
use crate::submit::real_file;
use crate::verification::{CheckRecord, Verify};
use crate::{Engine, crowd, error_places, look, wake};

/// Supervises one task to its end. Takes over the process.
pub fn work(engine: &Engine, id: &TaskId, nonce: &Nonce) -> Result<(), EngineError> {
    open_session();
    let signals = EndSignals::install().map_err(EngineError::io("handle signals"))?;
    Cgroup::leave_others();
    work_under(engine, id, nonce, Inherited { lock: own_input()?, signals })
}

/// What a supervisor has from the start of its process.
pub(crate) struct Inherited {
    /// The task's lock, taken by the process that started it.
    pub(crate) lock: OwnedFd,
    pub(crate) signals: EndSignals,
}

/// Supervises one task to its end.
pub(crate) fn work_under(
    engine: &Engine,
    id: &TaskId,
    nonce: &Nonce,
    Inherited { lock, signals }: Inherited,
) -> Result<(), EngineError> {
    let mut registry = engine.open()?;
    let dir = registry.dir().task(id);
    // Without it there is nothing here for us to do: somebody judges, or works already.
    let LockAttempt::Locked(_life) = dir.adopt_lock(lock)? else { return Ok(()) };
    crash_point(CrashPoint::LockAdopted);
    let me = ProcessIdentity::of_self().map_err(EngineError::io("read our own identity"))?;
    let me = Identity {
        boot_id: me.boot_id,
        pid: me.pid.unsigned_abs(),
        start_time: me.start_time,
        pid_ns: me.pid_namespace,
    };
    let socket = wake::listen(&dir, &signals).ok();
    crash_point(CrashPoint::SocketBound);
    let launch = dir.read_launch().map_err(EngineError::from).and_then(|bytes| launch_of(id, bytes));
    if let Ok(launch) = &launch {
        registry.also_redact(launch.redactor());
    }
    let group = launch.as_ref().ok().filter(|launch| !launch.settings.without_group);
    let group = group.and_then(|_| Cgroup::make(id));
    match registry.begin_work(id, nonce, &me, Some(containment(group.is_some())), now_ms())? {
        Began::Working => {}
        Began::CancelRequested(request) => {
            let end = Finish::bare(End::Cancelled { reason: request.reason });
            let ended = finish(engine, &mut registry, id, &Attempt::starting(nonce.clone()), &end);
            wake::remove(&dir);
            return ended;
        }
        Began::Lost(_) => {
            wake::remove(&dir);
            return Ok(());
        }
    }
    let attempt = Attempt::working(nonce.clone());
    let prepared = launch.and_then(|launch| prepare(engine, id, &dir, &launch, group));
    crash_point(CrashPoint::LaunchRead);
    let done = match prepared {
        // The agent was not started yet, and is not started any more.
        Ok(_) if signals.reason().is_some() => Finish::bare(End::Cancelled { reason: signals.reason() }),
        Err(error) => Finish::bare(failed(FailureKind::Internal, &error.to_string())),
        Ok(Prepared { spec, mode, limits, verify, add_dirs }) => {
            let around = Circumstances {
                task: id,
                dir: &dir,
                workdir: &spec.workdir,
                add_dirs: &add_dirs,
                environment: &spec.environment,
                writes: mode.writes(),
            };
            let (watch, redactor) = (RefCell::new(evidence::look(around)), spec.redactor.clone());
            let ports = TaskPorts {
                registry: RefCell::new(registry),
                id: id.clone(),
                attempt: attempt.clone(),
                dir: dir.clone(),
                socket,
                signals,
                engine: engine.clone(),
                looked_at: Cell::new(None),
                watch,
                seen: RefCell::new(None),
            };
            let workdir = spec.workdir.try_clone();
            let ended = run(spec, &ports);
            ports.look_again(&ended.report);
            registry = ports.registry.into_inner();
            let check = ended.checked.as_ref().zip(verify.as_ref());
            let check = check.map(|(checked, verify)| {
                CheckRecord::of(checked, verify, |text| redactor.redact_str(text).into_owned())
            });
            let mut record = Record { check, ..Record::of(&ended, limits) };
            if let Ok(workdir) = workdir {
                error_places::put_right(&mut record.report, workdir);
            }
            if let Some(seen) = ports.seen.into_inner() {
                record.add_evidence(seen, &redactor);
            }
            recorded(&dir, &ended, &record)
        }
    };
    crash_point(CrashPoint::ReportWritten);
    let finished = finish(engine, &mut registry, id, &attempt, &done);
    crash_point(CrashPoint::SuccessorsStarted);
    wake::remove(&dir);
    crash_point(CrashPoint::SocketRemoved);
    finished?;
    // Nobody waits for us any more.
    engine.retain(&mut registry)?;
    engine.remove_orphaned_launches(&mut registry)
}

fn run(spec: RunSpec, ports: &TaskPorts) -> Ended {
    #[cfg(all(test, debug_assertions))]
    if let Some(stage) = crate::model::on_stage(std::sync::Arc::clone) {
        return stage.run_agent(&spec.task, ports);
    }
    supervise(spec, ports)
}

/// Takes the standard input, which is the task's lock, out of the way of everything we start.
fn own_input() -> Result<OwnedFd, EngineError> {
    let handed_over = std::io::stdin().as_fd().try_clone_to_owned();
    let nothing = std::fs::File::open("/dev/null").map_err(EngineError::io("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&nothing)
        .map_err(|error| EngineError::Io { doing: "let go of the standard input", source: error.into() })?;
    handed_over.map_err(EngineError::io("take the lock over"))
}

fn failed(kind: FailureKind, message: &str) -> End {
    End::Failed { kind, message: message.to_owned(), retry_at: None }
}

/// What holds a task's processes together.
fn containment(with_group: bool) -> &'static str {
    if with_group { "cgroup" } else { "subreaper" }
}

/// The best that can be had here.
pub fn best_containment() -> &'static str {
    containment(Cgroup::is_available())
}

fn launch_of(id: &TaskId, bytes: Option<Vec<u8>>) -> Result<Launch, EngineError> {
    let missing = || EngineError::Launch { task: id.clone(), detail: "it is not there".into() };
    Launch::from_bytes(id, &bytes.ok_or_else(missing)?)
}

/// A run that can begin, and what must be known beside it.
struct Prepared {
    spec: RunSpec,
    mode: Mode,
    limits: Limits,
    verify: Option<Verify>,
    /// Canonical paths of the additional directories.
    add_dirs: Vec<PathBuf>,
}

/// Puts everything the launch file says into the form a run takes.
fn prepare(
    engine: &Engine,
    id: &TaskId,
    dir: &TaskDir,
    launch: &Launch,
    group: Option<Cgroup>,
) -> Result<Prepared, EngineError> {
    let roots = &launch.settings.allowed_roots;
    let (workdir, real) = open_dir("working_dir", &launch.settings.working_dir, roots)?;
    // The agent takes these by name only, so it is given the real path of what was opened. The supervisor compares the
    // two once more right before it starts the agent; after that only the agent's own sandbox resolves the name.
    let added = launch.settings.add_dirs.iter().map(|directory| open_dir("add_dirs", directory, roots));
    let pinned = added.collect::<Result<Vec<_>, _>>()?;
    let add_dirs: Vec<PathBuf> = pinned.iter().map(|(_, real)| real.clone()).collect();
    let images = launch.settings.images.iter();
    let images = images.map(|image| real_file("images", image, roots, &engine.state_dir));
    let images = images.collect::<Result<Vec<_>, _>>()?;
    let settings = &launch.settings;
    let request = LaunchRequest {
        program: launch.agent.program.clone(),
        task: launch.task.clone(),
        mode: settings.mode(),
        preview: settings.preview,
        workdir: real.clone(),
        model: settings.model.clone(),
        profile: settings.profile.clone(),
        reasoning_effort: settings.reasoning_effort.clone(),
        images,
        add_dirs: add_dirs.clone(),
        output_schema: write_output_schema(dir, settings)?,
        skip_git_repo_check: settings.skip_git_repo_check,
        env_policy: settings.env_policy(),
        marker: task_marker(id, settings.depth),
        resume: settings.resume.clone(),
        project_trust: project_trust(&workdir),
    };
    let mut plan = plan(&request, launch.agent.version())?;
    plan.args.splice(0..0, launch.agent.leading_args.iter().cloned());
    plan.ending = settings.ending();
    let spec = RunSpec {
        task: id.clone(),
        plan,
        codex_home: codex_home(&launch.variables),
        environment: launch.variables.clone(),
        workdir,
        pinned,
        umask: launch.umask,
        limits: settings.run_limits(),
        max_stream_bytes: settings.max_stream_bytes,
        max_processes: settings.max_processes,
        sweep_exempt: settings.sweep_exempt.clone(),
        niceness: crowd::niceness(settings.niceness, engine.max_concurrent, crowd::processors()),
        sweep: SweepLimits::default(),
        group,
        redactor: launch.redactor(),
        fold: FoldOptions {
            workdir: Some(real.display().to_string()),
            usage_before: settings.usage_before(),
        },
        verify: launch.check(id, &real),
    };
    let verify = settings.verify.clone();
    Ok(Prepared { spec, mode: settings.mode(), limits: settings.limits, verify, add_dirs })
}

/// The agent takes a schema as a file.
fn write_output_schema(dir: &TaskDir, settings: &Settings) -> Result<Option<PathBuf>, EngineError> {
    let Some(schema) = &settings.output_schema else { return Ok(None) };
    dir.write(TaskFile::OutputSchema, schema.to_string().as_bytes())?;
    Ok(Some(dir.file(TaskFile::OutputSchema)))
}

/// The directory is opened first and judged by what was opened: whatever its name means a moment later, the agent
/// starts in the one that was checked.
fn open_dir(input: &'static str, path: &Path, roots: &[PathBuf]) -> Result<(OwnedFd, PathBuf), EngineError> {
    let refuse = |problem| EngineError::Unfit { input, path: path.to_owned(), problem };
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, FileMode::empty())
        .map_err(|error| refuse(std::io::Error::from(error).into()))?;
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let real = std::fs::read_link(name).map_err(|error| refuse(UnfitDirectory::Unusable(error)))?;
    within(&real, roots).map_err(refuse)?;
    Ok((fd, real))
}

fn recorded(dir: &TaskDir, ended: &Ended, record: &Record) -> Finish {
    if let Ok(bytes) = serde_json::to_vec(record) {
        // On a full disk the end itself is worth more than its record: it has held-back space, this has none.
        let _ = dir.write_report(&bytes);
    }
    let survivors = (!record.survivors.is_empty()).then(|| serde_json::json!(record.survivors));
    Finish {
        end: ended.end.clone(),
        exit: ended.exit,
        ran_ms: Some(record.elapsed_ms),
        summary: Some(look::summary(&ended.end, record)),
        kill_incomplete: survivors,
        tokens: tokens(&ended.report),
    }
}

fn finish(
    engine: &Engine,
    registry: &mut Registry,
    id: &TaskId,
    attempt: &Attempt,
    done: &Finish,
) -> Result<(), EngineError> {
    let ended = insist(|| {
        engine.with_promotion(|promotion| Ok(registry.finish(id, attempt, done, promotion, now_ms())?))
    })?;
    match ended {
        Cas::Applied(claimed) => engine.start_all(registry, claimed),
        // Somebody has ended it before us; what was recorded first stays.
        Cas::Lost(_) => Ok(()),
    }
}
