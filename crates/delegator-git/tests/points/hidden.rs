//! Files that git does not examine by default: marked unchanged, outside a sparse checkout, ignored, in other
//! repositories.

use std::collections::BTreeSet;

use delegator_git::{Baseline, Comparison, LeftOutReason, Limits, create_restore_point};

use crate::comparing::{ALWAYS, baseline, compare, describe, set};
use crate::world::{REFERENCE, World};

/// The baseline that is taken together with a restore point.
fn baseline_of_restore_point(world: &World) -> Baseline {
    let created =
        create_restore_point(&world.runner(), &world.tree, &world.temp_dir(), REFERENCE, Limits::default())
            .unwrap();
    created.unwrap().baseline.unwrap()
}

/// Runs a test with both kinds of baseline: of a reading task and of a writing task.
fn with_both_baselines(prepare: impl Fn(&World), change: impl Fn(&World), check: impl Fn(&Comparison)) {
    for take_baseline in [baseline, baseline_of_restore_point] {
        let world = World::new();
        prepare(&world);
        assert_eq!(describe(&compare(&baseline(&world))), set([]));
        let before = take_baseline(&world);
        change(&world);
        check(&before.compare(Limits::default(), ALWAYS).unwrap());
    }
}

fn paths(comparison: &Comparison) -> BTreeSet<String> {
    describe(comparison).iter().map(|line| line.split(" +").next().unwrap().to_owned()).collect()
}

#[test]
fn files_marked_as_unchanged_are_examined() {
    with_both_baselines(
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
fn a_file_marked_as_unchanged_is_restored_with_its_flag() {
    let world = World::new();
    world.git(&["update-index", "--skip-worktree", "a"]);
    world.git(&["update-index", "--assume-unchanged", "b"]);
    world.write("a", "the user's local settings\n");
    world.write("b", "the user's, too\n");
    let marks = world.git(&["ls-files", "-v"]);
    let point = world.create_point();
    world.write("a", "agent\n");
    world.remove("b");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("the user's local settings\n"));
    assert_eq!(world.read("b").as_deref(), Some("the user's, too\n"));
    assert_eq!(world.git(&["ls-files", "-v"]), marks);
}

#[test]
fn files_written_outside_the_sparse_checkout_are_reported() {
    with_both_baselines(
        |world| {
            world.write("near/k", "k1\n");
            world.write("far/x", "x1\n");
            world.write("far/y", "y1\n");
            world.git(&["add", "."]);
            world.commit("two directories");
            world.git(&["sparse-checkout", "set", "--cone", "near"]);
            assert!(world.read("far/x").is_none());
        },
        |world| {
            world.write("far/x", "agent\n");
            world.write("near/k", "agent\n");
        },
        |comparison| assert_eq!(paths(comparison), set(["M far/x", "M near/k"])),
    );
}

#[test]
fn existing_ignored_files_are_examined() {
    with_both_baselines(
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
fn ignored_files_are_restored() {
    let world = World::new();
    world.write("secret.o", "the user's key\n");
    world.write("build/data/table", "the user's table\n");
    let point = world.create_point();
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
fn ignored_directories_beyond_the_limits_are_reported_as_not_examined() {
    with_both_baselines(
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
                comparison.not_examined.iter().map(|entry| (entry.path.as_str(), entry.reason)).collect();
            assert_eq!(named, [("build/", LeftOutReason::Ignored)]);
        },
    );
}

#[test]
fn large_ignored_files_are_left_out_of_the_point_but_still_compared() {
    let world = World::new();
    world.write("image.o", vec![7; (1 << 20) + 1]);
    let point = world.create_point();
    assert_eq!(point.left_out.len(), 1);
    assert_eq!(
        (point.left_out[0].path.as_str(), point.left_out[0].reason),
        ("image.o", LeftOutReason::TooLarge)
    );
    let world = World::new();
    world.write("image.o", vec![7; (1 << 20) + 1]);
    let before = baseline_of_restore_point(&world);
    world.write("image.o", "agent");
    assert_eq!(paths(&compare(&before)), set(["M image.o"]));
}

#[test]
fn nested_repositories_are_reported() {
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
    assert_eq!(compare(&before).left_out, []);
    let before = baseline(&world);
    world.git(&["submodule", "--quiet", "update", "--init", "absent"]);
    let left_out = compare(&before).left_out;
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!((left_out[0].path.as_str(), left_out[0].reason), ("absent/", LeftOutReason::Repository));
}
