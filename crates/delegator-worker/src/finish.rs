//! Reports the end of an attempt to the fleet: diff, setup output, pushed branch, result.

use std::error::Error;

use delegator_domain::redact::Redactor;
use delegator_domain::task::TaskEnd;
use delegator_engine::{DiffOmissions, EngineError, FormatVersion, Record, TaskFiles};
use delegator_fleet::{BlobName, FinishedTask, FleetClaim, FleetError};
use delegator_git::{DiffText, LeftOut, NewCommit, RemoteUrl, TaskCheckout, WorkTreeDiff};

use crate::attempt::{Attempt, AttemptEnd, Ended, PreparedAttempt};
use crate::fleet_result::FleetResult;
use crate::port::{WorkerError, WorkerEvent};
use crate::workspace::file_name;

/// Reports an outcome. False if that was not possible and the next worker process must do it.
pub(crate) fn report_end(attempt: &Attempt<'_>, outcome: AttemptEnd) -> bool {
    let Attempt { shared, control, .. } = attempt;
    let claim = &control.claim;
    let task = control.log_name.clone();
    // Messages of git and of the system may contain secrets of this machine.
    let outcome = redacted(outcome, &shared.settings.redactor);
    let reported = match outcome {
        AttemptEnd::Ended(ended) => {
            let event = WorkerEvent::Ended {
                task: task.clone(),
                state: ended.end.state(),
                detail: detail(&ended.end),
            };
            finish(attempt, *ended).map(|()| event)
        }
        AttemptEnd::Released => {
            let released = shared.persist(control, || shared.database.release(claim));
            released.map(|()| WorkerEvent::Released { task: task.clone() }).map_err(WorkerError::from)
        }
        AttemptEnd::GivenUp(cause) => {
            let given_up = shared.persist(control, || shared.database.give_up(claim, &cause));
            given_up.map(|()| WorkerEvent::Lost { task: task.clone(), cause }).map_err(WorkerError::from)
        }
        AttemptEnd::Dropped if shared.signals.is_abandoning() && !control.is_lost() => return false,
        AttemptEnd::Dropped => Err(FleetError::Fenced { task: claim.task.clone() }.into()),
    };
    match reported {
        Ok(event) => shared.report(&event),
        Err(WorkerError::Fleet(FleetError::Fenced { .. } | FleetError::SessionEnded)) => {
            let cause = "it no longer belongs to this worker; its result is dropped".to_owned();
            shared.report(&WorkerEvent::Lost { task, cause });
        }
        Err(WorkerError::Fleet(_)) if !control.is_lost() => return false,
        Err(WorkerError::Engine(error)) if !control.is_lost() => {
            shared.report_problem(format!("could not report on {task}: {error}"));
            return false;
        }
        Err(error) => shared.report(&WorkerEvent::Lost { task, cause: error.to_string() }),
    }
    true
}

fn redacted(outcome: AttemptEnd, redactor: &Redactor) -> AttemptEnd {
    match outcome {
        AttemptEnd::Ended(ended) => {
            let end = ended.end.redacted(redactor);
            AttemptEnd::Ended(Box::new(Ended { end, ..*ended }))
        }
        AttemptEnd::GivenUp(cause) => AttemptEnd::GivenUp(redactor.redact_str(&cause).into_owned()),
        outcome @ (AttemptEnd::Released | AttemptEnd::Dropped) => outcome,
    }
}

fn detail(end: &TaskEnd) -> Option<String> {
    match end {
        TaskEnd::Failed { kind, message, .. } => {
            let line = message.lines().next().unwrap_or_default();
            Some(format!("{}: {line}", kind.name()))
        }
        TaskEnd::Cancelled { reason } => reason.clone(),
        TaskEnd::Completed | TaskEnd::Timeout(_) => None,
    }
}

fn finish(attempt: &Attempt<'_>, ended: Ended) -> Result<(), WorkerError> {
    let Attempt { shared, control, spec, .. } = attempt;
    let stored = ended.local.as_ref().map(|local| shared.engine.results().files(local)).transpose();
    let (mut record, mut warnings) = record_of(stored);
    warnings.extend(ended.warnings);
    let (mut changes, mut missing) = (None, DiffOmissions::default());
    if let (Some(base), Some(_)) = (&ended.base, &ended.local) {
        match find_changes(attempt, base) {
            Ok(found) => {
                missing = omissions(&found, &shared.settings.redactor);
                warnings.extend(setup_warning(&found));
                changes = Some((base, found)).filter(|(_, found)| found.diff.has_changes());
            }
            Err(error) => warnings.push(format!("The changes of the task could not be read: {error}")),
        }
    }
    let diff = changes.as_ref().map(|(_, found)| found.diff.bytes()).filter(|bytes| !bytes.is_empty());
    let blobs = [(BlobName::Diff, diff), (BlobName::Setup, ended.setup_output.as_deref())];
    let blobs: Vec<(BlobName, &[u8])> =
        blobs.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect();
    for (name, bytes) in &blobs {
        shared.persist(control, || shared.database.put_blob(&control.claim, *name, bytes))?;
    }
    let mut pushed_branch = None;
    // After the diff was stored, which is possible only while the task belongs to this worker.
    if let Some((base, found)) = &changes
        && spec.push
        && ended.end == TaskEnd::Completed
    {
        match push_changes(attempt, base, found) {
            Ok(branch) => pushed_branch = Some(branch),
            Err(error) => warnings.push(format!("The changes were not pushed: {error}")),
        }
    }
    let redactor = &shared.settings.redactor;
    record.warnings.extend(warnings.iter().map(|warning| redactor.redact_str(warning).into_owned()));
    let result = FleetResult {
        version: FormatVersion,
        record,
        base_commit: ended.base.as_ref().map(|base| base.base_commit.clone()),
        branch: ended.base.as_ref().and_then(|base| base.branch.clone()),
        pushed_branch,
        worker: shared.settings.name.clone(),
        omissions: missing,
    };
    let result = result.to_json()?;
    let names = blobs.iter().map(|(name, _)| *name).collect();
    let finished = FinishedTask { end: ended.end, result, blobs: names };
    Ok(shared.persist(control, || shared.database.finish(&control.claim, &finished))?)
}

