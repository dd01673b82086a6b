//! Warnings: what a caller should know although a call succeeded.
//!
//! One table of all codes; `docs/errors.md` is generated from it. Codes are only appended from the first
//! release on, never changed or used again.

use serde::Serialize;

use crate::named_enum;

macro_rules! warning_codes {
    ($($variant:ident = $name:literal: $meaning:literal,)*) => {
        named_enum! {
            #[derive(Serialize)]
            pub enum WarningCode {
                $(#[serde(rename = $name)] #[doc = $meaning] $variant = $name,)*
            }
        }

        impl WarningCode {
            pub fn meaning(self) -> &'static str {
                match self {
                    $(WarningCode::$variant => $meaning,)*
                }
            }
        }
    };
}

warning_codes! {
    AgentNotice = "W_AGENT_001": "a notice of the agent or about it, for example calls that were refused",
    AgentSkipped = "W_AGENT_002": "an agent of the list did not run, so the next one did",
    KillIncomplete = "W_CANCEL_001": "processes of the task could not be killed",
    Retained = "W_CLEANUP_001": "task directories or restore points without a task are retained: they may have the only copy of something",
    ClockJumped = "W_CLEANUP_003": "the clock jumped, so nothing is deleted without `trust_clock`",
    PointsWouldBeDeleted = "W_CLEANUP_004": "in a dry run: restore points would be deleted permanently",
    ProviderNotQueried = "W_CLOUD_001": "the provider did not answer, so the state of its tasks may be outdated",
    FleetObstacle = "W_CLOUD_002": "queued tasks of the fleet wait until an operator removes an obstacle",
    NotInCloudDiff = "W_CLOUD_003": "changes are not in the diff of the task",
    MoreAttempts = "W_CLOUD_004": "the task has more attempts than the one that is shown",
    UnknownVariable = "W_CONFIG_001": "a variable sets no configuration key",
    BrokenProjectFile = "W_CONFIG_004": "the project file is invalid, so no task starts there",
    IgnoredValue = "W_CONFIG_006": "a value of a setting is ignored: it is invalid and the call does not need it, or a project file may only lower it",
    NotInDiff = "W_DIFF_001": "the content of some changed files is not stored",
    NotAttributedInDiff = "W_DIFF_002": "files that nothing attributes to the agent are not in the diff",
    DiffUnavailable = "W_DIFF_003": "the changes in a work tree are unknown",
    DiffSoFar = "W_DIFF_004": "the task has not ended: these are its changes so far",
    NothingSelected = "W_DIFF_005": "the task changed files, but none that is selected",
    LateDiff = "W_DIFF_006": "the supervisor was lost: all changes until that was noticed, also those of others",
    UnknownEnvironmentField = "W_ENVIRONMENTS_001": "an environment has a field that is not known",
    UnknownEnvironment = "W_ENVIRONMENTS_002": "there is no environment with this id",
    OtherRepository = "W_ENVIRONMENTS_003": "the environment uses another repository",
    LinesIgnored = "W_EVENTS_001": "lines are not events and were ignored, or could not be converted",
    NoEvents = "W_EVENTS_002": "no line was recognised as an event of an agent",
    LinesTooLong = "W_EVENTS_003": "of lines that were too long only the beginning and the end were read",
    Anomalies = "W_EVENTS_004": "the stream has anomalies, or lines of another dialect than the rest",
    FollowedFileChanged = "W_EVENTS_006": "the file was removed, replaced or truncated while it was followed",
    TaskRestarted = "W_EVENTS_008": "the task was started again; the events of the new attempt follow",
    ClaimRefuted = "W_FILES_001": "the agent claims a change, but the file did not change",
    ClaimNotChecked = "W_FILES_002": "the agent claims a change that cannot be verified",
    NotAttributed = "W_FILES_003": "files changed, and nothing attributes that to the agent",
    ChangedByCommands = "W_FILES_004": "files changed that the agent did not name, while its commands ran",
    ReadOnlyChanged = "W_FILES_005": "the agent of a read-only task changed files, or may have",
    OtherWriters = "W_FILES_006": "other tasks wrote in the same tree at the same time",
    RepositoryChanged = "W_FILES_007": "the branch was switched, or the repository was created, removed or replaced",
    PartlyExamined = "W_FILES_008": "not everything could be examined",
    NotExamined = "W_FILES_009": "nothing could be examined",
    NoRestorePoint = "W_GIT_001": "no restore point was created before the task",
    NotInRestorePoint = "W_GIT_002": "files or directories are not in the restore point",
    PartialRestorePoint = "W_GIT_004": "not all directories or unusual permissions could be recorded",
    RestorePointGone = "W_GIT_005": "the restore point was deleted after it was created",
    GitSettingsChanged = "W_GIT_006": "git's configuration, hooks or attributes changed during the task; always the first warning",
    SessionsNotListed = "W_IMPORT_001": "session files of the agent could not be read, so they are not listed",
    OutputInvalid = "W_OUTPUT_001": "the final message does not match the output schema",
    OutputNotValidated = "W_OUTPUT_002": "the final message could not be validated",
    PartialFailure = "W_PARTIAL_001": "some items of the call failed",
    QueuePaused = "W_QUEUE_001": "the queue is paused, so no queued task starts",
    AgentPaused = "W_QUEUE_002": "the agent is paused, so none of its queued tasks starts",
    RegistryLogGrows = "W_REGISTRY_001": "a program keeps the registry open for reading, so it grows",
    NotMarkedRead = "W_REGISTRY_002": "a task could not be marked as read",
    HeadStays = "W_RESTORE_001": "HEAD stays where it is",
    OperationInProgress = "W_RESTORE_003": "a git operation is in progress and stays in progress",
    PathsUnchanged = "W_RESTORE_004": "paths that differ were left unchanged",
    OperationNotRestored = "W_RESTORE_005": "an operation of git that was in progress cannot be restored",
    DirectoriesMayRemain = "W_RESTORE_006": "directories that the task created may remain",
    WorkTreesNotRestored = "W_RESTORE_007": "work trees cannot be restored",
    PossibleUserEdits = "W_RESTORE_008": "restored or removed files may have your own edits",
    EndStateUnknown = "W_RESTORE_009": "the state after the task is unknown, so any file may have your own edits",
    WriteCompleted = "W_RESTORE_010": "an interrupted `apply` or `restore` was taken back or completed first",
    FindingsUnreadable = "W_REVIEW_001": "the reviewer did not answer with findings in the requested format",
    Salvaged = "W_SALVAGE_001": "the agent reported what it had done when it ran into a limit",
    RiskyPath = "W_SETUP_001": "the path that the client gets may stop to exist",
    NoTests = "W_TESTS_001": "the agent changed files but ran no known test command",
    TestsFailed = "W_TESTS_002": "the task completed, but tests failed in their last run",
    Truncated = "W_TRUNCATION_001": "the answer was truncated to the size limit",
    NotVerified = "W_VERIFY_001": "the agent completed, but its work was not verified",
    MoreEnded = "W_WAIT_001": "more tasks ended than the call returns",
    NotCarried = "W_WORKTREE_001": "files were not carried into the worktree",
    SetupEdits = "W_WORKTREE_002": "the diff also has edits of the worktree's setup",
    WorktreeInUse = "W_WORKTREE_003": "the worktree is kept: a task works in it, or not everything in it was applied",
    WorktreeNotRemoved = "W_WORKTREE_004": "the worktree could not be removed",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_used_once_and_in_order() {
        let unique: BTreeSet<&str> = WarningCode::NAMES.into_iter().collect();
        assert!(unique.into_iter().eq(WarningCode::NAMES));
    }
}
