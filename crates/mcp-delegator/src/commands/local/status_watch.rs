//! Runs `local status`: once, or with `--watch` until the user ends it. A terminal is redrawn at every change; elsewhere a line
//! is printed for each question and each end, so that a program can wait for them.

use std::collections::BTreeSet;

use delegator_domain::task::TaskLocation;
use jiff::Timestamp;

use crate::commands::local::status::{Scope, Status, StatusInputs, overview_query, show};
use crate::commands::prelude::*;
use crate::output::data::task_line::{Clock, TaskLine};
use crate::output::screen::Flow;

/// Elapsed times and activities change without a change of the registry.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);
/// A call that waits for a task reads its result within this time; then its end is no news.
const READ_GRACE_MS: i64 = 3_000;
/// Tasks that end within one interval.
const MAX_ENDED: u32 = 500;

pub fn run(context: &Context<'_>, input: Status) -> Result<CommandOutput, AppError> {
    let scope = Scope { location: TaskLocation::Local, environment: None };
    if !input.watch {
        return show(context, &input, &scope);
    }
    context.screen.attachment.begin_watch();
    if context.screen.can_redraw() {
        redraw(context, &input, &scope)?
    } else {
        print_news(context, &input, &scope)?
    }
    Ok(CommandOutput::default())
}

fn redraw(context: &Context<'_>, input: &Status, scope: &Scope) -> Result<(), AppError> {
    let engine = engine(context)?;
    let mut is_first = true;
    engine.waits().for_changes(REDRAW_INTERVAL, || {
        let output = show(context, input, scope)?;
        let document = output.data.as_ref().map(|data| output.document(data)).unwrap_or_default();
        let flow = context.screen.redraw(&document, std::mem::take(&mut is_first))?;
        Ok(flow == Flow::Continue)
    })
}

/// Prints each open question, and each end from now on whose result stays unread.
fn print_news(context: &Context<'_>, input: &Status, scope: &Scope) -> Result<(), AppError> {
    let engine = engine(context)?;
    let (since_ms, variables) = (Timestamp::now().as_millisecond(), variables(context));
    let filter = StatusInputs { limit: MAX_ENDED, ..input.filter.clone() };
    let mut printed = BTreeSet::new();
    engine.waits().for_changes(REDRAW_INTERVAL, || {
        let now_ms = Timestamp::now().as_millisecond();
        let clock = Clock { now_ms, variables: &variables };
        let request = overview_query(context, &engine, &filter, scope, now_ms)?;
        let mut lines = String::new();
        if let Some(overview) = engine.results().overview(&request)? {
            let asked = overview.questions.iter().filter_map(|(id, open)| {
                let task = overview.running.tasks.iter().find(|running| running.task.id == *id)?;
                Some(((id.clone(), Some(open.question.number)), TaskLine::running(task, Some(open), clock)))
            });
            let is_news = |task: &&Task| {
                task.ended.as_ref().is_some_and(|ended| {
                    let is_unread = ended.read_at_ms.is_none();
                    is_unread && ended.at_ms >= since_ms && ended.at_ms + READ_GRACE_MS <= now_ms
                })
            };
            let ended = overview.ended.tasks.iter().filter(is_news);
            let ended = ended.map(|task| ((task.id.clone(), None), TaskLine::of_row(task, clock)));
            for (key, line) in asked.chain(ended) {
                if printed.insert(key) {
                    lines.push_str(&line.news(context.screen.presentation.is_for_people()));
                }
            }
        }
        let flow =
            if lines.is_empty() { Flow::Continue } else { context.screen.write_lines(lines.as_bytes())? };
        Ok(flow == Flow::Continue && !context.screen.printer.is_reader_gone())
    })
}
