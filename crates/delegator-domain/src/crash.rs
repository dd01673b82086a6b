//! Crash points: named places after each durable step, where a crash would leave a different state on disk.
//!
//! In a release build [`crash_point`] compiles to nothing. In a debug build a test installs a hook with
//! [`set_crash_hook`]: end-to-end tests kill the process at a point, and the engine's model switches to
//! another actor or stops the current one there. This module only names the points and calls the hook; it
//! never decides what happens.

#[cfg(debug_assertions)]
use std::ffi::OsString;
#[cfg(debug_assertions)]
use std::sync::OnceLock;

use crate::named_enum::named_enum;

named_enum! {
    /// A durable step that has just been completed.
    pub enum CrashPoint {
        RegistryBuilt = "setup: registry built",
        RegistryNamed = "setup: registry in place",
        SubmitEntered = "submit: entry made",
        DirectoryMade = "submit: directory made",
        TextWritten = "submit: text written",
        LaunchWritten = "submit: launch written",
        DirectorySynced = "submit: directory synced",
        RowCommitted = "submit: row committed",
        SubmitLeft = "submit: entry removed",
        BeforeResponse = "submit: before the answer",
        ClaimCommitted = "claim: committed",
        StartLocked = "claim: lock taken",
        SupervisorSpawned = "claim: supervisor spawned",
        LockAdopted = "start: lock adopted",
        SocketBound = "start: socket bound",
        WorkBegun = "start: work begun",
        LaunchRead = "start: launch read",
        TemporaryDirCreated = "start: temporary directory created",
        RestorePointCreated = "start: restore point created",
        RestorePointsNoted = "start: restore points noted",
        BaselineTaken = "start: baseline taken",
        AgentSpawned = "start: agent spawned",
        StdinDelivered = "start: stdin delivered",
        LaunchRemoved = "start: launch removed",
        ThreadNoted = "run: thread noted",
        SnapshotWritten = "run: snapshot written",
        AgentReaped = "end: agent reaped",
        AgentSwept = "end: swept",
        ChangesObserved = "end: changes observed",
        EndStateStored = "end: state after the task stored",
        ReportWritten = "end: report written",
        EndCommitted = "end: committed",
        LaunchDropped = "end: launch dropped",
        SuccessorsStarted = "end: successors started",
        SocketRemoved = "end: socket removed",
        CancelCommitted = "cancel: committed",
        SupervisorWoken = "cancel: supervisor woken",
        RescueLocked = "rescue: lock taken",
        RescueSwept = "rescue: swept",
        RescueCommitted = "rescue: end committed",
        AttemptGivenBack = "rescue: attempt given back",
        RowsForgotten = "clean: rows forgotten",
        /// In the middle of the removal of a directory.
        DirectoryHalfRemoved = "clean: directory half removed",
        DirectoryRemoved = "clean: directory removed",
        ForgettingDone = "clean: forgetting done",
        LeftoverRemoved = "clean: leftover removed",
        RetentionTurnTaken = "clean: retention turn taken",
        RetentionClockNoted = "clean: retention clock noted",
        RestorePointDropped = "clean: restore point dropped",
        RestorePointForgotten = "clean: restore point forgotten",
        NotificationBegun = "notify: attempt counted",
        NotificationSettled = "notify: attempt recorded",
        QueueHeld = "queue: held",
        MessageWritten = "message: text written",
        MessageQueued = "message: queued",
        MessageDelivered = "message: marked as delivered",
        MessageSettled = "message: settled",
        QuestionAsked = "question: asked",
        AnswerWritten = "question: answer written",
        AnswerRecorded = "question: answered",
        QuestionClosed = "question: closed",
        ImportFilled = "import: files written",
        ImportCommitted = "import: committed",
        RemoteAccepted = "remote: acceptance committed",
        RemoteReported = "remote: report committed",
        DatabaseAside = "aside: a file renamed",
        DatabaseReplaced = "aside: registry replaced",
        WorktreeDiffStored = "worktree: diff stored",
        WorktreeFilesRemoved = "worktree: files removed",
        WorktreeRecorded = "worktree: recorded",
        UndoNoted = "restore: undo points noted",
    }
}

#[cfg(debug_assertions)]
pub type CrashHook = Box<dyn Fn(CrashPoint) + Send + Sync>;

#[cfg(debug_assertions)]
static CRASH_HOOK: OnceLock<CrashHook> = OnceLock::new();

/// Installs the hook of this process; only the first call has an effect.
#[cfg(debug_assertions)]
pub fn set_crash_hook(hook: CrashHook) {
    let _ = CRASH_HOOK.set(hook);
}

#[cfg(debug_assertions)]
static INHERITED_VARIABLES: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// For supervisors, so that a test can install a hook in them, too. Only the first call has an effect.
#[cfg(debug_assertions)]
pub fn set_inherited_variables(variables: Vec<(OsString, OsString)>) {
    let _ = INHERITED_VARIABLES.set(variables);
}

#[cfg(debug_assertions)]
pub fn inherited_variables() -> Vec<(OsString, OsString)> {
    INHERITED_VARIABLES.get().cloned().unwrap_or_default()
}

/// Marks a completed durable step: calls the hook, if there is one.
#[cfg(debug_assertions)]
pub fn crash_point(point: CrashPoint) {
    if let Some(hook) = CRASH_HOOK.get() {
        hook(point);
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn crash_point(_point: CrashPoint) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_found_by_its_own_name() {
        for point in CrashPoint::ALL {
            assert_eq!(CrashPoint::from_name(point.name()), Some(point));
            assert!(point.name().contains(": "), "{point:?} has no phase before the colon");
        }
        assert_eq!(CrashPoint::from_name("nowhere"), None);
    }
}
