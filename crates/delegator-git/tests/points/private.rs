//! Restore points are private, complete and independent of everything but their ref.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use delegator_git::{RestoreError, RestorePoint, drop_point, holds_unique_content, stored_points};

use crate::world::{REFERENCE, World};

const SECRET: &str = "private, never committed\n";

/// A work tree with an untracked secret and a staged one.
fn with_secrets() -> (World, [String; 2]) {
    let world = World::new();
    world.write("secret.txt", SECRET);
    world.write("a", "staged and private\n");
    world.git(&["add", "a"]);
    let ids = ["secret.txt", "a"].map(|file| world.git(&["hash-object", file]).trim().to_owned());
    (world, ids)
}

fn has_object(world: &World, repository: &str, id: &str) -> bool {
    world.run_git_in(&[&format!("--git-dir={repository}"), "cat-file", "-e", id], &world.tree).0
}

#[test]
fn mirrors_do_not_carry_private_content() {
    let (world, ids) = with_secrets();
    let point = world.create_point();
    world.git(&["init", "--quiet", "--bare", "../pushed.git"]);
    world.git(&["push", "--quiet", "--mirror", "../pushed.git"]);
    world.git(&["clone", "--quiet", "--mirror", "--no-local", ".", "../cloned.git"]);
    world.git(&["clone", "--quiet", "--mirror", ".", "../local.git"]);
    for repository in ["../pushed.git", "../cloned.git"] {
        assert!(has_object(&world, repository, point.head.as_ref().unwrap()), "the mirror has the commits");
        for id in ids.iter().chain([&point.commit, &point.tree]) {
            assert!(!has_object(&world, repository, id), "{repository} has {id}");
        }
    }
    // A local clone copies all objects of the repository, including what the user staged, but nothing else.
    assert!(
        !has_object(&world, "../local.git", &ids[0]) && !has_object(&world, "../local.git", &point.commit)
    );
    world.write("secret.txt", "agent\n");
    world.git(&["reset", "--quiet", "--hard"]);
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("secret.txt").as_deref(), Some(SECRET));
    assert_eq!(world.status(), "M  a\n?? secret.txt\n");
}

#[test]
fn only_the_user_may_read_the_store() {
    let (world, _) = with_secrets();
    world.create_point();
    let mode = std::fs::metadata(world.tree.join(".git/mcp-delegator")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(world.git(&["fsck", "--strict"]), "", "the user's repository is sound");
    assert!(!world.git_in_store(&["fsck", "--strict"]).contains("error"));
}

#[test]
fn a_restore_point_survives_gc_after_an_amended_commit() {
    let (world, ids) = with_secrets();
    let index = world.index();
    let point = world.create_point();
    world.git(&["reset", "--quiet", "--hard"]);
    world.remove("secret.txt");
    world.write("b", "agent\n");
    world.git(&["commit", "--quiet", "--amend", "-am", "agent"]);
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    assert!(!has_object(&world, ".git", &ids[1]), "the staged content is not in the repository any more");
    let (_, undo) = world.restore(&point, true).unwrap();
    assert_eq!(world.index(), index);
    assert_eq!(world.git(&["show", ":a"]), "staged and private\n", "the user's git can read what is staged");
    assert_eq!(world.read("secret.txt").as_deref(), Some(SECRET));
    assert_eq!(world.read("b").as_deref(), Some("b1\n"));
    assert!(!world.git(&["fsck", "--strict"]).contains("missing"));
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["gc", "--quiet", "--prune=now"]);
    world.restore(&undo, true).unwrap();
    assert_eq!(world.read("b").as_deref(), Some("agent\n"));
}

#[test]
fn a_restore_point_is_readable_from_its_ref_alone() {
    let (world, _) = with_secrets();
    std::fs::set_permissions(world.tree.join("b"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let (point, status) = (world.create_point(), world.status());
    world.write("secret.txt", "agent\n");
    world.write("sub/x", "agent\n");
    let stored = stored_points(&world.runner(), &world.tree.join("sub")).unwrap().unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].point, point);
    assert!(stored[0].bytes > 0 && stored[0].point.created_at > 0);
    world.restore(&stored[0].point, false).unwrap();
    assert_eq!((world.status(), world.read("secret.txt").as_deref()), (status, Some(SECRET)));
    assert!(stored_points(&world.runner(), &world.home()).unwrap().is_none());
}