/// The report of the run, and a warning if it cannot be read. A task that never ran has none.
fn record_of(stored: Result<Option<TaskFiles>, EngineError>) -> (Record, Vec<String>) {
    match stored {
        Ok(files) => (files.and_then(|files| files.record).unwrap_or_default(), Vec::new()),
        Err(error) => (Record::default(), vec![format!("The report of the task could not be read: {error}")]),
    }
}

/// Files that are named although they are not in the diff; the others are counted.
const MAX_LISTED: usize = 100;
const NAMED_FILES: usize = 5;

/// A stop does not end it: the changes of a cancelled task are part of its result.
fn find_changes(attempt: &Attempt<'_>, base: &PreparedAttempt) -> Result<WorkTreeDiff, Box<dyn Error>> {
    let (git, files) = (attempt.git()?, &attempt.files);
    let mirror = attempt.mirror(&git)?;
    let before = files.files_before()?;
    let (dir, store) = (files.work(), files.before());
    let checkout = TaskCheckout { dir: &dir, base: &base.base_commit, store: &store };
    Ok(WorkTreeDiff::take(&git, &checkout, &mirror, &before, &files.temp())?)
}

/// What is missing in the diff. File names may contain secrets of this machine.
fn omissions(found: &WorkTreeDiff, redactor: &Redactor) -> DiffOmissions {
    let redacted =
        |file: &LeftOut| LeftOut { path: redactor.redact_str(&file.path).into_owned(), ..file.clone() };
    DiffOmissions {
        left_out: found.left_out.iter().take(MAX_LISTED).map(redacted).collect(),
        left_out_count: found.left_out.len(),
        size_limit: match found.diff {
            DiffText::TooLarge(limit) => Some(limit),
            DiffText::Complete(_) => None,
        },
    }
}

/// Names the files in which the diff has edits of the setup script.
fn setup_warning(found: &WorkTreeDiff) -> Option<String> {
    let files = &found.with_setup_edits;
    let more = match files.len().saturating_sub(NAMED_FILES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let named = files.iter().take(NAMED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!files.is_empty()).then(|| {
        format!("The diff also has what the setup script changed in {named}{more}: the agent changed the same lines")
    })
}

/// Pushes the changes and returns the branch. A stop of the attempt ends the push.
fn push_changes(
    attempt: &Attempt<'_>,
    base: &PreparedAttempt,
    found: &WorkTreeDiff,
) -> Result<String, Box<dyn Error>> {
    let Attempt { control, spec, files, .. } = attempt;
    let git = attempt.git()?.with_cancel(control.interrupt());
    let branch = branch_of(&control.claim);
    let commit = NewCommit { branch: &branch, message: &spec.title, time_sec: files.prepared_at_sec()? };
    let url = RemoteUrl::parse(&spec.repo_url)?;
    found.push(&attempt.remote_access(&git), &url, &base.base_commit, commit)?;
    Ok(branch)
}

/// Each attempt has a branch of its own, so none replaces that of another.
fn branch_of(claim: &FleetClaim) -> String {
    format!("mcp-delegator/{}-{}", file_name(&claim.task), claim.attempt)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::FailureKind;

    use super::*;

    #[test]
    fn secrets_of_the_worker_are_not_reported() {
        let redactor = Redactor::builder().named_secret("tr0ub4dor-and-3").build();
        let message = || "could not read https://host/tr0ub4dor-and-3".to_owned();
        let ended = Ended::new(TaskEnd::failed(FailureKind::CheckoutFailed, message()));
        let cancelled = Ended::new(TaskEnd::Cancelled { reason: Some(message()) });
        for outcome in [
            AttemptEnd::Ended(Box::new(ended)),
            AttemptEnd::Ended(Box::new(cancelled)),
            AttemptEnd::GivenUp(message()),
        ] {
            let shown = format!("{:?}", redacted(outcome, &redactor));
            assert!(shown.contains("could not read") && !shown.contains("tr0ub4dor"), "{shown}");
        }
    }

    #[test]
    fn an_unreadable_report_is_a_warning() {
        let unreadable = EngineError::io("read the report")(std::io::ErrorKind::PermissionDenied.into());
        let (record, warnings) = record_of(Err(unreadable));
        assert_eq!(record, Record::default());
        assert!(warnings[0].contains("report of the task could not be read"), "{warnings:?}");
        assert_eq!(record_of(Ok(None)), (Record::default(), Vec::new()));
    }
}
