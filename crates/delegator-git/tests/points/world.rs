//! A temporary repository for tests.

#![expect(clippy::disallowed_methods, reason = "tests create their repositories with git")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use delegator_git::{
    AgentChanges, ApplyError, ApplyReport, Git, GitError, Limits, Plan, PreparedDiff, PreparedRestore,
    RestoreError, RestorePoint, RestoreScope, create_restore_point, prepare_restore, stored_points,
};
use tempfile::TempDir;

pub(crate) const GIT: &str = "/usr/bin/git";
pub(crate) const REFERENCE: &str = "refs/mcp-delegator/T-local-1";

pub(crate) struct World {
    pub(crate) root: TempDir,
    pub(crate) tree: PathBuf,
}

/// Whether every change of the diff is in the work tree already.
pub(crate) fn is_already_applied(report: &ApplyReport) -> bool {
    report.files.is_empty() && report.conflicts.is_empty()
}

/// Applies a diff that was checked.
pub(crate) fn apply(mut prepared: PreparedDiff, reference: &str) -> Result<Option<RestorePoint>, ApplyError> {
    let point = prepared.create_point(reference)?;
    prepared.apply(point.as_ref(), None).map(|()| point)
}

impl World {
    /// An empty repository.
    pub(crate) fn unborn() -> World {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        for folder in ["home", "temp", "tree"] {
            std::fs::create_dir(path.join(folder)).unwrap();
        }
        let world = World { root, tree: path.join("tree") };
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world
    }

    /// A repository with one commit of `a`, `b` and an ignore file.
    pub(crate) fn new() -> World {
        let world = World::unborn();
        world.write("a", "a1\n");
        world.write("b", "b1\n");
        world.write(".gitignore", "*.o\nbuild/\n");
        world.git(&["add", "."]);
        world.commit("first");
        world
    }

    /// A sparse checkout with the folder `in` and without the folder `out`.
    pub(crate) fn sparse() -> World {
        let world = World::new();
        world.write("in/file", "in\n");
        world.write("out/file", "out\n");
        world.git(&["add", "."]);
        world.commit("folders");
        world.git(&["sparse-checkout", "set", "in"]);
        world
    }

