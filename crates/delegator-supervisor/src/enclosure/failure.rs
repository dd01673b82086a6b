//! How the supervisor learns that an enclosed agent never started.
//!
//! The internal mode has only its exit code and standard error to report it. An agent that imitates them only
//! misnames its own failure, and only if it prints nothing on standard output.

use std::fmt;

use delegator_domain::task::{ExitStatus, FailureKind, TaskEnd};

use super::arguments::Enclosure;
use super::mechanism::Mechanism;

const NOT_ENCLOSED: &str = "The agent could not be enclosed: ";
const NOT_STARTED: &str = "The enclosed agent could not be started: ";
/// `bwrap` could not execute the program.
const NOT_EXECUTED: &str = "execvp ";

/// Why the internal mode did not become the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartFailure {
    NotEnclosed(String),
    NotStarted(String),
}

impl StartFailure {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            StartFailure::NotEnclosed(_) => 125,
            StartFailure::NotStarted(_) => 126,
        }
    }

    /// The failure that a process reported when it exited.
    fn parse(code: i32, line: &str, mechanism: &Mechanism) -> Option<StartFailure> {
        let failure = if let Some(problem) = line.strip_prefix(NOT_ENCLOSED) {
            StartFailure::NotEnclosed(problem.to_owned())
        } else if let Some(problem) = line.strip_prefix(NOT_STARTED) {
            StartFailure::NotStarted(problem.to_owned())
        } else {
            let problem = line.strip_prefix("bwrap: ").filter(|_| code == 1)?;
            return match mechanism {
                Mechanism::Landlock => None,
                Mechanism::Bubblewrap { .. } if problem.starts_with(NOT_EXECUTED) => {
                    Some(StartFailure::NotStarted(problem.to_owned()))
                }
                Mechanism::Bubblewrap { .. } => Some(StartFailure::NotEnclosed(line.to_owned())),
            };
        };
        (code == i32::from(failure.exit_code())).then_some(failure)
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFailure::NotEnclosed(problem) => write!(f, "{NOT_ENCLOSED}{problem}"),
            StartFailure::NotStarted(problem) => write!(f, "{NOT_STARTED}{problem}"),
        }
    }
}

impl Enclosure {
    /// The end of a run that never started its agent, by the exit and the end of standard error. `None` if
    /// the agent started.
    pub(crate) fn start_failure(
        &self,
        exit: Option<ExitStatus>,
        printed: u64,
        stderr: &str,
    ) -> Option<TaskEnd> {
        let (Some(ExitStatus::Code(code)), 0) = (exit, printed) else { return None };
        let failure = StartFailure::parse(code, stderr.lines().next_back()?, &self.mechanism)?;
        let (kind, message) = match failure {
            StartFailure::NotEnclosed(problem) => {
                (FailureKind::Sandbox, format!("could not enclose the agent: {problem}"))
            }
            StartFailure::NotStarted(problem) => {
                (FailureKind::SpawnFailed, format!("could not start the agent: {problem}"))
            }
        };
        Some(TaskEnd::Failed { kind, message, retry_at_ms: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::path_rules::PathRules;
    use super::*;

    fn kind(mechanism: Mechanism, code: i32, printed: u64, stderr: &str) -> Option<FailureKind> {
        let enclosure = Enclosure { mechanism, launcher: "/m".into(), paths: PathRules::default() };
        let end = enclosure.start_failure(Some(ExitStatus::Code(code)), printed, stderr)?;
        match end {
            TaskEnd::Failed { kind, .. } => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn a_failed_start_differs_from_a_failed_agent() {
        let bubblewrap = || Mechanism::Bubblewrap { program: "/usr/bin/bwrap".into() };
        for failure in [StartFailure::NotEnclosed("x".into()), StartFailure::NotStarted("y".into())] {
            let expected = match failure {
                StartFailure::NotEnclosed(_) => FailureKind::Sandbox,
                StartFailure::NotStarted(_) => FailureKind::SpawnFailed,
            };
            let (code, line) = (i32::from(failure.exit_code()), format!("{failure}\n"));
            for mechanism in [Mechanism::Landlock, bubblewrap()] {
                assert_eq!(kind(mechanism, code, 0, &line), Some(expected));
            }
            assert_eq!(kind(Mechanism::Landlock, 1, 0, &line), None, "another exit code");
            assert_eq!(kind(Mechanism::Landlock, code, 1, &line), None, "the agent printed something");
        }
        let no_namespaces = "bwrap: setting up uid map: Permission denied\n";
        assert_eq!(kind(bubblewrap(), 1, 0, no_namespaces), Some(FailureKind::Sandbox));
        assert_eq!(
            kind(bubblewrap(), 1, 0, "bwrap: execvp /x: No such file\n"),
            Some(FailureKind::SpawnFailed)
        );
        assert_eq!(kind(Mechanism::Landlock, 1, 0, no_namespaces), None);
        assert_eq!(kind(bubblewrap(), 1, 0, "some error\n"), None);
    }
}
