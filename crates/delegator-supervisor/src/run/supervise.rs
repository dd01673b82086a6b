//! The loop of a run.
//!
//! One thread waits for whatever comes first: output, room for input, the agent's end, somebody who wakes us, or a
//! deadline. Each round goes: reap, act on what is due, wait, read. So the agent's own end is always seen before a limit
//! is judged, and whatever it wrote before that.
//!
//! The end of the process and the end of its streams are two things. When the process has ended, what lies in the
//! pipes is read and no more: a forgotten background process may hold them open for ever. Then it is swept.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::{ExitStatus, LimitKind};
use rustix::process::{WaitStatus, getpid, set_child_subreaper};

use super::ending::{EndSignal, Ending, EndingRecipe, EndingStep, Target};
use super::feed::Feed;
use super::limits::{IdleCounts, Sampler, Watch};
use super::output::{Complaints, Events, Pipe};
use super::ports::{Ended, Ports, RunSpec};
use super::spawn::{Spawned, spawn, spawn_check};
use crate::process::identity::open_pidfd;
use crate::process::priority::GivingWay;
use crate::process::sweep::{Scope, reap, signal_all_but, sweep};
use crate::process::tree::{Sent, TreeUse, signal_checked, tree_use};
use crate::process::{Owner, ProcessIdentity, ProcessStat, SweepReport, read_stat};
use crate::verdict::Cause;

mod finish;
mod listen;
mod tell;
mod verify;

/// How often we look around when nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// How often we look after others.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(30);
/// How often the processes are counted when nothing suggests it.
const COUNT_EVERY: Duration = Duration::from_secs(10);

/// Runs the agent to its end, and then what checks its work. Takes over the process, see the crate.
pub fn supervise(spec: RunSpec, ports: &dyn Ports) -> Ended {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        return finish::not_started(&spec, &format!("cannot become a child subreaper: {error}"));
    }
    let giving_way = GivingWay::begin(spec.niceness);
    match Run::start(spec, Role::Agent, ports) {
        Ok(mut run) => {
            run.giving_way = Some(giving_way);
            let outcome = run.complete();
            let last = run.spec.verify.is_some().then(|| run.last_snapshot()).flatten();
            let (mut ended, spec) = run.finish(outcome);
            verify::verify(&mut ended, spec, last, ports);
            ended
        }
        Err((spec, error)) => finish::not_started(&spec, &error.to_string()),
    }
}

/// What is run.
enum Role {
    Agent,
    /// Something that checks the agent's work, and the word it says first.
    Check {
        witness: Option<String>,
    },
}

struct Run<'a> {
    spec: RunSpec,
    ports: &'a dyn Ports,
    owner: Box<dyn Fn(i32) -> Owner + 'a>,
    me: i32,
    agent: ProcessStat,
    pidfd: OwnedFd,
    /// Takes what descends from us into the group.
    gathering: Option<JoinHandle<()>>,
    exit: Option<ExitStatus>,
    started: Instant,
    ended: Option<Duration>,
    feed: Feed,
    /// Nothing of a check: all it prints is in the other stream.
    events: Option<Events<'a, ChildStdout>>,
    complaints: Complaints<'a, ChildStderr>,
    buffer: Vec<u8>,
    watch: Watch,
    sampler: Sampler,
    cause: Option<Cause>,
    ending: Option<Ending>,
    signals: Vec<EndSignal>,
    /// The last round read everything there was.
    is_drained: bool,
    last_tick: Duration,
    last_look_around: Duration,
    /// Until it has given way everywhere; nothing of a check, which inherits it.
    giving_way: Option<GivingWay>,
    last_count: Duration,
    counted: TreeUse,
    tasks_when_counted: u64,
    thread_told: bool,
    stdin_told: bool,
    snapshot_of: Option<(u64, u64)>,
    last_snapshot: Option<Duration>,
}

