//! Comparing a work tree with its baseline, in repositories of every kind.

use std::collections::BTreeSet;
use std::time::Duration;

use delegator_git::{Baseline, ChangeKind, Comparison, Head, LeftOutReason, Limits, create_restore_point};

use crate::world::{REFERENCE, World};

/// Older than every commit.
pub(crate) const ALWAYS: i64 = 0;

pub(crate) fn baseline(world: &World) -> Baseline {
    Baseline::take(&world.runner(), &world.tree, &world.temp_dir(), Limits::default()).unwrap().unwrap()
}

pub(crate) fn compare(baseline: &Baseline) -> Comparison {
    baseline.compare(Limits::default(), ALWAYS).unwrap()
}

/// `A path`, `M path`, `D path`, `R from > to`, with line counts.
pub(crate) fn describe(comparison: &Comparison) -> BTreeSet<String> {
    let name = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let describe_file = |file: &delegator_git::FileChange| {
        let lines = file.lines.map(|(added, deleted)| format!(" +{added} -{deleted}")).unwrap_or_default();
        let path = name(&file.path);
        match &file.kind {
            ChangeKind::Added => format!("A {path}{lines}"),
            ChangeKind::Modified => format!("M {path}{lines}"),
            ChangeKind::Deleted => format!("D {path}{lines}"),
            ChangeKind::Renamed { from } => format!("R {} > {path}{lines}", name(from)),
        }
    };
    comparison.files.iter().map(describe_file).collect()
}

pub(crate) fn set<const N: usize>(lines: [&str; N]) -> BTreeSet<String> {
    lines.map(str::to_owned).into()
}

#[test]
fn only_changes_since_the_baseline_are_reported() {
    let world = World::new();
    world.write("b", "dirty before\n");
    world.write("untracked", "before\n");
    world.write("gone before", "x\n");
    world.git(&["add", "gone before"]);
    world.remove("gone before");
    let (index, status) = (world.index(), world.status());
    let objects = world.git(&["count-objects", "-v"]);
    let unchanged = baseline(&world);
    assert_eq!(describe(&compare(&unchanged)), set([]));
    let before = baseline(&world);
    assert_eq!((world.index(), world.status()), (index, status));
    world.write("a", "a1\na2\n");
    world.write("untracked", "after\n");
    world.write("new", "1\n2\n");
    world.write("x.o", "ignored");
    world.write("build/y", "ignored");
    let comparison = compare(&before);
    assert_eq!(describe(&comparison), set(["M a +1 -0", "M untracked +1 -1", "A new +2 -0"]));
    assert!(!comparison.index_changed && comparison.names_only.is_none());
    assert_eq!(world.git(&["count-objects", "-v"]), objects, "nothing is added to the repository");
    drop((unchanged, before));
    assert_eq!(std::fs::read_dir(world.temp_dir()).unwrap().count(), 0, "no temporary files are left");
}

#[test]
fn a_restore_point_also_serves_as_baseline() {
    let world = World::new();
    world.write("a", "dirty\n");
    let created =
        create_restore_point(&world.runner(), &world.tree, &world.temp_dir(), REFERENCE, Limits::default());
    let mut before = created.unwrap().unwrap().baseline.unwrap();
    before.set_time_limit(Duration::from_secs(60));
    let objects = world.git(&["count-objects", "-v"]);
    world.write("a", "dirtier\n");
    world.write("new", "n\n");
    assert_eq!(describe(&compare(&before)), set(["M a +1 -1", "A new +1 -0"]));
    assert_eq!(world.git(&["count-objects", "-v"]), objects);
}

#[test]
fn committed_staged_and_hidden_changes_are_reported() {
    let world = World::new();
    let before = baseline(&world);
    world.write("a", "committed\n");
    world.git(&["add", "a"]);
    world.commit("by the agent");
    world.write("b", "hidden\n");
    world.git(&["update-index", "--assume-unchanged", "b"]);
    assert_eq!(world.status(), "");
    let comparison = compare(&before);
    assert_eq!(describe(&comparison), set(["M a +1 -1", "M b +1 -1"]));
    assert!(comparison.index_changed);
    assert_eq!(comparison.commits.count, 1);
    assert_eq!(comparison.commits.subjects, ["by the agent"]);
}

