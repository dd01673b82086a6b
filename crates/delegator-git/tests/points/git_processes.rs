//! The git processes of a task, and what they find.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_git::{AgentChanges, Baseline, CreatedPoint, Git, Limits, create_restore_point};

use crate::comparing::{compare, describe, set};
use crate::world::{GIT, REFERENCE, World};

/// A script in place of git that logs the command of each call.
pub(crate) struct CountingGit {
    program: PathBuf,
    log: PathBuf,
    home: PathBuf,
}

impl CountingGit {
    pub(crate) fn new(world: &World) -> CountingGit {
        let root = world.root.path();
        let (program, log) = (root.join("git"), root.join("calls"));
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec {GIT} \"$@\"\n", log.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        CountingGit { program, log, home: world.home() }
    }

    pub(crate) fn runner(&self) -> Git {
        runner(&self.program, &self.home)
    }

    /// The commands since the last call.
    pub(crate) fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let _ = fs::remove_file(&self.log);
        log.lines().map(command_name).collect()
    }
}

/// The first word that is neither an option nor the value of one.
fn command_name(call: &str) -> String {
    let mut words = call.split(' ');
    while let Some(word) = words.next() {
        match word {
            "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            name => return name.to_owned(),
        }
    }
    call.to_owned()
}

fn runner(program: &Path, home: &Path) -> Git {
    Git::new(program.to_owned(), [(OsStr::new("HOME"), home.as_os_str())], Duration::from_secs(120))
}

fn take(world: &World, git: &Git) -> Baseline {
    Baseline::take(git, &world.tree, &world.temp_dir(), Limits::default()).unwrap().unwrap()
}

fn create(world: &World, git: &Git, reference: &str) -> CreatedPoint {
    create_restore_point(git, &world.tree, &world.temp_dir(), reference, Limits::default()).unwrap().unwrap()
}

#[test]
fn a_read_only_task_needs_two_git_processes_before_and_one_after() {
    let world = World::new();
    let git = CountingGit::new(&world);
    let clean = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config", "status"]);
    assert_eq!(describe(&compare(&clean)), set([]));
    assert_eq!(git.calls(), ["status"]);
    world.write("target/debug/x", "built");
    world.write("x.o", "ignored");
    world.write(".gitignore", "*.o\nbuild/\n/target/\n");
    world.git(&["add", ".gitignore"]);
    world.commit("ignore target");
    let with_ignored = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config", "status"]);
    assert_eq!(describe(&compare(&with_ignored)), set([]));
    assert_eq!(git.calls(), ["status"]);
    world.write("a", "dirty\n");
    world.write("untracked", "new\n");
    let dirty = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config", "status", "update-index"]);
    assert_eq!(describe(&compare(&dirty)), set([]));
    assert_eq!(git.calls(), ["status"]);
}

