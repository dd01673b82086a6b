//! What a person sees while a command waits for a task: the time since it was submitted, what its agent does or
//! what the task waits for, and the last line of the agent's last message.

use delegator_domain::task::State;
use delegator_domain::terminal;
use delegator_engine::{OverviewRequest, Percent, PercentSource, Snapshot, TaskProgress};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::commands::prelude::*;
use crate::output::data::progress::counts_text;
use crate::output::data::stored_task::seconds_since;
use crate::output::data::task_line::{Clock, TaskLine, activity};

const DEFAULT_COLUMNS: usize = 80;

#[derive(Debug)]
pub struct WaitProgress<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    pub bar: ProgressBar,
}

impl<'a> WaitProgress<'a> {
    pub fn new(context: &'a Context<'a>, engine: &'a Engine) -> WaitProgress<'a> {
        let is_shown = context.screen.presentation.shows_progress();
        let bar = if is_shown { ProgressBar::new(100) } else { ProgressBar::hidden() };
        // Nothing is drawn until there is something to show.
        WaitProgress { context, engine, bar: bar.with_style(style("")) }
    }

    pub fn show(&self, progressed: &TaskProgress<'_>) {
        if self.bar.is_hidden() {
            return;
        }
        let TaskProgress { task, snapshot } = progressed;
        let snapshot = snapshot.as_ref();
        let state = match (task.state, snapshot) {
            (State::Queued, _) => self.waiting_reason(task),
            (_, Some(snapshot)) => with_counts(snapshot),
            (_, None) => "starting".to_owned(),
        };
        let planned = snapshot.and_then(planned);
        self.bar.set_style(style(&template(planned.is_some(), &self.last_message(snapshot))));
        self.bar.set_position(planned.unwrap_or_default().into());
        self.bar.set_prefix(elapsed(seconds_since(task.created_at_ms, Timestamp::now().as_millisecond())));
        self.bar.set_message(terminal::sanitize(&state).into_owned());
        // Each tick turns the spinner, which shows that the program still waits.
        self.bar.tick();
    }

    /// Leaves the terminal to what is asked and typed.
    pub fn hide(&self) {
        self.bar.set_style(style(""));
        self.bar.tick();
    }

    /// As much as fits into one line, with an indentation.
    fn last_message(&self, snapshot: Option<&Snapshot>) -> String {
        let columns =
            self.context.screen.printer.terminal_size().map_or(DEFAULT_COLUMNS, |(columns, _)| columns);
        let line = snapshot.and_then(|snapshot| snapshot.last_message.as_deref()).unwrap_or_default();
        terminal::sanitize(line).chars().take(columns.saturating_sub(4)).collect()
    }

    /// Why a queued task does not run yet. An error here is one of the wait, too, which reports it.
    fn waiting_reason(&self, task: &Task) -> String {
        if task.remote.is_some() {
            return "waits for a worker".to_owned();
        }
        let only_this = OverviewRequest { only: vec![task.id.clone()], ..OverviewRequest::default() };
        let overview = self.engine.results().overview(&only_this).ok().flatten();
        let queued = overview.as_ref().and_then(|overview| overview.queued.tasks.first());
        let clock = Clock { now_ms: Timestamp::now().as_millisecond(), variables: &variables(self.context) };
        match (queued, &overview) {
            (Some(queued), Some(overview)) => TaskLine::queued(queued, overview.queue_paused, clock).state,
            _ => "starting".to_owned(),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    // Ours are valid, which the tests check.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Only the agent's plan tells how much is done; an estimate from similar tasks does not.
fn planned(snapshot: &Snapshot) -> Option<u8> {
    match snapshot.percent? {
        Percent { value, source: PercentSource::Plan } => Some(value),
        Percent { source: PercentSource::History, .. } => None,
    }
}

fn template(has_plan: bool, last_message: &str) -> String {
    let first = if has_plan {
        "{bar:20} {percent} %  {prefix}  {wide_msg}"
    } else {
        "{spinner} {prefix}  {wide_msg}"
    };
    if last_message.is_empty() {
        return first.to_owned();
    }
    // Braces are part of the template language.
    format!("{first}\n  {}", last_message.replace('{', "{{").replace('}', "}}"))
}

fn with_counts(snapshot: &Snapshot) -> String {
    let counts = counts_text([snapshot.events, snapshot.commands, snapshot.files]);
    format!("{}{}", activity(snapshot), counts.map(|counts| format!(" ({counts})")).unwrap_or_default())
}

/// `45s`, `2m 05s`, `1h 02m`.
fn elapsed(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_have_at_most_two_units() {
        for (seconds, expected) in
            [(0, "0s"), (59, "59s"), (125, "2m 05s"), (3_720, "1h 02m"), (90_000, "25h 00m")]
        {
            assert_eq!(elapsed(seconds), expected);
        }
    }

    #[test]
    fn only_a_plan_gives_a_percentage() {
        let snapshot =
            |source| Snapshot { percent: Some(Percent { value: 40, source }), ..Snapshot::default() };
        assert_eq!(planned(&snapshot(PercentSource::Plan)), Some(40));
        assert_eq!(planned(&snapshot(PercentSource::History)), None);
        assert_eq!(planned(&Snapshot::default()), None);
    }

    #[test]
    fn a_message_is_no_template() {
        for has_plan in [false, true] {
            assert!(ProgressStyle::with_template(&template(has_plan, "fn main() {wide_msg} }{")).is_ok());
        }
        assert_eq!(template(false, ""), "{spinner} {prefix}  {wide_msg}");
        assert!(template(true, "fn main() {msg}").ends_with("\n  fn main() {{msg}}"));
    }
}
