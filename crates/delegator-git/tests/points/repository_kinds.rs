//! Restore points in repositories of every kind, and outside of repositories.

use std::os::unix::fs::PermissionsExt;

use delegator_git::{LeftOutReason, find_repository};

use crate::world::{REFERENCE, World};

#[test]
fn a_repository_without_commits_is_restored() {
    let world = World::unborn();
    world.write("staged", "1\n");
    world.git(&["add", "staged"]);
    world.write("other", "2\n");
    let (status, point) = (world.status(), world.create_point());
    assert_eq!(
        (point.head.as_deref(), point.branch.as_deref(), point.staged),
        (None, Some("refs/heads/main"), true)
    );
    world.git(&["add", "-A"]);
    world.commit("agent");
    world.write("other", "agent\n");
    world.restore(&point, true).unwrap();
    assert_eq!(world.status(), status);
    assert!(!world.run_git_in(&["rev-parse", "--verify", "-q", "HEAD"], &world.tree).0);
}

#[test]
fn an_empty_repository_without_an_index_is_restored() {
    let world = World::unborn();
    let point = world.create_point();
    assert!(!point.is_dirty(), "{point:?}");
    world.write("agent", "x");
    world.restore(&point, false).unwrap();
    assert_eq!(world.status(), "");
}

#[test]
fn a_subdirectory_finds_the_top_of_the_work_tree() {
    let world = World::new();
    world.write("sub/file", "x");
    let point = world.try_create_point(&world.tree.join("sub"), REFERENCE).unwrap().unwrap();
    assert_eq!(point.top_level, world.tree);
    assert_eq!(point.untracked, 1);
    let repository = find_repository(&world.runner(), &world.tree.join("sub")).unwrap();
    assert_eq!(repository.map(|found| found.top_level), Some(world.tree.clone()));
}

#[test]
fn no_restore_point_outside_a_work_tree_or_in_a_bare_repository() {
    let world = World::new();
    assert_eq!(world.try_create_point(&world.home(), REFERENCE).unwrap(), None);
    world.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    assert_eq!(world.try_create_point(&world.root.path().join("bare.git"), REFERENCE).unwrap(), None);
    assert_eq!(world.try_create_point(&world.tree.join(".git"), REFERENCE).unwrap(), None);
}

#[test]
fn a_linked_worktree_has_its_own_index_and_head() {
    let world = World::new();
    world.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let main = world.tree.clone();
    let world = World { tree: world.root.path().canonicalize().unwrap().join("side"), root: world.root };
    world.write("a", "side\n");
    let point = world.create_point();
    assert_eq!(point.branch.as_deref(), Some("refs/heads/side"));
    world.write("a", "agent\n");
    world.git(&["add", "a"]);
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("side\n"));
    assert_eq!(world.status(), " M a\n");
    assert_eq!(std::fs::read_to_string(main.join("a")).unwrap(), "a1\n");
    // A branch that is checked out in the main work tree must not be checked out here.
    world.git(&["checkout", "--quiet", "--detach"]);
    let (_, output) = world.run_git_in(&["checkout", "--quiet", "side"], &main);
    let refused = world.restore(&point, true);
    assert!(
        matches!(refused, Err(delegator_git::RestoreError::CheckedOutElsewhere { .. })),
        "{refused:?} {output}"
    );
}

#[test]
fn submodules_and_nested_repositories_are_not_entered() {
    let world = World::new();
    world.git(&["clone", "--quiet", ".", "../other"]);
    world.git(&["submodule", "--quiet", "add", "../other", "module"]);
    world.commit("with a submodule");
    world.git(&["clone", "--quiet", "../other", "nested"]);
    world.write("module/a", "changed inside\n");
    let point = world.create_point();
    let left_out: Vec<_> = point.left_out.iter().map(|entry| (entry.path.as_str(), entry.reason)).collect();
    assert_eq!(
        left_out,
        [("nested/", LeftOutReason::Repository), ("module/", LeftOutReason::Repository)],
        "{point:?}"
    );
    world.write("module/a", "agent inside\n");
    world.write("nested/a", "agent inside\n");
    world.write("a", "agent\n");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("a1\n"));
    assert_eq!(world.read("module/a").as_deref(), Some("agent inside\n"));
    assert_eq!(world.read("nested/a").as_deref(), Some("agent inside\n"));
}

