//! Everything before the task is submitted here: checkout, start, setup, and the list of files.

use std::time::Duration;

use delegator_domain::task::FailureKind;
use delegator_engine::{EngineError, find_git};
use delegator_fleet::TaskSpec;
use delegator_git::{
    BaseCommit, Git, Mirror, RemoteAccess, RemoteError, RemoteUrl, TaskCheckout, TreeListing,
};

use crate::attempt_control::{AttemptControl, Stop};
use crate::attempt_files::{AttemptFiles, PreparedAttempt};
use crate::outcome::{Ended, Outcome, failed, stopped};
use crate::setup::{SetupError, create_prepared_checkout};
use crate::shared::Shared;

/// A first clone of a large repository takes minutes.
const REMOTE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Listing the files of a work tree.
const LIST_LIMIT: Duration = Duration::from_secs(5 * 60);

/// git, from the PATH of the worker.
pub(crate) fn git(shared: &Shared<'_>, files: &AttemptFiles) -> Result<Git, EngineError> {
    find_git(&shared.settings.variables, &files.work(), LIST_LIMIT)
}

pub(crate) fn remote_access(shared: &Shared<'_>, git: &Git) -> RemoteAccess {
    let variables =
        shared.settings.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    RemoteAccess::new(git, variables, REMOTE_LIMIT)
}

/// The mirror of the task's repository.
pub(crate) fn mirror(shared: &Shared<'_>, git: &Git, spec: &TaskSpec) -> Result<Mirror, RemoteError> {
    let url = RemoteUrl::parse(&spec.repo_url)?;
    Ok(Mirror::new(remote_access(shared, git), url, &shared.workspace.mirrors()))
}

/// Prepares the work tree of an attempt. After this the task is running for the fleet, but no agent has been started.
pub(crate) fn prepare(
    shared: &Shared<'_>,
    control: &AttemptControl,
    spec: &TaskSpec,
    files: &AttemptFiles,
) -> Result<PreparedAttempt, Outcome> {
    let checked_out = check_out(shared, control, spec, files);
    // First: the fleet accepts an end only of a task that is running.
    start(shared, control)?;
    let (git, mirror, base) = checked_out?;
    if let Some(script) = &spec.setup {
        let output = run_setup(shared, control, spec, script, (&mirror, &base), files)?;
        files.write_setup_output(&output).map_err(io("store the output of a setup script"))?;
    }
    let (git, work, store) = (git.with_limit(LIST_LIMIT), files.work(), files.before());
    let checkout = TaskCheckout { dir: &work, base: &base.commit, store: &store };
    let listing = TreeListing::take(&git, &checkout, &files.temp());
    let listing = listing.map_err(|error| checkout_failure(control, &error.into(), Some(&base)))?;
    let prepared = PreparedAttempt::new(&base);
    files.write_prepared(&prepared, &listing).map_err(io("store the state of an attempt"))?;
    Ok(prepared)
}

/// Resolves what the task starts from, and checks it out if there is no setup script, whose checkout is copied instead.
fn check_out(
    shared: &Shared<'_>,
    control: &AttemptControl,
    spec: &TaskSpec,
    files: &AttemptFiles,
) -> Result<(Git, Mirror, BaseCommit), Outcome> {
    files.create().map_err(io("create the directory of a task"))?;
    let git = git(shared, files).map_err(|error| Outcome::internal(&error))?.with_cancel(control.interrupt());
    let checked_out = mirror(shared, &git, spec).and_then(|mirror| {
        let base = mirror.resolve(spec.branch.as_deref())?;
        if spec.setup.is_none() {
            mirror.check_out(&base, &files.work())?;
        }
        Ok((mirror, base))
    });
    let (mirror, base) = checked_out.map_err(|error| checkout_failure(control, &error, None))?;
    Ok((git, mirror, base))
}

fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Outcome {
    move |error| Outcome::internal(&EngineError::io(doing)(error))
}

/// Commits that the task is running. Before this a lost worker means nothing, so the task would be queued again.
fn start(shared: &Shared<'_>, control: &AttemptControl) -> Result<(), Outcome> {
    if !control.begin_start() {
        return Err(match control.stop() {
            Some(Stop::Lost) => Outcome::Dropped,
            // A claimed task that the user has cancelled has ended already.
            _ => Outcome::Released,
        });
    }
    shared.persist(control, || shared.database.start(&control.claim)).map_err(|_| Outcome::Dropped)
}

fn run_setup(
    shared: &Shared<'_>,
    control: &AttemptControl,
    spec: &TaskSpec,
    script: &str,
    (mirror, base): (&Mirror, &BaseCommit),
    files: &AttemptFiles,
) -> Result<Vec<u8>, Outcome> {
    let task = (control.log_name.as_str(), spec, script);
    let created = create_prepared_checkout(shared, task, (mirror, base), &files.work(), &control.interrupt());
    created.map_err(|error| match error {
        SetupError::Checkout(error) => checkout_failure(control, &error, Some(base)),
        SetupError::Cancelled => stopped(control),
        SetupError::Engine(error) => Outcome::internal(&error),
        SetupError::Script { cause, output } => Outcome::Ended(Box::new(Ended {
            base: Some(PreparedAttempt::new(base)),
            setup_output: Some(output),
            ..Ended::new(failed(FailureKind::SetupFailed, cause))
        })),
    })
}

fn checkout_failure(control: &AttemptControl, error: &RemoteError, base: Option<&BaseCommit>) -> Outcome {
    match error.is_cancelled() {
        true => stopped(control),
        false => Outcome::Ended(Box::new(Ended {
            base: base.map(PreparedAttempt::new),
            ..Ended::new(failed(FailureKind::CheckoutFailed, error.to_string()))
        })),
    }
}
