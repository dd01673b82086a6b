//! Worktrees of tasks in real repositories of every kind.

use std::fs;
use std::path::{Path, PathBuf};

use delegator_git::{
    ApplyRequest, DiffText, LeftOutReason, Limits, NewCommit, TaskWorktree, WorktreeError, find_source,
    prepare_diff,
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
        private_dir: Some(root.join("worktrees").join(format!("{name}.private"))),
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
    crate::world::apply(prepared, "refs/mcp-delegator/T-local-9").unwrap();
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
    crate::world::apply(prepared, "refs/mcp-delegator/T-local-9").unwrap();
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
    worktree.record_setup(&git, &world.temp_dir()).unwrap();
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
    // A run that was killed after it created the branch is repeated later.
    let again = NewCommit { time_sec: 1_800_000_000, ..commit("result") };
    assert_eq!(worktree.create_branch(&git, &found, again).unwrap(), id);
    let other = NewCommit { message: "something else", ..commit("result") };
    let taken = worktree.create_branch(&git, &found, other);
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
    let mut prepared = prepare_diff(&world.runner(), request, &world.temp_dir()).unwrap();
    let planned = prepared.plan_commit(text.as_bytes(), "Task done\n").unwrap();
    let point = prepared.create_point("refs/mcp-delegator/T-local-9").unwrap();
    prepared.apply(point.as_ref(), Some(&planned)).unwrap();
    drop(prepared);
    assert_eq!(world.git(&["rev-parse", "HEAD"]).trim(), planned.id);
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

/// A linked worktree, as older versions created it.
fn create_linked(world: &World, name: &str) -> TaskWorktree {
    let worktree = TaskWorktree { private_dir: None, ..worktree(world, name, None) };
    let path = worktree.path.to_str().unwrap();
    world.git(&["worktree", "add", "--quiet", "-b", &worktree.branch, path, &worktree.source.commit]);
    worktree
}

fn left_out(world: &World, worktree: &TaskWorktree) -> Vec<(String, LeftOutReason)> {
    let found = worktree.diff(&world.runner(), &world.temp_dir()).unwrap();
    found.left_out.into_iter().map(|file| (file.path, file.reason)).collect()
}

#[test]
fn a_linked_worktree_of_an_older_version_is_compared_branched_and_removed() {
    let world = World::new();
    let before = (world.git(&["for-each-ref"]), world.git(&["worktree", "list"]));
    let worktree = create_linked(&world, "T-1");
    assert_eq!(diff(&world, &worktree), "");
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    git_in(&world, &worktree.path, &["commit", "--quiet", "-am", "by the agent"]);
    let git = world.runner();
    let found = worktree.diff(&git, &world.temp_dir()).unwrap();
    let commit = NewCommit { branch: "result", message: "rest", time_sec: 1_700_000_000 };
    worktree.create_branch(&git, &found, commit).unwrap();
    assert_eq!(world.git(&["log", "--format=%s", "result"]), "by the agent\nfirst\n");
    world.git(&["branch", "-D", "--quiet", "result"]);
    let lock = world.tree.join(".git/refs/heads").join(format!("{}.lock", worktree.branch));
    fs::write(lock, "planted").unwrap();
    fs::remove_dir_all(&worktree.path).unwrap();
    worktree.remove(&git).unwrap();
    assert_eq!((world.git(&["for-each-ref"]), world.git(&["worktree", "list"])), before);
}

#[test]
fn a_commit_in_the_worktree_writes_nothing_into_the_repository() {
    let world = World::new();
    world.git(&["config", "user.name", "configured"]);
    world.git(&["config", "core.hooksPath", "/nonexistent/hooks"]);
    let worktree = create(&world, "T-1");
    let objects = || world.run_git_in(&["count-objects", "-v"], &world.tree).1;
    let before = (objects(), world.git(&["for-each-ref"]));
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    git_in(&world, &worktree.path, &["commit", "--quiet", "-am", "agent"]);
    assert_eq!((objects(), world.git(&["for-each-ref"])), before);
    assert_eq!(git_in(&world, &worktree.path, &["log", "--format=%s", "main..HEAD"]), "agent\n");
    let private_dir = worktree.own_dir();
    let config = fs::read_to_string(private_dir.join("git/config")).unwrap();
    assert!(config.contains("configured") && !config.contains("hooks"), "{config}");
    // Whatever the agent destroys is its own.
    fs::remove_dir_all(private_dir.join("git")).unwrap();
    assert!(diff(&world, &worktree).contains("+a2"));
    world.git(&["fsck", "--strict"]);
}

#[test]
fn the_commit_of_a_worktree_survives_a_garbage_collection() {
    let world = World::new();
    world.write("a", "a2\n");
    world.git(&["commit", "--quiet", "-am", "second"]);
    let worktree = create(&world, "T-1");
    world.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    world.git(&["reflog", "expire", "--expire=all", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    fs::write(worktree.path.join("a"), "a3\n").unwrap();
    let text = diff(&world, &worktree);
    assert!(text.contains("-a2") && text.contains("+a3"), "{text}");
}

#[test]
fn a_damaged_git_directory_changes_no_comparison() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 11] = [
        ("garbage index", |dir| fs::write(dir.join("index"), "garbage").unwrap()),
        ("missing index", |dir| fs::remove_file(dir.join("index")).unwrap()),
        ("pipe as index", |dir| replace_by_pipe(&dir.join("index"))),
        ("pipe as HEAD", |dir| replace_by_pipe(&dir.join("HEAD"))),
        ("pipe as configuration", |dir| replace_by_pipe(&dir.join("config"))),
        ("linked index", |dir| {
            fs::remove_file(dir.join("index")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", dir.join("index")).unwrap();
        }),
        ("planted lock", |dir| fs::write(dir.join("index.lock"), "").unwrap()),
        ("garbage HEAD", |dir| fs::write(dir.join("HEAD"), "garbage").unwrap()),
        ("emptied", |dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::create_dir(dir).unwrap();
        }),
        ("missing", |dir| fs::remove_dir_all(dir).unwrap()),
        ("a file in its place", |dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::write(dir, "").unwrap();
        }),
    ];
    for (name, damage) in damages {
        for is_linked in [false, true] {
            let world = World::new();
            let worktree = if is_linked { create_linked(&world, "T-1") } else { create(&world, "T-1") };
            fs::write(worktree.path.join("a"), "a2\n").unwrap();
            fs::write(worktree.path.join("new"), "new\n").unwrap();
            fs::remove_file(worktree.path.join("b")).unwrap();
            damage(&worktree.git_dir());
            let text = diff(&world, &worktree);
            for expected in ["+a2", "b/new", "deleted file"] {
                assert!(text.contains(expected), "{name}: {text}");
            }
            let git = world.runner();
            let found = worktree.diff(&git, &world.temp_dir()).unwrap();
            let commit = NewCommit { branch: "result", message: "rest", time_sec: 1_700_000_000 };
            worktree.create_branch(&git, &found, commit).unwrap();
            assert_eq!(world.git(&["show", "result:a"]), "a2\n", "{name}");
        }
    }
}

