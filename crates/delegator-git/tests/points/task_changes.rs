//! A restore of a task's changes reverts what the task changed, and nothing else: later changes stay byte for
//! byte. Where both changed the same, nothing is restored. Undoing the restore is exact.
//!
//! `PROPTEST_CASES` sets the number of cases, `PROPTEST_RNG_SEED` the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use delegator_git::{
    AgentChanges, Doubt, EndStateProblem, HeadTarget, KeepReason, Overlap, OverlapPart, PossibleEdit,
    RestoreError, RestorePoint, drop_point,
};
use proptest::prelude::*;

use crate::exact::{Snapshot, action, apply, config, copy_template, heads, remove, snapshot};
use crate::world::World;

/// Everything may be the agent's.
fn any_change() -> AgentChanges {
    AgentChanges { ran_commands: true, moved_head: true, ..AgentChanges::default() }
}

fn twenty_lines(changes: &[(usize, &str)]) -> String {
    let line = |n: usize| {
        let changed = changes.iter().find(|(number, _)| *number == n);
        changed.map_or_else(|| format!("line {n}\n"), |(_, text)| format!("{text}\n"))
    };
    (0..20).map(line).collect()
}

#[track_caller]
fn restored(world: &World, point: &RestorePoint) -> delegator_git::Plan {
    let (plan, undo) = world.restore_task_changes(point).unwrap();
    assert!(undo.is_some(), "{plan:?}");
    plan
}

fn overlap(path: &str, part: OverlapPart) -> Overlap {
    Overlap { path: path.into(), part }
}

/// Checks that the restore is refused for these files and changes nothing.
#[track_caller]
fn assert_refused(world: &World, point: &RestorePoint, files: &[&str]) {
    let overlaps: Vec<Overlap> = files.iter().map(|path| overlap(path, OverlapPart::File)).collect();
    assert_overlaps(world, point, &overlaps);
}

#[track_caller]
fn assert_overlaps(world: &World, point: &RestorePoint, overlaps: &[Overlap]) {
    let before = snapshot(world);
    let (plan, undo) = world.restore_task_changes(point).unwrap();
    assert!(undo.is_none());
    assert_eq!(plan.overlaps, overlaps);
    assert_eq!(snapshot(world), before);
}

#[test]
fn later_work_stays() {
    let world = World::new();
    let point = world.run_task(&any_change(), || {
        world.write("a", "task\n");
        world.write("added/by task", "task\n");
    });
    world.write("b", "user\n");
    world.write("mine", "user\n");
    world.git(&["add", "mine"]);
    world.commit("user");
    let plan = restored(&world, &point);
    assert_eq!((plan.write, plan.remove), (vec!["a".to_owned()], vec!["added/by task".to_owned()]));
    let later = |name: &str| (name.to_owned(), KeepReason::ChangedLater);
    assert_eq!(plan.keep, [later("b"), later("mine")]);
    assert_eq!(plan.head_target, HeadTarget::Unchanged, "the commit is the user's");
    assert!(!plan.index_differs);
    assert_eq!((world.read("a").as_deref(), world.read("b").as_deref()), (Some("a1\n"), Some("user\n")));
    assert!(world.read("mine").is_some() && !world.tree.join("added").exists());
}

#[test]
fn edits_of_other_lines_of_the_same_file_are_merged() {
    let world = World::new();
    world.write("text", twenty_lines(&[]));
    let point =
        world.run_task(&any_change(), || world.write("text", twenty_lines(&[(2, "task"), (9, "task")])));
    world.write("text", twenty_lines(&[(2, "task"), (9, "task"), (15, "user")]));
    fs::set_permissions(world.tree.join("text"), fs::Permissions::from_mode(0o600)).unwrap();
    let plan = restored(&world, &point);
    assert_eq!(
        (plan.write.as_slice(), plan.merged.as_slice()),
        (&["text".to_owned()][..], &["text".to_owned()][..])
    );
    assert_eq!(world.read("text").unwrap(), twenty_lines(&[(15, "user")]));
    let mode = fs::metadata(world.tree.join("text")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "the later permissions stay");
}

