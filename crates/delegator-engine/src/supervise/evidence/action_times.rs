//! When the commands and patches of an agent ran. Pure.
//!
//! A command may have written anything that its sandbox allows, from its start to its end. A patch wrote its
//! files in its own time; what changed them at another time was something else. An event is as old as the
//! time since the supervisor last found no event to read, which is long on a busy machine.

use std::collections::BTreeMap;

use delegator_supervisor::run::ActionPhase;

/// An agent may print the event of a start later than the action starts.
const PRINT_DELAY_MS: i64 = 1_000;
/// Beyond this number, the last period is extended.
const MAX_PERIODS: usize = 1_000;
/// Open actions that are tracked; agents have a handful.
const MAX_OPEN: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentTimes {
    pub(crate) commands: ActionTimes,
    pub(crate) patches: ActionTimes,
}

/// The periods in which at least one action of a kind ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ActionTimes {
    periods: Vec<(i64, i64)>,
    /// The earliest possible start of every action that has not ended.
    open: BTreeMap<String, i64>,
}

impl ActionTimes {
    /// Records an event that the agent printed between `after_ms` and `now_ms`.
    pub(crate) fn record(&mut self, item: &str, phase: ActionPhase, after_ms: i64, now_ms: i64) {
        let began_ms = after_ms.min(now_ms.saturating_sub(PRINT_DELAY_MS));
        match phase {
            ActionPhase::Started if self.open.len() < MAX_OPEN => {
                self.open.entry(item.to_owned()).or_insert(began_ms);
            }
            ActionPhase::Started => {}
            ActionPhase::Ended => {
                // An agent may report the end only.
                let began_ms = self.open.remove(item).unwrap_or(began_ms);
                self.add(began_ms, now_ms);
            }
        }
    }

    fn add(&mut self, began_ms: i64, ended_ms: i64) {
        let is_full = self.periods.len() >= MAX_PERIODS;
        match self.periods.last_mut() {
            Some(last) if is_full || (last.0 <= began_ms && began_ms <= last.1) => {
                last.1 = last.1.max(ended_ms);
            }
            _ => self.periods.push((began_ms, ended_ms)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.periods.is_empty() && self.open.is_empty()
    }

    pub(super) fn contains(&self, at_ms: i64) -> bool {
        let is_within = |(began, ended): &(i64, i64)| (*began..=*ended).contains(&at_ms);
        self.periods.iter().any(is_within) || self.open.values().any(|began| *began <= at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_covers_the_time_from_its_start_to_its_end() {
        let mut times = ActionTimes::default();
        assert!(times.is_empty() && !times.contains(0));
        for (item, phase, at) in [
            ("1", ActionPhase::Started, 10_000),
            ("2", ActionPhase::Started, 11_000),
            ("1", ActionPhase::Ended, 12_000),
            ("2", ActionPhase::Ended, 15_000),
            ("3", ActionPhase::Ended, 30_000),
            ("4", ActionPhase::Started, 40_000),
        ] {
            times.record(item, phase, at, at);
        }
        for (at, expected) in [
            (8_000, false),
            (9_500, true),
            (14_000, true),
            (15_001, false),
            (28_000, false),
            (29_500, true),
            (39_500, true),
            (99_000, true),
        ] {
            assert_eq!(times.contains(at), expected, "{at}");
        }
        assert_eq!(times.periods.len(), 2, "periods that touch are one");
    }

    #[test]
    fn a_command_whose_events_were_read_late_covers_the_delay() {
        let mut times = ActionTimes::default();
        times.record("1", ActionPhase::Started, 10_000, 20_000);
        times.record("1", ActionPhase::Ended, 10_000, 20_000);
        assert!(times.contains(10_500) && !times.contains(9_500));
    }
}
