//! Interleaved rounds: every participant in turn, again and again, so that a change of the load meets all of them.

#![expect(clippy::print_stderr, reason = "reports the progress of the race")]

use std::collections::BTreeMap;

use super::arena::Arena;
use super::metrics::Metric;
use super::participant::Participant;
use super::results::Outcome;
use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::figures::percentile;

/// What the rounds of the race share.
#[derive(Debug)]
pub(crate) struct Race<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) deadline: &'a Deadline,
    pub(crate) participants: &'a mut Vec<Participant>,
    pub(crate) rounds: usize,
}

impl Race<'_> {
    /// Fewer rounds for what takes long.
    pub(crate) fn few_rounds(&self) -> usize {
        few(self.rounds)
    }

    /// Takes one sample of a metric from every participant in every round. `between` runs once per round.
    ///
    /// A sample is `None` if the participant does not offer what is measured. A participant that fails is out of this
    /// metric; the reason becomes its outcome.
    pub(crate) fn measure(
        &mut self,
        metric: Metric,
        rounds: usize,
        mut between: impl FnMut(&Arena) -> Result<(), LoadError>,
        mut sample: impl FnMut(&mut Participant, &Arena) -> Result<Option<f64>, LoadError>,
    ) -> Result<(), LoadError> {
        progress(metric.title());
        let mut samples: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for _ in 0..rounds {
            between(self.arena)?;
            for (index, participant) in self.participants.iter_mut().enumerate() {
                self.deadline.check(metric.title())?;
                if participant.entry.problem.is_some() || participant.entry.outcomes.contains_key(&metric) {
                    continue;
                }
                match sample(participant, self.arena) {
                    Ok(Some(value)) => samples.entry(index).or_default().push(value),
                    Ok(None) => {
                        participant.entry.outcomes.insert(metric, Outcome::NotOffered);
                    }
                    Err(LoadError::Interrupted) => return Err(LoadError::Interrupted),
                    Err(error) => {
                        progress(&format!("  {}: {error}", participant.entry.name));
                        // A session with an open request would answer the next one late.
                        participant.close(self.arena);
                        let reason = error.to_string();
                        participant.entry.outcomes.insert(metric, Outcome::Failed { reason });
                    }
                }
            }
        }
        for (index, values) in samples {
            if let Some(participant) = self.participants.get_mut(index) {
                participant.entry.outcomes.entry(metric).or_insert_with(|| median(values));
            }
        }
        Ok(())
    }
}

/// The rounds for what takes long.
pub(crate) fn few(rounds: usize) -> usize {
    rounds.min(5)
}

pub(crate) fn progress(text: &str) {
    eprintln!("race: {text}");
}

pub(crate) fn median(mut values: Vec<f64>) -> Outcome {
    Outcome::Median { samples: values.len(), value: percentile(&mut values, 50.0) }
}