#[test]
fn renames_modes_links_and_binaries_are_reported() {
    let world = World::new();
    world.write("long", "1\n2\n3\n4\n5\n6\n7\n8\n");
    world.git(&["add", "."]);
    world.commit("more");
    let before = baseline(&world);
    world.remove("long");
    world.write("dir/longer", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    world.remove("a");
    std::os::unix::fs::symlink("/etc/passwd", world.tree.join("a")).unwrap();
    world.write("picture", [0, 1, 2, 0, 255]);
    world.write("b", "b1\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(world.tree.join("b"), executable).unwrap();
    assert_eq!(
        describe(&compare(&before)),
        set(["R long > dir/longer +1 -0", "M a +1 -1", "A picture +0 -0", "M b +0 -0"])
    );
}

#[test]
fn a_file_replaced_by_a_directory_and_non_utf8_names_are_reported() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let before = baseline(&world);
    world.remove("a");
    world.write("a/inside", "x\n");
    world.write(":odd\tname\n", "x\n");
    std::fs::write(world.tree.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "x\n").unwrap();
    let comparison = compare(&before);
    assert!(comparison.files.iter().any(|file| file.path == b"caf\xe9"), "{comparison:?}");
    let changes = describe(&comparison);
    assert!(changes.contains("A :odd\tname\n +1 -0") && changes.contains("D a +0 -1"), "{changes:?}");
    assert!(changes.contains("A a/inside +1 -0"), "{changes:?}");
}

#[test]
fn large_and_special_files_are_named_but_not_read() {
    let world = World::new();
    let large = |name: &str, size: u64| {
        let file = std::fs::File::options().create(true).append(true).open(world.tree.join(name)).unwrap();
        file.set_len(size).unwrap();
    };
    for name in ["same", "grows", "goes", "shrinks"] {
        large(name, 30 << 30);
    }
    std::fs::create_dir(world.tree.join("nested")).unwrap();
    world.run_git_in(&["init", "--quiet"], &world.tree.join("nested"));
    let before = baseline(&world);
    large("grows", 40 << 30);
    large("comes", 30 << 30);
    world.remove("goes");
    world.remove("shrinks");
    world.write("shrinks", "small now\n");
    world.remove("a");
    rustix::fs::mkfifoat(rustix::fs::CWD, world.tree.join("a"), 0o600.into()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.tree.join("fifo"), 0o600.into()).unwrap();
    let comparison = compare(&before);
    assert_eq!(describe(&comparison), set(["M a", "M grows", "A comes", "D goes", "M shrinks"]));
    let left_out: BTreeSet<_> = comparison
        .left_out
        .iter()
        .map(|entry| (entry.path.as_str(), entry.reason == LeftOutReason::TooLarge))
        .collect();
    assert_eq!(left_out, [("a", false), ("comes", true), ("grows", true)].into());
}

#[test]
fn files_beyond_the_total_limit_are_named_but_not_read() {
    let world = World::new();
    let before = baseline(&world);
    for n in 0..4 {
        world.write(&format!("f{n}"), [b'x'; 100]);
    }
    let limits = Limits { total_bytes: 250, ..Limits::default() };
    let comparison = before.compare(limits, ALWAYS).unwrap();
    assert_eq!(describe(&comparison), set(["A f0 +1 -0", "A f1 +1 -0", "A f2", "A f3"]));
    assert_eq!(comparison.left_out.len(), 2);
}

#[test]
fn moved_head_branch_and_commits_are_reported() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let before = baseline(&world);
    world.git(&["switch", "--quiet", "-c", "other"]);
    for n in 0..25 {
        world.commit(&format!("commit {n}"));
    }
    let comparison = compare(&before);
    let branch = |head: &Head| head.branch.clone().unwrap();
    assert_eq!(comparison.head_before.commit.as_ref(), Some(&first));
    assert_eq!(branch(&comparison.head_before), "refs/heads/main");
    assert_eq!(branch(comparison.head_after.as_ref().unwrap()), "refs/heads/other");
    assert_eq!((comparison.commits.count, comparison.commits.subjects.len()), (25, 20));
    assert_eq!(comparison.commits.subjects[0], "commit 24");
    assert_eq!(describe(&comparison), set([]));
    let later = before.compare(Limits::default(), i64::from(i32::MAX)).unwrap();
    assert_eq!(later.commits.count, 0, "older commits were only checked out");
}

