//! A control group of its own for each task, where the system lets us make one.
//!
//! Whatever is in a group forks into it, and leaves it neither by a session of its own nor by clearing its environment;
//! so even when a supervisor was killed, the group still says what belongs to the task.
//!
//! To move a process the kernel waits for a grace period of its own, ten milliseconds and more on a machine at rest,
//! and only the first of several moves in a row is that slow. The agent does not wait for it: it is started, and a
//! thread takes it in together with whatever it has started meanwhile, until a walk over all our descendants finds
//! nothing outside. Until then, as where there is no group at all, the child subreaper holds them.
//!
//! The group lies below the one the supervisor runs in, as delegation demands; but a supervisor that an agent asked for
//! first leaves the agent's group, because its task has its own end. Every step may be refused (no cgroup v2, a group of
//! somebody else, a container); then there is no group. A group ends with its value: whoever is still in it is put back
//! outside, and the directory is removed.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use delegator_domain::task::TaskId;
use rustix::fs::{Access, access};

use super::stat::read_stat;
use super::tree::{WalkStep, walk};

const PREFIX: &str = "mcp-delegator-";
const MEMBERS: &str = "cgroup.procs";
/// The most directories a search looks into.
const MAX_SEARCHED_DIRS: usize = 10_000;
/// Walks over a tree that grows faster than it is taken in.
const MAX_WALKS: usize = 100;
/// A walk needs little.
const STACK_BYTES: usize = 128 << 10;

/// The group of one task.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// A group for a task; nothing where it cannot be had.
    pub fn create(task: &TaskId) -> Option<Cgroup> {
        Cgroup::create_named(task.as_str())
    }

    /// Whether groups can be had here: tries it, with ourselves.
    pub fn is_available() -> bool {
        let Some(group) = Cgroup::create_named(&format!("trial-{}", std::process::id())) else {
            return false;
        };
        let entered = move_process(&group.path, "0").is_ok();
        move_process(group.parent(), "0").is_ok() && entered
    }

    fn create_named(name: &str) -> Option<Cgroup> {
        let path = own_group()?.join(format!("{PREFIX}{name}"));
        match std::fs::create_dir(&path) {
            // Left by an attempt that came to nothing.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let group = Cgroup { path };
        // What the kernel will ask for when it comes to moving.
        let may_move = |group: &Path| access(group.join(MEMBERS), Access::WRITE_OK).is_ok();
        (may_move(&group.path) && may_move(group.parent())).then_some(group)
    }

    /// Leaves the group of the task whose agent asked for us, if we were born into one.
    pub fn leave_task_group() {
        let location = mount().zip(std::fs::read_to_string("/proc/self/cgroup").ok());
        let own = location.and_then(|(mount, cgroup)| own_path(&mount, &cgroup));
        if let Some(own) = own.filter(|own| *own != without_task_groups(own)) {
            let _ = move_process(&without_task_groups(&own), "0");
        }
    }

    /// The group a lost supervisor left behind. It may have run anywhere, so all groups are looked through.
    pub fn find_left_by(task: &TaskId) -> Option<Cgroup> {
        let name = format!("{PREFIX}{task}");
        let mut pending = VecDeque::from([mount()?.point]);
        for _ in 0..MAX_SEARCHED_DIRS {
            let folder = pending.pop_front()?;
            for child in subdirs(&folder) {
                if child.file_name().is_some_and(|found| *found == *name) {
                    return Some(Cgroup { path: child });
                }
                pending.push_back(child);
            }
        }
        None
    }

    /// Takes in everything that descends from `root`, on a thread of its own. Nothing where there can be none: then
    /// the group stays empty.
    pub(crate) fn adopt_descendants(&self, root: i32) -> Option<JoinHandle<()>> {
        let path = self.path.clone();
        let thread = std::thread::Builder::new().name("gather".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || adopt_descendants(&path, root)).ok()
    }

    /// Everything in it, and in groups below it: those of tasks that were started by this one.
    pub(crate) fn members(&self) -> Vec<i32> {
        members(&self.path)
    }

    /// Kills everything in it at once, however quickly it multiplies.
    pub(crate) fn kill(&self) {
        // Older kernels do not have it; then one by one has to do.
        let _ = std::fs::write(self.path.join("cgroup.kill"), "1");
    }

    fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for pid in self.members() {
            // Exempt, or not to be killed: it goes on where it would have been without us.
            let _ = move_process(self.parent(), &pid.to_string());
        }
        for_each_subgroup(&self.path, &mut |folder| {
            // What cannot be removed now, a later sweep may.
            let _ = std::fs::remove_dir(folder);
        });
    }
}

