//! What every template needs: who looks, and texts that are safe to show.

use delegator_domain::terminal;
use delegator_engine::{LiveFeed, LiveState, LiveTask};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::commands::sign_in::Scope;
use crate::mcp::pages::request::PageRequest;
use crate::output::call_syntax::CallSyntax;
use crate::output::data::live_task::LiveTaskData;
use crate::output::data::task_line::{Clock, short_age};

#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) live: &'a LiveFeed,
    pub(super) request: &'a PageRequest,
    pub(super) now_ms: i64,
}

impl View<'_> {
    /// Text of a task, an agent or a file: without secrets and without characters that change how other text looks.
    /// The template escapes it.
    pub(super) fn text(&self, text: &str) -> String {
        let redacted = self.context.screen.printer.redact(text);
        terminal::sanitize(&redacted).into_owned()
    }

    /// The name of a file or a test: with its hidden characters, because two names may look the same.
    pub(super) fn name(&self, name: &str) -> String {
        terminal::reveal(&self.context.screen.printer.redact(name)).into_owned()
    }

    pub(super) fn live_data(&self, state: &LiveState, task: &LiveTask) -> LiveTaskData {
        let variables = variables(self.context);
        let clock = Clock { now_ms: self.now_ms, variables: &variables };
        LiveTaskData::of(task, state.overall.is_queue_paused, clock)
    }

    /// A time as its distance, which the script keeps up to date.
    pub(super) fn time(&self, at: &UtcTime) -> Markup {
        let ms = at.0.parse::<Timestamp>().map_or(self.now_ms, Timestamp::as_millisecond);
        let distance = short_age(ms.abs_diff(self.now_ms) / 1000);
        let words = if ms > self.now_ms { format!("in {distance}") } else { format!("{distance} ago") };
        html! { time datetime=(at.0) title=(at.0) { (words) } }
    }

    /// `14:05`, in the time zone of the server, with the day unless it is today.
    pub(super) fn clock(&self, at_ms: i64) -> String {
        Clock { now_ms: self.now_ms, variables: &variables(self.context) }.time(at_ms)
    }

    /// What is wrong, and what helps.
    pub(super) fn problem(&self, error: &AppError) -> Markup {
        let suggestion =
            error.suggestion.as_ref().map(|suggestion| CallSyntax::Commands.sentence(suggestion));
        html! {
            p class="problem" role="alert" { (self.text(&error.message)) }
            @for problem in &error.problems {
                p { code { (self.text(&problem.field)) } " " (self.text(&problem.problem)) }
            }
            @if let Some(suggestion) = suggestion { p class="note" { (self.text(&suggestion)) } }
        }
    }

    pub(super) fn may_answer(&self) -> bool {
        self.request.scope() >= Scope::Answer
    }

    pub(super) fn may_write(&self) -> bool {
        self.request.scope() >= Scope::Write
    }
}

/// A value that is copied as a whole: a path, a branch, an id.
pub(super) fn copyable(text: &str, name: &str) -> Markup {
    html! {
        span class="copy" {
            code { (text) }
            button type="button" class="quiet" data-copy=(text) { "Copy" span class="only-read" { " " (name) } }
        }
    }
}

pub(super) fn lines(added: Option<u64>, deleted: Option<u64>) -> Markup {
    html! {
        @if let Some((added, deleted)) = added.zip(deleted) {
            span class="lines" {
                ins { "+" (added) } " " del { "−" (deleted) }
            }
        }
    }
}

pub(super) fn dollars(microdollars: u64) -> String {
    format!("${:.2}", crate::output::data::usage::dollars(microdollars))
}
