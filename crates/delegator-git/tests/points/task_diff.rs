//! The diff of a task has exactly what its agent changed: applied to the state before, it gives the state
//! after.
//!
//! `PROPTEST_CASES` sets the number of cases, `PROPTEST_RNG_SEED` the seed.

use std::os::unix::fs::symlink;

use delegator_git::{
    AgentChanges, ApplyError, ChangeKind, ConflictReason, DiffPaths, HunkRange, LeftOutReason, RestoreError,
    RestorePoint, TreeDiff, diff_of_task, diff_until_now, display_path, drop_point, parse_unified_diff,
};
use proptest::prelude::*;

use crate::random_trees::{RandomTree, TreeEdit, edited, random_tree, tree_edits};
use crate::world::{REFERENCE, World, apply};

fn any_change() -> AgentChanges {
    AgentChanges { ran_commands: true, moved_head: true, ..AgentChanges::default() }
}

#[track_caller]
fn task_diff(world: &World, point: &RestorePoint) -> TreeDiff {
    let found =
        diff_of_task(&world.runner(), point, DiffPaths::Relative, &world.temp_dir()).unwrap().unwrap();
    assert_eq!(std::fs::read_dir(world.temp_dir()).unwrap().count(), 0, "no temporary files are left");
    found
}

fn paths(diff: &[u8]) -> Vec<String> {
    parse_unified_diff(diff).iter().map(|file| display_path(&file.path)).collect()
}

#[test]
fn the_diff_has_what_the_agent_changed_and_nothing_else() {
    let world = World::new();
    world.write("dirty", "before the task\n");
    world.write("large", "x\n".repeat(3 << 20));
    let unattributed = [b"user".to_vec()].into();
    let agent = AgentChanges { unattributed, ..any_change() };
    let point = world.run_task(&agent, || {
        world.write("a", "task\n");
        world.write("dirty", "after the task\n");
        world.write("new/text", "one\ntwo\n");
        world.write("new/binary", b"\0\x01");
        world.write("new/large", vec![0; 5 << 20]);
        world.write("large", "y\n".repeat(3 << 20));
        world.write("user", "not the agent's\n");
        symlink("a", world.tree.join("link")).unwrap();
        world.remove("b");
        world.git(&["add", "a"]);
        world.commit("of the agent");
    });
    world.write("a", "later\n");
    world.write("dirty", "later\n");
    world.git(&["gc", "--quiet", "--prune=now"]);
    let found = task_diff(&world, &point);
    let diff = found.diff.bytes();
    assert_eq!(paths(diff), ["a", "b", "dirty", "link", "new/binary", "new/text"]);
    let text = String::from_utf8_lossy(diff);
    assert!(text.contains("-before the task\n+after the task\n") && !text.contains("later"), "{text}");
    assert_eq!(found.unattributed, ["user"]);
    let left_out: Vec<_> = found.left_out.iter().map(|file| (file.path.as_str(), file.reason)).collect();
    assert_eq!(left_out, [("large", LeftOutReason::NoContent), ("new/large", LeftOutReason::NoContent)]);

    let absolute = diff_of_task(&world.runner(), &point, DiffPaths::Absolute, &world.temp_dir());
    let absolute = paths(absolute.unwrap().unwrap().diff.bytes());
    assert_eq!(absolute[0], world.tree.join("a").display().to_string());

    drop_point(&world.runner(), &point).unwrap();
    let error = diff_of_task(&world.runner(), &point, DiffPaths::Relative, &world.temp_dir()).unwrap_err();
    assert!(matches!(error, RestoreError::PointMissing { .. }), "{error}");
}

#[test]
fn without_the_state_after_the_task_there_is_only_a_diff_to_the_present_state() {
    let world = World::new();
    world.write("untracked", "before\n");
    let point = world.create_point();
    world.write("a", "now\n");
    world.write("new", "now\n");
    std::fs::rename(world.tree.join("untracked"), world.tree.join("moved")).unwrap();
    let (git, temp) = (world.runner(), world.temp_dir());
    assert!(diff_of_task(&git, &point, DiffPaths::Relative, &temp).unwrap().is_none());
    let found = diff_until_now(&git, &point, DiffPaths::Relative, &temp).unwrap();
    let files = parse_unified_diff(found.diff.bytes());
    assert_eq!(paths(found.diff.bytes()), ["a", "moved", "new"]);
    assert_eq!(files[1].kind, ChangeKind::Renamed { from: b"untracked".to_vec() });
    assert_eq!((found.left_out, found.unattributed), (Vec::new(), Vec::new()));
}

