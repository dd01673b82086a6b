//! The supervisor process: adopt the task lock, begin, run the agent, record, end the task, start the next
//! ones.
//!
//! From the adoption of the lock until the end is recorded no other process can supervise or rescue the task.
//! A crash at any point leaves a state that a rescue can finish; `crash_point` marks every durable step for
//! the tests. Once the row is `working`, an error never escapes before the end of the task is recorded.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::redact::Redactor;
use delegator_domain::task::{FailureKind, TaskEnd, TaskId, Verification};
use delegator_git::merge_packs;
use delegator_registry::{
    Attempt, BeginOutcome, Cas, Claim, Finish, Identity, LockAttempt, Nonce, Registry, TaskDir, TaskFile,
};
use delegator_supervisor::agent::Variables;
use delegator_supervisor::process::{Cgroup, ProcessIdentity};
use delegator_supervisor::run::{Ports, RunResult, RunSpec};
use delegator_supervisor::verdict::has_acted;

use super::chain_prompt::complete_prompt;
use super::check_record::CheckRecord;
use super::evidence::{self, ObservationContext};
use super::prepare_run::prepare;
use super::received_signals::EndSignals;
use super::retry_write::retry_while_busy;
use super::run_ports::{TaskPorts, UserDialogue};
use super::salvage::salvage;
use super::summary::one_sentence_summary;
use super::supervisor_log::SupervisorLog;
use super::task_report::{Record, changed_lines, tokens};
use super::worktree::prepare_worktree;
use super::{error_locations, wake_socket};
use crate::Engine;
use crate::error::{EngineError, Result};
use crate::restore_points::lookup::MERGE_TIMEOUT;
use crate::restore_points::record::RestorePointRecord;
use crate::shared::directories::disk_usage;
use crate::shared::git_program::git;
use crate::shared::worker_contact::ContactWatch;
use crate::submit::detach::open_session;
use crate::submit::launch_file::{Launch, SkippedAgent, Verify};
use crate::submit::promote::{start_all, with_promotion};
use crate::upkeep::delivery::start_delivery_if_due;
use crate::upkeep::leftovers::{remove_orphaned_launches, remove_temporary_dir, remove_wake_socket};
use crate::upkeep::retention::start_pruning_if_due;
use crate::worktrees::content::{WorktreeContent, remove_if};
use crate::worktrees::plan::WorktreePlan;

pub fn run_supervisor(engine: &Engine, id: &TaskId, nonce: &Nonce) -> Result<()> {
    open_session();
    let signals = EndSignals::install().map_err(EngineError::io("handle signals"))?;
    Cgroup::leave_task_group();
    supervise_task(engine, id, nonce, Inherited { lock: take_stdin()?, signals })
}

pub(crate) struct Inherited {
    /// The task lock, acquired by the process that started the supervisor.
    pub(crate) lock: OwnedFd,
    pub(crate) signals: EndSignals,
}