#[test]
fn a_writing_task_needs_five_git_processes_before_and_one_after() {
    let world = World::new();
    let git = CountingGit::new(&world);
    let created = create(&world, &git.runner(), REFERENCE);
    let mut calls = git.calls();
    // One of them runs at the same time as others.
    calls.sort();
    assert_eq!(calls, ["config", "fast-import", "rev-parse", "status", "update-ref"]);
    let baseline = created.baseline.unwrap();
    let compared = compare(&baseline);
    assert!(baseline.store_end_state(&compared, &AgentChanges::default(), Duration::from_secs(60)).unwrap());
    assert_eq!(git.calls(), ["status"]);
    // The pack that was stored as it is has everything that a restore needs.
    world.write("a", "changed\n");
    world.remove("b");
    world.restore(&created.point, false).unwrap();
    assert_eq!((world.read("a").unwrap(), world.read("b").unwrap()), ("a1\n".to_owned(), "b1\n".to_owned()));
    world.git_in_store(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_dirty_tree_is_packed_with_one_git_process_unless_a_file_is_large() {
    let world = World::new();
    let git = CountingGit::new(&world);
    world.write("a", "dirty\n");
    world.write("untracked", "new\n");
    let point = create(&world, &git.runner(), REFERENCE).point;
    let packing = |calls: Vec<String>| -> Vec<String> {
        calls.into_iter().filter(|call| call == "rev-list" || call == "pack-objects").collect()
    };
    assert_eq!(packing(git.calls()), ["pack-objects"]);
    // The commit, its tree, `state` and the work tree; meta.json, three lists of which two are empty, two files.
    let counts = world.git_in_store(&["count-objects", "-v"]);
    assert!(counts.contains("\nin-pack: 9\n"), "{counts}");
    world.write("large", "0123456789abcdef".repeat(4096));
    let with_large = create(&world, &git.runner(), &format!("{REFERENCE}.2")).point;
    assert_eq!(packing(git.calls()), ["rev-list", "pack-objects", "pack-objects"]);
    world.git(&["prune", "--expire=now"]);
    world.remove("large");
    world.remove("untracked");
    world.write("a", "changed\n");
    world.restore(&with_large, false).unwrap();
    assert_eq!(world.read("large").unwrap().len(), 65_536);
    world.restore(&point, false).unwrap();
    assert_eq!(
        (world.read("a").unwrap(), world.read("untracked").unwrap()),
        ("dirty\n".to_owned(), "new\n".to_owned())
    );
    world.git_in_store(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn an_object_that_the_repository_has_by_chance_is_stored_with_the_point() {
    let world = World::new();
    // Unreachable, and a part of every restore point: `git gc` may delete it.
    let empty = world.git(&["hash-object", "-w", "/dev/null"]).trim().to_owned();
    let point = world.create_point();
    world.git(&["prune", "--expire=now"]);
    assert_eq!(world.git_in_store(&["cat-file", "-t", &empty]).trim(), "blob");
    world.write("a", "changed\n");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").unwrap(), "a1\n");
}

/// Changes a file without changing its size or its modification time.
fn edit_in_the_same_moment(path: &Path, text: &str) {
    let before = fs::metadata(path).unwrap();
    assert_eq!(before.len(), text.len() as u64);
    fs::write(path, text).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(before.modified().unwrap()).unwrap();
}

#[test]
fn edits_in_the_moment_of_the_baseline_are_found() {
    let world = World::new();
    world.write("dirty", "1\n");
    let before = take(&world, &world.runner());
    edit_in_the_same_moment(&world.tree.join("a"), "A1\n");
    edit_in_the_same_moment(&world.tree.join("dirty"), "2\n");
    assert_eq!(describe(&compare(&before)), set(["M a +1 -1", "M dirty +1 -1"]));
}

#[test]
fn changes_outside_the_files_of_the_index_are_found() {
    let world = World::new();
    world.write("node_modules/x", "1\n");
    let before = take(&world, &world.runner());
    world.write("node_modules/y", "1\n");
    assert_eq!(describe(&compare(&before)), set(["A node_modules/y +1 -0"]), "the directory is not ignored");
    let excludes = world.home().join("excludes");
    fs::write(&excludes, "node_modules/\n").unwrap();
    fs::write(world.home().join(".gitconfig"), format!("[core]\n\texcludesFile = {}\n", excludes.display()))
        .unwrap();
    let before = take(&world, &world.runner());
    assert_eq!(describe(&compare(&before)), set([]));
    fs::write(&excludes, "NODE_modules/\n").unwrap();
    let after = describe(&compare(&before));
    assert_eq!(
        after,
        set(["A node_modules/x +1 -0", "A node_modules/y +1 -0"]),
        "it is not ignored any more"
    );
    world.write(".gitignore", ".env\n*.o\nnode_modules\n");
    world.write(".env", "1\n");
    let before = take(&world, &world.runner());
    world.write("node_modules/z", "ignored\n");
    world.write("new.o", "ignored\n");
    fs::create_dir_all(world.tree.join("empty/deep")).unwrap();
    assert_eq!(describe(&compare(&before)), set([]));
    world.write(".env", "22\n");
    assert_eq!(describe(&compare(&before)), set(["M .env"]), "an ignored file that existed before");
}

#[test]
fn the_head_of_every_kind_of_repository_is_read() {
    for (label, prepare) in [
        ("packed refs", ["pack-refs", "--all"].as_slice()),
        ("detached", &["switch", "--quiet", "--detach"]),
        ("a branch with folders", &["switch", "--quiet", "-c", "a/b.c"]),
        ("an odd branch", &["switch", "--quiet", "-c", "größe@x"]),
        ("no commit", &["switch", "--quiet", "--orphan", "new"]),
        ("a tag of the same name", &["tag", "main"]),
        ("a worktree configuration", &["config", "extensions.worktreeConfig", "true"]),
    ] {
        let world = World::new();
        world.git(prepare);
        let compared = compare(&take(&world, &world.runner()));
        let branch = world.run_git_in(&["symbolic-ref", "--quiet", "HEAD"], &world.tree);
        let branch = branch.0.then(|| branch.1.trim().to_owned());
        assert_eq!(compared.head_after.unwrap().branch, branch, "{label}");
        let commit = world.run_git_in(&["rev-parse", "--verify", "--quiet", "HEAD"], &world.tree);
        let commit = commit.0.then(|| commit.1.trim().to_owned());
        assert_eq!(compared.head_before.commit, commit, "{label}");
    }
}
