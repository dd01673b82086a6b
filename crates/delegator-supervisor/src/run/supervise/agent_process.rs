//! The process of the agent and everything that descends from it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use delegator_domain::task::ExitStatus;
use rustix::process::{WaitStatus, getpid};

use super::super::ports::{Ports, RunSpec};
use crate::ending::{EndSignal, SignalTarget};
use crate::process::cgroup::Adoption;
use crate::process::identity::open_pidfd;
use crate::process::niceness::AutogroupNiceness;
use crate::process::sweep::{Scope, reap, signal_all_but, sweep};
use crate::process::tree::{SignalOutcome, TreeUsage, signal_checked, tree_usage};
use crate::process::{Owner, ProcessIdentity, ProcessStat, SweepReport, read_stat};

/// Interval of process counts when nothing suggests an earlier one.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct AgentProcess<'a> {
    owner: Box<dyn Fn(i32) -> Owner + 'a>,
    me: i32,
    agent: ProcessStat,
    /// Readable when the agent has exited.
    pub(super) pidfd: OwnedFd,
    adoption: Option<Adoption>,
    pub(super) autogroup_niceness: AutogroupNiceness,
    pub(super) exit: Option<ExitStatus>,
    last_count: Duration,
    pub(super) usage: TreeUsage,
    machine_tasks_at_count: u64,
}

impl<'a> AgentProcess<'a> {
    pub(super) fn open(child: &Child, spec: &RunSpec, ports: &'a dyn Ports) -> io::Result<AgentProcess<'a>> {
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        // It is our child and not reaped, so the pid is still its own.
        let gone = || io::Error::other("/proc does not show the agent");
        let me = getpid().as_raw_nonzero().get();
        Ok(AgentProcess {
            owner: Box::new(|pid| ports.owner_of(pid)),
            me,
            pidfd: open_pidfd(pid)?.ok_or_else(gone)?,
            agent: read_stat(pid).ok_or_else(gone)?,
            adoption: spec.group.as_ref().and_then(|group| group.adopt_descendants(me)),
            autogroup_niceness: AutogroupNiceness::new(spec.niceness, spec.own_niceness > 0),
            exit: None,
            last_count: Duration::ZERO,
            usage: TreeUsage { processes: 1, ticks: 0 },
            machine_tasks_at_count: machine_tasks(),
        })
    }

    pub(super) fn identity(&self) -> Option<ProcessIdentity> {
        ProcessIdentity::of(self.agent.pid).ok().flatten()
    }

    fn tree<'s>(&'s self, spec: &'s RunSpec) -> Scope<'s> {
        Scope { root: Some(self.me), mark: None, group: None, exempt: &spec.sweep_exempt, owner: &self.owner }
    }

    /// Reaps children; `on_other` gets those that are not the agent. Returns whether the agent has exited.
    pub(super) fn reap(&mut self, mut on_other: impl FnMut(i32, Option<ExitStatus>)) -> bool {
        reap(&mut |pid, status| {
            if pid == self.agent.pid {
                self.exit = exit_status(status);
            } else {
                on_other(pid, exit_status(status));
            }
        });
        self.exit.is_some()
    }

    /// Returns whether the agent was there to get the signal. It is never exempt, whatever its name.
    pub(super) fn send_signal(
        &self,
        sent: EndSignal,
        target: SignalTarget,
        spec: &RunSpec,
    ) -> io::Result<bool> {
        let signal = sent.signal();
        if signal_checked(&self.agent, signal)? == SignalOutcome::Gone {
            return Ok(false);
        }
        if target == SignalTarget::Tree {
            signal_all_but(self.agent.pid, self.tree(spec), signal)?;
        }
        Ok(true)
    }

    /// Whether it is time to count: every ten seconds, and whenever the machine has so many new threads that
    /// ours may exceed the limit.
    pub(super) fn is_count_due(&self, now: Duration, max_processes: usize) -> bool {
        let headroom = max_processes.saturating_sub(self.usage.processes);
        let new_tasks = machine_tasks().saturating_sub(self.machine_tasks_at_count);
        now >= self.last_count + COUNT_INTERVAL || new_tasks >= headroom as u64
    }

    pub(super) fn count(&mut self, now: Duration) {
        self.last_count = now;
        self.machine_tasks_at_count = machine_tasks();
        self.usage = tree_usage(self.me, self.agent.pid, &self.owner);
    }

    pub(super) fn sweep(&mut self, spec: &RunSpec) -> io::Result<SweepReport> {
        // The cgroup must not change during the sweep.
        self.adoption.take().into_iter().for_each(Adoption::end);
        let mut exit = None;
        let scope = Scope { mark: Some(&spec.task), group: spec.group.as_ref(), ..self.tree(spec) };
        let agent = self.agent.pid;
        let report = sweep(scope, spec.sweep, &mut |pid, status| {
            if pid == agent {
                exit = exit_status(status);
            }
        });
        self.exit = self.exit.or(exit);
        report
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
