//! What was done to a work tree since a moment, in repositories of every kind.

use std::collections::BTreeSet;
use std::time::Duration;

use delegator_git::{Baseline, ChangeKind, Comparison, Head, LeftOutReason, Limits, keep_restore_point};

use crate::world::{REFERENCE, World};

/// Nothing is older than this.
pub(crate) const ALWAYS: i64 = 0;

pub(crate) fn baseline(world: &World) -> Baseline {
    Baseline::take(&world.runner(), &world.tree, &world.place(), Limits::default()).unwrap().unwrap()
}

pub(crate) fn compared(baseline: &Baseline) -> Comparison {
    baseline.compare(Limits::default(), ALWAYS).unwrap()
}

/// `A path`, `M path`, `D path`, `R from > to`, with lines.
pub(crate) fn told(comparison: &Comparison) -> BTreeSet<String> {
    let name = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let one = |file: &delegator_git::FileChange| {
        let lines = file.lines.map(|(added, deleted)| format!(" +{added} -{deleted}")).unwrap_or_default();
        let path = name(&file.path);
        match &file.kind {
            ChangeKind::Added => format!("A {path}{lines}"),
            ChangeKind::Modified => format!("M {path}{lines}"),
            ChangeKind::Deleted => format!("D {path}{lines}"),
            ChangeKind::Renamed { from } => format!("R {} > {path}{lines}", name(from)),
        }
    };
    comparison.files.iter().map(one).collect()
}

pub(crate) fn set<const N: usize>(lines: [&str; N]) -> BTreeSet<String> {
    lines.map(str::to_owned).into()
}

#[test]
fn only_what_was_done_since_is_told() {
    let world = World::new();
    world.write("b", "dirty before\n");
    world.write("untracked", "before\n");
    world.write("gone before", "x\n");
    world.git(&["add", "gone before"]);
    world.remove("gone before");
    let (index, status) = (world.index(), world.status());
    let objects = world.git(&["count-objects", "-v"]);
    let nothing = baseline(&world);
    assert_eq!(told(&compared(&nothing)), set([]));
    let before = baseline(&world);
    assert_eq!((world.index(), world.status()), (index, status));
    world.write("a", "a1\na2\n");
    world.write("untracked", "after\n");
    world.write("new", "1\n2\n");
    world.write("x.o", "ignored");
    world.write("build/y", "ignored");
    let comparison = compared(&before);
    assert_eq!(told(&comparison), set(["M a +1 -0", "M untracked +1 -1", "A new +2 -0"]));
    assert!(!comparison.index_changed && comparison.names_only.is_none());
    assert_eq!(world.git(&["count-objects", "-v"]), objects, "nothing is added to the repository");
    drop((nothing, before));
    assert_eq!(std::fs::read_dir(world.place()).unwrap().count(), 0, "nothing is left of the work");
}

#[test]
fn a_restore_point_is_a_baseline_too() {
    let world = World::new();
    world.write("a", "dirty\n");
    let kept = keep_restore_point(&world.runner(), &world.tree, &world.place(), REFERENCE, Limits::default());
    let mut before = kept.unwrap().unwrap().baseline.unwrap();
    before.allow(Duration::from_secs(60));
    let objects = world.git(&["count-objects", "-v"]);
    world.write("a", "dirtier\n");
    world.write("new", "n\n");
    assert_eq!(told(&compared(&before)), set(["M a +1 -1", "A new +1 -0"]));
    assert_eq!(world.git(&["count-objects", "-v"]), objects);
}

#[test]
fn what_was_committed_staged_or_hidden_in_the_index_is_a_change_all_the_same() {
    let world = World::new();
    let before = baseline(&world);
    world.write("a", "committed\n");
    world.git(&["add", "a"]);
    world.commit("by the agent");
    world.write("b", "hidden\n");
    world.git(&["update-index", "--assume-unchanged", "b"]);
    assert_eq!(world.status(), "");
    let comparison = compared(&before);
    assert_eq!(told(&comparison), set(["M a +1 -1", "M b +1 -1"]));
    assert!(comparison.index_changed);
    assert_eq!(comparison.commits.count, 1);
    assert_eq!(comparison.commits.subjects, ["by the agent"]);
}

