//! The numbers of progress notifications, as pure functions of what is known about the awaited tasks.
//!
//! As soon as a percentage is known, for example from the agent's plan, the scale of a call is percent of
//! `total` 100 (of several tasks, the ended ones). Until then it is seconds since the start of the task of
//! `total` its hard limit, and before the tasks are known there is no `total`. Every value is greater than
//! the one before, as MCP requires, and less than `total`: while nothing new is known, values grow by
//! fractions below 1, and if many more seconds were reported than the first percentage, that and its `total`
//! are multiplied. A wait for the user before the tasks counts its own seconds.

use std::time::Duration;

use delegator_engine::{Percent, PercentSource, Snapshot};
use delegator_registry::Task;

use crate::output::data::progress::percent_text;

/// What is known about the awaited tasks.
#[derive(Debug, Default)]
pub struct TaskPosition {
    /// What is done, in percent.
    done: Option<f64>,
    time: Option<Share>,
    /// The percentage of a single task.
    percent: Option<Percent>,
    /// What the tasks do now, for a person.
    activity: String,
    /// Something else is awaited, before the tasks: it does not choose the scale.
    is_before_tasks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Share {
    part: f64,
    total: f64,
}

impl TaskPosition {
    /// A position of which only a text is known.
    pub fn unknown(activity: impl Into<String>) -> TaskPosition {
        TaskPosition { activity: activity.into(), ..TaskPosition::default() }
    }

    /// A wait for something else than tasks, such as the user.
    pub fn before_tasks(activity: &str, elapsed: Duration, limit: Duration) -> TaskPosition {
        let time = Share { part: elapsed.as_secs_f64(), total: limit.as_secs_f64() };
        TaskPosition { time: Some(time), is_before_tasks: true, ..TaskPosition::unknown(activity) }
    }

    /// `limit_sec` is the hard limit of the task, which is known from its submission on.
    pub fn of_task(
        task: &Task,
        snapshot: Option<&Snapshot>,
        limit_sec: Option<u64>,
        now_ms: i64,
    ) -> TaskPosition {
        let elapsed_ms = now_ms - task.started_at_ms.unwrap_or(now_ms);
        let limit_sec = limit_sec.filter(|limit| *limit > 0);
        let is_running = !task.state.is_terminal() && task.started_at_ms.is_some();
        let snapshot = snapshot.filter(|_| is_running);
        let activity = snapshot.and_then(|snapshot| snapshot.current_activity.clone());
        let percent = snapshot.and_then(|snapshot| snapshot.percent);
        TaskPosition {
            done: percent.map(|percent| percent.value.into()),
            percent,
            time: limit_sec.map(|limit| Share { part: elapsed_ms as f64 / 1000.0, total: limit as f64 }),
            activity: activity.unwrap_or_else(|| format!("Waiting for {}", task.id)),
            is_before_tasks: false,
        }
    }

    /// Only the ended ones of several tasks count: how much of the others is done is not known for all of
    /// them.
    pub fn of_tasks(tasks: &[Task]) -> TaskPosition {
        let ended = tasks.iter().filter(|task| task.state.is_terminal()).count();
        TaskPosition {
            done: Some(100.0 * ended as f64 / tasks.len().max(1) as f64),
            ..TaskPosition::unknown(format!("{ended} of {} tasks ended", tasks.len()))
        }
    }
}

/// So many seconds may have been reported before the first percentage without a change of its `total`.
const MAX_EXCESS: f64 = 25.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Percent,
    Seconds,
}

#[derive(Debug, PartialEq)]
pub struct ProgressValue {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: String,
}

/// The notifications of one call.
#[derive(Debug, Default)]
pub struct ProgressScale {
    unit: Option<(Unit, f64)>,
    /// The last value that was known, and how often nothing greater was known since.
    known: Option<f64>,
    repeats: u32,
}

impl ProgressScale {
    pub fn next(&mut self, position: &TaskPosition) -> ProgressValue {
        let in_seconds = position.time.map(|time| (Unit::Seconds, time.total));
        let unit = match (self.unit, position.done) {
            (Some(percent @ (Unit::Percent, _)), _) => Some(percent),
            (_, Some(done)) => Some((Unit::Percent, 100.0 * self.factor_above_last(done))),
            (chosen, None) => chosen.or(in_seconds),
        };
        if !position.is_before_tasks {
            self.unit = unit;
        }
        let share = match unit {
            Some((Unit::Percent, total)) => {
                position.done.map(|done| Share { part: done * total / 100.0, total })
            }
            Some((Unit::Seconds, _)) => position.time,
            None => None,
        };
        let total = unit.map(|(_, total)| total);
        // At most one below the total, so that the fractions stay below it.
        let known = share.map_or(0.0, |share| share.part.max(0.0)).min(total.unwrap_or(1.0) - 1.0);
        if self.known.is_none_or(|_| known > self.last()) {
            (self.known, self.repeats) = (Some(known), 0);
        } else {
            self.repeats = self.repeats.saturating_add(1);
        }
        ProgressValue { progress: self.last(), total, message: message(unit, position, share) }
    }

    /// The least whole number by which a percentage must be multiplied to be greater than the last value. A
    /// percentage that is only a little less is not multiplied: it soon exceeds that value.
    fn factor_above_last(&self, percent: f64) -> f64 {
        if self.last() < MAX_EXCESS { 1.0 } else { (self.last() / percent.max(1.0)).floor() + 1.0 }
    }