#[test]
fn overlapping_edits_refuse_the_whole_restore_and_name_every_file() {
    let world = World::new();
    world.write("text", twenty_lines(&[]));
    world.write("binary", b"\0before");
    world.write("other", "before\n");
    let point = world.run_task(&any_change(), || {
        world.write("a", "task\n");
        world.write("text", twenty_lines(&[(2, "task")]));
        world.write("binary", b"\0task");
        world.write("new", "task\n");
        world.remove("b");
        world.write("other", "task\n");
    });
    world.write("text", twenty_lines(&[(2, "user")]));
    world.write("binary", b"\0user");
    world.write("new", "user\n");
    world.write("b", "user\n");
    world.remove("other");
    assert_refused(&world, &point, &["b", "binary", "new", "other", "text"]);
    assert_eq!(world.read("a").as_deref(), Some("task\n"), "not even what could be restored");
    // The whole tree can still be restored.
    world.restore(&point, false).unwrap();
    assert_eq!(
        (world.read("a").as_deref(), world.read("other").as_deref()),
        (Some("a1\n"), Some("before\n"))
    );
}

#[test]
fn an_overlap_names_what_of_a_path_was_changed_again() {
    let world = World::new();
    // A name that looks like a description.
    world.write("a (index)", "before\n");
    world.write("dir/file", "before\n");
    world.git(&["add", "-A"]);
    let set_mode = |path: &str, mode: u32| {
        fs::set_permissions(world.tree.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("b", 0o644);
    set_mode("dir", 0o755);
    let point = world.run_task(&any_change(), || {
        world.write("a (index)", "task\n");
        world.write("a", "task\n");
        world.git(&["add", "a"]);
        world.write("a", "a1\n");
        set_mode("b", 0o640);
        set_mode("dir", 0o750);
    });
    world.write("a (index)", "user\n");
    world.write("a", "user\n");
    world.git(&["add", "a"]);
    set_mode("b", 0o600);
    set_mode("dir", 0o700);
    let expected = [
        overlap("a", OverlapPart::Index),
        overlap("a (index)", OverlapPart::File),
        overlap("b", OverlapPart::Permissions),
        overlap("dir", OverlapPart::Permissions),
    ];
    assert_overlaps(&world, &point, &expected);
}

#[test]
fn what_is_not_attributed_to_the_agent_stays() {
    let world = World::new();
    let agent = AgentChanges { unattributed: [b"b".to_vec()].into(), ..AgentChanges::default() };
    let point = world.run_task(&agent, || {
        world.write("dir/a", "task\n");
        world.write("b", "another program\n");
        world.git(&["add", "b"]);
        fs::create_dir(world.tree.join("also theirs")).unwrap();
    });
    let plan = restored(&world, &point);
    assert_eq!(plan.keep, [("b".to_owned(), KeepReason::NotByAgent)]);
    assert_eq!((plan.remove, plan.remove_directories), (vec!["dir/a".to_owned()], vec!["dir".to_owned()]));
    assert!(!plan.index_differs && world.tree.join("also theirs").is_dir());
    assert_eq!(world.read("b").as_deref(), Some("another program\n"));
}

#[test]
fn a_plan_marks_files_that_may_hold_edits_of_the_user() {
    let world = World::new();
    world.write("c", "c1\n");
    world.write("d", "d1\n");
    let agent = AgentChanges {
        unattributed: [b"c".to_vec()].into(),
        doubtful: [(b"b".to_vec(), Doubt::DuringCommand), (b"new".to_vec(), Doubt::OutsideActions)].into(),
        ..any_change()
    };
    let point = world.run_task(&agent, || {
        for path in ["a", "b", "c", "new"] {
            world.write(path, "during the task\n");
        }
    });
    let doubtful = |path: &str, doubt| (path.to_owned(), PossibleEdit::Doubtful(doubt));
    let during = [doubtful("b", Doubt::DuringCommand), doubtful("new", Doubt::OutsideActions)];
    let prepared = world.prepare_task_changes(&point);
    assert_eq!(prepared.plan.possible_edits.as_deref(), Some(&during[..]));
    world.write("d", "later\n");
    let (not_agents, later) =
        (("c".to_owned(), PossibleEdit::NotByAgent), ("d".to_owned(), PossibleEdit::Later));
    let [b, new] = during;
    assert_eq!(world.prepare(&point).unwrap().plan.possible_edits, Some(vec![b, not_agents, later, new]));
    fs::remove_dir_all(world.tree.join(".git/mcp-delegator/ends")).unwrap();
    assert_eq!(world.prepare(&point).unwrap().plan.possible_edits, None, "it is not known");
}

#[test]
fn a_commit_moves_back_only_if_it_may_be_the_agents() {
    for (moved_head, expected) in [(true, HeadTarget::Moves), (false, HeadTarget::NotByAgent)] {
        let world = World::new();
        let agent = AgentChanges { moved_head, ..any_change() };
        let point = world.run_task(&agent, || world.commit("during the task"));
        assert_eq!(restored(&world, &point).head_target, expected);
        assert_eq!(world.prepare(&point).unwrap().plan.head_target, HeadTarget::Moves, "the whole tree");
    }
}

#[test]
fn an_undo_leaves_what_changed_after_the_restore() {
    let world = World::new();
    let point = world.run_task(&any_change(), || world.write("a", "task\n"));
    let undo = world.restore_task_changes(&point).unwrap().1.unwrap();
    world.write("b", "user\n");
    let (plan, undo_of_undo) = world.undo(&undo).unwrap();
    assert_eq!(plan.keep, [("b".to_owned(), KeepReason::ChangedAfterRestore)]);
    assert_eq!((world.read("a").as_deref(), world.read("b").as_deref()), (Some("task\n"), Some("user\n")));
    world.write("a", "user\n");
    let (plan, undone) = world.undo(&undo_of_undo.unwrap()).unwrap();
    assert!(undone.is_none() && plan.overlaps == [overlap("a", OverlapPart::File)], "{plan:?}");
    assert_eq!(world.read("a").as_deref(), Some("user\n"));
}

#[test]
fn entries_that_the_task_staged_are_reverted_and_later_ones_stay() {
    let world = World::new();
    world.write("text", twenty_lines(&[]));
    world.git(&["add", "text"]);
    let point = world.run_task(&any_change(), || {
        world.write("a", "task\n");
        world.write("text", twenty_lines(&[(2, "task")]));
        world.git(&["add", "-A"]);
    });
    world.write("b", "user\n");
    world.write("text", twenty_lines(&[(2, "task"), (15, "user")]));
    world.git(&["add", "-A"]);
    let plan = restored(&world, &point);
    assert!(plan.index_differs);
    assert_eq!(world.git(&["show", ":a"]), "a1\n");
    assert_eq!(world.git(&["show", ":b"]), "user\n");
    assert_eq!(world.git(&["show", ":text"]), twenty_lines(&[(15, "user")]));
    assert_eq!(world.git(&["diff", "--name-only"]), "", "the work tree is the same");
}

#[test]
fn a_large_file_is_reverted_only_while_it_is_unchanged() {
    let world = World::new();
    world.write("b", vec![b'x'; 11 << 20]);
    world.git(&["add", "b"]);
    let point = world.run_task(&any_change(), || world.write("b", vec![b'y'; 11 << 20]));
    restored(&world, &point);
    assert_eq!(fs::read(world.tree.join("b")).unwrap()[0], b'x');
    for point in world.stored_points() {
        drop_point(&world.runner(), &point).unwrap();
    }
    let point = world.run_task(&any_change(), || world.write("b", vec![b'y'; 11 << 20]));
    world.write("b", vec![b'z'; 11 << 20]);
    assert_refused(&world, &point, &["b"]);
}

#[test]
fn a_large_file_that_the_task_created_is_removed_and_one_that_was_left_out_is_listed() {
    let world = World::new();
    world.write("old", vec![b'x'; 11 << 20]);
    let point = world.run_task(&any_change(), || {
        world.write("new", vec![b'y'; 11 << 20]);
        world.write("old", vec![b'y'; 11 << 20]);
    });
    let plan = restored(&world, &point);
    assert_eq!(plan.remove, ["new"]);
    assert_eq!(plan.keep, [("old".to_owned(), KeepReason::LeftOut)]);
    assert!(!world.tree.join("new").exists());
    assert_eq!(fs::read(world.tree.join("old")).unwrap()[0], b'y');
}

#[test]
fn a_large_file_that_the_task_created_is_not_removed_after_it_was_changed() {
    let world = World::new();
    let point = world.run_task(&any_change(), || world.write("new", vec![b'y'; 11 << 20]));
    world.write("new", "mine\n");
    assert_refused(&world, &point, &["new"]);
}

#[test]
fn without_the_state_after_the_task_its_changes_cannot_be_restored() {
    let world = World::new();
    let point = world.create_point();
    world.write("a", "task\n");
    let refused = world.restore_task_changes(&point).unwrap_err();
    assert!(matches!(refused, RestoreError::NoEndState { .. }), "{refused}");
    world.restore(&point, false).unwrap();
}

#[test]
fn a_state_after_the_task_that_cannot_be_read_is_an_error_that_names_the_file() {
    let world = World::new();
    let point = world.run_task(&any_change(), || world.write("a", "task\n"));
    let file =
        fs::read_dir(world.tree.join(".git/mcp-delegator/ends")).unwrap().next().unwrap().unwrap().path();
    let stored = fs::read(&file).unwrap();
    let newer = String::from_utf8_lossy(&stored).replacen("{\"version\":1,", "{\"version\":2,\"new\":0,", 1);
    for (bytes, expected) in [
        (stored[..stored.len() / 2].to_vec(), EndStateProblem::Damaged),
        (stored[..stored.len() - 1].to_vec(), EndStateProblem::Damaged),
        ([&stored[..], b"x"].concat(), EndStateProblem::Damaged),
        (b"{}\n".to_vec(), EndStateProblem::Damaged),
        (Vec::new(), EndStateProblem::Damaged),
        (newer.into_bytes(), EndStateProblem::OtherVersion { found: 2, known: 1 }),
        (b"{\"version\":2}\n".to_vec(), EndStateProblem::OtherVersion { found: 2, known: 1 }),
    ] {
        fs::write(&file, &bytes).unwrap();
        match world.restore_task_changes(&point).unwrap_err() {
            RestoreError::UnreadableEndState { file: named, problem } => {
                assert_eq!((named, problem), (file.clone(), expected));
            }
            other => panic!("{other}"),
        }
    }
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("a1\n"), "the whole tree does not need it");
}

#[test]
fn an_edited_index_whose_objects_are_missing_is_refused() {
    let world = World::new();
    // Only the index has this version.
    world.write("a", "staged\n");
    world.git(&["add", "a"]);
    world.write("a", "a1\n");
    let staged = world.git(&["rev-parse", ":a"]);
    let point = world.run_task(&any_change(), || {
        world.write("a", "task\n");
        world.git(&["add", "a"]);
    });
    // A later entry of another file: entries are edited, and the saved index is not taken as it is.
    world.write("b", "user\n");
    world.git(&["add", "b"]);
    world.remove_object(staged.trim());
    let before = (world.index(), world.read("a"));
    let refused = world.restore_task_changes(&point).unwrap_err();
    assert!(matches!(refused, RestoreError::PointMissing { .. }), "{refused:?}");
    assert_eq!((world.index(), world.read("a")), before, "nothing was changed");
}

#[test]
fn the_state_after_the_task_is_private_and_deleted_with_the_restore_point() {
    let world = World::new();
    let point = world.run_task(&any_change(), || world.write("a", "task\n"));
    let store = world.tree.join(".git/mcp-delegator");
    let count = |folder: &str| fs::read_dir(store.join(folder)).unwrap().count();
    assert_eq!(count("ends"), 1);
    let bytes = point.bytes();
    assert!(bytes > 0 && count("objects/pack") > 0);
    drop_point(&world.runner(), &point).unwrap();
    assert_eq!((count("ends"), count("objects/pack"), point.bytes()), (0, 0, 0));
}

type Tree = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

/// The index entries by path.
fn entries(snapshot: &Snapshot) -> BTreeMap<&str, Vec<&str>> {
    let mut entries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &snapshot.index {
        let path = entry.split_once('\t').map_or(entry.as_str(), |(_, path)| path);
        let path = path.rsplit_once(' ').map_or(path, |(path, _)| path);
        entries.entry(path).or_default().push(entry);
    }
    entries
}

/// Checks every path that only one side changed.
fn check_tree(before: &Tree, after: &Tree, now: &Tree, result: &Tree) -> Result<(), TestCaseError> {
    let paths: BTreeSet<&PathBuf> =
        before.keys().chain(after.keys()).chain(now.keys()).chain(result.keys()).collect();
    for path in paths {
        let states = [before, after, now, result].map(|tree| tree.get(path));
        let [before, after, now, restored] = states;
        let is_parent = |tree: &Tree| tree.keys().any(|other| other != path && other.starts_with(path));
        if before == after || now == before {
            // A directory may be needed for a restored file, or its last file may have been removed.
            let is_directory = [now, restored].into_iter().flatten().all(|found| found.0 == 'd');
            prop_assert!(restored == now || is_directory, "{path:?} stays: {states:?}");
        } else if after == now {
            let stays = now.is_some_and(|found| found.0 == 'd') && is_parent(result);
            let was_directory = before.is_some_and(|found| found.0 == 'd');
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let has_no_parent = was_directory && parent.is_some_and(|parent| !result.contains_key(parent));
            prop_assert!(restored == before || stays || has_no_parent, "{path:?} is reverted: {states:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn later_changes_stay_and_the_undo_is_exact(
        user_actions in proptest::collection::vec(action(), 0..8),
        agent_actions in proptest::collection::vec(action(), 1..8),
        later_actions in proptest::collection::vec(action(), 0..5),
    ) {
        let world = copy_template();
        user_actions.iter().for_each(|action| apply(&world, action));
        let before = snapshot(&world);
        let point = world.run_task(&any_change(), || {
            agent_actions.iter().for_each(|action| apply(&world, action));
            // A new ignored file is not examined.
            if !before.tree.contains_key(Path::new("note.o")) {
                remove(&world.tree.join("note.o"));
            }
        });
        let after = snapshot(&world);
        later_actions.iter().for_each(|action| apply(&world, action));
        if !before.tree.contains_key(Path::new("note.o")) {
            remove(&world.tree.join("note.o"));
        }
        let (now, head) = (snapshot(&world), heads(&world));
        let undo = match world.restore_task_changes(&point) {
            Ok((_, Some(undo))) => undo,
            Ok((_, None)) | Err(RestoreError::PathBlocked { .. }) => {
                prop_assert_eq!(&snapshot(&world), &now, "a refused restore changes nothing");
                prop_assert!(now != after, "without later changes nothing overlaps");
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let result = snapshot(&world);
        check_tree(&before.tree, &after.tree, &now.tree, &result.tree)?;
        let (was, then, is, then_is) = (entries(&before), entries(&after), entries(&now), entries(&result));
        for path in was.keys().chain(then.keys()).chain(is.keys()).chain(then_is.keys()) {
            let states = [&was, &then, &is, &then_is].map(|index| index.get(path));
            if states[0] == states[1] {
                prop_assert!(states[3] == states[2], "the entry of {path:?} stays: {states:?}");
            } else if states[1] == states[2] {
                prop_assert!(states[3] == states[0], "the entry of {path:?} is reverted: {states:?}");
            }
        }
        prop_assert_eq!(&heads(&world), &head, "HEAD stays");
        let (plan, _) = world.undo(&undo).unwrap();
        prop_assert_eq!(&snapshot(&world), &now, "undone: {:?}", plan);
    }

    #[test]
    fn an_undo_of_a_whole_restore_is_exact_and_leaves_later_changes(
        agent_actions in proptest::collection::vec(action(), 1..8),
        later_actions in proptest::collection::vec(action(), 0..3),
    ) {
        let world = copy_template();
        let point = world.create_point();
        agent_actions.iter().for_each(|action| apply(&world, action));
        remove(&world.tree.join("note.o"));
        let before = snapshot(&world);
        let (_, undo) = match world.restore(&point, false) {
            Err(RestoreError::PathBlocked { .. }) => return Ok(()),
            restored => restored.unwrap(),
        };
        let after = snapshot(&world);
        later_actions.iter().for_each(|action| apply(&world, action));
        remove(&world.tree.join("note.o"));
        let now = snapshot(&world);
        match world.undo(&undo) {
            Ok((_, Some(_))) => {
                let result = snapshot(&world);
                check_tree(&before.tree, &after.tree, &now.tree, &result.tree)?;
                prop_assert!(now != after || result == before, "{before:?} {result:?}");
            }
            Ok((_, None)) | Err(RestoreError::PathBlocked { .. }) => {
                prop_assert_eq!(&snapshot(&world), &now, "a refused undo changes nothing");
                prop_assert!(now != after, "without later changes nothing overlaps");
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    #[test]
    fn edits_of_distant_lines_never_overlap(task in edits(0), user in edits(2)) {
        let world = World::new();
        let text = |edits: &[&BTreeMap<usize, String>]| {
            let line = |n| edits.iter().rev().find_map(|edits| edits.get(&n).cloned());
            (0..40).map(|n| line(n).unwrap_or_else(|| format!("line {n}\n"))).collect::<String>()
        };
        world.write("a", text(&[]));
        let point = world.run_task(&any_change(), || world.write("a", text(&[&task])));
        world.write("a", text(&[&task, &user]));
        let (plan, undo) = world.restore_task_changes(&point).unwrap();
        prop_assert!(undo.is_some(), "{plan:?}");
        prop_assert_eq!(world.read("a").unwrap(), text(&[&user]));
    }
}

/// Replaced, deleted and added lines, four lines apart from each other.
fn edits(offset: usize) -> impl Strategy<Value = BTreeMap<usize, String>> {
    let text = prop_oneof![Just(String::new()), "[a-z]{1,8}\n", "[a-z]{1,8}\n[a-z\\r]{1,8}\n"];
    proptest::collection::btree_map((0..10_usize).prop_map(move |n| n * 4 + offset), text, 0..5)
}