pub(crate) fn supervise_task(
    engine: &Engine,
    id: &TaskId,
    nonce: &Nonce,
    Inherited { lock, signals }: Inherited,
) -> Result<()> {
    // Without a registry the task does not exist any more.
    let Some(mut registry) = engine.find_checked_registry()? else { return Ok(()) };
    let dir = registry.dir().task(id);
    // Without the lock, another process supervises or rescues the task.
    let LockAttempt::Locked(lock) = dir.adopt_lock(lock)? else { return Ok(()) };
    crash_point(CrashPoint::LockAdopted);
    let socket = wake_socket::listen(&dir, &signals).ok();
    crash_point(CrashPoint::SocketBound);
    // Before the task works: until then the report of its predecessor is not pruned.
    let launch = read_launch(&dir, id).and_then(|launch| complete_prompt(&registry, id, launch));
    let redactor = launch.as_ref().map_or_else(|_| Redactor::builder().build(), Launch::redactor);
    registry.also_redact(redactor.clone());
    let group = launch.as_ref().ok().and_then(|launch| launch.create_group(id));
    let containment = containment(group.is_some());
    let begun = registry.begin_work(id, nonce, &own_identity()?, Some(containment), engine.now_ms())?;
    if begun != BeginOutcome::Working {
        let ended = end_before_work(engine, &mut registry, id, nonce, begun);
        remove_wake_socket(&dir);
        return ended;
    }
    dir.announce_change();
    let attempt = Attempt::working(nonce.clone());
    let ports = TaskPorts {
        registry: RefCell::new(registry),
        id: id.clone(),
        attempt: attempt.clone(),
        dir: dir.clone(),
        socket,
        signals,
        contact: launch.as_ref().ok().and_then(contact_watch),
        engine: engine.clone(),
        redactor,
        last_read_mark: Cell::new(None),
        dialogue: UserDialogue::default(),
        log: SupervisorLog::default(),
        observation: RefCell::new(None),
        times: RefCell::default(),
        event_time_ms: Cell::new(0),
        observed: RefCell::new(None),
    };
    crash_point(CrashPoint::LaunchRead);
    let environment = launch.as_ref().map(|launch| launch.variables.clone()).unwrap_or_default();
    let worktree = launch.as_ref().ok().and_then(|launch| launch.settings.worktree.clone());
    let outcome = match launch {
        Ok(launch) => run_and_record(launch, group, &ports),
        Err(error) => Finish::bare(TaskEnd::failed(FailureKind::Internal, error.to_string())),
    };
    let mut registry = ports.registry.into_inner();
    crash_point(CrashPoint::ReportWritten);
    remove_temporary_dir(&dir);
    let recorded = record_end(engine, &mut registry, id, &attempt, &outcome);
    remove_wake_socket(&dir);
    crash_point(CrashPoint::SocketRemoved);
    let claimed = recorded?;
    // The end is recorded, and nothing else needs the lock: waits end now, not after the upkeep that follows.
    drop(lock);
    dir.announce_change();
    start_all(engine, &mut registry, claimed)?;
    crash_point(CrashPoint::SuccessorsStarted);
    settle_worktree(engine, &mut registry, &dir, worktree.as_ref(), &environment)?;
    do_upkeep(engine, &mut registry)?;
    merge_restore_points(&dir, &environment);
    Ok(())
}

fn do_upkeep(engine: &Engine, registry: &mut Registry) -> Result<()> {
    start_delivery_if_due(engine, registry)?;
    start_pruning_if_due(engine, registry)?;
    remove_orphaned_launches(engine, registry)
}

/// Merges packs if there are many. Errors are ignored: the next task tries again.
fn merge_restore_points(dir: &TaskDir, environment: &Variables) {
    let record = RestorePointRecord::read(dir).ok().flatten().unwrap_or_default();
    for point in &record.points {
        let _ = git(environment, &point.top_level, MERGE_TIMEOUT).map(|git| merge_packs(&git, point));
    }
}

/// Removes a worktree in which nothing changed and that no other task uses; records the size of any other.
fn settle_worktree(
    engine: &Engine,
    registry: &mut Registry,
    dir: &TaskDir,
    plan: Option<&WorktreePlan>,
    environment: &Variables,
) -> Result<()> {
    let Some(WorktreePlan { owner, worktree, .. }) = plan else { return Ok(()) };
    // While it is compared, no command can use it, so one that certainly changed is not. One with a finding
    // stays, so that a person can look at it: settings of git, for example, are no change of a file.
    let has_changed = |record: &Record| {
        let changed = record.evidence.as_ref().is_some_and(|evidence| evidence.attributed.files() > 0);
        changed || !record.findings.is_empty()
    };
    let has_changed = Record::read(dir).ok().flatten().as_ref().is_some_and(has_changed);
    let may_go = |content| matches!(content, WorktreeContent::Unchanged | WorktreeContent::Incomplete);
    if !has_changed && matches!(remove_if(engine, registry, owner, environment, may_go), Ok(true)) {
        return Ok(());
    }
    Ok(registry.record_worktree_size(owner, disk_usage(&worktree.path) + disk_usage(&worktree.own_dir()))?)
}

