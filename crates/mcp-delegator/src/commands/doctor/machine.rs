//! Checks of the machine: versions, git, process containment, the state directory and its disk.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use delegator_config::Containment;
use delegator_engine::best_containment;
use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;

use super::check::Check;
use crate::commands::context::Context;
use crate::commands::local::status::long_log_message;
use crate::commands::local::tasks::{engine, variables};
use crate::error::{AppError, ErrorCode};
use crate::spec::shell::shell_word;
use crate::spec::version::{PRODUCT_VERSION, PROGRAM};

/// Below these, results may be lost soon, or at once.
const LITTLE_SPACE: u64 = 1 << 30;
const NO_SPACE: u64 = 64 << 20;
/// Counting more entries would take too long; the size is then a lower bound.
const MAX_ENTRIES: usize = 50_000;

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let mut checks = vec![version(), git(context), containment(context), state_dir(context)];
    checks.extend(context.state_dir.as_deref().map(disk));
    checks
}

fn version() -> Check {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check::ok("version", format!("{PROGRAM} {PRODUCT_VERSION}, Linux {}", kernel.trim()))
}

fn git(context: &Context<'_>) -> Check {
    let version = engine(context)
        .and_then(|engine| Ok(engine.git_version(&context.process.current_dir, &variables(context))?));
    match version {
        Ok(version) => Check::ok("git", version),
        Err(error) => {
            let suggestion = "Install git: without it changes are not verified and cannot be restored.";
            Check::failed(
                context,
                "git",
                AppError { code: ErrorCode::DependencyMissing, ..error }.suggest(suggestion),
            )
        }
    }
}

/// Both kinds of containment work. A control group also finds unmarked processes of a supervisor that was killed.
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
    let counts = engine(context).and_then(|engine| Ok((engine.counts()?, engine.state_dir)));
    let (counts, path) = match counts {
        Ok(found) => found,
        Err(error) => return Check::failed(context, NAME, error),
    };
    let existing = nearest_existing(&path);
    if access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!("{} is not writable", existing.display());
        let owner = existing.metadata().ok().map(|found| found.uid());
        let suggestion = write_advice(&existing, owner, geteuid().as_raw());
        return Check::problem(NAME, ErrorCode::PermissionDenied, message, Some(suggestion));
    }
    let Some((counts, long_log)) = counts else {
        return Check::ok(NAME, format!("{} (empty)", path.display()));
    };
    let tasks: u64 = counts.iter().map(|(_, count)| count).sum();
    let message = format!("{}, {tasks} tasks, {}", path.display(), size_text(&path));
    match long_log {
        None => Check::ok(NAME, message),
        Some(log) => Check::warning(
            NAME,
            format!("{message}; {}", long_log_message(log)),
            "End other programs that keep the registry open.",
        ),
    }
}

/// How to get a state directory that can be written. The permissions of another user's directory, or of one that stops
/// even the superuser, cannot be changed.
fn write_advice(directory: &Path, owner: Option<u32>, user: u32) -> String {
    match owner == Some(user) && user != 0 {
        true => format!("Run: chmod u+rwx {}", shell_word(&directory.display().to_string())),
        false => "Set MCP_DELEGATOR_HOME to a directory that you can write.".to_owned(),
    }
}

/// The path itself, or the first directory above it that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// The size of all files below a directory.
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
            match metadata.is_dir() {
                true => folders.push(entry.path()),
                false => bytes += metadata.len(),
            }
        }
    }
    mebibytes(bytes)
}

fn disk(state_dir: &Path) -> Check {
    const NAME: &str = "disk";
    let existing = nearest_existing(state_dir);
    let free = match statvfs(&existing) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return Check::warning(NAME, format!("could not be examined: {error}"), ""),
    };
    let message = format!("{} free at {}", mebibytes(free), existing.display());
    let suggestion = "Free some space; cleanup-registry deletes old tasks.";
    match free {
        ..NO_SPACE => Check::problem(NAME, ErrorCode::ResourceShortage, message, Some(suggestion.to_owned())),
        NO_SPACE..LITTLE_SPACE => Check::warning(NAME, message, suggestion),
        LITTLE_SPACE.. => Check::ok(NAME, message),
    }
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
