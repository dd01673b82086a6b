//! Checks of the machine: versions, git, process containment, the state directory, its disk and its queue.

use std::io;
use std::os::unix::fs::MetadataExt;

use delegator_config::Containment;
use delegator_engine::{best_containment, git_version};
use rustix::fs::statvfs;
use rustix::process::geteuid;

use super::check::Check;
use crate::commands::local::status::long_log_message;
use crate::commands::prelude::*;
use crate::spec::shell::shell_word;
use crate::spec::version::{PRODUCT_VERSION, PROGRAM};

/// Below these, results may be lost soon, or at once.
const LITTLE_SPACE: u64 = 1 << 30;
const NO_SPACE: u64 = 64 << 20;
const SPACE_ADVICE: &str = "Free some space; cleanup-registry deletes old tasks.";
/// Counting more entries would take too long; the size is then a lower bound.
const MAX_ENTRIES: usize = 50_000;

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let mut checks = vec![version(), git(context), containment(context), state_dir(context)];
    checks.extend(context.state_dir.as_deref().and_then(disk));
    checks.extend(queue(context));
    checks
}

fn version() -> Check {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check::ok("version", format!("{PROGRAM} {PRODUCT_VERSION}, Linux {}", kernel.trim()))
}

fn git(context: &Context<'_>) -> Check {
    match git_version(&context.process.current_dir, &variables(context)) {
        Ok(version) => Check::ok("git", version),
        Err(error) => {
            let suggestion = "Install git: without it changes are not verified and cannot be restored.";
            let error = AppError { code: ErrorCode::DependencyMissing, ..AppError::from(error) };
            Check::failed(context, "git", error.suggest(suggestion))
        }
    }
}

/// Both kinds of containment work. A control group also finds unmarked processes of a supervisor that was
/// killed.
fn containment(context: &Context<'_>) -> Check {
    let message = match (context.config.settings.containment, best_containment()) {
        (Containment::Subreaper, _) => "subreaper, as configured",
        (_, "cgroup") => "cgroup: every task runs in its own control group",
        _ => "subreaper: control groups (cgroup v2) cannot be created here",
    };
    Check::ok("containment", message)
}

fn state_dir(context: &Context<'_>) -> Check {
    const NAME: &str = "state_dir";
    let engine = match engine(context) {
        Ok(engine) => engine,
        Err(error) => return Check::failed(context, NAME, error),
    };
    let path = &engine.state_dir;
    let existing = nearest_existing(path);
    if let Err(error) = try_to_write(existing) {
        return unwritable(NAME, path, existing, &error);
    }
    let counts = match engine.results().counts() {
        Ok(counts) => counts,
        Err(error) => return Check::failed(context, NAME, AppError::from(error)),
    };
    let Some((counts, long_log)) = counts else {
        return Check::ok(NAME, format!("{} (empty)", path.display()));
    };
    let tasks: u64 = counts.iter().map(|(_, count)| count).sum();
    let message = format!("{}, {tasks} tasks, {}", path.display(), size_text(path));
    match long_log {
        None => Check::ok(NAME, message),
        Some(log) => Check::warning(
            NAME,
            format!("{message}; {}", long_log_message(log)),
            "End other programs that keep the registry open.",
        ),
    }
}

/// Creates and removes an entry: permissions do not show that a file system is read-only, full, or like
/// `/proc`.
fn try_to_write(directory: &Path) -> io::Result<()> {
    tempfile::Builder::new().prefix(".doctor-").tempdir_in(directory)?.close()
}

