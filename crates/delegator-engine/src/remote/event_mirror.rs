//! Copies the events of a task from its provider into the task's events file, where every reader of events
//! finds them.
//!
//! The file has the bytes of one attempt, so its length is the position of the next byte; a second file says
//! which attempt that is. Each process holds the task lock during a pass. A crash leaves at worst a file
//! without an attempt, which is copied again.

use std::io::Write;
use std::time::{Duration, Instant};

use delegator_domain::task::Provider;
use delegator_registry::{LockAttempt, LockGuard, Registry, RemoteRef, Task, TaskDir, TaskFile};
use serde::{Deserialize, Serialize};

use super::event_fold::EventFold;
use super::provider::{EventPage, EventPosition, RemoteProvider};
use crate::error::{EngineError, Result};
use crate::provider_error::ProviderError;
use crate::shared::estimate::DurationHistory;
use crate::shared::format_version::{FormatVersion, encode};
use crate::shared::snapshot_file::{read_snapshot, write_snapshot};
use crate::{Engine, RemoteTasks};

const PAGE_BYTES: usize = 1 << 20;
/// Pages of one task that a query of the provider copies at most; the next query continues.
const MAX_PROGRESS_PAGES: usize = 4;
/// How long to wait for another process that writes the files of the same task.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CopiedAttempt {
    version: FormatVersion<1>,
    attempt: i32,
    /// The task has ended, and the file has all its events.
    is_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MirrorPass {
    /// Another process copies the same events now.
    Locked,
    /// The file has what the provider has now, or a part of it.
    Copied,
    /// The file has everything; a task that has ended gets no more events.
    Complete,
}

impl RemoteTasks<'_> {
    /// Copies the events that the provider has; all of them if the task has ended.
    pub fn fetch_events(&self, task: &Task) -> Result<()> {
        let Some(registry) = self.engine.find_registry()? else { return Ok(()) };
        let dir = registry.dir().task(&task.id);
        let Some(source) = event_source(self.engine, task)? else { return Ok(()) };
        let Some(_lock) = lock_files(self.engine, &dir)? else { return Ok(()) };
        copy_events(&dir, task, source, usize::MAX)?;
        Ok(())
    }
}

/// The lock of the task's files; `None` if another process keeps it for long, or the task was deleted.
pub(super) fn lock_files(engine: &Engine, dir: &TaskDir) -> Result<Option<LockGuard>> {
    let deadline = Instant::now() + MAX_LOCK_WAIT;
    loop {
        match dir.try_lock()? {
            LockAttempt::Locked(lock) => return Ok(Some(lock)),
            LockAttempt::Held if Instant::now() < deadline => engine.system.sleep(LOCK_PAUSE),
            LockAttempt::Held | LockAttempt::Gone => return Ok(None),
        }
    }
}

pub(super) fn mirror_for_progress(engine: &Engine, registry: &Registry, task: &Task) -> Result<()> {
    let dir = registry.dir().task(&task.id);
    mirror_pass(engine, &dir, task, MAX_PROGRESS_PAGES)?;
    // Another process may have copied the events.
    let folded_bytes = read_snapshot(&dir)?.map_or(0, |snapshot| snapshot.stdout_bytes);
    if folded_bytes != dir.size(TaskFile::Events)? {
        let typical = DurationHistory::typical(registry, &task.id)?;
        let elapsed_ms = engine.now_ms() - task.started_at_ms.unwrap_or(task.created_at_ms);
        let elapsed = Duration::from_millis(elapsed_ms.max(0).unsigned_abs());
        let fold = |fold: &mut EventFold| fold.snapshot(elapsed, typical);
        write_snapshot(&dir, &engine.event_folds.update(&dir, fold)?);
    }
    Ok(())
}

pub(super) fn mirror_pass(
    engine: &Engine,
    dir: &TaskDir,
    task: &Task,
    max_pages: usize,
) -> Result<MirrorPass> {
    let Some(source) = event_source(engine, task)? else { return Ok(MirrorPass::Complete) };
    let LockAttempt::Locked(_lock) = dir.try_lock()? else { return Ok(MirrorPass::Locked) };
    copy_events(dir, task, source, max_pages)
}

/// `None` for a task of this machine, one that was never submitted, and if the provider has no events.
fn event_source<'a>(engine: &'a Engine, task: &'a Task) -> Result<Option<EventSource<'a>>> {
    let Some(remote) = &task.remote else { return Ok(None) };
    let (provider, Some(accepted)) = (remote.environment.provider, &remote.accepted) else {
        return Ok(None);
    };
    let failed = EngineError::provider(provider, Some(&task.id));
    let service = engine.providers.get(provider).map_err(failed)?;
    Ok(service.has_events().then_some(EventSource { provider, service, accepted }))
}

struct EventSource<'a> {
    provider: Provider,
    service: &'a dyn RemoteProvider,
    accepted: &'a RemoteRef,
}

/// Copies at most this many pages. The caller holds the lock of the task.
fn copy_events(
    dir: &TaskDir,
    task: &Task,
    EventSource { provider, service, accepted }: EventSource<'_>,
    max_pages: usize,
) -> Result<MirrorPass> {
    let copied = read_attempt(dir)?;
    if copied.is_some_and(|copied| copied.is_complete) {
        return Ok(MirrorPass::Complete);
    }
    let mut position = match copied {
        Some(CopiedAttempt { attempt, .. }) => EventPosition { attempt, offset: dir.size(TaskFile::Events)? },
        None => EventPosition::default(),
    };
    let has_ended = task.state.is_terminal();
    for _ in 0..max_pages {
        let page = match service.events(accepted, position, PAGE_BYTES) {
            Ok(page) => page,
            // The provider has deleted an old task, or never had it: there are no more events.
            Err(ProviderError::UnknownTask { .. }) if has_ended => {
                EventPage { next: position, ..EventPage::default() }
            }
            Err(error) => return Err(EngineError::provider(provider, Some(&task.id))(error)),
        };
        let (is_first, is_last) = (position.attempt == 0, page.bytes.is_empty());
        if !(is_first && is_last) {
            store_page(dir, &page, is_first || page.is_restarted)?;
            position = page.next;
        }
        match (is_last, has_ended) {
            (false, _) => {}
            (true, false) => break,
            (true, true) => {
                write_attempt(dir, position.attempt, true)?;
                return Ok(MirrorPass::Complete);
            }
        }
    }
    Ok(MirrorPass::Copied)
}

fn store_page(dir: &TaskDir, page: &EventPage, replaces_events: bool) -> Result<()> {
    if replaces_events {
        dir.remove_file(TaskFile::EventPosition)?;
        dir.write(TaskFile::Events, &page.bytes)?;
        write_attempt(dir, page.next.attempt, false)?;
    } else if !page.bytes.is_empty() {
        let mut file = dir.open_append(TaskFile::Events)?;
        file.write_all(&page.bytes).map_err(EngineError::io("store events"))?;
    }
    Ok(())
}

/// A file that cannot be read counts as missing: then everything is copied again.
fn read_attempt(dir: &TaskDir) -> Result<Option<CopiedAttempt>> {
    let bytes = dir.read(TaskFile::EventPosition)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn write_attempt(dir: &TaskDir, attempt: i32, is_complete: bool) -> Result<()> {
    let copied = CopiedAttempt { version: FormatVersion, attempt, is_complete };
    Ok(dir.write(TaskFile::EventPosition, encode("encode a position", &copied)?.as_bytes())?)
}