#[test]
fn renames_modes_links_and_binaries() {
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
        told(&compared(&before)),
        set(["R long > dir/longer +1 -0", "M a +1 -1", "A picture +0 -0", "M b +0 -0"])
    );
}

#[test]
fn files_become_folders_and_names_are_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let before = baseline(&world);
    world.remove("a");
    world.write("a/inside", "x\n");
    world.write(":odd\tname\n", "x\n");
    std::fs::write(world.tree.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "x\n").unwrap();
    let comparison = compared(&before);
    assert!(comparison.files.iter().any(|file| file.path == b"caf\xe9"), "{comparison:?}");
    let told = told(&comparison);
    assert!(told.contains("A :odd\tname\n +1 -0") && told.contains("D a +0 -1"), "{told:?}");
    assert!(told.contains("A a/inside +1 -0"), "{told:?}");
}

#[test]
fn what_is_large_or_odd_is_named_without_being_read() {
    let world = World::new();
    let large = |name: &str, size: u64| {
        let file = std::fs::File::options().create(true).append(true).open(world.tree.join(name)).unwrap();
        file.set_len(size).unwrap();
    };
    for name in ["same", "grows", "goes", "shrinks"] {
        large(name, 30 << 30);
    }
    std::fs::create_dir(world.tree.join("nested")).unwrap();
    world.in_tree(&["init", "--quiet"], &world.tree.join("nested"));
    let before = baseline(&world);
    large("grows", 40 << 30);
    large("comes", 30 << 30);
    world.remove("goes");
    world.remove("shrinks");
    world.write("shrinks", "small now\n");
    world.remove("a");
    rustix::fs::mkfifoat(rustix::fs::CWD, world.tree.join("a"), 0o600.into()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.tree.join("fifo"), 0o600.into()).unwrap();
    let comparison = compared(&before);
    assert_eq!(told(&comparison), set(["M a", "M grows", "A comes", "D goes", "M shrinks"]));
    let left: BTreeSet<_> = comparison
        .left_out
        .iter()
        .map(|one| (one.path.as_str(), one.reason == LeftOutReason::TooLarge))
        .collect();
    assert_eq!(left, [("a", false), ("comes", true), ("grows", true)].into());
}

#[test]
fn too_much_is_left_out_and_still_named() {
    let world = World::new();
    let before = baseline(&world);
    for n in 0..4 {
        world.write(&format!("f{n}"), [b'x'; 100]);
    }
    let limits = Limits { total_bytes: 250, ..Limits::default() };
    let comparison = before.compare(limits, ALWAYS).unwrap();
    assert_eq!(told(&comparison), set(["A f0 +1 -0", "A f1 +1 -0", "A f2", "A f3"]));
    assert_eq!(comparison.left_out.len(), 2);
}

#[test]
fn head_branch_and_commits() {
    let world = World::new();
    let first = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let before = baseline(&world);
    world.git(&["switch", "--quiet", "-c", "other"]);
    for n in 0..25 {
        world.commit(&format!("commit {n}"));
    }
    let comparison = compared(&before);
    let branch = |head: &Head| head.branch.clone().unwrap();
    assert_eq!(comparison.head_before.commit.as_ref(), Some(&first));
    assert_eq!(branch(&comparison.head_before), "refs/heads/main");
    assert_eq!(branch(comparison.head_after.as_ref().unwrap()), "refs/heads/other");
    assert_eq!((comparison.commits.count, comparison.commits.subjects.len()), (25, 20));
    assert_eq!(comparison.commits.subjects[0], "commit 24");
    assert_eq!(told(&comparison), set([]));
    let later = before.compare(Limits::default(), i64::from(i32::MAX)).unwrap();
    assert_eq!(later.commits.count, 0, "what is older was only checked out");
}

