//! Worktrees of tasks in real repositories of every kind.

use std::fs;
use std::path::{Path, PathBuf};

use delegator_git::{
    ApplyRequest, DiffText, Limits, NewCommit, TaskWorktree, WorktreeError, find_source, prepare_diff,
};

use crate::world::World;

pub(crate) fn worktree(world: &World, name: &str, base: Option<&str>) -> TaskWorktree {
    let git = world.runner();
    let root = world.root.path().canonicalize().unwrap();
    TaskWorktree {
        source: find_source(&git, &world.tree, base, "delegator").unwrap(),
        path: root.join("worktrees").join(name),
        branch: format!("delegator/{name}"),
        store: root.join("worktrees").join(format!("{name}.start")),
    }
}

fn create(world: &World, name: &str) -> TaskWorktree {
    let worktree = worktree(world, name, None);
    worktree.create(&world.runner(), &world.temp_dir()).unwrap();
    worktree
}

fn diff(world: &World, worktree: &TaskWorktree) -> String {
    let diff = worktree.diff(&world.runner(), &world.temp_dir()).unwrap();
    match diff.diff {
        DiffText::Complete(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        DiffText::TooLarge(limit) => panic!("more than {limit} bytes"),
    }
}

fn apply(world: &World, diff: &str) {
    let request =
        ApplyRequest { work_tree: &world.tree, diff: diff.as_bytes(), base_commit: None, store: None };
    let prepared = prepare_diff(&world.runner(), request, &world.temp_dir()).unwrap();
    prepared.apply("refs/mcp-delegator/T-local-9").unwrap();
}

#[track_caller]
fn git_in(world: &World, dir: &Path, args: &[&str]) -> String {
    let (success, output) = world.run_git_in(args, dir);
    assert!(success, "git {args:?}: {output}");
    output
}

#[test]
fn a_worktree_is_clean_and_on_its_own_branch() {
    let world = World::new();
    world.write("a", "dirty\n");
    world.write("new", "untracked\n");
    let worktree = create(&world, "T-1");
    assert_eq!(git_in(&world, &worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(git_in(&world, &worktree.path, &["branch", "--show-current"]), "delegator/T-1\n");
    assert_eq!(fs::read_to_string(worktree.path.join("a")).unwrap(), "a1\n");
    assert!(!worktree.path.join("new").exists());
    assert_eq!(diff(&world, &worktree), "");
    let again = worktree.create(&world.runner(), &world.temp_dir());
    assert!(matches!(again, Err(WorktreeError::Exists { .. })), "{again:?}");
}

#[test]
fn the_diff_has_commits_and_uncommitted_changes_of_the_agent() {
    let world = World::new();
    let worktree = create(&world, "T-1");
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    git_in(&world, &worktree.path, &["commit", "--quiet", "-am", "agent"]);
    fs::write(worktree.path.join("c"), "c\n").unwrap();
    let text = diff(&world, &worktree);
    assert!(text.contains("+a2") && text.contains("b/c"), "{text}");
    apply(&world, &text);
    assert_eq!(fs::read_to_string(world.tree.join("a")).unwrap(), "a2\n");
    assert_eq!(fs::read_to_string(world.tree.join("c")).unwrap(), "c\n");
}

#[test]
fn carried_changes_are_uncommitted_and_no_changes_of_the_agent() {
    let world = World::new();
    world.write("a", "a1\nmine\n");
    world.write("new/deep", "untracked\n");
    world.write("ignored.o", "object\n");
    fs::remove_file(world.tree.join("b")).unwrap();
    // Its content is in a restore point, too.
    world.create_point();
    let worktree = worktree(&world, "T-1", None);
    let git = world.runner();
    assert_eq!(worktree.carry(&git, Limits::default(), &world.temp_dir()).unwrap(), []);
    // Later changes of the user are not carried.
    world.write("a", "later\n");
    worktree.create(&git, &world.temp_dir()).unwrap();
    assert_eq!(fs::read_to_string(worktree.path.join("a")).unwrap(), "a1\nmine\n");
    assert_eq!(fs::read_to_string(worktree.path.join("new/deep")).unwrap(), "untracked\n");
    assert!(!worktree.path.join("b").exists() && !worktree.path.join("ignored.o").exists());
    let status = git_in(&world, &worktree.path, &["status", "--porcelain"]);
    assert_eq!(status, " M a\n D b\n?? new/\n");
    assert_eq!(diff(&world, &worktree), "");
    // A change next to a carried line applies to the tree that still has it.
    world.write("a", "a1\nmine\n");
    fs::write(worktree.path.join("a"), "a1\nmine\nagent\n").unwrap();
    let text = diff(&world, &worktree);
    let request = ApplyRequest {
        work_tree: &world.tree,
        diff: text.as_bytes(),
        base_commit: None,
        store: Some(&worktree.store),
    };
    let prepared = prepare_diff(&git, request, &world.temp_dir()).unwrap();
    prepared.apply("refs/mcp-delegator/T-local-9").unwrap();
    assert_eq!(fs::read_to_string(world.tree.join("a")).unwrap(), "a1\nmine\nagent\n");
}

#[test]
fn what_the_setup_changed_is_no_change_of_the_agent() {
    let world = World::new();
    world.write("list", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    world.git(&["add", "."]);
    world.commit("list");
    let worktree = create(&world, "T-1");
    fs::write(worktree.path.join("list"), "setup\n2\n3\n4\n5\n6\n7\n8\n9\n").unwrap();
    fs::write(worktree.path.join("lockfile"), "setup\n").unwrap();
    let git = world.runner();
    worktree.record_setup(&git, Limits::default(), &world.temp_dir()).unwrap();
    assert_eq!(diff(&world, &worktree), "");
    fs::write(worktree.path.join("list"), "setup\n2\n3\n4\n5\n6\n7\n8\nagent\n").unwrap();
    let text = diff(&world, &worktree);
    assert!(text.contains("+agent") && !text.contains("setup") && !text.contains("lockfile"), "{text}");
}

#[test]
fn a_removed_worktree_leaves_nothing() {
    let world = World::new();
    let before = (world.git(&["for-each-ref"]), world.git(&["worktree", "list"]));
    let worktree = create(&world, "T-1");
    let git = world.runner();
    fs::remove_dir_all(&worktree.path).unwrap();
    worktree.remove(&git).unwrap();
    worktree.remove(&git).unwrap();
    assert_eq!((world.git(&["for-each-ref"]), world.git(&["worktree", "list"])), before);
    assert!(!worktree.git_dir().exists());
}

#[test]
fn a_branch_has_the_commits_of_the_agent_and_the_rest() {
    let world = World::new();
    let worktree = create(&world, "T-1");
    let git = world.runner();
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    git_in(&world, &worktree.path, &["commit", "--quiet", "-am", "by the agent"]);
    fs::write(worktree.path.join("c"), "c\n").unwrap();
    let found = worktree.diff(&git, &world.temp_dir()).unwrap();
    let commit = |branch| NewCommit { branch, message: "the rest", time_sec: 1_700_000_000 };
    let id = worktree.create_branch(&git, &found, commit("result")).unwrap();
    let taken = worktree.create_branch(&git, &found, commit("result"));
    assert!(matches!(taken, Err(WorktreeError::BranchExists { .. })), "{taken:?}");
    drop(found);
    fs::remove_dir_all(&worktree.path).unwrap();
    worktree.remove(&git).unwrap();
    assert_eq!(world.git(&["rev-parse", "result"]).trim(), id);
    assert_eq!(world.git(&["log", "--format=%s", "result"]), "the rest\nby the agent\nfirst\n");
    assert_eq!(world.git(&["show", "result:c"]), "c\n");
    world.git(&["fsck", "--strict"]);
}

#[test]
fn repositories_that_cannot_have_a_worktree_are_refused() {
    let unborn = World::unborn();
    let git = unborn.runner();
    let found = find_source(&git, &unborn.tree, None, "delegator");
    assert!(matches!(found, Err(WorktreeError::NoCommit { .. })), "{found:?}");
    let world = World::new();
    let git = world.runner();
    let outside = find_source(&git, &world.temp_dir(), None, "delegator");
    assert!(matches!(outside, Err(WorktreeError::NoRepository { .. })), "{outside:?}");
    for base in ["missing", "--all", "", "HEAD:a", "a\nb"] {
        let found = find_source(&git, &world.tree, Some(base), "delegator");
        assert!(matches!(found, Err(WorktreeError::UnknownBase { .. })), "{base}: {found:?}");
    }
    world.git(&["branch", "delegator"]);
    let found = find_source(&git, &world.tree, None, "delegator");
    assert!(matches!(found, Err(WorktreeError::BranchInTheWay { .. })), "{found:?}");
}

#[test]
fn a_partial_clone_with_missing_files_is_refused_and_a_shallow_one_works() {
    let world = World::new();
    world.commit("second");
    world.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", world.tree.display());
    let clone = |name: &str, options: &[&str]| -> World {
        let copy = World::unborn();
        fs::remove_dir_all(&copy.tree).unwrap();
        let tree = copy.tree.display().to_string();
        git_in(
            &world,
            &world.tree,
            &[&["clone", "--quiet"], options, &[url.as_str(), tree.as_str()]].concat(),
        );
        assert!(copy.tree.exists(), "{name}");
        copy
    };
    let partial = clone("partial", &["--filter=blob:none", "--no-checkout"]);
    let found = find_source(&partial.runner(), &partial.tree, None, "delegator");
    assert!(matches!(found, Err(WorktreeError::MissingObjects { missing: 3, .. })), "{found:?}");
    let shallow = clone("shallow", &["--depth=1"]);
    let worktree = create(&shallow, "T-1");
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    git_in(&shallow, &worktree.path, &["commit", "--quiet", "-am", "agent"]);
    assert!(diff(&shallow, &worktree).contains("+a2"));
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let world = World::sparse();
    let worktree = create(&world, "T-1");
    assert!(worktree.path.join("in/file").exists() && !worktree.path.join("out").exists());
    assert_eq!(git_in(&world, &worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(diff(&world, &worktree), "");
    fs::write(worktree.path.join("in/file"), "changed\n").unwrap();
    let text = diff(&world, &worktree);
    assert!(text.contains("in/file") && !text.contains("out/"), "{text}");
}

#[test]
fn submodules_and_lfs_pointers_are_reported_and_left_alone() {
    let world = World::new();
    world.repository("../library");
    let library = world.tree.join("../library").canonicalize().unwrap();
    world.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "sub"]);
    world.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    world.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    world.git(&["add", "."]);
    world.commit("submodule and pointer");
    let worktree = worktree(&world, "T-1", None);
    let created = worktree.create(&world.runner(), &world.temp_dir()).unwrap();
    assert!(created.has_submodules && created.has_lfs_pointers && !created.is_sparse, "{created:?}");
    assert!(fs::read_to_string(worktree.path.join("big.bin")).unwrap().starts_with("version"));
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    let text = diff(&world, &worktree);
    assert!(text.contains("+a2") && !text.contains("sub") && !text.contains("big.bin"), "{text}");
}

#[test]
fn the_agent_cannot_redirect_us_to_another_repository() {
    let world = World::new();
    let worktree = create(&world, "T-1");
    world.repository("../other");
    let other: PathBuf = world.tree.join("../other/.git").canonicalize().unwrap();
    fs::write(worktree.path.join(".git"), format!("gitdir: {}\n", other.display())).unwrap();
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    assert!(diff(&world, &worktree).contains("+a2"));
    fs::remove_file(worktree.path.join(".git")).unwrap();
    assert!(diff(&world, &worktree).contains("+a2"));
}

#[test]
fn a_commit_has_only_the_changes_of_the_task_and_can_be_reverted() {
    let world = World::new();
    world.write("staged", "mine\n");
    world.git(&["add", "staged"]);
    world.write("b", "b1\nmine\n");
    let before = (world.status(), world.git(&["rev-parse", "HEAD"]));
    let worktree = create(&world, "T-1");
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    fs::write(worktree.path.join("new"), "new\n").unwrap();
    fs::write(worktree.path.join("b"), "agent\nb1\n").unwrap();
    let text = diff(&world, &worktree);
    let request =
        ApplyRequest { work_tree: &world.tree, diff: text.as_bytes(), base_commit: None, store: None };
    let prepared = prepare_diff(&world.runner(), request, &world.temp_dir()).unwrap();
    let planned = prepared.plan_commit(text.as_bytes(), "Task done\n").unwrap();
    let (point, commit) = prepared.apply_and_commit("refs/mcp-delegator/T-local-9", planned).unwrap();
    assert_eq!(world.git(&["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Task done\n");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "a\nb\nnew\n");
    assert_eq!(world.status(), " M b\nA  staged\n");
    assert_eq!(world.read("b").unwrap(), "agent\nb1\nmine\n");
    let point = point.unwrap();
    let prepared = world.prepare_task_changes(&point);
    world.restore_prepared(prepared, &point, true).unwrap();
    assert_eq!((world.status(), world.git(&["rev-parse", "HEAD"])), before);
    world.git(&["fsck", "--strict"]);
}