/// Records the end of a task that was cancelled before it began.
fn end_before_work(
    engine: &Engine,
    registry: &mut Registry,
    id: &TaskId,
    nonce: &Nonce,
    begun: BeginOutcome,
) -> Result<()> {
    match begun {
        BeginOutcome::CancelRequested(request) => {
            let end = Finish::bare(TaskEnd::Cancelled { reason: request.reason });
            let claimed = record_end(engine, registry, id, &Attempt::starting(nonce.clone()), &end)?;
            start_all(engine, registry, claimed)
        }
        BeginOutcome::Working | BeginOutcome::Lost(_) => Ok(()),
    }
}

fn read_launch(dir: &TaskDir, id: &TaskId) -> Result<Launch> {
    let missing = || EngineError::Launch { task: id.clone(), detail: "it is missing".into() };
    Launch::from_bytes(id, &dir.read(TaskFile::Launch)?.ok_or_else(missing)?)
}

fn contact_watch(launch: &Launch) -> Option<ContactWatch> {
    launch.settings.worker_contact.clone().map(ContactWatch::new)
}

fn own_identity() -> Result<Identity> {
    let process = ProcessIdentity::of_self().map_err(EngineError::io("read our own identity"))?;
    Ok(Identity {
        boot_id: process.boot_id,
        pid: process.pid.unsigned_abs(),
        start_time: process.start_time,
        pid_ns: process.pid_namespace,
    })
}

/// Runs the agent, or the next one if it cannot run. Writes the report; returns how the task ended.
fn run_and_record(mut launch: Launch, mut group: Option<Cgroup>, ports: &TaskPorts) -> Finish {
    let mut skipped = std::mem::take(&mut launch.skipped);
    if let Err(end) = prepare_worktree(&launch, ports) {
        return Finish::bare(end);
    }
    loop {
        if let Some(reason) = ports.pause_of(&launch.agent.name) {
            let agent = launch.agent.name.clone();
            if launch.use_next_agent() {
                skipped.push(SkippedAgent { agent, reason });
                ports.record_agent(&launch, None);
                continue;
            }
        }
        let spec = match prepare(&launch, group.take(), ports) {
            Ok(_) if ports.end_reason().is_some() => {
                return Finish::bare(TaskEnd::Cancelled { reason: ports.end_reason() });
            }
            Ok(spec) => spec,
            Err(error) => return Finish::bare(TaskEnd::failed(FailureKind::Internal, error.to_string())),
        };
        if let Err(problem) = begin_observation(&spec, &launch, ports) {
            return Finish::bare(TaskEnd::failed(FailureKind::RestorePointFailed, problem));
        }
        crash_point(CrashPoint::BaselineTaken);
        let spec = RunSpec { own_niceness: ports.own_niceness(spec.niceness), ..spec };
        let workdir = spec.workdir.try_clone();
        let mut result = ports.engine.system.run_agent(spec, ports);
        if let Some(reason) = reason_to_fall_back(&result)
            && ports.cancel_requested().is_none()
        {
            let agent = launch.agent.name.clone();
            if launch.use_next_agent() {
                skipped.push(SkippedAgent { agent, reason });
                ports.record_agent(&launch, Some(&result.end));
                group = launch.create_group(&ports.id);
                continue;
            }
        }
        let salvage = salvage(&launch, &mut result, ports);
        let settings = &launch.settings;
        let record = Record { skipped_agents: skipped, salvage, ..Record::of(&result, settings.limits) };
        return record_run(record, &result, settings.verify.as_ref(), workdir.ok(), ports);
    }
}

/// Why the agent could not run, if another one may run instead: only if the first one has certainly done
/// nothing. It was not started, or it reported before its first item that it may not use its model. After
/// that it may have changed something, and a second agent would build on half of its work. Redacted.
fn reason_to_fall_back(result: &RunResult) -> Option<String> {
    let TaskEnd::Failed { kind, message, .. } = &result.end else { return None };
    let acted = has_acted(&result.report);
    let reason = match kind {
        FailureKind::SpawnFailed => message.clone(),
        FailureKind::UsageLimit if !acted => format!("its usage limit is reached: {message}"),
        FailureKind::Auth if !acted => format!("it is not signed in: {message}"),
        _ => return None,
    };
    Some(reason.trim_end_matches([':', ' ']).to_owned())
}

