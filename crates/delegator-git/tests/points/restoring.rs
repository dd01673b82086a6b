//! What a restore writes, what it removes, and what it never touches.

use std::collections::BTreeMap;
use std::time::Duration;

use delegator_git::{
    HeadTarget, KeepReason, LeftOutReason, Limits, RestoreError, WriteError, create_restore_point, drop_point,
};

use crate::world::{REFERENCE, World};

/// A work tree with staged, modified, untracked and ignored files.
fn dirty() -> World {
    let world = World::new();
    world.write("a", "a2\n");
    world.git(&["add", "a"]);
    world.write("a", "a3\n");
    world.write("b", "b2\n");
    world.write("new dir/ü \"q\"\n.txt", "untracked\n");
    world.write("x.o", "ignored\n");
    world
}

#[test]
fn index_and_work_tree_are_restored() {
    let world = dirty();
    let (status, index) = (world.status(), world.index());
    let point = world.create_point();
    assert!(point.staged && point.is_dirty());
    assert_eq!((point.modified, point.untracked, point.branch.as_deref()), (2, 1, Some("refs/heads/main")));
    assert_eq!(world.git_in_store(&["show", &format!("{REFERENCE}:index-tree/a")]), "a2\n");
    // Changes that an agent might make.
    world.write("a", "agent\n");
    world.remove("b");
    std::fs::remove_dir_all(world.tree.join("new dir")).unwrap();
    world.write("added/deep/file", "agent\n");
    world.write("y.o", "agent, ignored\n");
    world.git(&["add", "-A"]);
    let (plan, undo) = world.restore(&point, false).unwrap();
    assert_eq!(plan.remove, ["added/deep/file"]);
    assert_eq!((world.status(), world.index()), (status, index));
    assert_eq!(world.read("a").as_deref(), Some("a3\n"));
    assert_eq!(world.read("x.o").as_deref(), Some("ignored\n"));
    assert_eq!(world.read("y.o").as_deref(), Some("agent, ignored\n"), "ignored files are left alone");
    assert!(!world.tree.join("added").exists());
    world.restore(&undo, false).unwrap();
    assert_eq!((world.read("a").as_deref(), world.read("b")), (Some("agent\n"), None));
    assert_eq!(world.read("added/deep/file").as_deref(), Some("agent\n"));
}

#[test]
fn the_plan_is_empty_when_nothing_changed() {
    let world = dirty();
    let point = world.create_point();
    let prepared = world.prepare(&point).unwrap();
    assert!(prepared.plan.is_empty(), "{:?}", prepared.plan);
    assert_eq!(prepared.plan.head_target, HeadTarget::Unchanged);
}

#[test]
fn preparing_a_restore_adds_nothing_to_the_repository() {
    let world = dirty();
    let point = world.create_point();
    world.write("a", "agent\n");
    world.write("other", "agent\n");
    let before = world.git(&["count-objects"]);
    let prepared = world.prepare(&point).unwrap();
    assert_eq!(
        (prepared.plan.write.as_slice(), prepared.plan.remove.as_slice()),
        (["a".to_owned()].as_slice(), ["other".to_owned()].as_slice())
    );
    assert_eq!(world.git(&["count-objects"]), before);
    assert_eq!(world.read("a").as_deref(), Some("agent\n"));
}

#[test]
fn the_branch_is_moved_only_on_request_and_its_commits_stay_reachable() {
    let world = dirty();
    let point = world.create_point();
    let first = world.git(&["rev-parse", "HEAD"]);
    world.git(&["add", "-A"]);
    world.commit("agent");
    let agent_head = world.git(&["rev-parse", "HEAD"]);
    let (plan, undo) = world.restore(&point, false).unwrap();
    assert_eq!(plan.head_target, HeadTarget::Moves);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), agent_head);
    assert_eq!(world.read("a").as_deref(), Some("a3\n"));
    drop_point(&world.runner(), &undo).unwrap();
    let (_, undo) = world.restore(&point, true).unwrap();
    assert_eq!(world.git(&["rev-parse", "HEAD"]), first);
    assert_eq!(world.git(&["rev-parse", &undo.reference]), agent_head);
    assert!(world.status().starts_with("MM a\n"), "{}", world.status());
}