impl<'a> Run<'a> {
    fn start(
        mut spec: RunSpec,
        role: Role,
        ports: &'a dyn Ports,
    ) -> Result<Run<'a>, (Box<RunSpec>, io::Error)> {
        let spawned = match role {
            Role::Agent => spawn(&spec, ports),
            Role::Check { .. } => spawn_check(&spec, ports),
        };
        let Spawned { mut child, stdin: input, stdout, stderr } = match spawned {
            Ok(spawned) => spawned,
            Err(error) => return Err((Box::new(spec), error)),
        };
        crash_point(CrashPoint::AgentSpawned);
        let started = Instant::now();
        let stdin = std::mem::take(&mut spec.plan.stdin);
        let prepared = (|| {
            let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
            // It is our child and not reaped, so the number is still its own.
            let gone = || io::Error::other("/proc does not show the agent");
            let pidfd = open_pidfd(pid)?.ok_or_else(gone)?;
            let stat = read_stat(pid).ok_or_else(gone)?;
            let pipes = (Pipe::new(stdout)?, Pipe::new(stderr)?);
            Ok((pidfd, stat, Feed::new(input, stdin)?, pipes))
        })();
        let (pidfd, agent, feed, (stdout, stderr)) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err((Box::new(spec), error));
            }
        };
        let me = getpid().as_raw_nonzero().get();
        let gathering = spec.group.as_ref().and_then(|group| group.gather(me));
        let (most, redactor) = (spec.max_stream_bytes, &spec.redactor);
        let (events, complaints) = match &role {
            Role::Agent => {
                let events = Events::new(stdout, ports, most, redactor, spec.fold.clone());
                (Some(events), Complaints::new(stderr, ports, most, redactor))
            }
            Role::Check { witness } => {
                (None, Complaints::of_check(stderr, ports, most, redactor, witness.as_deref()))
            }
        };
        Ok(Run {
            me,
            gathering,
            watch: Watch::new(spec.limits),
            sampler: Sampler::new(spec.limits.idle, rustix::param::clock_ticks_per_second()),
            ports,
            owner: Box::new(|pid| ports.owner_of(pid)),
            agent,
            pidfd,
            exit: None,
            started,
            ended: None,
            feed,
            events,
            complaints,
            buffer: Vec::new(),
            cause: None,
            ending: None,
            signals: Vec::new(),
            is_drained: false,
            last_tick: Duration::ZERO,
            last_look_around: Duration::ZERO,
            giving_way: None,
            last_count: Duration::ZERO,
            counted: TreeUse { processes: 1, ticks: 0 },
            tasks_when_counted: machine_tasks(),
            thread_told: false,
            stdin_told: false,
            snapshot_of: None,
            last_snapshot: None,
            spec,
        })
    }

    /// Everything that descends from us.
    fn tree(&self) -> Scope<'_> {
        let exempt = &self.spec.sweep_exempt;
        Scope { root: Some(self.me), mark: None, group: None, exempt, owner: &self.owner }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Until the agent has ended, or cannot be ended; then the sweep.
    fn complete(&mut self) -> io::Result<SweepReport> {
        if let Ok(Some(identity)) = ProcessIdentity::of(self.agent.pid) {
            self.ports.on_started(&identity);
        }
        if let Err(error) = self.rounds() {
            // Blind or deaf, we cannot go on; the sweep ends the agent too.
            self.cause.get_or_insert(Cause::Internal { message: error.to_string() });
        }
        crash_point(CrashPoint::AgentReaped);
        self.ended = Some(self.now());
        if self.exit.is_some() && self.signals.is_empty() {
            // It was quicker than what we were about to do.
            self.cause = self.cause.take().filter(|cause| matches!(cause, Cause::Internal { .. }));
        }
        self.drain();
        if let Some(gathering) = self.gathering.take() {
            // Long done, unless the agent was very quick. The group must not change under the sweep.
            let _ = gathering.join();
        }
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
        // The last words of those that were swept.
        self.drain();
        self.tell();
        report
    }

    fn rounds(&mut self) -> io::Result<()> {
        self.look_for_cancel();
        while !self.reap() {
            let now = self.now();
            self.act(now)?;
            if self.ending.as_ref().is_some_and(|ending| ending.is_exhausted(now)) {
                break;
            }
            self.wait_and_read()?;
            self.tell();
        }
        Ok(())
    }

    /// Whether the agent has ended.
    fn reap(&mut self) -> bool {
        let (agent, exit) = (self.agent.pid, &mut self.exit);
        reap(&mut |pid, status| {
            if pid == agent {
                *exit = exit_status(status);
            }
        });
        self.exit.is_some()
    }

    /// Does what is due.
    fn act(&mut self, now: Duration) -> io::Result<()> {
        if now >= self.last_tick + TICK {
            self.last_tick = now;
            self.look_for_cancel();
            self.count_if_needed(now);
            if let Some(giving_way) = &mut self.giving_way {
                giving_way.try_again();
            }
        }
        if now >= self.last_look_around + LOOK_AROUND_EVERY {
            self.last_look_around = now;
            self.ports.look_around();
        }
        if self.ending.is_none() {
            if let Some(warning) = self.watch.warning(now) {
                self.ports.on_warning(warning);
            }
            self.sample(now);
            self.judge(now);
        }
        // Begun in this round or not.
        let now = self.now();
        match self.ending.as_mut().and_then(|ending| ending.step(now)) {
            Some(step) => self.send(step),
            None => Ok(()),
        }
    }

    fn send(&mut self, step: EndingStep) -> io::Result<()> {
        let signal = step.signal.signal();
        // Whatever its name, the agent itself is never exempt. If it has ended by itself we did nothing.
        if signal_checked(&self.agent, signal)? == Sent::Gone {
            return Ok(());
        }
        self.signals.push(step.signal);
        if step.target == Target::Tree {
            signal_all_but(self.agent.pid, self.tree(), signal)?;
        }
        Ok(())
    }

    fn end(&mut self, cause: Cause) {
        if self.ending.is_none() {
            let recipe = match cause {
                Cause::TooManyProcesses { .. } => EndingRecipe::kill(),
                _ => self.spec.plan.ending.clone(),
            };
            self.ending = Some(Ending::begin(recipe, self.now()));
            self.cause = Some(cause);
        }
    }

    fn look_for_cancel(&mut self) {
        if let Some(request) = self.ports.cancel_requested() {
            self.end(Cause::Cancelled { reason: request.reason });
        }
    }

    /// Counts every ten seconds, and when the machine has got so many more that ours may be too many.
    fn count_if_needed(&mut self, now: Duration) {
        let room = self.spec.max_processes.saturating_sub(self.counted.processes);
        let grown = machine_tasks().saturating_sub(self.tasks_when_counted);
        if now >= self.last_count + COUNT_EVERY || grown >= room as u64 {
            self.count(now);
        }
    }

    fn count(&mut self, now: Duration) {
        self.last_count = now;
        self.tasks_when_counted = machine_tasks();
        self.counted = tree_use(self.me, self.agent.pid, &self.owner);
        if self.counted.processes > self.spec.max_processes {
            self.end(Cause::TooManyProcesses { count: self.counted.processes });
        }
    }

    /// Looks for work that is not output.
    fn sample(&mut self, now: Duration) {
        if self.spec.limits.idle_counts == IdleCounts::Output {
            return;
        }
        let is_over = self.watch.over(now) == Some(LimitKind::Idle);
        if self.watch.quiet(now) < self.sampler.rest() {
            self.sampler.forget();
        } else if self.sampler.is_due(now) || is_over {
            self.count(now);
            if self.sampler.is_working(now, self.counted.ticks) {
                self.watch.activity(now);
            }
        }
    }

    /// Idle is judged only when everything that was said has been heard.
    fn judge(&mut self, now: Duration) {
        match self.watch.over(now) {
            Some(LimitKind::Idle) if !self.is_drained => {}
            Some(kind) => self.end(Cause::Limit(kind)),
            None => {}
        }
    }

    /// Reads what lies in the pipes now, and no more.
    fn drain(&mut self) {
        if let Some(events) = &mut self.events {
            let mut left = events.pipe.waiting();
            while left > 0 {
                let (count, _) = events.read(&mut self.buffer);
                left = if count == 0 { 0 } else { left.saturating_sub(count) };
            }
        }
        let mut left = self.complaints.pipe.waiting();
        while left > 0 {
            let (count, _) = self.complaints.read(&mut self.buffer);
            left = if count == 0 { 0 } else { left.saturating_sub(count) };
        }
    }
}

fn exit_status(status: WaitStatus) -> Option<ExitStatus> {
    let code = status.exit_status().map(ExitStatus::Code);
    code.or_else(|| status.terminating_signal().map(ExitStatus::Signal))
}

/// How many threads the machine has: one small file, instead of a walk.
fn machine_tasks() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = load.split_ascii_whitespace().nth(3).and_then(|word| word.split_once('/'));
    tasks.and_then(|(_, all)| all.parse().ok()).unwrap_or(0)
}