    pub(crate) fn run_git_in(&self, args: &[&str], dir: &Path) -> (bool, String) {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), stdout + &String::from_utf8_lossy(&output.stderr))
    }

    /// Runs git and ignores failures.
    pub(crate) fn try_git<'a>(&self, args: impl Iterator<Item = &'a OsStr>) {
        let mut command = Command::new("git");
        command.args(args).current_dir(&self.tree).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.output().unwrap();
    }

    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let (success, output) = self.run_git_in(args, &self.tree);
        assert!(success, "git {args:?}: {output}");
        output
    }

    /// Runs git in our own store of restore points.
    #[track_caller]
    pub(crate) fn git_in_store(&self, args: &[&str]) -> String {
        let common = self.git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let store = format!("--git-dir={}/mcp-delegator", common.trim());
        self.git(&[&[store.as_str()], args].concat())
    }

    /// Removes an object from the repository and from our store, and leaves all others.
    pub(crate) fn remove_object(&self, id: &str) {
        for git_dir in [".git", ".git/mcp-delegator"].map(|dir| self.tree.join(dir)) {
            let packs: Vec<PathBuf> = std::fs::read_dir(git_dir.join("objects/pack"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension() == Some(OsStr::new("pack")))
                .collect();
            for pack in packs {
                // git unpacks only what it does not have yet.
                let moved = self.temp_dir().join("moved.pack");
                std::fs::rename(&pack, &moved).unwrap();
                let _ = std::fs::remove_file(pack.with_extension("idx"));
                let unpacked = Command::new(GIT)
                    .arg("--git-dir")
                    .arg(&git_dir)
                    .args(["unpack-objects", "-q"])
                    .stdin(std::fs::File::open(&moved).unwrap())
                    .status();
                assert!(unpacked.unwrap().success());
                std::fs::remove_file(moved).unwrap();
            }
            let (folder, name) = id.split_at(2);
            let _ = std::fs::remove_file(git_dir.join("objects").join(folder).join(name));
        }
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn temp_dir(&self) -> PathBuf {
        self.root.path().join("temp")
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.tree.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Creates a repository with one commit of `file` at a path relative to the work tree.
    pub(crate) fn repository(&self, path: &str) {
        let dir = self.tree.join(path);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("file"), "1\n").unwrap();
        for args in
            [["init", "--quiet", "."].as_slice(), &["add", "."], &["commit", "--quiet", "-m", "first"]]
        {
            let (success, output) = self.run_git_in(args, &dir);
            assert!(success, "git {args:?}: {output}");
        }
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.tree.join(path)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read(self.tree.join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain=v1", "-uall"])
    }

    pub(crate) fn runner(&self) -> Git {
        let home = self.home();
        let environment =
            [(OsStr::new("HOME"), home.as_os_str()), (OsStr::new("GIT_DIR"), OsStr::new("/nowhere"))];
        Git::new(PathBuf::from(GIT), environment, Duration::from_secs(120))
    }

    pub(crate) fn try_create_point(
        &self,
        dir: &Path,
        reference: &str,
    ) -> Result<Option<RestorePoint>, GitError> {
        let created =
            create_restore_point(&self.runner(), dir, &self.temp_dir(), reference, Limits::default())?;
        Ok(created.map(|created| created.point))
    }

    /// Creates a restore point and checks that index and work tree are unchanged.
    #[track_caller]
    pub(crate) fn create_point(&self) -> RestorePoint {
        let before = (self.index(), self.status());
        let point = self.try_create_point(&self.tree, REFERENCE).unwrap().unwrap();
        assert_eq!((self.index(), self.status()), before);
        let head = self.run_git_in(&["rev-parse", "--verify", "--quiet", REFERENCE], &self.tree);
        assert_eq!(
            (head.0, head.1.trim()),
            (point.head.is_some(), point.head.as_deref().unwrap_or_default())
        );
        assert_eq!(self.git_in_store(&["rev-parse", REFERENCE]).trim(), point.commit);
        assert_eq!(std::fs::read_dir(self.temp_dir()).unwrap().count(), 0, "no temporary files are left");
        point
    }

    /// The index as git prints it; its bytes change with every `git status`.
    pub(crate) fn index(&self) -> String {
        self.git(&["ls-files", "--stage", "-t"])
    }

    /// Checks a restore of the whole tree.
    pub(crate) fn prepare(&self, point: &RestorePoint) -> Result<PreparedRestore, RestoreError> {
        prepare_restore(&self.runner(), point, RestoreScope::WholeTree, &self.temp_dir())
    }

    /// Restores the whole tree.
    pub(crate) fn restore(
        &self,
        point: &RestorePoint,
        and_head: bool,
    ) -> Result<(Plan, RestorePoint), RestoreError> {
        self.restore_prepared(self.prepare(point)?, point, and_head)
    }

    /// Restores what the task changed; the plan may have overlaps, then nothing is restored.
    pub(crate) fn restore_task_changes(
        &self,
        point: &RestorePoint,
    ) -> Result<(Plan, Option<RestorePoint>), RestoreError> {
        self.restore_changes(point, RestoreScope::TaskChanges)
    }

    /// Checks a restore of what the task changed.
    pub(crate) fn prepare_task_changes(&self, point: &RestorePoint) -> PreparedRestore {
        prepare_restore(&self.runner(), point, RestoreScope::TaskChanges, &self.temp_dir()).unwrap()
    }

    /// Undoes a restore, but not what changed after it.
    pub(crate) fn undo(&self, undo: &RestorePoint) -> Result<(Plan, Option<RestorePoint>), RestoreError> {
        self.restore_changes(undo, RestoreScope::RestoreChanges)
    }

    fn restore_changes(
        &self,
        point: &RestorePoint,
        scope: RestoreScope,
    ) -> Result<(Plan, Option<RestorePoint>), RestoreError> {
        let prepared = prepare_restore(&self.runner(), point, scope, &self.temp_dir())?;
        if !prepared.plan.overlaps.is_empty() {
            return Ok((prepared.plan, None));
        }
        self.restore_prepared(prepared, point, false).map(|(plan, undo)| (plan, Some(undo)))
    }

    pub(crate) fn restore_prepared(
        &self,
        mut prepared: PreparedRestore,
        point: &RestorePoint,
        and_head: bool,
    ) -> Result<(Plan, RestorePoint), RestoreError> {
        let plan = prepared.plan.clone();
        if and_head {
            prepared.check_head()?;
        }
        let undo = prepared.create_undo_point(&format!("{}.undo", point.reference))?;
        prepared.apply(&undo, and_head)?;
        Ok((plan, undo))
    }

    /// All restore points of the repository.
    pub(crate) fn stored_points(&self) -> Vec<RestorePoint> {
        let stored = stored_points(&self.runner(), &self.tree).unwrap().unwrap();
        stored.into_iter().map(|stored| stored.point).collect()
    }

    /// Creates a restore point, does what the task does, and stores the state after it.
    pub(crate) fn run_task(&self, agent: &AgentChanges, work: impl FnOnce()) -> RestorePoint {
        let (git, limits) = (self.runner(), Limits::default());
        let created =
            create_restore_point(&git, &self.tree, &self.temp_dir(), REFERENCE, limits).unwrap().unwrap();
        work();
        let baseline = created.baseline.unwrap();
        let compared = baseline.compare(limits, 0).unwrap();
        assert!(baseline.store_end_state(&compared, agent, Duration::from_secs(60)).unwrap());
        created.point
    }
}
