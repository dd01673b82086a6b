//! Files that git does not look at by itself: marked unchanged, outside a sparse checkout, ignored, in other repositories.

use std::collections::BTreeSet;

use delegator_git::{Baseline, Comparison, LeftOutReason, Limits, keep_restore_point};

use crate::comparing::{ALWAYS, baseline, compared, set, told};
use crate::world::{REFERENCE, World};

/// The state that a restore point keeps for a later comparison.
fn kept(world: &World) -> Baseline {
    let kept = keep_restore_point(&world.runner(), &world.tree, &world.place(), REFERENCE, Limits::default())
        .unwrap();
    kept.unwrap().baseline.unwrap()
}

/// Both ways of looking at a work tree, before a task that reads and before one that writes.
fn in_both_ways(prepare: impl Fn(&World), change: impl Fn(&World), check: impl Fn(&Comparison)) {
    for look in [baseline, kept] {
        let world = World::new();
        prepare(&world);
        assert_eq!(told(&compared(&baseline(&world))), set([]));
        let before = look(&world);
        change(&world);
        check(&before.compare(Limits::default(), ALWAYS).unwrap());
    }
}

fn paths(comparison: &Comparison) -> BTreeSet<String> {
    told(comparison).iter().map(|line| line.split(" +").next().unwrap().to_owned()).collect()
}

#[test]
fn files_marked_as_unchanged_are_examined() {
    in_both_ways(
        |world| {
            world.git(&["update-index", "--assume-unchanged", "a"]);
            world.git(&["update-index", "--skip-worktree", "b"]);
            world.write("b", "the user's local settings\n");
        },
        |world| {
            world.write("a", "agent\n");
            world.write("b", "agent\n");
        },
        |comparison| assert_eq!(paths(comparison), set(["M a", "M b"])),
    );
}

#[test]
fn a_file_marked_as_unchanged_comes_back_with_its_mark() {
    let world = World::new();
    world.git(&["update-index", "--skip-worktree", "a"]);
    world.git(&["update-index", "--assume-unchanged", "b"]);
    world.write("a", "the user's local settings\n");
    world.write("b", "the user's, too\n");
    let marks = world.git(&["ls-files", "-v"]);
    let point = world.keep();
    world.write("a", "agent\n");
    world.remove("b");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("the user's local settings\n"));
    assert_eq!(world.read("b").as_deref(), Some("the user's, too\n"));
    assert_eq!(world.git(&["ls-files", "-v"]), marks);
}

#[test]
fn files_written_outside_the_sparse_checkout_are_seen() {
    in_both_ways(
        |world| {
            world.write("kept/k", "k1\n");
            world.write("far/x", "x1\n");
            world.write("far/y", "y1\n");
            world.git(&["add", "."]);
            world.commit("two directories");
            world.git(&["sparse-checkout", "set", "--cone", "kept"]);
            assert!(world.read("far/x").is_none());
        },
        |world| {
            world.write("far/x", "agent\n");
            world.write("kept/k", "agent\n");
        },
        |comparison| assert_eq!(paths(comparison), set(["M far/x", "M kept/k"])),
    );
}

#[test]
fn ignored_files_that_were_there_are_examined() {
    in_both_ways(
        |world| {
            world.write("secret.o", "the user's key\n");
            world.write("build/data/table", "the user's table\n");
            world.write("build/target/made", "by a tool\n");
            world.write("gone.o", "the user's\n");
        },
        |world| {
            world.write("secret.o", "agent\n");
            world.write("build/data/table", "the agent's, longer\n");
            world.write("build/target/made", "again, by a tool\n");
            world.write("new.o", "made by the agent\n");
            world.remove("gone.o");
        },
        |comparison| {
            assert_eq!(paths(comparison), set(["M secret.o", "M build/data/table", "D gone.o"]));
            assert_eq!(comparison.not_examined, []);
        },
    );
}

#[test]
fn ignored_files_come_back() {
    let world = World::new();
    world.write("secret.o", "the user's key\n");
    world.write("build/data/table", "the user's table\n");
    let point = world.keep();
    assert_eq!(point.left_out, []);
    world.write("secret.o", "agent\n");
    world.write("new.o", "agent\n");
    std::fs::remove_dir_all(world.tree.join("build")).unwrap();
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("secret.o").as_deref(), Some("the user's key\n"));
    assert_eq!(world.read("build/data/table").as_deref(), Some("the user's table\n"));
    assert_eq!(world.read("new.o").as_deref(), Some("agent\n"), "new ignored files stay");
}

#[test]
fn ignored_directories_beyond_the_bounds_are_named() {
    in_both_ways(
        |world| {
            for number in 0..2_001 {
                world.write(&format!("build/{number}"), "");
            }
            world.write("settings.o", "the user's\n");
        },
        |world| {
            world.write("build/7", "agent\n");
            world.write("settings.o", "agent\n");
        },
        |comparison| {
            assert_eq!(paths(comparison), set(["M settings.o"]));
            let named: Vec<_> =
                comparison.not_examined.iter().map(|one| (one.path.as_str(), one.reason)).collect();
            assert_eq!(named, [("build/", LeftOutReason::Ignored)]);
        },
    );
}

#[test]
fn large_ignored_files_are_left_out_of_the_point_and_still_watched() {
    let world = World::new();
    world.write("image.o", vec![7; (1 << 20) + 1]);
    let point = world.keep();
    assert_eq!(point.left_out.len(), 1);
    assert_eq!(
        (point.left_out[0].path.as_str(), point.left_out[0].reason),
        ("image.o", LeftOutReason::TooLarge)
    );
    let world = World::new();
    world.write("image.o", vec![7; (1 << 20) + 1]);
    let before = kept(&world);
    world.write("image.o", "agent");
    assert_eq!(paths(&compared(&before)), set(["M image.o"]));
}

#[test]
fn repositories_inside_the_tree_are_named() {
    let world = World::new();
    world.repository("untracked");
    world.repository("build/ignored");
    world.repository("../library");
    world.git(&["submodule", "--quiet", "add", "./../library", "module"]);
    world.git(&["submodule", "--quiet", "add", "--name", "later", "../library", "absent"]);
    world.commit("with submodules");
    world.git(&["submodule", "--quiet", "deinit", "absent"]);
    let before = baseline(&world);
    let mut inner = before.inner_repositories();
    inner.sort();
    assert_eq!(inner, ["build/ignored", "module", "untracked"].map(|path| world.tree.join(path)));
    assert_eq!(compared(&before).left_out, []);
    let before = baseline(&world);
    world.git(&["submodule", "--quiet", "update", "--init", "absent"]);
    let left_out = compared(&before).left_out;
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!((left_out[0].path.as_str(), left_out[0].reason), ("absent/", LeftOutReason::Repository));
}