#[test]
fn a_switched_branch_and_a_detached_head_are_restored() {
    let world = World::new();
    let on_main = world.create_point();
    world.git(&["checkout", "--quiet", "-b", "agent"]);
    world.commit("agent");
    let (_, undo) = world.restore(&on_main, true).unwrap();
    assert!(drop_point(&world.runner(), &on_main).unwrap() && drop_point(&world.runner(), &undo).unwrap());
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert!(world.git(&["branch", "--list"]).contains("agent"), "no branch is deleted");
    world.git(&["checkout", "--quiet", "--detach"]);
    let detached = world.create_point();
    assert_eq!(detached.branch, None);
    world.git(&["checkout", "--quiet", "agent"]);
    world.restore(&detached, true).unwrap();
    assert!(!world.run_git_in(&["symbolic-ref", "-q", "HEAD"], &world.tree).0);
}

#[test]
fn large_files_are_left_out_reported_and_never_touched() {
    let world = World::new();
    let large = vec![b'x'; 11 << 20];
    world.write("large.bin", &large);
    let point = world.create_point();
    assert_eq!(point.left_out.len(), 1);
    assert_eq!(
        (point.left_out[0].path.as_str(), point.left_out[0].reason),
        ("large.bin", LeftOutReason::TooLarge)
    );
    // Small now, so it is in the present capture; it must stay nevertheless.
    world.write("large.bin", "small\n");
    world.write("grown.bin", "small\n");
    world.write("b", "agent\n");
    world.write("grown.bin", &large);
    let (plan, _) = world.restore(&point, false).unwrap();
    assert_eq!(world.read("large.bin").as_deref(), Some("small\n"));
    assert_eq!(std::fs::metadata(world.tree.join("grown.bin")).unwrap().len(), 11 << 20, "{plan:?}");
    let expected = [("large.bin", KeepReason::LeftOut), ("grown.bin", KeepReason::NotStorable)];
    assert_eq!(plan.keep, expected.map(|(path, reason)| (path.to_owned(), reason)));
    assert_eq!(world.read("b").as_deref(), Some("b1\n"));
}