/// git lists as many files, and as many lines of each, as the parser finds; together the parts are the whole
/// diff.
fn check_parser(world: &World, diff: &[u8]) {
    let files = parse_unified_diff(diff);
    let patch = world.root.path().join("patch");
    std::fs::write(&patch, diff).unwrap();
    let listed = world.git(&["apply", "--numstat", "--unsafe-paths", "-z", &patch.display().to_string()]);
    let mut counted: Vec<(String, u64, u64)> = Vec::new();
    for record in listed.split('\0').filter(|record| !record.is_empty()) {
        let fields: Vec<&str> = record.splitn(3, '\t').collect();
        let number = |field: &str| field.parse::<u64>().unwrap_or_default();
        let (added, deleted, path) = (number(fields[0]), number(fields[1]), fields[2].to_owned());
        match counted.last_mut().filter(|(last, ..)| *last == path) {
            // A file that becomes a link is listed as deleted and created.
            Some(last) => (last.1, last.2) = (last.1 + added, last.2 + deleted),
            None => counted.push((path, added, deleted)),
        }
    }
    let parsed = files.iter().map(|file| {
        let (added, deleted) = file.line_counts();
        (display_path(&file.path), added, deleted)
    });
    assert_eq!(parsed.collect::<Vec<_>>(), counted);
    assert_eq!(files.iter().flat_map(|file| file.bytes).copied().collect::<Vec<u8>>(), diff);
    for file in files.iter().filter(|file| !file.is_binary) {
        let mut hunks = Vec::new();
        for hunk in &file.hunks {
            let range = |start: u64, lines: u64| match lines {
                1 => start.to_string(),
                _ => format!("{start},{lines}"),
            };
            let (old, new) = (
                range(hunk.range.old_start, hunk.range.old_lines),
                range(hunk.range.new_start, hunk.range.new_lines),
            );
            let space = if hunk.header.is_empty() { "" } else { " " };
            hunks.extend(format!("@@ -{old} +{new} @@{space}").into_bytes());
            hunks.extend_from_slice(hunk.header);
            hunks.push(b'\n');
            hunks.extend(hunk.lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()));
        }
        // A link that becomes a file is deleted in one part and created in another, which has no hunk if it is empty.
        let parts = file.bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"diff --git "));
        let is_replaced = parts.count() > 1;
        assert!(is_replaced || file.bytes.ends_with(&hunks), "{}", String::from_utf8_lossy(&hunks));
    }
}

fn check(before: &RandomTree, edits: &[TreeEdit], committed: bool) {
    let world = World::unborn();
    world.commit("empty");
    world.put_tree(before);
    if committed {
        world.git(&["add", "--all"]);
        world.commit("before");
    }
    let files_before = world.files();
    let after = edited(before, edits);
    let point = world.run_task(&any_change(), || world.put_tree(&after));
    let files_after = world.files();
    let found = task_diff(&world, &point);
    let live = diff_until_now(&world.runner(), &point, DiffPaths::Relative, &world.temp_dir()).unwrap();
    assert_eq!(live.diff, found.diff);
    let diff = found.diff.bytes();
    assert_eq!((found.left_out, found.unattributed), (Vec::new(), Vec::new()));
    assert_eq!(diff.is_empty(), before == &after);
    if diff.is_empty() {
        return;
    }
    check_parser(&world, diff);

    world.put_tree(before);
    assert_eq!(world.files(), files_before);
    let prepared = world.prepare_diff(diff, None).unwrap();
    match apply(prepared, "refs/mcp-delegator/applied") {
        Ok(applied) => {
            assert_eq!(world.files(), files_after, "applying gives the state after the task");
            let (plan, undo) = world.undo(&applied.unwrap()).unwrap();
            assert!(undo.is_some(), "{plan:?}");
        }
        Err(ApplyError::Conflicts { conflicts }) => {
            // Files that change places look the same before and after.
            let is_ambiguous = conflicts.iter().all(|found| found.reason == ConflictReason::Ambiguous);
            assert!(is_ambiguous, "{conflicts:?}");
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(
        world.files(),
        files_before,
        "a restore of what was applied, or a conflict, leaves the state before"
    );
}

/// Applies the diff of a task to a tree that the user has changed, too.
fn check_with_user(before: &RandomTree, task: &[TreeEdit], user: &[TreeEdit]) {
    let world = World::unborn();
    world.put_tree(before);
    world.git(&["add", "--all"]);
    world.commit("before");
    let after = edited(before, task);
    let point = world.run_task(&any_change(), || world.put_tree(&after));
    let found = task_diff(&world, &point);
    drop_point(&world.runner(), &point).unwrap();
    world.put_tree(&edited(before, user));
    let present = world.files();
    match world.prepare_diff(found.diff.bytes(), None).and_then(|prepared| apply(prepared, REFERENCE)) {
        Ok(None) | Err(ApplyError::EmptyDiff) => {}
        Ok(Some(applied)) => {
            let (plan, undo) = world.undo(&applied).unwrap();
            assert!(undo.is_some(), "{plan:?}");
        }
        Err(ApplyError::Conflicts { conflicts }) => {
            assert_eq!(world.stored_points(), []);
            let files = parse_unified_diff(found.diff.bytes());
            for conflict in conflicts {
                let mut sections = files.iter().filter(|file| {
                    file.path == conflict.path || file.old_path() == Some(conflict.path.as_slice())
                });
                let is_hunk = |range: &HunkRange| {
                    let starts =
                        sections.clone().flat_map(|file| &file.hunks).map(|hunk| hunk.range.old_start);
                    starts.into_iter().any(|start| start == range.old_start)
                };
                assert!(conflict.hunks.iter().all(is_hunk), "{conflict}");
                assert!(sections.next().is_some(), "{conflict}");
            }
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(world.files(), present, "a conflict changes nothing, and an applied diff can be reverted");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_applied_to_the_state_before_gives_the_state_after(
        before in random_tree(),
        edits in tree_edits(),
        committed in any::<bool>(),
    ) {
        check(&before, &edits, committed);
    }

    #[test]
    fn a_diff_applied_to_an_edited_tree_can_be_reverted_or_changes_nothing(
        before in random_tree(),
        task in tree_edits(),
        user in tree_edits(),
    ) {
        check_with_user(&before, &task, &user);
    }
}