#[test]
fn a_conflicted_index_is_restored_with_its_conflicts() {
    let world = World::new();
    world.git(&["checkout", "--quiet", "-b", "side"]);
    world.write("a", "side\n");
    world.git(&["commit", "--quiet", "-am", "side"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.write("a", "main\n");
    world.git(&["commit", "--quiet", "-am", "main"]);
    assert!(!world.run_git_in(&["merge", "side"], &world.tree).0, "the merge must conflict");
    let conflicted = world.read("a").unwrap();
    let (index, status) = (world.index(), world.status());
    let point = world.create_point();
    assert!(point.index_tree.is_none() && point.is_dirty());
    world.write("a", "agent\n");
    world.git(&["add", "a"]);
    world.commit("agent");
    world.write("b", "agent\n");
    let (plan, _) = world.restore(&point, false).unwrap();
    assert!(plan.index_differs);
    assert_eq!((world.index(), world.status()), (index, status));
    assert_eq!((world.read("a"), world.read("b").as_deref()), (Some(conflicted), Some("b1\n")));
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let world = World::sparse();
    assert!(!world.tree.join("out").exists());
    let index = world.index();
    let point = world.create_point();
    world.write("in/file", "agent\n");
    world.git(&["add", "in/file"]);
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("in/file").as_deref(), Some("in\n"));
    assert!(!world.tree.join("out").exists());
    assert_eq!(world.index(), index);
}

#[test]
fn split_index_and_sha256_repositories_are_supported() {
    let world = World::new();
    world.git(&["update-index", "--split-index"]);
    world.write("a", "staged\n");
    world.git(&["add", "a"]);
    let (index, point) = (world.index(), world.create_point());
    world.git(&["rm", "--quiet", "--cached", "a"]);
    world.restore(&point, false).unwrap();
    assert_eq!(world.index(), index);
    let world = World::unborn();
    std::fs::remove_dir_all(world.tree.join(".git")).unwrap();
    world.git(&["init", "--quiet", "--object-format=sha256"]);
    world.write("a", "1\n");
    let point = world.create_point();
    assert_eq!(point.commit.len(), 64);
    world.write("a", "agent\n");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("1\n"));
}

#[test]
fn files_that_git_converts_are_restored_byte_for_byte() {
    let world = World::new();
    world.write(".gitattributes", "*.txt text eol=crlf\n*.id ident\n*.u working-tree-encoding=UTF-16\n");
    world.write("clean.txt", "one\r\ntwo\r\n");
    world.write("x.id", "$Id$\n");
    world.write("w.u", [0xff, 0xfe, b'h', 0, b'i', 0]);
    world.git(&["add", "."]);
    world.commit("converted");
    world.write("dirty.txt", "three\nfour\r\n");
    assert_eq!(world.git(&["show", "HEAD:clean.txt"]), "one\ntwo\n");
    let before = world.status();
    let point = world.create_point();
    let files = ["clean.txt", "x.id", "w.u", "dirty.txt"];
    let bytes = files.map(|file| std::fs::read(world.tree.join(file)).unwrap());
    files.iter().for_each(|file| world.write(file, "agent\n"));
    world.git(&["add", "clean.txt", "dirty.txt"]);
    world.restore(&point, false).unwrap();
    assert_eq!(files.map(|file| std::fs::read(world.tree.join(file)).unwrap()), bytes);
    assert_eq!(world.status(), before);
}

#[test]
fn mode_changes_and_racy_edits_are_detected() {
    let world = World::new();
    world.write("tool", "#!/bin/sh\n");
    std::fs::set_permissions(world.tree.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.write("racy", "aaaa\n");
    world.git(&["add", "."]);
    // The same size and time: only the content differs.
    world.write("racy", "bbbb\n");
    let point = world.create_point();
    world.write("racy", "cccc\n");
    std::fs::set_permissions(world.tree.join("tool"), std::fs::Permissions::from_mode(0o644)).unwrap();
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("racy").as_deref(), Some("bbbb\n"));
    assert_eq!(std::fs::metadata(world.tree.join("tool")).unwrap().permissions().mode() & 0o111, 0o111);
}

#[test]
fn a_failed_restore_point_is_an_error_and_changes_nothing() {
    // A damaged object.
    let world = World::new();
    let commit = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let object = world.tree.join(".git/objects").join(&commit[..2]).join(&commit[2..]);
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&object, "not an object").unwrap();
    assert!(world.try_create_point(&world.tree, REFERENCE).is_err());
    assert!(!world.tree.join(".git/refs/mcp-delegator").exists());
    // A store that cannot be written: a file in place of a directory stops even root.
    let world = World::new();
    world.write(".git/refs/mcp-delegator", "in the way");
    assert!(world.try_create_point(&world.tree, REFERENCE).is_err());
    // A work tree configured to be elsewhere.
    let world = World::new();
    world.git(&["config", "core.worktree", world.root.path().to_str().unwrap()]);
    assert!(world.try_create_point(&world.tree, REFERENCE).is_err());
}

#[test]
fn the_users_global_ignore_file_is_respected() {
    let world = World::new();
    std::fs::write(world.home().join(".gitconfig"), "[core]\n\texcludesFile = ~/ignore\n").unwrap();
    std::fs::write(world.home().join("ignore"), "*.swp\n").unwrap();
    world.write("a.swp", "editor");
    let point = world.create_point();
    assert_eq!(point.untracked, 0);
    world.write("b.swp", "editor");
    world.restore(&point, false).unwrap();
    assert!(world.read("a.swp").is_some() && world.read("b.swp").is_some());
}
