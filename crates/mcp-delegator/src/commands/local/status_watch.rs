//! Runs `local status`: once, or with `--watch` at every change until the user ends it.

use delegator_domain::task::TaskLocation;

use crate::commands::local::status::{Scope, Status, show};
use crate::commands::prelude::*;
use crate::output::screen::Flow;

/// Elapsed times and activities change without a change of the registry.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

pub fn run(context: &Context<'_>, input: Status) -> Result<CommandOutput, AppError> {
    let scope = Scope { location: TaskLocation::Local, environment: None };
    if input.watch { watch(context, &input, &scope) } else { show(context, &input, &scope) }
}

fn watch(context: &Context<'_>, input: &Status, scope: &Scope) -> Result<CommandOutput, AppError> {
    if !context.screen.can_redraw() {
        let problem = Problem::invalid("watch", "needs a terminal on which text for people is printed");
        let hint = "Run the command without {input:watch}; `wait` waits for tasks, `events follow` prints what one does.";
        return Err(problem.suggest(Some(hint)).into());
    }
    let engine = engine(context)?;
    context.screen.attachment.begin_watch();
    let mut is_first = true;
    engine.waits().for_changes(REDRAW_INTERVAL, || {
        let output = show(context, input, scope)?;
        let document = output.data.as_ref().map(|data| output.document(data)).unwrap_or_default();
        let flow = context.screen.redraw(&document, std::mem::take(&mut is_first))?;
        Ok::<bool, AppError>(flow == Flow::Continue)
    })?;
    Ok(CommandOutput::default())
}