#[test]
fn unborn_detached_conflicted_and_linked() {
    let unborn = World::unborn();
    let before = baseline(&unborn);
    unborn.write("first", "x\n");
    unborn.git(&["add", "."]);
    unborn.commit("first");
    let comparison = compared(&before);
    assert_eq!((told(&comparison), comparison.commits.count), (set(["A first +1 -0"]), 1));

    let world = World::new();
    world.git(&["switch", "--quiet", "--detach"]);
    world.git(&["switch", "--quiet", "-c", "side"]);
    world.write("a", "side\n");
    world.git(&["commit", "--quiet", "-am", "side"]);
    world.git(&["switch", "--quiet", "--detach", "main"]);
    world.write("a", "here\n");
    world.git(&["commit", "--quiet", "-am", "here"]);
    assert!(!world.in_tree(&["merge", "side"], &world.tree).0, "a conflict is wanted");
    let conflicted = baseline(&world);
    assert_eq!(told(&compared(&conflicted)), set([]));
    let conflicted = baseline(&world);
    world.write("a", "solved\n");
    world.git(&["add", "a"]);
    let comparison = compared(&conflicted);
    assert!(told(&comparison).iter().all(|line| line.starts_with("M a ")), "{comparison:?}");
    assert!(comparison.index_changed && comparison.head_after.unwrap().branch.is_none());

    world.git(&["worktree", "add", "--quiet", "--force", "../linked", "side"]);
    let linked = world.root.path().canonicalize().unwrap().join("linked");
    let before =
        Baseline::take(&world.runner(), &linked, &world.place(), Limits::default()).unwrap().unwrap();
    std::fs::write(linked.join("b"), "linked\n").unwrap();
    assert_eq!(told(&compared(&before)), set(["M b +1 -1"]));
}

#[test]
fn a_sparse_checkout_and_a_submodule_are_left_alone() {
    let world = World::new();
    world.write("in/x", "x\n");
    world.write("out/y", "y\n");
    world.git(&["add", "."]);
    world.commit("folders");
    let library = world.root.path().join("library");
    std::fs::create_dir(&library).unwrap();
    world.in_tree(&["init", "--quiet"], &library);
    world.in_tree(&["commit", "--quiet", "--allow-empty", "-m", "library"], &library);
    world.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "in/sub"]);
    world.commit("submodule");
    world.git(&["sparse-checkout", "set", "in"]);
    let before = baseline(&world);
    world.write("in/x", "changed\n");
    world.write("in/sub/file", "not ours to look at\n");
    assert_eq!(told(&compared(&before)), set(["M in/x +1 -1"]));
}

#[test]
fn without_its_repository_names_remain() {
    let world = World::new();
    world.write("dirty", "before\n");
    let before = baseline(&world);
    std::fs::remove_dir_all(world.tree.join(".git")).unwrap();
    world.write("a", "changed\n");
    world.write("new", "new\n");
    world.remove("b");
    let comparison = compared(&before);
    assert_eq!(told(&comparison), set(["M a", "A new", "D b"]));
    assert!(comparison.names_only.is_some() && comparison.head_after.is_none());
}

#[test]
fn ignored_paths_are_known_by_the_rules_of_now() {
    let world = World::new();
    let before = baseline(&world);
    world.write(".gitignore", "*.tmp\n");
    let asked: [&[u8]; 3] = [b"x.tmp", b"x.o", b":(top)a.tmp"];
    let ignored = before.ignored(&asked).unwrap();
    assert_eq!(ignored, [b"x.tmp".to_vec(), b":(top)a.tmp".to_vec()].into());
}

#[test]
fn a_crowd_is_named_and_not_read() {
    let world = World::new();
    let before = baseline(&world);
    std::fs::create_dir(world.tree.join("crowd")).unwrap();
    for n in 0..10_001 {
        std::fs::write(world.tree.join(format!("crowd/{n}")), "").unwrap();
    }
    world.write("a", "changed\n");
    let comparison = compared(&before);
    assert_eq!(comparison.files.len(), 10_002);
    assert!(comparison.names_only.is_some() && comparison.left_out.is_empty());
}
