//! Decides which changes are the agent's: its events name the file, or one of its commands that could write
//! there ran at that time. The user and other programs work in the same tree. Pure.

use std::collections::BTreeSet;

use delegator_domain::named_enum;
use delegator_git::Doubt;
use serde::{Deserialize, Serialize};

use super::action_times::AgentTimes;

named_enum! {
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Attribution {
        /// An event or a command of the agent explains it.
        #[default]
        Agent = "agent",
        /// The agent could have made it, but its events do not show whether it did.
        PossiblyAgent = "possibly_agent",
        /// Nothing that the agent did explains it.
        Unknown = "unknown",
    }
}

#[derive(Debug, Default)]
pub(super) struct AgentActions {
    /// Paths that its events name, relative to the working directory.
    pub(super) named: BTreeSet<String>,
    /// Paths of its patches that failed or did not end, which may have written some files nevertheless.
    pub(super) attempted: BTreeSet<String>,
    /// Whether its commands could write; false if its sandbox is read-only.
    pub(super) may_write: bool,
    /// Whether its events name every change and every command.
    pub(super) has_complete_events: bool,
    /// It called MCP tools, whose servers its sandbox does not restrict.
    pub(super) called_mcp_tools: bool,
    /// It made calls that its events do not report in detail: of other agents, or refused ones.
    pub(super) made_other_calls: bool,
    /// It renamed a file, and the new name is not known.
    pub(super) renamed_a_file: bool,
    pub(super) times: AgentTimes,
    pub(super) since_ms: i64,
}

impl AgentActions {
    /// `changed_ms` is the time of the last change of a file; `None` if the file is gone.
    pub(super) fn attribute(&self, path: &str, changed_ms: Option<i64>, is_added: bool) -> Attribution {
        let was_attempted = self.may_write && self.attempted.contains(path);
        if self.named.contains(path) || was_attempted || self.commands_explain(changed_ms) {
            Attribution::Agent
        } else if is_added && self.renamed_a_file {
            Attribution::PossiblyAgent
        } else {
            self.without_explanation()
        }
    }

    /// Why such a change may be another's as well; `None` if only the agent's actions explain it.
    pub(super) fn doubt(
        &self,
        path: &str,
        changed_ms: Option<i64>,
        attribution: Attribution,
    ) -> Option<Doubt> {
        let is_named = self.named.contains(path) || self.attempted.contains(path);
        match attribution {
            Attribution::Unknown => None,
            Attribution::PossiblyAgent => Some(Doubt::PossiblyAgent),
            Attribution::Agent if !is_named => Some(Doubt::DuringCommand),
            Attribution::Agent => {
                let at_ms = changed_ms.filter(|at_ms| *at_ms >= self.since_ms)?;
                let AgentTimes { commands, patches } = &self.times;
                // Without times of patches nothing is known about the time of a named change.
                let is_outside = !patches.is_empty() && !patches.contains(at_ms) && !commands.contains(at_ms);
                is_outside.then_some(Doubt::OutsideActions)
            }
        }
    }

    /// Whose a change is that no event and no command explains.
    fn without_explanation(&self) -> Attribution {
        let may_write_unnoticed = self.may_write && (self.made_other_calls || !self.has_complete_events);
        if self.called_mcp_tools || may_write_unnoticed {
            Attribution::PossiblyAgent
        } else {
            Attribution::Unknown
        }
    }

    /// Whether its commands may have changed something at this time. A file that is gone, or that was moved
    /// with its directory, has no time of its own: then any command explains it.
    fn commands_explain(&self, changed_ms: Option<i64>) -> bool {
        let is_in_time =
            |changed_ms: i64| changed_ms < self.since_ms || self.times.commands.contains(changed_ms);
        self.may_write && !self.times.commands.is_empty() && changed_ms.is_none_or(is_in_time)
    }

    /// Whose commits were made, by the time of the newest one, which is in whole seconds.
    pub(super) fn attribute_commits(&self, newest_ms: i64) -> Attribution {
        let is_explained =
            [newest_ms, newest_ms + 999].iter().any(|at_ms| self.times.commands.contains(*at_ms));
        if self.may_write && is_explained { Attribution::Agent } else { self.without_explanation() }
    }