fn unwritable(name: &str, path: &Path, existing: &Path, error: &io::Error) -> Check {
    // The error contains the random name of the entry.
    let cause =
        error.get_ref().and_then(std::error::Error::source).map_or(error.to_string(), ToString::to_string);
    let message = if path == existing {
        format!("{} cannot be written: {cause}", path.display())
    } else {
        format!("{} cannot be created in {}: {cause}", path.display(), existing.display())
    };
    let (code, suggestion) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ErrorCode::ResourceShortage, SPACE_ADVICE.to_owned())
        }
        kind => {
            let is_denied = kind == io::ErrorKind::PermissionDenied;
            let owner = existing.metadata().ok().map(|found| found.uid()).filter(|_| is_denied);
            (ErrorCode::PermissionDenied, write_advice(existing, owner, geteuid().as_raw()))
        }
    };
    Check::problem(name, code, message, suggestion)
}

/// How to get a state directory that can be written. The permissions of another user's directory, or of one
/// that stops even the superuser, cannot be changed.
fn write_advice(directory: &Path, owner: Option<u32>, user: u32) -> String {
    if owner == Some(user) && user != 0 {
        format!("Run: chmod u+rwx {}", shell_word(&directory.display().to_string()))
    } else {
        "Set MCP_DELEGATOR_HOME to a directory that you can write.".to_owned()
    }
}

/// The path itself, or the first one above it that exists. A dangling link counts: no directory can be
/// created there.
fn nearest_existing(path: &Path) -> &Path {
    path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(Path::new("/"))
}

fn size_text(directory: &Path) -> String {
    let (mut bytes, mut entries, mut folders) = (0, 0, vec![directory.to_owned()]);
    while let Some(folder) = folders.pop() {
        // A task that ends meanwhile may remove a directory.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            entries += 1;
            if entries >= MAX_ENTRIES {
                return format!("more than {}", mebibytes(bytes));
            }
            if metadata.is_dir() { folders.push(entry.path()) } else { bytes += metadata.len() }
        }
    }
    mebibytes(bytes)
}

/// The space for the state directory; `None` if its file system has no size, as `/proc`.
fn disk(state_dir: &Path) -> Option<Check> {
    const NAME: &str = "disk";
    let existing = nearest_existing(state_dir);
    let free = match statvfs(existing) {
        Ok(found) if found.f_blocks == 0 => return None,
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return Some(Check::warning(NAME, format!("could not be examined: {error}"), "")),
    };
    let message = format!("{} free at {}", mebibytes(free), existing.display());
    Some(match free {
        ..NO_SPACE => Check::problem(NAME, ErrorCode::ResourceShortage, message, SPACE_ADVICE),
        NO_SPACE..LITTLE_SPACE => Check::warning(NAME, message, SPACE_ADVICE),
        LITTLE_SPACE.. => Check::ok(NAME, message),
    })
}

/// A warning if the queue or an agent is paused: everything else is fine then, and still no task starts.
fn queue(context: &Context<'_>) -> Option<Check> {
    // An error here is one of the state directory, too, which reports it.
    let engine = engine(context).ok()?;
    if engine.queue().is_paused().unwrap_or(false) {
        let advice = "Run: mcp-delegator queue resume";
        return Some(Check::warning("queue", "paused: no queued task starts", advice));
    }
    let pauses = engine.queue().agent_pauses().unwrap_or_default();
    let names: Vec<&str> = pauses.iter().map(|pause| pause.agent.as_str()).collect();
    let first = names.first()?;
    let message = format!("no queued task of these agents starts for now: {}", names.join(", "));
    Some(Check::warning("queue", message, format!("Run: mcp-delegator queue resume --agent {first}")))
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        gigabytes @ 10_240.. => format!("{} GiB", gigabytes >> 10),
        megabytes => format!("{megabytes} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chmod_is_suggested_only_for_directories_of_the_user() {
        let advice = |owner, user| write_advice(Path::new("/home/me/my state"), owner, user);
        assert_eq!(advice(Some(1000), 1000), "Run: chmod u+rwx '/home/me/my state'");
        for (owner, user) in [(Some(0), 1000), (Some(0), 0), (None, 1000)] {
            assert!(advice(owner, user).contains("MCP_DELEGATOR_HOME"), "{owner:?} {user}");
        }
    }
}