fn adopt_descendants(group: &Path, root: i32) {
    for _ in 0..MAX_WALKS {
        let inside: HashSet<i32> = members(group).into_iter().collect();
        let mut is_all_inside = true;
        walk(root, |stat| {
            if !stat.is_dead()
                && !inside.contains(&stat.pid)
                && move_process(group, &stat.pid.to_string()).is_ok()
            {
                is_all_inside = false;
                // Its number may have become another's in the meantime, who has no place here.
                let is_same = read_stat(stat.pid).is_none_or(|now| now.start == stat.start);
                if let (false, Some(outside)) = (is_same, group.parent()) {
                    let _ = move_process(outside, &stat.pid.to_string());
                }
            }
            WalkStep::Descend
        });
        if is_all_inside {
            return;
        }
    }
}

fn members(group: &Path) -> Vec<i32> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut found = Vec::new();
    for_each_subgroup(group, &mut |folder| {
        let list = std::fs::read_to_string(folder.join(MEMBERS)).unwrap_or_default();
        // Those in another pid namespace are numbered 0.
        let pids = list.lines().filter_map(|line| line.parse::<i32>().ok());
        found.extend(pids.filter(|pid| *pid > 0 && *pid != me));
    });
    found
}

/// Moves a process into a group; 0 is whoever writes.
fn move_process(group: &Path, pid: &str) -> io::Result<()> {
    std::fs::write(group.join(MEMBERS), pid)
}

/// A folder and all below it, the innermost first.
fn for_each_subgroup(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for child in subdirs(folder) {
        for_each_subgroup(&child, visit);
    }
    visit(folder);
}

fn subdirs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_dir).map(|entry| entry.path()).collect()
}

/// Where the groups of version 2 are, and which of them is at the top there.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    root: PathBuf,
}

fn mount() -> Option<Mount> {
    parse_mount(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The directory of the group we are in, or of the one that has the task we were born into.
fn own_group() -> Option<PathBuf> {
    let own = own_path(&mount()?, &std::fs::read_to_string("/proc/self/cgroup").ok()?)?;
    Some(without_task_groups(&own))
}

fn without_task_groups(group: &Path) -> PathBuf {
    let is_task = |part: &std::path::Component<'_>| part.as_os_str().to_string_lossy().starts_with(PREFIX);
    group.components().take_while(|part| !is_task(part)).collect()
}

fn parse_mount(mountinfo: &str) -> Option<Mount> {
    mountinfo.lines().find_map(|line| {
        let (mount_fields, fs_fields) = line.split_once(" - ")?;
        let mut fields = mount_fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_cgroup2 = fs_fields.starts_with("cgroup2 ") && !point.contains('\\');
        is_cgroup2.then(|| Mount { point: point.into(), root: root.into() })
    })
}

fn own_path(mount: &Mount, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(&mount.root).ok()?;
    // Outside of what is mounted here.
    let is_above = below.components().any(|part| part == std::path::Component::ParentDir);
    (!is_above).then(|| mount.point.join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
        40 30 0:35 / /sys/fs/cgroup/unified rw,nosuid shared:12 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn own_path_in(mountinfo: &str, cgroup: &str) -> Option<PathBuf> {
        own_path(&parse_mount(mountinfo)?, cgroup)
    }

    #[test]
    fn own_group_is_resolved_against_the_mount() {
        assert_eq!(own_path_in(HYBRID, "1:cpu:/x\n0::/\n").unwrap(), Path::new("/sys/fs/cgroup/unified"));
        let session = "0::/user.slice/app.scope\n";
        assert_eq!(
            own_path_in(HYBRID, session).unwrap(),
            Path::new("/sys/fs/cgroup/unified/user.slice/app.scope")
        );
        // A container that is shown a part of the tree.
        let part = "40 30 0:35 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(own_path_in(part, "0::/docker/1/inner\n").unwrap(), Path::new("/sys/fs/cgroup/inner"));
    }

    #[test]
    fn nested_task_group_is_a_sibling_of_the_agents_group() {
        for (group, expected) in [
            ("/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/user.slice"),
            ("/sys/fs/cgroup/user.slice/mcp-delegator-T-local-1", "/sys/fs/cgroup/user.slice"),
            ("/sys/fs/cgroup/mcp-delegator-T-local-1/made/by/agent", "/sys/fs/cgroup"),
        ] {
            assert_eq!(without_task_groups(Path::new(group)), Path::new(expected));
        }
    }

    #[test]
    fn missing_or_foreign_cgroups_yield_none() {
        assert_eq!(own_path_in(HYBRID, "1:cpu:/x\n"), None, "version 1 only");
        assert_eq!(
            own_path_in("31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "0::/\n"),
            None
        );
        assert_eq!(own_path_in("", ""), None);
        let part = "40 30 0:35 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(own_path_in(part, "0::/elsewhere\n"), None);
        assert_eq!(own_path_in(HYBRID, "0::/../other\n"), None, "above the top of a cgroup namespace");
    }
}
