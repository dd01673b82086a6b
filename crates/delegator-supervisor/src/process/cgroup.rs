//! A cgroup per task, where the system permits creating one.
//!
//! Children are born into the cgroup and leave it neither by a new session nor by clearing their environment;
//! so even after a supervisor was killed, the cgroup still holds every process of the task.
//!
//! Moving a process makes the kernel wait for a grace period, ten milliseconds and more on an idle machine
//! and hundreds on a busy one, and delays all forks meanwhile. So an agent that ends within `ADOPTION_DELAY`
//! is never moved, and no agent waits for it: a thread moves it, together with everything it has started
//! since, until a walk over all our descendants finds nothing outside. Until then, and where there is no
//! cgroup, the child subreaper covers them.
//!
//! The cgroup lies below the supervisor's own, as delegation requires; but a supervisor started by an agent
//! first leaves the agent's cgroup, because its task ends independently. Any step may be refused (no cgroup
//! v2, missing permission, a container); then there is no cgroup. Dropping a `Cgroup` moves remaining members
//! out and removes the directory.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use delegator_domain::task::TaskId;
use rustix::fs::{Access, access};

use super::stat::read_stat;
use super::tree::{WalkStep, walk};

const PREFIX: &str = "mcp-delegator-";
const MEMBERS: &str = "cgroup.procs";
const MAX_SEARCHED_DIRS: usize = 10_000;
/// Maximum number of walks over a tree that grows faster than it is moved.
const MAX_WALKS: usize = 100;
const ADOPTION_DELAY: Duration = Duration::from_millis(100);
/// A walk needs little stack.
const STACK_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// A cgroup for a task; `None` where none can be created.
    pub fn create(task: &TaskId) -> Option<Cgroup> {
        Cgroup::create_named(task.as_str())
    }

    /// Whether cgroups can be created here: tries it with this process.
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
            // An existing directory was left by an earlier attempt that failed: use it.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let group = Cgroup { path };
        // The kernel requires both permissions for moving a process.
        let may_move = |group: &Path| access(group.join(MEMBERS), Access::WRITE_OK).is_ok();
        (may_move(&group.path) && may_move(group.parent())).then_some(group)
    }

    /// Leaves the cgroup of the task whose agent started us, if we were started in one.
    pub fn leave_task_group() {
        // Most supervisors are not started by an agent, and the list of mounts is expensive to read.
        let cgroup =
            std::fs::read_to_string("/proc/self/cgroup").ok().filter(|cgroup| cgroup.contains(PREFIX));
        let own = cgroup.and_then(|cgroup| own_path(&mount()?, &cgroup));
        if let Some(own) = own.filter(|own| *own != without_task_groups(own)) {
            let _ = move_process(&without_task_groups(&own), "0");
        }
    }

    /// Finds the cgroup of a lost supervisor. It may have run anywhere, so all cgroups are searched.
    pub fn find_left_by(task: &TaskId) -> Option<Cgroup> {
        let name = format!("{PREFIX}{task}");
        let mut pending = VecDeque::from([mount()?.point]);
        for _ in 0..MAX_SEARCHED_DIRS {
            let dir = pending.pop_front()?;
            for child in subdirs(&dir) {
                if child.file_name().is_some_and(|found| *found == *name) {
                    return Some(Cgroup { path: child });
                }
                pending.push_back(child);
            }
        }
        None
    }

    /// Moves everything that descends from `root` into the cgroup after [`ADOPTION_DELAY`], on a thread of
    /// its own. `None` if the thread cannot be started; then the cgroup stays empty.
    pub(crate) fn adopt_descendants(&self, root: i32) -> Option<Adoption> {
        let path = self.path.clone();
        let (running, ended) = channel();
        let builder = std::thread::Builder::new().name("cgroup".to_owned()).stack_size(STACK_BYTES);
        let thread = builder.spawn(move || adopt_after_delay(&path, root, &ended)).ok()?;
        Some(Adoption { running, thread })
    }

    /// All members, including those of nested cgroups, which belong to tasks started by this one.
    pub(crate) fn members(&self) -> Vec<i32> {
        members(&self.path)
    }

    /// Kills all members at once, however fast they fork.
    pub(crate) fn kill(&self) {
        // Kernels before 5.14 do not have it; then processes are only killed one by one.
        let _ = std::fs::write(self.path.join("cgroup.kill"), "1");
    }

    fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

#[derive(Debug)]
pub(crate) struct Adoption {
    /// Dropped when the run has ended.
    running: Sender<()>,
    thread: JoinHandle<()>,
}

