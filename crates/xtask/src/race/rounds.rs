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

    /// Takes one sample of a metric from every participant in every round.
    pub(crate) fn measure(
        &mut self,
        metric: Metric,
        rounds: usize,
        between: impl FnMut(&Arena) -> Result<(), LoadError>,
        mut sample: impl FnMut(&mut Participant, &Arena) -> Result<Option<f64>, LoadError>,
    ) -> Result<(), LoadError> {
        self.measure_all(&[metric], rounds, between, |_, participant, arena| sample(participant, arena))
    }

    /// Takes one sample of each metric from every participant in every round, so that the metrics can be compared with
    /// each other. `between` runs once per round.
    ///
    /// A sample is `None` if the participant does not offer what is measured. A participant that fails is out of this
    /// metric; the reason becomes its outcome.
    pub(crate) fn measure_all(
        &mut self,
        metrics: &[Metric],
        rounds: usize,
        mut between: impl FnMut(&Arena) -> Result<(), LoadError>,
        mut sample: impl FnMut(Metric, &mut Participant, &Arena) -> Result<Option<f64>, LoadError>,
    ) -> Result<(), LoadError> {
        metrics.iter().for_each(|metric| progress(metric.title()));
        let mut samples: BTreeMap<(usize, Metric), Vec<f64>> = BTreeMap::new();
        for _ in 0..rounds {
            between(self.arena)?;
            for metric in metrics.iter().copied() {
                for (index, participant) in self.participants.iter_mut().enumerate() {
                    self.deadline.check(metric.title())?;
                    let is_settled = participant.entry.outcomes.contains_key(&metric);
                    if participant.entry.problem.is_some() || is_settled {
                        continue;
                    }
                    match sample(metric, participant, self.arena) {
                        Ok(Some(value)) => samples.entry((index, metric)).or_default().push(value),
                        Ok(None) => {
                            participant.entry.outcomes.insert(metric, Outcome::NotOffered);
                        }
                        Err(LoadError::Interrupted) => return Err(LoadError::Interrupted),
                        Err(error) => fail(participant, self.arena, metric, &error),
                    }
                }
            }
        }
        for ((index, metric), values) in samples {
            if let Some(participant) = self.participants.get_mut(index) {
                participant.entry.outcomes.entry(metric).or_insert_with(|| median(values));
            }
        }
        Ok(())
    }
}

fn fail(participant: &mut Participant, arena: &Arena, metric: Metric, error: &LoadError) {
    progress(&format!("  {}: {error}", participant.entry.name));
    // A session with an open request would answer the next one late.
    participant.close(arena);
    participant.entry.outcomes.insert(metric, Outcome::Failed { reason: error.to_string() });
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
