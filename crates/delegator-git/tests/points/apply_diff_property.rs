//! Random edits of a task and of a user: applying the task's diff gives the three-way merge or changes
//! nothing.

use std::collections::BTreeMap;
use std::fs;

use delegator_git::{ApplyError, Conflict, ConflictReason};
use proptest::prelude::*;

use crate::apply_diff::Files;
use crate::world::{REFERENCE, World, is_already_applied};

/// File contents by name. A small alphabet, so that lines repeat and edits collide.
type Contents = BTreeMap<&'static str, Vec<u8>>;

const NAMES: [&str; 4] = ["one", "two", "dir/three", "dir/deep/four"];

#[derive(Debug, Clone)]
enum RandomEdit {
    Replace { at: usize, line: u8 },
    Insert { at: usize, line: u8 },
    Drop { at: usize },
    Remove,
    Create { lines: Vec<u8> },
    TrimEnd,
}

fn edits() -> impl Strategy<Value = Vec<(usize, RandomEdit)>> {
    let edit = prop_oneof![
        6 => (0..12_usize, 0..5_u8).prop_map(|(at, line)| RandomEdit::Replace { at, line }),
        4 => (0..12_usize, 0..5_u8).prop_map(|(at, line)| RandomEdit::Insert { at, line }),
        3 => (0..12_usize).prop_map(|at| RandomEdit::Drop { at }),
        1 => Just(RandomEdit::Remove),
        2 => proptest::collection::vec(0..5_u8, 0..4).prop_map(|lines| RandomEdit::Create { lines }),
        1 => Just(RandomEdit::TrimEnd),
    ];
    proptest::collection::vec((0..NAMES.len(), edit), 0..5)
}

fn start() -> impl Strategy<Value = Contents> {
    proptest::collection::vec(
        proptest::option::weighted(0.8, proptest::collection::vec(0..5_u8, 0..14)),
        NAMES.len(),
    )
    .prop_map(|files| {
        let present = NAMES.into_iter().zip(files).filter_map(|(name, lines)| Some((name, lines?)));
        present.map(|(name, lines)| (name, text(&lines))).collect()
    })
}

fn text(lines: &[u8]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

fn edited(before: &Contents, edits: &[(usize, RandomEdit)]) -> Contents {
    let mut after = before.clone();
    for (file, edit) in edits {
        let name = NAMES[*file];
        let Some(content) = after.get(name) else {
            if let RandomEdit::Create { lines } = edit {
                after.insert(name, text(lines));
            }
            continue;
        };
        let mut lines: Vec<Vec<u8>> =
            content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        match edit {
            RandomEdit::Replace { at, line } if count > 0 => lines[at % count] = text(&[*line]),
            RandomEdit::Insert { at, line } => lines.insert(at % (count + 1), text(&[*line])),
            RandomEdit::Drop { at } if count > 0 => drop(lines.remove(at % count)),
            RandomEdit::TrimEnd if count > 0 => {
                lines[count - 1].pop();
            }
            RandomEdit::Remove => {
                after.remove(name);
                continue;
            }
            _ => {}
        }
        after.insert(name, lines.concat());
    }
    after
}

fn put(world: &World, contents: &Contents) {
    for name in NAMES {
        let _ = fs::remove_file(world.tree.join(name));
    }
    for (name, content) in contents {
        world.write(name, content);
    }
}

/// What a merge of one file gives; `None` for a conflict.
fn merged(
    world: &World,
    before: Option<&Vec<u8>>,
    after: Option<&Vec<u8>>,
    now: Option<&Vec<u8>>,
) -> Option<Option<Vec<u8>>> {
    if before == after || after == now {
        return Some(now.cloned());
    }
    if before == now {
        return Some(after.cloned());
    }
    let (Some(before), Some(after), Some(now)) = (before, after, now) else {
        // The task and the user both removed it.
        return None;
    };
    let file = |name: &str, content: &[u8]| {
        let path = world.root.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let names = [file("now", now), file("before", before), file("after", after)];
    let args = ["merge-file", "--quiet", &names[0], &names[1], &names[2]];
    let (clean, _) = world.run_git_in(&args, world.root.path());
    clean.then(|| Some(fs::read(&names[0]).unwrap()))
}

fn check(before: &Contents, task: &[(usize, RandomEdit)], user: &[(usize, RandomEdit)]) {
    let world = World::new();
    put(&world, before);
    world.git(&["add", "--all"]);
    world.commit("before");
    let (after, now) = (edited(before, task), edited(before, user));
    let diff = world.diff_with(&["--no-renames"], || put(&world, &after));
    put(&world, &now);
    let present: Files = world.files();
    let results: BTreeMap<&str, Option<Option<Vec<u8>>>> = NAMES
        .into_iter()
        .map(|name| (name, merged(&world, before.get(name), after.get(name), now.get(name))))
        .collect();
    let expected: Vec<&str> =
        results.iter().filter(|(_, result)| result.is_none()).map(|(name, _)| *name).collect();
    match world.apply_diff(&diff) {
        Err(ApplyError::EmptyDiff) => assert_eq!(before, &after),
        Err(ApplyError::Conflicts { conflicts }) => {
            let name = |found: &Conflict| String::from_utf8(found.path.clone()).unwrap();
            let names: Vec<String> = conflicts.iter().map(name).collect();
            assert!(
                expected.iter().all(|path| names.iter().any(|name| name == path)),
                "{names:?} {expected:?}"
            );
            for found in conflicts.iter().filter(|found| found.reason != ConflictReason::Ambiguous) {
                assert!(expected.contains(&name(found).as_str()), "{found}");
            }
            assert_eq!(world.files(), present);
            assert_eq!(world.stored_points(), []);
        }
        Err(error) => panic!("{error}"),
        Ok((report, point)) => {
            let is_present = |name: &&str| report.already_applied.iter().any(|path| path == name.as_bytes());
            assert!(expected.iter().all(is_present), "{expected:?}");
            for (name, result) in results {
                let result = result.unwrap_or_else(|| now.get(name).cloned());
                assert_eq!(fs::read(world.tree.join(name)).ok(), result, "{name}");
            }
            let mut files = world.files();
            files.retain(|name, _| !NAMES.iter().any(|known| known.as_bytes() == name));
            assert!(files.iter().all(|(name, file)| present.get(name) == Some(file)), "others are untouched");
            assert_eq!(files.len(), 3);
            let again = world.prepare_diff(&diff, None).unwrap().report;
            let is_ambiguous = again.conflicts.iter().all(|found| found.reason == ConflictReason::Ambiguous);
            assert!(is_already_applied(&again) || (!again.conflicts.is_empty() && is_ambiguous), "{again:?}");
            if let Some(point) = point {
                assert_eq!(point.reference, REFERENCE);
                world.undo(&point).unwrap();
                assert_eq!(world.files(), present, "and can be restored");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applying_a_diff_gives_the_three_way_merge_or_nothing(
        before in start(),
        task in edits(),
        user in edits(),
    ) {
        check(&before, &task, &user);
    }
}
