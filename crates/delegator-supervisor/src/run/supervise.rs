//! The supervision loop of a run.
//!
//! One thread waits for output, space in the input pipe, the agent's exit, a wake-up or a deadline. Each round reaps
//! children, runs due actions, waits and reads, in this order: the agent's own exit and everything it wrote before are
//! always noticed before a limit is enforced.
//!
//! The exit of the process does not imply the end of its streams: a background process may hold the pipes open forever.
//! After the exit, only the bytes already in the pipes are read; then the sweep follows.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{ExitStatus, LimitKind};
use rustix::process::{WaitStatus, getpid, set_child_subreaper};

use super::dialogue::Dialogue;
use super::ending::{EndAction, EndSignal, Ending, EndingRecipe, EndingStep, SignalTarget};
use super::limits::{ActivitySampler, ActivitySource, LimitTimers};
use super::output::{EventReader, StderrReader};
use super::ports::{Percent, Ports, RunResult, RunSpec};
use crate::conversation::Control;
use crate::process::cgroup::Adoption;
use crate::process::niceness::{AutogroupNiceness, raise_niceness};
use crate::process::sweep::{Scope, reap, signal_all_but, sweep};
use crate::process::tree::{SignalOutcome, TreeUsage, signal_checked, tree_usage};
use crate::process::{Owner, ProcessIdentity, ProcessStat, SweepReport};
use crate::verdict::Cause;
use budgets::BudgetWatch;
use salvage::Salvage;
use talk::Talk;
use tool_commands::ToolCommand;

mod budgets;
mod finish;
mod poll_io;
mod progress;
mod salvage;
mod start;
mod talk;
mod tool_commands;
mod verify;

pub use finish::{redact_record, redacted_report};
pub use progress::{changed_files, next_percent};

/// Longest time between two rounds.
const TICK: Duration = Duration::from_secs(1);
/// Interval of `Ports::periodic_upkeep`.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Interval of process counts when nothing suggests an earlier one.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the agent to its end, then the verification, if any. Takes over the process, see the crate documentation.
pub fn supervise(spec: RunSpec, ports: &dyn Ports) -> RunResult {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return finish::not_started(&spec, &format!("cannot become a child subreaper: {error}"));
    }
    raise_niceness(spec.own_niceness);
    match Run::start(spec, Role::Agent, ports) {
        Ok(mut run) => {
            let outcome = run.run_to_end();
            // To be continued by a verification.
            let final_snapshot = run.spec.verify.is_some().then(|| run.current_snapshot()).flatten();
            let (mut result, spec) = run.finish(outcome);
            verify::verify(&mut result, spec, final_snapshot, ports);
            result
        }
        Err((spec, error)) => finish::not_started(&spec, &error.to_string()),
    }
}

/// What a run executes.
enum Role {
    Agent,
    /// A command that verifies the agent's work, and the sentinel line it prints first.
    Verification {
        sentinel: Option<String>,
    },
}

struct Run<'a> {
    spec: RunSpec,
    ports: &'a dyn Ports,
    owner: Box<dyn Fn(i32) -> Owner + 'a>,
    me: i32,
    agent: ProcessStat,
    agent_pidfd: OwnedFd,
    /// Moves our descendants into the cgroup.
    adoption: Option<Adoption>,
    exit: Option<ExitStatus>,
    started: Instant,
    ended_at: Option<Duration>,
    dialogue: Dialogue,
    /// `None` for a verification: it prints everything to one pipe, read as `stderr`.
    stdout: Option<EventReader<'a, ChildStdout>>,
    stderr: StderrReader<'a, ChildStderr>,
    buffer: Vec<u8>,
    limit_timers: LimitTimers,
    sampler: ActivitySampler,
    cause: Option<Cause>,
    ending: Option<Ending>,
    /// The end of an agent that has ended its last turn.
    finishing: Option<Ending>,
    talk: Talk,
    tool_commands: Vec<ToolCommand>,
    budgets: BudgetWatch,
    salvage: Salvage,
    signals: Vec<EndSignal>,
    /// Whether a step of the ending reached the agent.
    is_forced: bool,
    /// Whether the last round read everything that was available.
    is_drained: bool,
    last_tick: Duration,
    last_upkeep: Duration,
    autogroup_niceness: AutogroupNiceness,
    last_count: Duration,
    usage: TreeUsage,
    machine_tasks_at_count: u64,
    thread_reported: bool,
    prompt_reported: bool,
    /// Lines and bytes of the streams, and the number of budget warnings, in the last snapshot.
    last_snapshot_counts: Option<(u64, u64, u64, usize)>,
    last_snapshot_at: Option<Duration>,
    /// The percentage of the last snapshot.
    percent: Option<Percent>,
    /// Looked up when it is needed.
    typical_duration: OnceCell<Option<Duration>>,
}

