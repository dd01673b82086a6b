//! How an agent is ended: a few steps, from a request of its protocol to SIGKILL, each followed by a grace
//! period.
//!
//! `Ending` is pure: it gets the time and returns the step that is due. The caller stops when the process is
//! gone.

use std::time::Duration;

use delegator_domain::named_enum;
use rustix::process::Signal;

named_enum! {
    pub enum EndSignal {
        Interrupt = "SIGINT",
        Terminate = "SIGTERM",
        Kill = "SIGKILL",
    }
}

impl EndSignal {
    pub(crate) fn signal(self) -> Signal {
        match self {
            EndSignal::Interrupt => Signal::INT,
            EndSignal::Terminate => Signal::TERM,
            EndSignal::Kill => Signal::KILL,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    Agent,
    /// The agent and everything that descends from it.
    Tree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndAction {
    /// The protocol's own way to stop a turn. The next step follows as soon as the turn has ended.
    StopTurn,
    CloseStdin,
    Signal {
        signal: EndSignal,
        target: SignalTarget,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndingStep {
    pub(crate) action: EndAction,
    pub(crate) grace: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingRecipe {
    steps: Vec<EndingStep>,
}

/// A killed process is gone at once, or stuck in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(2);
const AFTER_STOP: Duration = Duration::from_secs(2);
const AFTER_CLOSE: Duration = Duration::from_secs(3);

const fn signal(signal: EndSignal, target: SignalTarget, grace: Duration) -> EndingStep {
    EndingStep { action: EndAction::Signal { signal, target }, grace }
}

impl EndingRecipe {
    /// SIGINT to the agent, which lets it end its own commands; SIGTERM to the tree; SIGKILL to the tree.
    /// Commands of Codex run in their own sessions, so only signals to the whole process tree reach them
    /// otherwise.
    pub fn graceful(after_interrupt: Duration, after_terminate: Duration) -> EndingRecipe {
        let interrupt = signal(EndSignal::Interrupt, SignalTarget::Agent, after_interrupt);
        EndingRecipe { steps: [vec![interrupt], EndingRecipe::terminate(after_terminate).steps].concat() }
    }

    /// SIGTERM to the tree, SIGKILL to the tree.
    pub fn terminate(grace: Duration) -> EndingRecipe {
        let terminate = signal(EndSignal::Terminate, SignalTarget::Tree, grace);
        EndingRecipe { steps: [vec![terminate], EndingRecipe::kill().steps].concat() }
    }

    /// SIGKILL to the tree at once, for runs that must not continue.
    pub fn kill() -> EndingRecipe {
        EndingRecipe { steps: vec![signal(EndSignal::Kill, SignalTarget::Tree, AFTER_KILL)] }
    }

    /// The same without the steps of a conversation.
    pub(crate) fn signals_only(mut self) -> EndingRecipe {
        self.steps.retain(|step| matches!(step.action, EndAction::Signal { .. }));
        self
    }

    /// For an agent that converses and has no turn to stop: closes its input, then terminates it.
    pub fn close(terminate_grace: Duration) -> EndingRecipe {
        let close = EndingStep { action: EndAction::CloseStdin, grace: AFTER_CLOSE };
        EndingRecipe { steps: [vec![close], EndingRecipe::terminate(terminate_grace).steps].concat() }
    }

    /// For an agent that converses: stops its turn, then ends it as after its last turn.
    pub fn stop_turn(finish: EndingRecipe) -> EndingRecipe {
        let stop = EndingStep { action: EndAction::StopTurn, grace: AFTER_STOP };
        EndingRecipe { steps: [vec![stop], finish.steps].concat() }
    }
}

#[derive(Debug)]
pub(crate) struct Ending {
    recipe: EndingRecipe,
    next: usize,
    due: Duration,
}

impl Ending {
    pub(crate) fn start(recipe: EndingRecipe, now: Duration) -> Ending {
        Ending { recipe, next: 0, due: now }
    }

    /// Returns each step once, when it is due.
    pub(crate) fn next_step(&mut self, now: Duration) -> Option<EndingStep> {
        let step = *self.recipe.steps.get(self.next).filter(|_| now >= self.due)?;
        self.next += 1;
        self.due = now + step.grace;
        Some(step)
    }

    /// The turn that was to be stopped has ended: the next step is due.
    pub(crate) fn turn_ended(&mut self, now: Duration) {
        let last = self.next.checked_sub(1).and_then(|last| self.recipe.steps.get(last));
        if last.is_some_and(|step| step.action == EndAction::StopTurn) {
            self.due = now;
        }
    }

    pub(crate) fn next_due(&self) -> Duration {
        self.due
    }

    /// Whether every step was taken and the last grace period is over.
    pub(crate) fn is_exhausted(&self, now: Duration) -> bool {
        self.next >= self.recipe.steps.len() && now >= self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_spaced_by_their_grace() {
        let seconds = Duration::from_secs;
        let mut ending = Ending::start(EndingRecipe::graceful(seconds(5), seconds(5)), seconds(10));
        let mut signal = |at: u64| match ending.next_step(seconds(at))?.action {
            EndAction::Signal { signal, .. } => Some(signal),
            EndAction::StopTurn | EndAction::CloseStdin => None,
        };
        assert_eq!(signal(10), Some(EndSignal::Interrupt));
        assert_eq!(signal(14), None);
        assert_eq!(signal(15), Some(EndSignal::Terminate));
        assert_eq!(signal(19), None);
        assert_eq!(signal(21), Some(EndSignal::Kill));
        assert_eq!(signal(30), None);
        assert!(!ending.is_exhausted(seconds(22)) && ending.is_exhausted(seconds(23)));
    }

    #[test]
    fn a_turn_that_has_ended_is_not_waited_for() {
        let seconds = Duration::from_secs;
        let mut ending =
            Ending::start(EndingRecipe::stop_turn(EndingRecipe::close(seconds(5))), Duration::ZERO);
        let action = |ending: &mut Ending, at: u64| ending.next_step(seconds(at)).map(|step| step.action);
        assert_eq!(action(&mut ending, 0), Some(EndAction::StopTurn));
        assert_eq!(action(&mut ending, 1), None);
        ending.turn_ended(seconds(1));
        assert_eq!(action(&mut ending, 1), Some(EndAction::CloseStdin));
        ending.turn_ended(seconds(1));
        assert_eq!(action(&mut ending, 2), None, "the agent has time to exit");
    }

    #[test]
    fn an_agent_that_ignores_the_end_of_its_input_is_terminated_as_soon_as_its_turn_has_ended() {
        let seconds = Duration::from_secs;
        let finish = EndingRecipe::terminate(seconds(5));
        let mut ending = Ending::start(EndingRecipe::stop_turn(finish), Duration::ZERO);
        assert_eq!(ending.next_step(Duration::ZERO).unwrap().action, EndAction::StopTurn);
        ending.turn_ended(Duration::ZERO);
        let action = ending.next_step(Duration::ZERO).unwrap().action;
        assert!(matches!(action, EndAction::Signal { signal: EndSignal::Terminate, .. }), "{action:?}");
    }
}
