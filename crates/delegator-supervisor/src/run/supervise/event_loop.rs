//! The loop of a run.
//!
//! One thread waits for output, space in the input pipe, the agent's exit, a wake-up or a deadline. Each
//! round reaps children, runs due actions, waits and reads, in this order: the agent's own exit and
//! everything it wrote before are always noticed before a limit is enforced.
//!
//! The exit of the process does not imply the end of its streams: a background process may hold the pipes
//! open forever. After the exit, only the bytes already in the pipes are read; then the sweep follows.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use delegator_domain::budget::BudgetLevel;
use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::LimitKind;
use delegator_transcript::TurnState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::state::Run;
use super::{TICK, UPKEEP_INTERVAL};
use crate::conversation::Control;
use crate::ending::{EndAction, EndingStep};
use crate::process::SweepReport;
use crate::verdict::Cause;

/// A wait that took this much longer than planned means that the supervisor itself was paused.
const MIN_PAUSE: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub(super) fn run_to_end(&mut self) -> io::Result<SweepReport> {
        // Expensive, so it is done while the agent starts.
        self.context.spec.redactor.prepare();
        if let Some(identity) = self.process.identity() {
            self.context.ports.on_started(&identity);
        }
        // States the limit also for an agent that prints nothing.
        if let Some(snapshot) = self.snapshot() {
            self.context.ports.on_snapshot(&snapshot);
        }
        if let Err(error) = self.run_loop() {
            // Without stdout and stderr the run cannot be supervised; fail it. The sweep ends the agent.
            self.ending.cause.get_or_insert(Cause::Internal { message: error.to_string() });
        }
        crash_point(CrashPoint::AgentReaped);
        self.process.autogroup_niceness.end_agent();
        self.ended_at = Some(self.context.now());
        if self.process.exit.is_some() {
            self.ending.record_exit();
        }
        self.streams.drain(&mut self.talk.dialogue);
        let report = self.process.sweep(&self.context.spec);
        crash_point(CrashPoint::AgentSwept);
        // Output of the swept processes.
        self.streams.drain(&mut self.talk.dialogue);
        self.talk.act_on_steps(&self.context, &mut self.ending);
        // No snapshot: the report follows.
        self.report_prompt_and_thread();
        report
    }

    fn run_loop(&mut self) -> io::Result<()> {
        self.check_cancel();
        while !self.process.reap(|pid, exit| self.talk.tool_commands.record_exit(pid, exit)) {
            let now = self.context.now();
            self.run_due_actions(now)?;
            if self.ending.current().is_some_and(|ending| ending.is_exhausted(now)) {
                break;
            }
            self.wait_and_read()?;
            self.report_prompt_and_thread();
            self.report_snapshot();
        }
        Ok(())
    }

    fn run_due_actions(&mut self, now: Duration) -> io::Result<()> {
        if now >= self.last_tick + TICK {
            self.last_tick = now;
            self.check_cancel();
            self.talk.pass_on_answers(&self.context, &mut self.ending);
            if self.process.is_count_due(now, self.context.spec.max_processes) {
                self.count_processes(now);
            }
            self.enforce_budgets(now);
            self.process.autogroup_niceness.set();
        }
        if now >= self.last_upkeep + UPKEEP_INTERVAL {
            self.last_upkeep = now;
            self.context.ports.periodic_upkeep();
        }
        self.request_report_if_due(now);
        self.continue_talk(now);
        if !self.ending.has_begun() {
            if let Some(warning) = self.limits.warning(now) {
                self.context.ports.on_warning(warning);
            }
            self.sample_activity(now);
            self.report_silence(now);
            self.enforce_limits(now);
        }
        // The ending may have begun in this round.
        match self.ending.next_step(self.context.now()) {
            Some(step) => self.take_step(step),
            None => Ok(()),
        }
    }

    fn continue_talk(&mut self, now: Duration) {
        let Run { context, talk, ending, limits, streams, .. } = self;
        talk.settle(now, context, ending, &mut streams.buffer);
        if !ending.is_forced() {
            if talk.is_agent_waiting() {
                limits.record_activity(now);
            }
            talk.continue_turns(now, context, ending);
        }
        streams.send_pending(&mut talk.dialogue);
    }

    fn take_step(&mut self, step: EndingStep) -> io::Result<()> {
        match step.action {
            EndAction::StopTurn => {
                self.ending.record_step(None);
                self.talk.control(Control::Interrupt, &self.context, &mut self.ending);
            }
            EndAction::CloseStdin => {
                self.ending.record_step(None);
                self.talk.dialogue.stdin.close();
            }
            EndAction::Signal { signal, target } => {
                // If the agent has exited by itself, nothing was sent.
                if self.process.send_signal(signal, target, &self.context.spec)? {
                    self.ending.record_step(Some(signal));
                }
            }
        }
        Ok(())
    }

    fn check_cancel(&mut self) {
        if let Some(request) = self.context.ports.cancel_requested() {
            self.ending.force(Cause::Cancelled { reason: request.reason }, &self.context);
        }
    }

    fn count_processes(&mut self, now: Duration) {
        self.process.count(now);
        let count = self.process.usage.processes;
        if count > self.context.spec.max_processes {
            self.ending.force(Cause::TooManyProcesses { count }, &self.context);
        }
    }

    /// Ends a turn that has exhausted a budget. Between two turns no further one is begun.
    fn enforce_budgets(&mut self, now: Duration) {
        let Some((exhausted, turn)) = self.record_budgets(now) else { return };
        match turn {
            TurnState::Completed | TurnState::Failed => self.talk.is_over = true,
            TurnState::None | TurnState::Running | TurnState::Interrupted => {
                self.ending.force(Cause::Budget(exhausted), &self.context);
            }
        }
    }

    fn request_report_if_due(&mut self, now: Duration) {
        let is_possible =
            self.context.spec.salvage && !self.ending.has_begun() && self.talk.can_request_report();
        if let Some(cause) = is_possible.then(|| self.near_limit(now)).flatten() {
            let request = self.talk.salvage.request(cause);
            self.talk.control(request, &self.context, &mut self.ending);
        }
    }

    fn near_limit(&self, now: Duration) -> Option<Cause> {
        if self.limits.is_hard_limit_near(now) {
            return Some(Cause::Limit(LimitKind::Hard));
        }
        let near = self.budgets.findings.iter().find(|finding| finding.level == BudgetLevel::Near);
        near.cloned().map(Cause::Budget)
    }

    fn sample_activity(&mut self, now: Duration) {
        if self.limits.is_sample_due(now) {
            self.count_processes(now);
            self.limits.record_sample(now, self.process.usage.ticks);
        }
    }

    fn report_silence(&mut self, now: Duration) {
        // Output that is not read yet is activity.
        if self.streams.is_drained
            && let Some((quiet, limit)) = self.limits.silence(now)
        {
            self.context.ports.on_silence(quiet, limit);
        }
    }

    /// The idle limit is enforced only when all available output has been read.
    fn enforce_limits(&mut self, now: Duration) {
        match self.limits.expired(now) {
            Some(LimitKind::Idle) if !self.streams.is_drained => {}
            Some(kind) => self.ending.force(Cause::Limit(kind), &self.context),
            None => {}
        }
    }

    fn report_prompt_and_thread(&mut self) {
        let Some(events) = &self.streams.stdout else { return };
        let problem = self.progress.report_prompt_and_thread(&self.context, events, &self.talk);
        if let Some(cause) = problem {
            self.ending.force(cause, &self.context);
        }
    }

    fn report_snapshot(&mut self) {
        let next = self.snapshot_source().and_then(|source| self.progress.next_snapshot(&source));
        if let Some((snapshot, last)) = next {
            self.progress.last_snapshot = Some(last);
            self.context.ports.on_snapshot(&snapshot);
        }
    }

    fn time_to_next_deadline(&self, now: Duration) -> Duration {
        let due = match self.ending.current() {
            Some(ending) => ending.next_due(),
            None => self.limits.next_deadline().min(self.talk.next_deadline(&self.context)),
        };
        let sample = if self.ending.is_forced() { None } else { self.limits.next_sample(now) };
        let next = due.min(self.last_tick + TICK).min(sample.unwrap_or(Duration::MAX));
        next.saturating_sub(now)
    }

    /// Waits for the next event, then reads and writes whatever is possible.
    fn wait_and_read(&mut self) -> io::Result<()> {
        let before = self.context.now();
        let timeout = self.time_to_next_deadline(before);
        let [_, is_stdout_ready, is_stderr_ready, is_stdin_ready, is_woken] = self.poll(timeout)?;
        let after = self.context.now();
        let overslept = after.saturating_sub(before + timeout);
        let was_paused = overslept > MIN_PAUSE;
        if was_paused {
            self.limits.exclude_pause(overslept);
        }
        if let (Some(events), false) = (&mut self.streams.stdout, is_stdout_ready || was_paused) {
            events.record_empty();
        }
        if self.streams.read_ready(is_stdout_ready, is_stderr_ready, &mut self.talk.dialogue) {
            self.limits.record_activity(after);
        }
        // Output that arrived during a pause may take another round to read.
        self.streams.is_drained &= !was_paused;
        if is_stdin_ready {
            self.talk.dialogue.stdin.write_some();
        }
        if is_woken {
            self.check_cancel();
            self.talk.pass_on_answers(&self.context, &mut self.ending);
        }
        Ok(())
    }

    /// Returns which are ready: the process, its streams, its input and what wakes us up.
    fn poll(&self, timeout: Duration) -> io::Result<[bool; 5]> {
        let stdout = self.streams.stdout.as_ref().and_then(|events| events.pipe.fd());
        let sources = [
            (Some(self.process.pidfd.as_fd()), PollFlags::IN),
            (stdout, PollFlags::IN),
            (self.streams.stderr.pipe.fd(), PollFlags::IN),
            (self.talk.dialogue.stdin.pending_fd(), PollFlags::OUT),
            (self.context.ports.wake_fd(), PollFlags::IN),
        ];
        let mut fd_indices = [None; 5];
        let mut fds = Vec::with_capacity(sources.len());
        for (fd_index, (fd, flags)) in fd_indices.iter_mut().zip(sources) {
            if let Some(fd) = fd {
                *fd_index = Some(fds.len());
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            }
        }
        let tools = self.talk.tool_commands.sources();
        fds.extend(tools.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fd_indices.map(|index| index.is_some_and(|index: usize| !fds[index].revents().is_empty())))
    }
}