/// The error is why a restore point could not be created.
fn begin_observation(spec: &RunSpec, launch: &Launch, ports: &TaskPorts) -> Result<(), String> {
    if ports.observation.borrow().is_some() {
        return Ok(());
    }
    let settings = &launch.settings;
    let added = spec.pinned.iter().take(settings.run.add_dirs.len());
    let observation = evidence::begin_observation(ObservationContext {
        task: &ports.id,
        dir: &ports.dir,
        workdir: &spec.workdir,
        add_dirs: &added.map(|(_, real)| real.clone()).collect::<Vec<_>>(),
        environment: &spec.environment,
        is_isolated: settings.worktree.is_some(),
        state_dir: &ports.engine.state_dir,
        mode: settings.run.mode,
        may_write: launch.may_write(),
        no_restore_point: settings.no_restore_point,
        since_ms: ports.engine.now_ms(),
    })?;
    ports.observation.replace(observation);
    Ok(())
}

fn record_run(
    mut record: Record,
    result: &RunResult,
    verify: Option<&Verify>,
    workdir: Option<OwnedFd>,
    ports: &TaskPorts,
) -> Finish {
    ports.observe_changes(result);
    crash_point(CrashPoint::ChangesObserved);
    record.check = result.verification.as_ref().zip(verify).map(|(verification, verify)| {
        CheckRecord::of(verification, verify, |text| ports.redactor.redact_str(text).into_owned())
    });
    if let Some(workdir) = workdir {
        error_locations::correct_paths(&mut record.report.failures, workdir);
    }
    if let Some(observed) = ports.observed.take() {
        record.add_evidence(observed, &ports.redactor);
    }
    if let Ok(bytes) = serde_json::to_vec(&record) {
        // Ignored on a full disk: the end of the task matters more, and only the registry has reserved space.
        let _ = ports.dir.write_report(&bytes);
    }
    Finish {
        end: result.end.clone(),
        exit: result.exit,
        ran_ms: Some(record.elapsed_ms),
        summary: Some(one_sentence_summary(&result.end, result.exit, &record)),
        verification: verify.map(|_| match &record.check {
            Some(check) => check.outcome,
            None => Verification::not_run(&result.end),
        }),
        lines: changed_lines(&record),
        survivors: record.survivors,
        tokens: tokens(&result.report),
        turns: Some(result.report.turns),
        cost_microdollars: result.report.cost.map(|cost| cost.own),
    }
}

/// Replaces standard input with /dev/null, so that no child inherits the lock.
fn take_stdin() -> Result<OwnedFd> {
    let lock = std::io::stdin().as_fd().try_clone_to_owned();
    let dev_null = std::fs::File::open("/dev/null").map_err(EngineError::io("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&dev_null)
        .map_err(|error| EngineError::Io { doing: "replace standard input", source: error.into() })?;
    lock.map_err(EngineError::io("take over the task lock"))
}

fn containment(with_group: bool) -> &'static str {
    if with_group { "cgroup" } else { "subreaper" }
}

/// The best containment that this machine offers.
pub fn best_containment() -> &'static str {
    containment(Cgroup::is_available())
}

/// Records the end; returns the queued tasks that were claimed with it and must be started.
fn record_end(
    engine: &Engine,
    registry: &mut Registry,
    id: &TaskId,
    attempt: &Attempt,
    outcome: &Finish,
) -> Result<Vec<Claim>> {
    let ended = retry_while_busy(|| {
        with_promotion(engine, |promotion| {
            Ok(registry.finish(id, attempt, outcome, promotion, engine.now_ms())?)
        })
    })?;
    Ok(match ended {
        Cas::Applied(claimed) => claimed,
        // Another process recorded the end first; its record stands.
        Cas::Lost(_) => Vec::new(),
    })
}