#[test]
fn dropping_deletes_the_objects_and_leaves_other_points_alone() {
    let (world, ids) = with_secrets();
    let point = world.create_point();
    world.write("secret.txt", "agent\n");
    let (_, undo) = world.restore(&point, false).unwrap();
    assert!(world.git_in_store(&["cat-file", "-t", &ids[0]]).contains("blob"));
    assert!(drop_point(&world.runner(), &point).unwrap());
    assert!(!drop_point(&world.runner(), &point).unwrap());
    assert_eq!(
        world.git(&["for-each-ref", "--format=%(refname)", "refs/mcp-delegator"]).trim(),
        undo.reference
    );
    let refused = world.restore(&point, false);
    assert!(matches!(refused, Err(RestoreError::PointMissing { .. })), "{refused:?}");
    let (_, redo) = world.restore(&undo, false).unwrap();
    assert_eq!(world.read("secret.txt").as_deref(), Some("agent\n"));
    // The state after a restore is stored with its undo point.
    assert!([&undo, &redo].iter().all(|point| drop_point(&world.runner(), point).unwrap()));
    let store = world.tree.join(".git/mcp-delegator").display().to_string();
    assert!(!has_object(&world, &store, &ids[0]), "the private content is gone");
}

#[test]
fn restore_points_share_the_space_of_large_files() {
    let world = World::new();
    // Not compressible, so that the pack size is meaningful.
    let large: Vec<u8> = (0..300_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    world.write("data.bin", &large);
    let names: Vec<String> = (1..=4).map(|n| format!("refs/mcp-delegator/T-local-{n}")).collect();
    let mut points = Vec::new();
    for (number, name) in names.iter().enumerate() {
        world.write("code", format!("state {number}\n"));
        points.push(world.try_create_point(&world.tree, name).unwrap().unwrap());
    }
    let packs = std::fs::read_dir(world.tree.join(".git/mcp-delegator/objects/pack")).unwrap().flatten();
    let files: BTreeMap<u64, u64> =
        packs.map(|entry| entry.metadata().unwrap()).map(|found| (found.ino(), found.len())).collect();
    let size: u64 = files.values().sum();
    assert!(size < 2 * large.len() as u64, "{size} bytes for four points of {}", large.len());
    drop_point(&world.runner(), &points[0]).unwrap();
    drop_point(&world.runner(), &points[3]).unwrap();
    world.write("data.bin", "agent");
    world.restore(&points[2], false).unwrap();
    assert_eq!(std::fs::read(world.tree.join("data.bin")).unwrap(), large);
    assert_eq!(world.read("code").as_deref(), Some("state 2\n"));
}

#[test]
fn content_reachable_from_a_user_commit_is_not_unique() {
    let world = World::new();
    let clean = world.try_create_point(&world.tree, "refs/mcp-delegator/clean").unwrap().unwrap();
    let is_unique = |point: &RestorePoint| holds_unique_content(&world.runner(), point).unwrap();
    assert!(!is_unique(&clean));
    world.write("a", "mine\n");
    world.write("new", "mine, too\n");
    let dirty = world.create_point();
    assert!(is_unique(&dirty));
    world.git(&["add", "a"]);
    world.commit("half of it");
    assert!(is_unique(&dirty));
    world.git(&["add", "new"]);
    world.commit("all of it");
    world.write("a", "later\n");
    world.git(&["commit", "--quiet", "-am", "later"]);
    assert!(!is_unique(&dirty), "older commits of a branch count");
    world.git(&["checkout", "--quiet", "--orphan", "other"]);
    world.git(&["branch", "--quiet", "-D", "main"]);
    assert!(is_unique(&dirty) && is_unique(&clean), "no branch reaches its HEAD any more");
}

#[test]
fn a_store_in_a_moved_repository_is_found() {
    let (world, _) = with_secrets();
    world.create_point();
    let moved: PathBuf = world.tree.with_file_name("moved");
    std::fs::rename(&world.tree, &moved).unwrap();
    let stored = stored_points(&world.runner(), &moved).unwrap().unwrap();
    assert_eq!(stored[0].point.repository, moved.join(".git"));
}

#[test]
fn a_second_attempt_reuses_the_first_restore_point() {
    let (world, _) = with_secrets();
    let point = world.create_point();
    world.write("secret.txt", "changed since\n");
    assert_eq!(world.try_create_point(&world.tree, REFERENCE).unwrap(), Some(point.clone()));
    // As after a crash between the two refs.
    assert!(drop_point(&world.runner(), &point).unwrap());
    world.git(&["update-ref", REFERENCE, "HEAD"]);
    assert_ne!(world.create_point().tree, point.tree);
}
