//! The figures of one race, as they are stored beside the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metrics::{Group, Metric};

/// One participant's result in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The median, and the number of samples.
    Median {
        value: f64,
        samples: usize,
    },
    /// The participant has no tool or command for it.
    NotOffered,
    Failed {
        reason: String,
    },
}

impl Outcome {
    pub(crate) fn value(&self) -> Option<f64> {
        match self {
            Outcome::Median { value, .. } => Some(*value),
            Outcome::NotOffered | Outcome::Failed { .. } => None,
        }
    }
}

/// Where a participant comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// This program, built with this cargo profile.
    Ours {
        profile: String,
    },
    Npm,
    PyPi,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) origin: Origin,
    /// The command it runs as the agent.
    pub(crate) agent: String,
    /// Whether a task can be started with one call and awaited with another.
    pub(crate) has_background_tasks: bool,
    pub(crate) tools: Option<usize>,
    /// Why nothing could be measured.
    pub(crate) problem: Option<String>,
    pub(crate) outcomes: BTreeMap<Metric, Outcome>,
}

impl Entry {
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.origin, Origin::Ours { .. })
    }

    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        self.outcomes.get(&metric)?.value()
    }
}

/// The state of the machine while a group was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) load1_before: f64,
    pub(crate) load1_after: f64,
    /// Percent of the processor time that the hypervisor gave to other machines.
    pub(crate) steal: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RaceResults {
    pub(crate) date: String,
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    /// Milliseconds of one agent alone.
    pub(crate) agent_alone: f64,
    /// Milliseconds of twenty agents at once, alone.
    pub(crate) twenty_agents_alone: f64,
    pub(crate) loads: BTreeMap<Group, Load>,
    pub(crate) entries: Vec<Entry>,
}

impl RaceResults {
    /// Our program; if several were measured, the one given last.
    pub(crate) fn ours(&self) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.is_ours())
    }

    /// The entries with the smallest value. Values that are written the same are equal.
    pub(crate) fn first(&self, metric: Metric) -> Vec<&Entry> {
        let values = self.entries.iter().filter_map(|entry| entry.value(metric));
        let Some(best) = values.min_by(f64::total_cmp) else { return Vec::new() };
        let written = metric.unit().format(best);
        let is_best =
            |entry: &&Entry| entry.value(metric).is_some_and(|value| metric.unit().format(value) == written);
        self.entries.iter().filter(is_best).collect()
    }
}