impl<'a> Run<'a> {
    /// Everything that descends from this process.
    fn tree(&self) -> Scope<'_> {
        let exempt = &self.spec.sweep_exempt;
        Scope { root: Some(self.me), mark: None, group: None, exempt, owner: &self.owner }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Runs until the agent has exited or cannot be ended, then sweeps.
    fn run_to_end(&mut self) -> io::Result<SweepReport> {
        // Expensive, so it is done while the agent starts.
        self.spec.redactor.prepare();
        if let Ok(Some(identity)) = ProcessIdentity::of(self.agent.pid) {
            self.ports.on_started(&identity);
        }
        // States the limit also for an agent that prints nothing. A verification has no snapshot.
        if let Some(snapshot) = self.current_snapshot() {
            self.ports.on_snapshot(&snapshot);
        }
        if let Err(error) = self.run_loop() {
            // Without stdout and stderr the run cannot be supervised; fail it. The sweep ends the agent.
            self.cause.get_or_insert(Cause::Internal { message: error.to_string() });
        }
        crash_point(CrashPoint::AgentReaped);
        self.autogroup_niceness.end_agent();
        self.ended_at = Some(self.now());
        if self.exit.is_some() && !self.is_forced {
            // The agent exited before our first step reached it: its own end counts.
            self.cause = self.cause.take().filter(|cause| matches!(cause, Cause::Internal { .. }));
        }
        self.drain();
        // The cgroup must not change during the sweep.
        self.adoption.take().into_iter().for_each(Adoption::end);
        let mut exit = None;
        let scope = Scope { mark: Some(&self.spec.task), group: self.spec.group.as_ref(), ..self.tree() };
        let agent = self.agent.pid;
        let report = sweep(scope, self.spec.sweep, &mut |pid, status| {
            if pid == agent {
                exit = exit_status(status);
            }
        });
        crash_point(CrashPoint::AgentSwept);
        self.exit = self.exit.or(exit);
        // Output of the swept processes.
        self.drain();
        self.act_on_steps();
        // No snapshot: the report follows.
        self.report_prompt_and_thread();
        report
    }

    fn run_loop(&mut self) -> io::Result<()> {
        self.check_cancel();
        while !self.reap() {
            let now = self.now();
            self.run_due_actions(now)?;
            let ending = self.ending.as_ref().or(self.finishing.as_ref());
            if ending.is_some_and(|ending| ending.is_exhausted(now)) {
                break;
            }
            self.wait_and_read()?;
            self.report_progress();
        }
        Ok(())
    }

    /// Whether the agent has exited.
    fn reap(&mut self) -> bool {
        let (agent, exit, tool_commands) = (self.agent.pid, &mut self.exit, &mut self.tool_commands);
        reap(&mut |pid, status| {
            if pid == agent {
                *exit = exit_status(status);
            } else if let Some(command) = tool_commands.iter_mut().find(|command| command.pid == pid) {
                command.exit = exit_status(status);
            }
        });
        self.exit.is_some()
    }

    fn run_due_actions(&mut self, now: Duration) -> io::Result<()> {
        if now >= self.last_tick + TICK {
            self.last_tick = now;
            self.check_cancel();
            self.pass_on_answers();
            self.count_if_needed(now);
            self.enforce_budgets(now);
            self.autogroup_niceness.set();
        }
        if now >= self.last_upkeep + UPKEEP_INTERVAL {
            self.last_upkeep = now;
            self.ports.periodic_upkeep();
        }
        self.request_report_if_due(now);
        self.continue_talk(now);
        if self.ending.is_none() && self.finishing.is_none() {
            if let Some(warning) = self.limit_timers.warning(now) {
                self.ports.on_warning(warning);
            }
            self.sample_activity(now);
            self.enforce_limits(now);
        }
        // The ending may have begun in this round.
        let now = self.now();
        let ending = self.ending.as_mut().or(self.finishing.as_mut());
        match ending.and_then(|ending| ending.next_step(now)) {
            Some(step) => self.take_step(step),
            None => Ok(()),
        }
    }