fn replace_by_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap();
}

#[test]
fn an_object_with_a_forged_id_does_not_enter_the_repository() {
    let world = World::new();
    let worktree = create(&world, "T-1");
    fs::write(worktree.path.join("a"), "once\n").unwrap();
    git_in(&world, &worktree.path, &["commit", "--quiet", "-am", "agent"]);
    let blob = git_in(&world, &worktree.path, &["rev-parse", "HEAD:a"]);
    fs::write(worktree.path.join("a"), "a2\n").unwrap();
    let other = world.tree.join("evil");
    fs::write(&other, "evil\n").unwrap();
    let evil = git_in(&world, &worktree.path, &["hash-object", "-w", other.to_str().unwrap()]);
    let object = |id: &str| worktree.own_dir().join("git/objects").join(&id[..2]).join(id[2..].trim());
    fs::remove_file(object(&blob)).unwrap();
    fs::rename(object(&evil), object(&blob)).unwrap();
    fs::write(worktree.path.join("c"), "c\n").unwrap();
    let git = world.runner();
    let found = worktree.diff(&git, &world.temp_dir()).unwrap();
    let commit = NewCommit { branch: "result", message: "rest", time_sec: 1_700_000_000 };
    worktree.create_branch(&git, &found, commit).unwrap();
    assert_eq!(world.git(&["show", "result:a"]), "a2\n");
    assert_eq!(world.git(&["log", "--format=%s", "result"]), "rest\nfirst\n", "without the damaged history");
    world.git(&["fsck", "--full", "--strict"]);
}

#[test]
fn ignored_files_that_a_person_would_miss_and_empty_commits_are_changes() {
    let world = World::new();
    world.write(".gitignore", "*.o\n/result\n/data/\n/node_modules/\n/.env\n/forced\n");
    world.git(&["add", "."]);
    world.commit("ignore");
    let worktree = create(&world, "T-1");
    fs::write(worktree.path.join(".env"), "copied\n").unwrap();
    let git = world.runner();
    worktree.record_setup(&git, &world.temp_dir()).unwrap();
    assert_eq!(left_out(&world, &worktree), []);
    for name in ["code.o", "node_modules/deep/file", "empty/../result", "data/deep/set"] {
        let path = worktree.path.join(name.replace("empty/../", ""));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content\n").unwrap();
    }
    let ignored = |name: &str| (name.to_owned(), LeftOutReason::Ignored);
    assert_eq!(left_out(&world, &worktree), [ignored("data/deep/set"), ignored("result")]);
    fs::write(worktree.path.join(".env"), "changed\n\n").unwrap();
    assert_eq!(left_out(&world, &worktree)[0], ignored(".env"));
    // An ignored file that the agent adds itself is in the diff.
    fs::write(worktree.path.join("forced"), "forced\n").unwrap();
    git_in(&world, &worktree.path, &["add", "--force", "forced"]);
    assert!(diff(&world, &worktree).contains("b/forced"));
    let second = create(&world, "T-2");
    git_in(&world, &second.path, &["checkout", "--quiet", "-b", "side"]);
    git_in(&world, &second.path, &["commit", "--quiet", "--allow-empty", "-m", "empty"]);
    git_in(&world, &second.path, &["checkout", "--quiet", "delegator/T-2"]);
    assert_eq!(left_out(&world, &second), [("delegator/T-2".to_owned(), LeftOutReason::Commits)]);
}