    fn last(&self) -> f64 {
        let repeats = f64::from(self.repeats);
        self.known.unwrap_or_default() + repeats / (repeats + 1.0)
    }
}

fn message(unit: Option<(Unit, f64)>, position: &TaskPosition, share: Option<Share>) -> String {
    let TaskPosition { percent, activity, .. } = position;
    match (unit, share, percent) {
        (Some((Unit::Seconds, total)), Some(time), _) => {
            let (elapsed, limit) = (grouped(time.part as u64), grouped(total as u64));
            format!("{elapsed} s of at most {limit} s: {activity}")
        }
        // The wording of the tool envelope's specification.
        (_, _, Some(Percent { value, source: PercentSource::Plan })) => {
            format!("{value}% complete: {activity}")
        }
        (_, _, Some(estimate)) => format!("{}: {activity}", percent_text(*estimate)),
        _ => activity.clone(),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(part: f64) -> TaskPosition {
        let percent = Some(Percent { value: part as u8, source: PercentSource::Plan });
        TaskPosition { done: Some(part), percent, ..seconds(part) }
    }

    fn seconds(part: f64) -> TaskPosition {
        let time = Some(Share { part, total: 1200.0 });
        TaskPosition { time, ..TaskPosition::unknown("Running cargo test") }
    }

    fn values(positions: impl IntoIterator<Item = TaskPosition>) -> Vec<ProgressValue> {
        let mut scale = ProgressScale::default();
        positions.into_iter().map(|position| scale.next(&position)).collect()
    }

    #[test]
    fn a_wait_for_the_user_counts_its_seconds_and_leaves_the_scale_to_the_tasks() {
        let user =
            |sec| TaskPosition::before_tasks("Waiting", Duration::from_secs(sec), Duration::from_secs(600));
        let values = values([TaskPosition::unknown("Run"), user(5), user(10), seconds(12.0)]);
        let numbers: Vec<_> = values.iter().map(|value| (value.progress, value.total)).collect();
        assert_eq!(numbers, [(0.0, None), (5.0, Some(600.0)), (10.0, Some(600.0)), (12.0, Some(1200.0))]);
        assert_eq!(values[1].message, "5 s of at most 600 s: Waiting");
    }

    #[test]
    fn a_known_percentage_is_progress_of_one_hundred() {
        let values = values([TaskPosition::unknown("Wait"), percent(0.0), percent(50.0), percent(50.0)]);
        let numbers: Vec<_> = values.iter().map(|value| (value.progress, value.total)).collect();
        let total = Some(100.0);
        assert_eq!(numbers, [(0.0, None), (0.5, total), (50.0, total), (50.5, total)]);
        assert_eq!(values[3].message, "50% complete: Running cargo test");
    }

    #[test]
    fn without_a_percentage_progress_is_seconds_of_the_hard_limit() {
        let values = values([TaskPosition::unknown("Wait"), seconds(12.25)]);
        assert_eq!((values[1].progress, values[1].total), (12.25, Some(1200.0)));
        assert_eq!(values[1].message, "12 s of at most 1,200 s: Running cargo test");
    }

    #[test]
    fn the_scale_is_percent_as_soon_as_a_percentage_is_known() {
        let numbers = |positions: Vec<TaskPosition>| -> Vec<_> {
            values(positions).iter().map(|value| (value.progress, value.total.unwrap())).collect()
        };
        let soon = numbers(vec![seconds(10.05), percent(50.0), percent(50.0), percent(75.0)]);
        assert_eq!(soon, [(10.05, 1200.0), (50.0, 100.0), (50.5, 100.0), (75.0, 100.0)]);
        let early = numbers(vec![seconds(12.0), percent(0.0), percent(50.0)]);
        assert_eq!(early, [(12.0, 1200.0), (12.5, 100.0), (50.0, 100.0)]);
        let late = numbers(vec![seconds(300.0), percent(25.0), percent(50.0), percent(50.0)]);
        assert_eq!(late, [(300.0, 1200.0), (325.0, 1300.0), (650.0, 1300.0), (650.5, 1300.0)]);
        let estimate = Some(Percent { value: 75, source: PercentSource::History });
        let known_later = TaskPosition { done: percent(75.0).done, percent: estimate, ..seconds(20.0) };
        let values = values([seconds(10.0), known_later]);
        assert_eq!((values[1].progress, values[1].total), (75.0, Some(100.0)));
        assert_eq!(values[1].message, "about 75 % (estimate): Running cargo test");
    }

    #[test]
    fn a_percentage_that_is_not_known_any_more_leaves_the_scale() {
        let mut lost = seconds(20.0);
        lost.time = None;
        let values = values([percent(40.0), lost]);
        assert_eq!((values[1].progress, values[1].total), (40.5, Some(100.0)));
        assert_eq!(values[1].message, "Running cargo test");
    }

    #[test]
    fn values_always_grow_and_stay_below_the_total() {
        // A new turn begins at 0 again, a clock is set back, and a task ends later than its limit.
        for parts in [vec![10.0, 99.0, 0.0, 99.0, 50.0], vec![30.0, 3.0, -5.0, 31.0, 1300.0, 1300.0, 1.0]] {
            let make = if parts[0] < 20.0 { percent } else { seconds };
            let mut last = -1.0;
            for value in values(parts.into_iter().cycle().take(20_000).map(make)) {
                assert!(
                    value.progress > last && Some(value.progress) < value.total,
                    "{value:?} after {last}"
                );
                last = value.progress;
            }
        }
    }
}