    fn take_step(&mut self, step: EndingStep) -> io::Result<()> {
        match step.action {
            EndAction::StopTurn => {
                self.is_forced = true;
                self.control(Control::Interrupt);
            }
            EndAction::CloseStdin => {
                self.is_forced |= self.ending.is_some();
                self.dialogue.close_stdin();
            }
            EndAction::Signal { signal, target } => return self.send_signal(signal, target),
        }
        Ok(())
    }

    fn send_signal(&mut self, sent: EndSignal, target: SignalTarget) -> io::Result<()> {
        let signal = sent.signal();
        // The agent itself is never exempt, whatever its name. If it has exited by itself, nothing was sent.
        if signal_checked(&self.agent, signal)? == SignalOutcome::Gone {
            return Ok(());
        }
        if self.ending.is_some() {
            self.is_forced = true;
            self.signals.push(sent);
        }
        if target == SignalTarget::Tree {
            signal_all_but(self.agent.pid, self.tree(), signal)?;
        }
        Ok(())
    }

    fn begin_ending(&mut self, cause: Cause) {
        // An agent that has ended its last turn has its result: there is nothing left to cancel or to limit.
        if self.ending.is_none() && self.finishing.is_none() {
            let recipe = match cause {
                Cause::TooManyProcesses { .. } => EndingRecipe::kill(),
                _ => self.spec.plan.ending.clone(),
            };
            self.ending = Some(Ending::start(recipe, self.now()));
            self.cause = Some(cause);
        }
    }

    fn check_cancel(&mut self) {
        if let Some(request) = self.ports.cancel_requested() {
            self.begin_ending(Cause::Cancelled { reason: request.reason });
        }
    }

    /// Counts every ten seconds, and whenever the machine has so many new threads that ours may exceed the limit.
    fn count_if_needed(&mut self, now: Duration) {
        let headroom = self.spec.max_processes.saturating_sub(self.usage.processes);
        let new_tasks = machine_tasks().saturating_sub(self.machine_tasks_at_count);
        if now >= self.last_count + COUNT_INTERVAL || new_tasks >= headroom as u64 {
            self.count_processes(now);
        }
    }

    fn count_processes(&mut self, now: Duration) {
        self.last_count = now;
        self.machine_tasks_at_count = machine_tasks();
        self.usage = tree_usage(self.me, self.agent.pid, &self.owner);
        if self.usage.processes > self.spec.max_processes {
            self.begin_ending(Cause::TooManyProcesses { count: self.usage.processes });
        }
    }

    /// Looks for activity other than output: processor time.
    fn sample_activity(&mut self, now: Duration) {
        if self.spec.limits.activity_source == ActivitySource::Output {
            return;
        }
        let is_expired = self.limit_timers.expired(now) == Some(LimitKind::Idle);
        if self.limit_timers.idle_time(now) < self.sampler.min_silence() {
            self.sampler.reset();
        } else if self.sampler.is_due(now) || is_expired {
            self.count_processes(now);
            if self.sampler.sample_shows_activity(now, self.usage.ticks) {
                self.limit_timers.record_activity(now);
            }
        }
    }

    /// The idle limit is enforced only when all available output has been read.
    fn enforce_limits(&mut self, now: Duration) {
        match self.limit_timers.expired(now) {
            Some(LimitKind::Idle) if !self.is_drained => {}
            Some(kind) => self.begin_ending(Cause::Limit(kind)),
            None => {}
        }
    }

    /// Reads the bytes that are in the pipes now, and no more.
    fn drain(&mut self) {
        if let Some(events) = &mut self.stdout {
            let mut remaining = events.pipe.available();
            while remaining > 0 {
                let (count, _) = events.read(&mut self.buffer, &mut self.dialogue);
                remaining = if count == 0 { 0 } else { remaining.saturating_sub(count) };
            }
        }
        let mut remaining = self.stderr.pipe.available();
        while remaining > 0 {
            let (count, _) = self.stderr.read(&mut self.buffer);
            remaining = if count == 0 { 0 } else { remaining.saturating_sub(count) };
        }
    }
}

fn exit_status(status: WaitStatus) -> Option<ExitStatus> {
    let code = status.exit_status().map(ExitStatus::Code);
    code.or_else(|| status.terminating_signal().map(ExitStatus::Signal))
}

/// Number of threads on the machine: reading one small file is cheaper than a walk.
fn machine_tasks() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = load.split_ascii_whitespace().nth(3).and_then(|field| field.split_once('/'));
    tasks.and_then(|(_, all)| all.parse().ok()).unwrap_or(0)
}