#[test]
fn unborn_detached_conflicted_and_linked_work_trees_are_compared() {
    let unborn = World::unborn();
    let before = baseline(&unborn);
    unborn.write("first", "x\n");
    unborn.git(&["add", "."]);
    unborn.commit("first");
    let comparison = compare(&before);
    assert_eq!((describe(&comparison), comparison.commits.count), (set(["A first +1 -0"]), 1));

    let world = World::new();
    world.git(&["switch", "--quiet", "--detach"]);
    world.git(&["switch", "--quiet", "-c", "side"]);
    world.write("a", "side\n");
    world.git(&["commit", "--quiet", "-am", "side"]);
    world.git(&["switch", "--quiet", "--detach", "main"]);
    world.write("a", "here\n");
    world.git(&["commit", "--quiet", "-am", "here"]);
    assert!(!world.run_git_in(&["merge", "side"], &world.tree).0, "the merge must conflict");
    let conflicted = baseline(&world);
    assert_eq!(describe(&compare(&conflicted)), set([]));
    let conflicted = baseline(&world);
    world.write("a", "solved\n");
    world.git(&["add", "a"]);
    let comparison = compare(&conflicted);
    assert!(describe(&comparison).iter().all(|line| line.starts_with("M a ")), "{comparison:?}");
    assert!(comparison.index_changed && comparison.head_after.unwrap().branch.is_none());

    world.git(&["worktree", "add", "--quiet", "--force", "../linked", "side"]);
    let linked = world.root.path().canonicalize().unwrap().join("linked");
    let before =
        Baseline::take(&world.runner(), &linked, &world.temp_dir(), Limits::default()).unwrap().unwrap();
    std::fs::write(linked.join("b"), "linked\n").unwrap();
    assert_eq!(describe(&compare(&before)), set(["M b +1 -1"]));
}

#[test]
fn files_outside_a_sparse_checkout_and_in_submodules_are_skipped() {
    let world = World::new();
    world.write("in/x", "x\n");
    world.write("out/y", "y\n");
    world.git(&["add", "."]);
    world.commit("folders");
    let library = world.root.path().join("library");
    std::fs::create_dir(&library).unwrap();
    world.run_git_in(&["init", "--quiet"], &library);
    world.run_git_in(&["commit", "--quiet", "--allow-empty", "-m", "library"], &library);
    world.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "in/sub"]);
    world.commit("submodule");
    world.git(&["sparse-checkout", "set", "in"]);
    let before = baseline(&world);
    world.write("in/x", "changed\n");
    world.write("in/sub/file", "in a submodule\n");
    assert_eq!(describe(&compare(&before)), set(["M in/x +1 -1"]));
}

#[test]
fn without_the_repository_only_names_are_reported() {
    let world = World::new();
    world.write("dirty", "before\n");
    let before = baseline(&world);
    std::fs::remove_dir_all(world.tree.join(".git")).unwrap();
    world.write("a", "changed\n");
    world.write("new", "new\n");
    world.remove("b");
    let comparison = compare(&before);
    assert_eq!(describe(&comparison), set(["M a", "A new", "D b"]));
    assert!(comparison.names_only.is_some() && comparison.head_after.is_none());
}

#[test]
fn ignored_paths_follow_the_current_ignore_rules() {
    let world = World::new();
    let before = baseline(&world);
    world.write(".gitignore", "*.tmp\n");
    let paths: [&[u8]; 3] = [b"x.tmp", b"x.o", b":(top)a.tmp"];
    let ignored = before.ignored(&paths).unwrap();
    assert_eq!(ignored, [b"x.tmp".to_vec(), b":(top)a.tmp".to_vec()].into());
}

#[test]
fn more_than_ten_thousand_files_are_named_but_not_read() {
    let world = World::new();
    let before = baseline(&world);
    std::fs::create_dir(world.tree.join("many")).unwrap();
    for n in 0..10_001 {
        std::fs::write(world.tree.join(format!("many/{n}")), "").unwrap();
    }
    world.write("a", "changed\n");
    let comparison = compare(&before);
    assert_eq!(comparison.files.len(), 10_002);
    assert!(comparison.names_only.is_some() && comparison.left_out.is_empty());
}
