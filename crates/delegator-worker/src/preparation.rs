//! Everything before the task is submitted here: checkout, start, setup, and the list of files.

use std::io;

use delegator_domain::task::{FailureKind, TaskEnd};
use delegator_engine::EngineError;
use delegator_git::{BaseCommit, Git, Mirror, RemoteError, TaskCheckout, TreeListing};

use crate::attempt::{Attempt, AttemptEnd, Ended, LIST_LIMIT, PreparedAttempt, stopped};
use crate::attempt_control::AttemptControl;
use crate::setup::{SetupError, create_prepared_checkout};

/// Prepares the work tree of an attempt. After this the task is running for the fleet, but no agent has been
/// started.
pub(crate) fn prepare(attempt: &Attempt<'_>) -> Result<PreparedAttempt, AttemptEnd> {
    let files = &attempt.files;
    let checked_out = check_out(attempt);
    // First: the fleet accepts an end only of a task that is running.
    start(attempt)?;
    let (git, mirror, base) = checked_out?;
    if let Some(script) = &attempt.spec.setup {
        let output = run_setup(attempt, script, &mirror, &base)?;
        files.write_setup_output(&output).map_err(internal("store the output of a setup script"))?;
    }
    let (git, work, store) = (git.with_limit(LIST_LIMIT), files.work(), files.before());
    let checkout = TaskCheckout { dir: &work, base: &base.commit, store: &store };
    let listing = TreeListing::take(&git, &checkout, &files.temp());
    let listing = listing.map_err(|error| checkout_failure(attempt.control, &error.into(), Some(&base)))?;
    let prepared = PreparedAttempt::new(&base);
    files.write_prepared(&prepared, &listing).map_err(internal("store the state of an attempt"))?;
    Ok(prepared)
}

/// Resolves what the task starts from, and checks it out if there is no setup script, whose checkout is
/// copied instead.
fn check_out(attempt: &Attempt<'_>) -> Result<(Git, Mirror, BaseCommit), AttemptEnd> {
    let Attempt { control, spec, files, .. } = attempt;
    files.create().map_err(internal("create the directory of a task"))?;
    let git = attempt.git().map_err(|error| AttemptEnd::internal(&error))?.with_cancel(control.interrupt());
    let checked_out = attempt.mirror(&git).and_then(|mirror| {
        let base = mirror.resolve(spec.branch.as_deref())?;
        if spec.setup.is_none() {
            mirror.check_out(&base, &files.work())?;
        }
        Ok((mirror, base))
    });
    let (mirror, base) = checked_out.map_err(|error| checkout_failure(control, &error, None))?;
    Ok((git, mirror, base))
}

fn internal(doing: &'static str) -> impl FnOnce(io::Error) -> AttemptEnd {
    move |error| AttemptEnd::internal(&EngineError::io(doing)(error))
}

/// Commits that the task is running. Before this a lost worker means nothing, so the task would be queued
/// again.
fn start(attempt: &Attempt<'_>) -> Result<(), AttemptEnd> {
    let Attempt { shared, control, .. } = attempt;
    if !control.begin_start() {
        // A claimed task that the user has cancelled has ended already.
        return Err(if control.is_lost() { AttemptEnd::Dropped } else { AttemptEnd::Released });
    }
    shared.persist(control, || shared.database.start(&control.claim)).map_err(|_| AttemptEnd::Dropped)
}

fn run_setup(
    attempt: &Attempt<'_>,
    script: &str,
    mirror: &Mirror,
    base: &BaseCommit,
) -> Result<Vec<u8>, AttemptEnd> {
    create_prepared_checkout(attempt, script, mirror, base).map_err(|error| match error {
        SetupError::Checkout(error) => checkout_failure(attempt.control, &error, Some(base)),
        SetupError::Cancelled => stopped(attempt.control),
        SetupError::Engine(error) => AttemptEnd::internal(&error),
        SetupError::Script { cause, output } => AttemptEnd::Ended(Box::new(Ended {
            base: Some(PreparedAttempt::new(base)),
            setup_output: Some(output),
            ..Ended::new(TaskEnd::failed(FailureKind::SetupFailed, cause))
        })),
    })
}

fn checkout_failure(control: &AttemptControl, error: &RemoteError, base: Option<&BaseCommit>) -> AttemptEnd {
    if error.is_cancelled() {
        return stopped(control);
    }
    AttemptEnd::Ended(Box::new(Ended {
        base: base.map(PreparedAttempt::new),
        ..Ended::new(TaskEnd::failed(FailureKind::CheckoutFailed, error.to_string()))
    }))
}
