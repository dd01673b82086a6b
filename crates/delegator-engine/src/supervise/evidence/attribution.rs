//! Decides which changes are the agent's. Pure.
//!
//! Files change during a task for many reasons: the user and other programs work in the same tree. A change is the
//! agent's if its events name the file, or if it was made while one of its commands ran that could write there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::command_times::CommandTimes;

/// Whose change it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// An event or a command of the agent explains it.
    #[default]
    Agent,
    /// The agent could have made it, but reports no events by which this could be verified.
    PossiblyAgent,
    /// Nothing that the agent did explains it.
    Unknown,
}

impl Attribution {
    pub fn name(self) -> &'static str {
        match self {
            Attribution::Agent => "agent",
            Attribution::PossiblyAgent => "possibly_agent",
            Attribution::Unknown => "unknown",
        }
    }
}

/// What is known about the agent's own doing.
#[derive(Debug, Default)]
pub(super) struct AgentActions {
    /// Paths that its events name, relative to the working directory.
    pub(super) named: BTreeSet<String>,
    /// Whether its commands could write; false if its sandbox is read-only.
    pub(super) may_write: bool,
    /// Whether its events name every change and every command.
    pub(super) has_complete_events: bool,
    /// It made calls that its events do not report in detail: of MCP tools, of other agents, or refused ones.
    pub(super) made_other_calls: bool,
    pub(super) commands: CommandTimes,
    /// When the task began.
    pub(super) since_ms: i64,
}

impl AgentActions {
    /// `changed_ms` is the time of the last change of a file; `None` if the file is gone.
    pub(super) fn attribute(&self, path: &str, changed_ms: Option<i64>) -> Attribution {
        if self.named.contains(path) || self.commands_explain(changed_ms) {
            Attribution::Agent
        } else if self.made_other_calls || (self.may_write && !self.has_complete_events) {
            Attribution::PossiblyAgent
        } else {
            Attribution::Unknown
        }
    }

    /// Whether its commands may have changed something at this time. A file that is gone, or that was moved with its
    /// directory, has no time of its own: then any command explains it.
    fn commands_explain(&self, changed_ms: Option<i64>) -> bool {
        let is_in_time = |changed_ms: i64| changed_ms < self.since_ms || self.commands.contains(changed_ms);
        self.may_write && !self.commands.is_empty() && changed_ms.is_none_or(is_in_time)
    }

    /// Whose commits were made, by the time of the newest one, which is in whole seconds.
    pub(super) fn attribute_commits(&self, newest_ms: i64) -> Attribution {
        let is_explained = [newest_ms, newest_ms + 999].iter().any(|at_ms| self.commands.contains(*at_ms));
        if self.may_write && is_explained {
            Attribution::Agent
        } else if self.made_other_calls || (self.may_write && !self.has_complete_events) {
            Attribution::PossiblyAgent
        } else {
            Attribution::Unknown
        }
    }

    /// Whether a move of HEAD may be the agent's, by the times of the new commits, in seconds: if one of them is not the
    /// agent's, the move is not.
    pub(super) fn may_have_moved_head(&self, commit_times: &[i64]) -> bool {
        let is_agents = |at: &i64| self.attribute_commits(at.saturating_mul(1000)) != Attribution::Unknown;
        self.may_change_anything() && commit_times.iter().all(is_agents)
    }

    /// Whether changes that no event can name, such as those of the index, may be the agent's.
    pub(super) fn may_change_anything(&self) -> bool {
        self.made_other_calls || (self.may_write && !(self.commands.is_empty() && self.has_complete_events))
    }
}

#[cfg(test)]
mod tests {
    use delegator_supervisor::run::CommandPhase;

    use super::*;

    /// An agent with events that edited `named` and ran a command from 10 s to 20 s.
    fn agent() -> AgentActions {
        let mut commands = CommandTimes::default();
        commands.record("1", CommandPhase::Started, 10_000);
        commands.record("1", CommandPhase::Ended, 20_000);
        AgentActions {
            named: BTreeSet::from(["named".to_owned()]),
            may_write: true,
            has_complete_events: true,
            made_other_calls: false,
            commands,
            since_ms: 5_000,
        }
    }

    #[test]
    fn events_and_commands_explain_changes() {
        for (path, changed_ms, expected) in [
            ("named", Some(30_000), Attribution::Agent),
            ("other", Some(15_000), Attribution::Agent),
            ("other", Some(30_000), Attribution::Unknown),
            ("other", Some(6_000), Attribution::Unknown),
            ("deleted", None, Attribution::Agent),
            ("in a renamed directory", Some(1_000), Attribution::Agent),
        ] {
            assert_eq!(agent().attribute(path, changed_ms), expected, "{path} {changed_ms:?}");
        }
        let without_commands = AgentActions { commands: CommandTimes::default(), ..agent() };
        assert_eq!(without_commands.attribute("deleted", None), Attribution::Unknown);
        assert!(!without_commands.may_change_anything() && agent().may_change_anything());
        assert_eq!(agent().attribute_commits(9_000), Attribution::Agent);
        assert_eq!(agent().attribute_commits(25_000), Attribution::Unknown);
        assert!(agent().may_have_moved_head(&[]) && agent().may_have_moved_head(&[15, 12]));
        assert!(!agent().may_have_moved_head(&[15, 5]), "one commit is not the agent's");
        assert!(!without_commands.may_have_moved_head(&[]));
    }

    #[test]
    fn a_read_only_sandbox_rules_out_the_agent() {
        let read_only = AgentActions { may_write: false, ..agent() };
        assert_eq!(read_only.attribute("other", Some(15_000)), Attribution::Unknown);
        assert_eq!(
            read_only.attribute("named", Some(15_000)),
            Attribution::Agent,
            "the event contradicts it"
        );
        let with_tools = AgentActions { may_write: false, made_other_calls: true, ..agent() };
        assert_eq!(with_tools.attribute("other", Some(15_000)), Attribution::PossiblyAgent);
    }

    #[test]
    fn an_agent_without_events_may_have_changed_anything() {
        let plain = AgentActions { may_write: true, ..AgentActions::default() };
        assert_eq!(plain.attribute("any", Some(1)), Attribution::PossiblyAgent);
        assert!(plain.may_change_anything());
    }
}
