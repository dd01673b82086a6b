//! Starts a run: spawns the child, opens its pipes and initialises the loop's state.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use delegator_domain::crash::{CrashPoint, crash_point};
use rustix::process::getpid;

use super::super::dialogue::Dialogue;
use super::super::limits::{ActivitySampler, LimitTimers};
use super::super::output::{EventReader, Pipe, StderrReader};
use super::super::ports::{Ports, RunSpec};
use super::super::spawn::{SpawnedChild, spawn, spawn_verification};
use super::budgets::BudgetWatch;
use super::salvage::Salvage;
use super::talk::Talk;
use super::{Role, Run, machine_tasks};
use crate::conversation::ConversationPlan;
use crate::process::identity::open_pidfd;
use crate::process::niceness::AutogroupNiceness;
use crate::process::tree::TreeUsage;
use crate::process::{ProcessStat, read_stat};

/// The started process and our non-blocking ends of its pipes.
struct OpenedChild {
    pidfd: OwnedFd,
    stat: ProcessStat,
    dialogue: Dialogue,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
}

impl<'a> Run<'a> {
    pub(super) fn start(
        mut spec: RunSpec,
        role: Role,
        ports: &'a dyn Ports,
    ) -> Result<Run<'a>, (Box<RunSpec>, io::Error)> {
        let spawned = match role {
            Role::Agent => spawn(&spec, ports),
            Role::Verification { .. } => spawn_verification(&spec, ports),
        };
        let spawned = match spawned {
            Ok(spawned) => spawned,
            Err(error) => return Err((Box::new(spec), error)),
        };
        crash_point(CrashPoint::AgentSpawned);
        let started = Instant::now();
        let nothing = ConversationPlan::Once { stdin: Vec::new() };
        let conversation = std::mem::replace(&mut spec.plan.conversation, nothing);
        let child = match open_child(spawned, conversation) {
            Ok(child) => child,
            Err(error) => return Err((Box::new(spec), error)),
        };
        let me = getpid().as_raw_nonzero().get();
        let adoption = spec.group.as_ref().and_then(|group| group.adopt_descendants(me));
        let (stdout, stderr) = open_readers(&role, child.stdout, child.stderr, &spec, ports);
        Ok(Run {
            me,
            adoption,
            limit_timers: LimitTimers::new(spec.limits),
            sampler: ActivitySampler::new(spec.limits.idle, rustix::param::clock_ticks_per_second()),
            ports,
            owner: Box::new(|pid| ports.owner_of(pid)),
            agent: child.stat,
            agent_pidfd: child.pidfd,
            exit: None,
            started,
            ended_at: None,
            dialogue: child.dialogue,
            stdout,
            stderr,
            buffer: Vec::new(),
            cause: None,
            ending: None,
            finishing: None,
            talk: Talk::default(),
            tool_commands: Vec::new(),
            budgets: BudgetWatch::default(),
            salvage: Salvage::default(),
            signals: Vec::new(),
            is_forced: false,
            is_drained: false,
            last_tick: Duration::ZERO,
            last_upkeep: Duration::ZERO,
            autogroup_niceness: AutogroupNiceness::new(spec.niceness, spec.own_niceness > 0),
            last_count: Duration::ZERO,
            usage: TreeUsage { processes: 1, ticks: 0 },
            machine_tasks_at_count: machine_tasks(),
            thread_reported: false,
            prompt_reported: false,
            last_snapshot_counts: None,
            last_snapshot_at: None,
            percent: None,
            typical_duration: OnceCell::new(),
            spec,
        })
    }
}

/// Opens a pidfd and the pipes of a child. Kills and reaps the child if that fails.
fn open_child(spawned: SpawnedChild, conversation: ConversationPlan) -> io::Result<OpenedChild> {
    let SpawnedChild { mut child, stdin, stdout, stderr } = spawned;
    let opened = (|| {
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        // It is our child and not reaped, so the pid is still its own.
        let gone = || io::Error::other("/proc does not show the agent");
        let pidfd = open_pidfd(pid)?.ok_or_else(gone)?;
        let stat = read_stat(pid).ok_or_else(gone)?;
        let (stdout, stderr) = (Pipe::new(stdout)?, Pipe::new(stderr)?);
        Ok(OpenedChild { pidfd, stat, dialogue: Dialogue::new(conversation, stdin)?, stdout, stderr })
    })();
    if opened.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    opened
}

fn open_readers<'a>(
    role: &Role,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    spec: &RunSpec,
    ports: &'a dyn Ports,
) -> (Option<EventReader<'a, ChildStdout>>, StderrReader<'a, ChildStderr>) {
    let (max_bytes, redactor) = (spec.max_stream_bytes, &spec.redactor);
    match role {
        Role::Agent => {
            let events = EventReader::new(stdout, ports, max_bytes, redactor, spec.fold.clone());
            (Some(events), StderrReader::new(stderr, ports, max_bytes, redactor, spec.protocol))
        }
        Role::Verification { sentinel } => {
            let sentinel = sentinel.as_deref();
            (None, StderrReader::for_verification(stderr, ports, max_bytes, redactor, sentinel))
        }
    }
}
