//! The state of a run, one part per concern, and how it begins.

use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

use delegator_domain::budget::BudgetFinding;
use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_transcript::TurnState;

use super::super::dialogue::Dialogue;
use super::super::limits::LimitTimers;
use super::super::ports::{Ports, RunSpec, Snapshot};
use super::super::spawn::{spawn, spawn_verification};
use super::RunContext;
use super::agent_process::AgentProcess;
use super::budgets::BudgetWatch;
use super::progress::{ReportedProgress, SnapshotSource};
use super::run_ending::RunEnding;
use super::streams::{Role, Streams};
use super::talk::Talk;
use crate::conversation::ConversationPlan;

pub(super) struct Run<'a> {
    pub(super) context: RunContext<'a>,
    pub(super) process: AgentProcess<'a>,
    pub(super) streams: Streams<'a>,
    pub(super) talk: Talk,
    pub(super) limits: LimitTimers,
    pub(super) budgets: BudgetWatch,
    pub(super) ending: RunEnding,
    pub(super) progress: ReportedProgress,
    pub(super) last_tick: Duration,
    pub(super) last_upkeep: Duration,
    pub(super) ended_at: Option<Duration>,
}

impl<'a> Run<'a> {
    /// Starts the program. Also returns the specification if that fails.
    pub(super) fn start(
        mut spec: RunSpec,
        role: &Role,
        ports: &'a dyn Ports,
    ) -> Result<Run<'a>, (Box<RunSpec>, io::Error)> {
        let nothing = ConversationPlan::Once { stdin: Vec::new() };
        let conversation = std::mem::replace(&mut spec.plan.conversation, nothing);
        let spawned = match role {
            Role::Agent => spawn(&spec, ports),
            Role::Verification { .. } => spawn_verification(&spec, ports),
        };
        let opened = spawned.and_then(|child| {
            crash_point(CrashPoint::AgentSpawned);
            Ok((Instant::now(), open_child(child, conversation, role, &spec, ports)?))
        });
        let (started, (process, streams, talk)) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err((Box::new(spec), error)),
        };
        Ok(Run {
            process,
            streams,
            talk,
            limits: LimitTimers::new(spec.limits, rustix::param::clock_ticks_per_second()),
            budgets: BudgetWatch::default(),
            ending: RunEnding::default(),
            progress: ReportedProgress::default(),
            last_tick: Duration::ZERO,
            last_upkeep: Duration::ZERO,
            ended_at: None,
            context: RunContext { spec, ports, started },
        })
    }

    pub(super) fn record_budgets(&mut self, now: Duration) -> Option<(BudgetFinding, TurnState)> {
        let events = self.streams.stdout.as_ref().filter(|_| !self.context.spec.budgets.is_empty())?;
        let report = events.summarizer.report();
        let exhausted = self.budgets.update(now, &self.context, &report)?;
        Some((exhausted, report.turn))
    }

    /// The progress now. A verification has none.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        self.snapshot_source().map(|source| self.progress.snapshot(&source))
    }

    pub(super) fn snapshot_source(&self) -> Option<SnapshotSource<'_, 'a>> {
        let now = self.context.now();
        Some(SnapshotSource {
            run: &self.context,
            events: self.streams.stdout.as_ref()?,
            budgets: &self.budgets,
            now,
            stderr_bytes: self.streams.stderr.pipe.received,
            quiet: self.limits.idle_time(now),
            processes: self.process.usage.processes,
        })
    }
}

type OpenedChild<'a> = (AgentProcess<'a>, Streams<'a>, Talk);

/// Opens a pidfd and the pipes of a child. Kills and reaps the child if that fails.
fn open_child<'a>(
    mut child: Child,
    conversation: ConversationPlan,
    role: &Role,
    spec: &RunSpec,
    ports: &'a dyn Ports,
) -> io::Result<OpenedChild<'a>> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let opened = (|| {
        let process = AgentProcess::open(&child, spec, ports)?;
        let talk = Talk::new(Dialogue::new(conversation, stdin)?);
        Ok((process, Streams::open(stdout, stderr, role, spec, ports)?, talk))
    })();
    if opened.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    opened
}
