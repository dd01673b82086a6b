//! The progress of a task that has not ended, in our JSON and as text.
//!
//! The percentage comes from the agent's plan or is an estimate from similar tasks; every text marks an
//! estimate. Without either it is null, and activity and counts show what the agent does.

use delegator_engine::{Percent, PercentSource, Snapshot};
use delegator_transcript::Report;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::documents::document::plural;

const SOURCES: [&str; 2] = [source_name(PercentSource::Plan), source_name(PercentSource::History)];

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Progress {
    /// Null if neither a plan nor history tells it. A running task has at most 99: the end of a turn is not its end.
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// `plan`, or `history`: an estimate from the duration of similar tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = SOURCES))]
    pub progress_source: Option<&'static str>,
    /// The steps of the agent's plan.
    pub completed_steps: Option<u64>,
    pub total_steps: Option<u64>,
    pub current_activity: Option<String>,
    #[serde(flatten)]
    pub counts: Option<ActivityCounts>,
}

/// What the agent has done so far.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ActivityCounts {
    pub event_count: u64,
    pub command_count: u64,
    pub file_count: u64,
}

impl Progress {
    /// `None` if nothing is known yet.
    pub fn of_snapshot(snapshot: &Snapshot) -> Option<Progress> {
        let Snapshot { percent, current_activity, events, .. } = snapshot;
        let is_known = percent.is_some() || current_activity.is_some() || *events > 0;
        is_known.then(|| Progress {
            percent: snapshot.percent.map(|percent| percent.value),
            progress_source: snapshot.percent.map(|percent| source_name(percent.source)),
            completed_steps: snapshot.steps.map(|steps| steps.completed),
            total_steps: snapshot.steps.map(|steps| steps.total),
            current_activity: snapshot.current_activity.clone(),
            counts: Some(ActivityCounts {
                event_count: snapshot.events,
                command_count: snapshot.commands,
                file_count: snapshot.files,
            }),
        })
    }

    pub fn of_report(report: &Report) -> Option<Progress> {
        let progress = report.progress?;
        Some(Progress {
            percent: progress.percent,
            progress_source: progress.steps.map(|_| source_name(PercentSource::Plan)),
            completed_steps: progress.steps.map(|steps| steps.completed),
            total_steps: progress.steps.map(|steps| steps.total),
            current_activity: report.current_activity.clone(),
            counts: None,
        })
    }

    pub fn percent_text(&self) -> Option<String> {
        let is_estimate = self.progress_source == Some(source_name(PercentSource::History));
        let source = if is_estimate { PercentSource::History } else { PercentSource::Plan };
        self.percent.map(|value| percent_text(Percent { value, source }))
    }

    pub fn counts_text(&self) -> Option<String> {
        let counts = self.counts.as_ref()?;
        counts_text([counts.event_count, counts.command_count, counts.file_count])
    }
}

const fn source_name(source: PercentSource) -> &'static str {
    match source {
        PercentSource::Plan => "plan",
        PercentSource::History => "history",
    }
}

/// `50 %`, or `about 60 % (estimate)`.
pub fn percent_text(percent: Percent) -> String {
    match percent.source {
        PercentSource::Plan => format!("{} %", percent.value),
        PercentSource::History => format!("about {} % (estimate)", percent.value),
    }
}

/// `14 events, 3 commands, 2 files`, without zeros; `None` if nothing happened.
pub fn counts_text(counts: [u64; 3]) -> Option<String> {
    let known = counts.into_iter().zip(["event", "command", "file"]).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = known.map(|(count, name)| plural(count, name)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_marks_an_estimate() {
        for (percent, progress_source, expected) in [
            (Some(60), Some("history"), Some("about 60 % (estimate)")),
            (Some(50), Some("plan"), Some("50 %")),
            (Some(100), None, Some("100 %")),
            (None, None, None),
        ] {
            let progress = Progress {
                percent,
                progress_source,
                completed_steps: None,
                total_steps: None,
                current_activity: None,
                counts: None,
            };
            assert_eq!(progress.percent_text().as_deref(), expected);
        }
    }

    #[test]
    fn counts_omit_what_did_not_happen() {
        assert_eq!(counts_text([14, 1, 0]).as_deref(), Some("14 events, 1 command"));
        assert_eq!(counts_text([0, 0, 0]), None);
    }
}