#[test]
fn every_file_that_is_left_out_has_its_reason() {
    let world = World::new();
    world.write("first", vec![b'x'; 100]);
    world.write("large", vec![b'x'; 200]);
    world.write("second", vec![b'x'; 100]);
    world.repository("inner");
    world.remove("b");
    rustix::fs::mkfifoat(rustix::fs::CWD, world.tree.join("b"), 0o600.into()).unwrap();
    let left_out = |reference: &str, time: Duration| {
        let limits = Limits { file_bytes: 100, total_bytes: 150, time };
        let created =
            create_restore_point(&world.runner(), &world.tree, &world.temp_dir(), reference, limits);
        let left_out = created.unwrap().unwrap().point.left_out.into_iter();
        left_out.map(|entry| (entry.path, entry.reason)).collect::<BTreeMap<_, _>>()
    };
    let reasons = |small: Option<LeftOutReason>, second: LeftOutReason| {
        let small = small.map(|reason| ("first", reason));
        let others = [
            ("b", LeftOutReason::Unreadable),
            ("inner/", LeftOutReason::Repository),
            ("large", LeftOutReason::TooLarge),
            ("second", second),
        ];
        let all = others.into_iter().chain(small);
        all.map(|(path, reason)| (path.to_owned(), reason)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(left_out(REFERENCE, Duration::from_secs(60)), reasons(None, LeftOutReason::TooMuch));
    let late = LeftOutReason::TooLate;
    assert_eq!(left_out("refs/mcp-delegator/T-local-2", Duration::ZERO), reasons(Some(late), late));
}

#[test]
fn a_file_that_grew_is_in_the_undo_point() {
    let world = World::new();
    world.write("notes", "mine\n");
    let point = world.create_point();
    let large = vec![b'x'; 11 << 20];
    world.write("notes", &large);
    let (_, undo) = world.restore(&point, false).unwrap();
    assert_eq!(world.read("notes").as_deref(), Some("mine\n"));
    world.restore(&undo, false).unwrap();
    assert_eq!(std::fs::read(world.tree.join("notes")).unwrap(), large);
}

#[test]
fn previously_ignored_files_stay_when_the_ignore_rules_change() {
    let world = World::new();
    world.write("build/out", "built\n");
    let point = world.create_point();
    world.write(".gitignore", "");
    world.write(":(top)*.txt", "x");
    let (plan, _) = world.restore(&point, false).unwrap();
    assert_eq!(plan.remove, [":(top)*.txt"]);
    assert_eq!(world.read("build/out").as_deref(), Some("built\n"));
    assert_eq!(world.read(".gitignore").as_deref(), Some("*.o\nbuild/\n"));
}

#[test]
fn a_newly_ignored_file_is_in_the_undo_point() {
    let world = World::new();
    world.write("notes.txt", "mine\n");
    let point = world.create_point();
    world.write(".gitignore", "*.txt\n");
    world.write("notes.txt", "agent\n");
    let (_, undo) = world.restore(&point, false).unwrap();
    assert_eq!(world.read("notes.txt").as_deref(), Some("mine\n"));
    world.restore(&undo, false).unwrap();
    assert_eq!(world.read("notes.txt").as_deref(), Some("agent\n"));
}

#[test]
fn swapped_files_and_directories_are_restored() {
    let world = World::new();
    world.write("d/inner", "inner\n");
    world.git(&["add", "."]);
    world.commit("folder");
    std::os::unix::fs::symlink("b", world.tree.join("link")).unwrap();
    let point = world.create_point();
    world.remove("a");
    world.write("a/file", "agent\n");
    std::fs::remove_dir_all(world.tree.join("d")).unwrap();
    world.write("d", "agent\n");
    world.remove("link");
    world.write("link", "agent\n");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("a1\n"));
    assert_eq!(world.read("d/inner").as_deref(), Some("inner\n"));
    assert_eq!(std::fs::read_link(world.tree.join("link")).unwrap().to_str(), Some("b"));
}

#[test]
fn a_symlink_in_place_of_a_directory_is_not_followed() {
    let world = World::new();
    world.write("d/inner", "inner\n");
    let point = world.create_point();
    let outside = world.root.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir_all(world.tree.join("d")).unwrap();
    std::os::unix::fs::symlink(&outside, world.tree.join("d")).unwrap();
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("d/inner").as_deref(), Some("inner\n"));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_blocking_ignored_file_refuses_the_whole_restore() {
    let world = World::new();
    let point = world.create_point();
    world.write("b", "agent\n");
    world.remove("a");
    world.write("a/file.o", "ignored\n");
    let refused = world.restore(&point, false);
    assert!(matches!(&refused, Err(RestoreError::PathBlocked { path, .. }) if path == "a"), "{refused:?}");
    assert_eq!(world.read("b").as_deref(), Some("agent\n"), "nothing was changed");
}

#[test]
fn an_index_lock_a_different_repository_and_a_changed_ref_are_refused() {
    let world = dirty();
    let point = world.create_point();
    world.write("a", "agent\n");
    world.write(".git/index.lock", "");
    assert!(matches!(world.restore(&point, false), Err(RestoreError::Write(WriteError::IndexLocked { .. }))));
    world.remove(".git/index.lock");
    world.git_in_store(&["update-ref", REFERENCE, &point.tree]);
    assert!(matches!(world.restore(&point, false), Err(RestoreError::PointMissing { .. })));
    assert!(!drop_point(&world.runner(), &point).unwrap());
    std::fs::rename(world.tree.join(".git"), world.root.path().join("gone")).unwrap();
    assert!(matches!(world.restore(&point, false), Err(RestoreError::DifferentRepository { .. })));
    world.git(&["init", "--quiet"]);
    assert!(matches!(world.restore(&point, false), Err(RestoreError::PointMissing { .. })));
    assert_eq!(world.read("a").as_deref(), Some("agent\n"));
}

#[test]
fn a_file_that_appears_after_planning_is_not_replaced() {
    let world = World::new();
    let point = world.create_point();
    world.remove("a");
    let mut prepared = world.prepare(&point).unwrap();
    let undo = prepared.create_undo_point("refs/mcp-delegator/undo").unwrap();
    world.write("a", "typed just now\n");
    let refused = prepared.apply(&undo, false);
    assert!(matches!(refused, Err(RestoreError::Write(WriteError::ConcurrentChange { .. }))), "{refused:?}");
    assert_eq!(world.read("a").as_deref(), Some("typed just now\n"));
}

#[test]
fn changes_after_planning_are_not_overwritten() {
    let world = World::new();
    let point = world.create_point();
    world.write("a", "agent\n");
    let mut prepared = world.prepare(&point).unwrap();
    let undo = prepared.create_undo_point("refs/mcp-delegator/undo").unwrap();
    world.write("a", "typed just now\n");
    let refused = prepared.apply(&undo, false);
    assert!(matches!(refused, Err(RestoreError::Write(WriteError::ConcurrentChange { .. }))), "{refused:?}");
    assert_eq!(world.read("a").as_deref(), Some("typed just now\n"));
    assert!(!world.tree.join(".git/index.lock").exists());
}

/// The user saves a file as soon as the first one is restored.
#[test]
fn a_file_saved_while_a_restore_runs_is_never_overwritten() {
    const FILES: usize = 200;
    let world = World::new();
    let name = |number: usize| format!("file{number:03}");
    (0..FILES).for_each(|number| world.write(&name(number), "before\n"));
    let point = world.create_point();
    (0..FILES).for_each(|number| world.write(&name(number), "agent\n"));
    for saved in [1, FILES / 2, FILES - 1].map(name) {
        let refused = std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                while (0..FILES).all(|number| world.read(&name(number)).as_deref() != Some("before\n")) {
                    std::thread::yield_now();
                }
                world.write(&saved, "user\n");
            });
            let mut prepared = world.prepare(&point).unwrap();
            let undo = prepared.create_undo_point("refs/mcp-delegator/undo").unwrap();
            let restored = prepared.apply(&undo, false);
            user.join().unwrap();
            restored.err()
        });
        assert_eq!(world.read(&saved).as_deref(), Some("user\n"), "{refused:?}");
        // The file was saved before or after it was its turn.
        if let Some(error) = refused {
            assert!(error.to_string().contains(&saved), "{error}");
            let others = (0..FILES).map(name).filter(|name| *name != saved);
            others.for_each(|name| assert_eq!(world.read(&name).as_deref(), Some("agent\n"), "{name}"));
        }
        assert!(!world.tree.join(".git/index.lock").exists());
        world.stored_points().iter().filter(|stored| stored.reference != point.reference).for_each(|undo| {
            assert!(drop_point(&world.runner(), undo).unwrap());
        });
        (0..FILES).for_each(|number| world.write(&name(number), "agent\n"));
    }
}