impl Adoption {
    /// Ends the adoption; the cgroup does not change after that. Waits only if processes are just being
    /// moved.
    pub(crate) fn end(self) {
        drop(self.running);
        let _ = self.thread.join();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for pid in self.members() {
            // Exempt or unkillable: it continues where it would have run without us.
            let _ = move_process(self.parent(), &pid.to_string());
        }
        for_each_subgroup(&self.path, &mut |dir| {
            // If this fails, a later sweep may succeed.
            let _ = std::fs::remove_dir(dir);
        });
    }
}

fn adopt_after_delay(group: &Path, root: i32, ended: &Receiver<()>) {
    if ended.recv_timeout(ADOPTION_DELAY) == Err(RecvTimeoutError::Timeout) {
        adopt_descendants(group, root);
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
                // The pid may have been reused meanwhile by a process that does not belong here.
                let is_same = read_stat(stat.pid).is_none_or(|now| now.start == stat.start);
                if let (false, Some(parent)) = (is_same, group.parent()) {
                    let _ = move_process(parent, &stat.pid.to_string());
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
    for_each_subgroup(group, &mut |dir| {
        let list = std::fs::read_to_string(dir.join(MEMBERS)).unwrap_or_default();
        // Members in another pid namespace are listed as 0.
        let pids = list.lines().filter_map(|line| line.parse::<i32>().ok());
        found.extend(pids.filter(|pid| *pid > 0 && *pid != me));
    });
    found
}

/// Moves a process into a cgroup; pid 0 is the calling process.
fn move_process(group: &Path, pid: &str) -> io::Result<()> {
    std::fs::write(group.join(MEMBERS), pid)
}

/// Visits a directory and all below it, innermost first.
fn for_each_subgroup(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    for child in subdirs(dir) {
        for_each_subgroup(&child, visit);
    }
    visit(dir);
}

fn subdirs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_dir).map(|entry| entry.path()).collect()
}

/// Where cgroup v2 is mounted, and which cgroup is the root of that mount.
#[derive(Debug, PartialEq, Eq)]
struct CgroupMount {
    point: PathBuf,
    root: PathBuf,
}

fn mount() -> Option<CgroupMount> {
    parse_mount(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The cgroup this process is in, without any task's own cgroup.
fn own_group() -> Option<PathBuf> {
    let own = own_path(&mount()?, &std::fs::read_to_string("/proc/self/cgroup").ok()?)?;
    Some(without_task_groups(&own))
}

pub fn task_by_cgroup(pid: i32) -> Option<TaskId> {
    task_in(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The innermost task in the text of `/proc/<pid>/cgroup`.
fn task_in(cgroup: &str) -> Option<TaskId> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    own.rsplit('/').find_map(|part| part.strip_prefix(PREFIX)?.parse().ok())
}

fn without_task_groups(group: &Path) -> PathBuf {
    let is_task = |part: &std::path::Component<'_>| part.as_os_str().to_string_lossy().starts_with(PREFIX);
    group.components().take_while(|part| !is_task(part)).collect()
}

fn parse_mount(mountinfo: &str) -> Option<CgroupMount> {
    mountinfo.lines().find_map(|line| {
        let (mount_fields, fs_fields) = line.split_once(" - ")?;
        let mut fields = mount_fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_cgroup2 = fs_fields.starts_with("cgroup2 ") && !point.contains('\\');
        is_cgroup2.then(|| CgroupMount { point: point.into(), root: root.into() })
    })
}

fn own_path(mount: &CgroupMount, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(own).strip_prefix(&mount.root).ok()?;
    // Outside of the mounted part.
    let is_above = below.components().any(|part| part == std::path::Component::ParentDir);
    (!is_above).then(|| mount.point.join(below))
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::TaskLocation;

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
        // A container that sees only a part of the tree.
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
    fn the_innermost_cgroup_names_the_task() {
        let [outer, inner] = [1, 2].map(|bits| TaskId::from_random(TaskLocation::Local, [bits; 16]));
        for (path, expected) in [
            (format!("0::/user.slice/{PREFIX}{outer}/made/by/agent\n"), Some(&outer)),
            (format!("1:cpu:/x\n0::/{PREFIX}{outer}/{PREFIX}{inner}\n"), Some(&inner)),
            (format!("0::/{PREFIX}trial-12\n"), None),
            (format!("1:cpu:/{PREFIX}{outer}\n"), None),
        ] {
            assert_eq!(task_in(&path).as_ref(), expected, "{path}");
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
