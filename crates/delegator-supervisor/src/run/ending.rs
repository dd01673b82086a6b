//! How an agent is ended: signals, each followed by a grace period.
//!
//! `Ending` is pure: it gets the time and returns the step that is due. The caller stops when the process is gone.

use std::time::Duration;

use rustix::process::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    Interrupt,
    Terminate,
    Kill,
}

impl EndSignal {
    pub fn name(self) -> &'static str {
        match self {
            EndSignal::Interrupt => "SIGINT",
            EndSignal::Terminate => "SIGTERM",
            EndSignal::Kill => "SIGKILL",
        }
    }

    pub(crate) fn signal(self) -> Signal {
        match self {
            EndSignal::Interrupt => Signal::INT,
            EndSignal::Terminate => Signal::TERM,
            EndSignal::Kill => Signal::KILL,
        }
    }
}

/// Which processes get a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    Agent,
    /// The agent and everything that descends from it.
    Tree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndingStep {
    pub signal: EndSignal,
    pub target: SignalTarget,
    /// How long to wait before the next step.
    pub grace: Duration,
}

/// The steps in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingRecipe {
    pub steps: Vec<EndingStep>,
}

/// A killed process is gone at once, or stuck in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(2);

impl EndingRecipe {
    /// SIGINT to the agent, which lets it end its own commands; SIGTERM to the tree; SIGKILL to the tree. Commands of Codex
    /// run in their own sessions, so only signals to the whole process tree reach them otherwise.
    pub fn graceful(after_interrupt: Duration, after_terminate: Duration) -> EndingRecipe {
        let step = |signal, target, grace| EndingStep { signal, target, grace };
        EndingRecipe {
            steps: vec![
                step(EndSignal::Interrupt, SignalTarget::Agent, after_interrupt),
                step(EndSignal::Terminate, SignalTarget::Tree, after_terminate),
                step(EndSignal::Kill, SignalTarget::Tree, AFTER_KILL),
            ],
        }
    }

    /// SIGTERM to the tree, SIGKILL to the tree.
    pub fn terminate(grace: Duration) -> EndingRecipe {
        let mut recipe = EndingRecipe::graceful(Duration::ZERO, grace);
        recipe.steps.remove(0);
        recipe
    }

    /// SIGKILL to the tree at once, for runs that must not continue.
    pub fn kill() -> EndingRecipe {
        let step = EndingStep { signal: EndSignal::Kill, target: SignalTarget::Tree, grace: AFTER_KILL };
        EndingRecipe { steps: vec![step] }
    }
}

/// An ending in progress.
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

    /// When the next step is due.
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
        let mut signal = |at: u64| ending.next_step(seconds(at)).map(|step| step.signal);
        assert_eq!(signal(10), Some(EndSignal::Interrupt));
        assert_eq!(signal(14), None);
        assert_eq!(signal(15), Some(EndSignal::Terminate));
        assert_eq!(signal(19), None);
        assert_eq!(signal(21), Some(EndSignal::Kill));
        assert_eq!(signal(30), None);
        assert!(!ending.is_exhausted(seconds(22)) && ending.is_exhausted(seconds(23)));
    }
}