#[test]
fn a_restore_point_is_dropped_once() {
    let world = World::new();
    let point = world.create_point();
    assert!(drop_point(&world.runner(), &point).unwrap());
    assert_eq!(world.git(&["for-each-ref", "refs/mcp-delegator"]), "");
    assert!(!drop_point(&world.runner(), &point).unwrap());
}

#[test]
fn undo_restores_a_symlink_that_replaced_a_tracked_directory() {
    let world = World::new();
    world.write("d/inner", "inner\n");
    world.git(&["add", "."]);
    world.commit("folder");
    let point = world.create_point();
    std::fs::remove_dir_all(world.tree.join("d")).unwrap();
    std::os::unix::fs::symlink("a", world.tree.join("d")).unwrap();
    let (plan, undo) = world.restore(&point, false).unwrap();
    assert_eq!((plan.write, plan.remove), (vec!["d/inner".to_owned()], vec!["d".to_owned()]));
    let (plan, _) = world.restore(&undo, false).unwrap();
    assert_eq!((plan.write, plan.remove), (vec!["d".to_owned()], vec!["d/inner".to_owned()]));
    assert_eq!(std::fs::read_link(world.tree.join("d")).unwrap().to_str(), Some("a"));
}

#[test]
fn permissions_and_empty_directories_are_restored() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let set = |path: &str, mode| {
        std::fs::set_permissions(world.tree.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |path: &str| std::fs::metadata(world.tree.join(path)).unwrap().permissions().mode() & 0o7777;
    world.write("tight/key", "mine\n");
    std::fs::create_dir_all(world.tree.join("empty/deep")).unwrap();
    for (path, bits) in [("a", 0o600), ("b", 0o664), ("tight", 0o700), ("empty", 0o750)] {
        set(path, bits);
    }
    let point = world.create_point();
    set("a", 0o644);
    world.remove("b");
    std::fs::remove_dir_all(world.tree.join("empty")).unwrap();
    std::fs::remove_dir_all(world.tree.join("tight")).unwrap();
    std::fs::create_dir_all(world.tree.join("made/by/agent")).unwrap();
    world.write("made/file", "agent\n");
    let (plan, undo) = world.restore(&point, false).unwrap();
    assert_eq!(plan.modes, ["a"]);
    assert_eq!(plan.remove_directories, ["made/by/agent", "made/by", "made"]);
    assert_eq!(
        ["a", "b", "tight", "empty", "tight/key"].map(mode),
        [0o600, 0o664, 0o700, 0o750, 0o644],
        "{plan:?}"
    );
    assert!(world.tree.join("empty/deep").is_dir() && !world.tree.join("made").exists());
    world.restore(&undo, false).unwrap();
    assert_eq!((mode("a"), world.tree.join("made/by/agent").is_dir()), (0o644, true));
    assert!(!world.tree.join("empty").exists() && !world.tree.join("tight").exists());
}

#[test]
fn an_existing_directory_stays_when_its_last_file_is_removed() {
    let world = World::new();
    std::fs::create_dir(world.tree.join("inbox")).unwrap();
    world.write("cache/x.o", "ignored\n");
    std::fs::create_dir(world.tree.join("cache/sub")).unwrap();
    let point = world.create_point();
    world.write("inbox/file", "agent\n");
    world.write("cache/sub/file", "agent\n");
    world.restore(&point, false).unwrap();
    assert!(world.tree.join("inbox").is_dir() && world.read("inbox/file").is_none());
    assert!(world.tree.join("cache/sub").is_dir() && world.read("cache/sub/file").is_none());
}

#[test]
fn undo_removes_an_ignored_file_that_the_restore_wrote() {
    let world = World::new();
    world.write("secret.o", "mine\n");
    let point = world.create_point();
    world.remove("secret.o");
    let (_, undo) = world.restore(&point, false).unwrap();
    assert_eq!(world.read("secret.o").as_deref(), Some("mine\n"));
    world.restore(&undo, false).unwrap();
    assert_eq!(world.read("secret.o"), None);
}

#[test]
fn a_directory_replaced_by_a_symlink_is_restored() {
    let world = World::new();
    world.write("d/known", "1\n");
    world.git(&["add", "d"]);
    world.commit("a directory");
    world.write("d/known", "mine\n");
    world.write("d/new", "mine\n");
    let point = world.create_point();
    std::fs::rename(world.tree.join("d"), world.tree.join("e")).unwrap();
    std::os::unix::fs::symlink("e", world.tree.join("d")).unwrap();
    let (_, undo) = world.restore(&point, false).unwrap();
    assert!(!world.tree.join("d").is_symlink() && !world.tree.join("e").exists());
    assert_eq!(
        (world.read("d/known").as_deref(), world.read("d/new").as_deref()),
        (Some("mine\n"), Some("mine\n"))
    );
    world.restore(&undo, false).unwrap();
    assert!(world.tree.join("d").is_symlink());
    assert_eq!(world.read("e/new").as_deref(), Some("mine\n"));
}