    /// Whether a move of HEAD may be the agent's, by the times of the new commits, in seconds: if one of them
    /// is not the agent's, the move is not.
    pub(super) fn may_have_moved_head(&self, commit_times: &[i64]) -> bool {
        let is_agents = |at: &i64| self.attribute_commits(at.saturating_mul(1000)) != Attribution::Unknown;
        self.may_change_anything() && commit_times.iter().all(is_agents)
    }

    /// Whether changes that no event can name, such as those of the index, may be the agent's.
    pub(super) fn may_change_anything(&self) -> bool {
        self.without_explanation() != Attribution::Unknown
            || (self.may_write && !self.times.commands.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use delegator_supervisor::run::ActionPhase;

    use super::super::action_times::ActionTimes;
    use super::*;

    /// An agent with events that edited `named` and ran a command from 10 s to 20 s.
    fn agent() -> AgentActions {
        let mut commands = ActionTimes::default();
        commands.record("1", ActionPhase::Started, 10_000, 10_000);
        commands.record("1", ActionPhase::Ended, 20_000, 20_000);
        AgentActions {
            named: BTreeSet::from(["named".to_owned()]),
            may_write: true,
            has_complete_events: true,
            times: AgentTimes { commands, ..AgentTimes::default() },
            since_ms: 5_000,
            ..AgentActions::default()
        }
    }

    #[test]
    fn a_change_of_the_agent_is_doubtful_if_another_may_have_made_it() {
        let mut agent = agent();
        let doubt = |agent: &AgentActions, path: &str, changed_ms| {
            agent.doubt(path, changed_ms, agent.attribute(path, changed_ms, false))
        };
        assert_eq!(doubt(&agent, "named", Some(30_000)), None, "the time of the patch is not known");
        agent.times.patches.record("2", ActionPhase::Started, 25_000, 25_000);
        agent.times.patches.record("2", ActionPhase::Ended, 25_100, 25_100);
        for (path, changed_ms, expected) in [
            ("named", Some(25_050), None),
            ("named", Some(15_000), None),
            ("named", None, None),
            ("named", Some(30_000), Some(Doubt::OutsideActions)),
            ("named", Some(21_000), Some(Doubt::OutsideActions)),
            ("other", Some(15_000), Some(Doubt::DuringCommand)),
            ("deleted", None, Some(Doubt::DuringCommand)),
            ("other", Some(30_000), None),
        ] {
            assert_eq!(doubt(&agent, path, changed_ms), expected, "{path} {changed_ms:?}");
        }
        agent.has_complete_events = false;
        assert_eq!(doubt(&agent, "other", Some(30_000)), Some(Doubt::PossiblyAgent));
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
            assert_eq!(agent().attribute(path, changed_ms, false), expected, "{path} {changed_ms:?}");
        }
        let without_commands = AgentActions { times: AgentTimes::default(), ..agent() };
        assert_eq!(without_commands.attribute("deleted", None, false), Attribution::Unknown);
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
        assert_eq!(read_only.attribute("other", Some(15_000), false), Attribution::Unknown);
        assert_eq!(
            read_only.attribute("named", Some(15_000), false),
            Attribution::Agent,
            "the event contradicts it"
        );
        let with_tools = AgentActions { may_write: false, called_mcp_tools: true, ..agent() };
        assert_eq!(with_tools.attribute("other", Some(15_000), false), Attribution::PossiblyAgent);
        let attempted = BTreeSet::from(["other".to_owned()]);
        let in_sandbox = AgentActions { may_write: false, made_other_calls: true, attempted, ..agent() };
        assert_eq!(in_sandbox.attribute("other", Some(15_000), false), Attribution::Unknown);
    }

    #[test]
    fn patches_that_failed_and_renames_without_a_new_name_explain_changes() {
        let attempted = BTreeSet::from(["other".to_owned()]);
        let failed = AgentActions { attempted, ..agent() };
        assert_eq!(failed.attribute("other", Some(30_000), false), Attribution::Agent);
        let renamed = AgentActions { renamed_a_file: true, ..agent() };
        assert_eq!(renamed.attribute("new", Some(30_000), true), Attribution::PossiblyAgent);
        assert_eq!(renamed.attribute("new", Some(30_000), false), Attribution::Unknown, "not added");
    }

    #[test]
    fn an_agent_without_events_may_have_changed_anything() {
        let plain = AgentActions { may_write: true, ..AgentActions::default() };
        assert_eq!(plain.attribute("any", Some(1), false), Attribution::PossiblyAgent);
        assert!(plain.may_change_anything());
    }
}
