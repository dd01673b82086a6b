//! A process that is killed while it applies a diff.

#![expect(clippy::disallowed_methods, reason = "the test starts itself as the process to kill")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use delegator_git::{ApplyError, ApplyRequest, Git, WriteError, prepare_diff, recover_interrupted};

use crate::world::{GIT, REFERENCE, World, apply, is_already_applied};

const ROOT: &str = "APPLY_DIFF_TEST_ROOT";
const FILES: usize = 150;

/// The process to kill. Does nothing in an ordinary test run.
#[test]
fn apply_in_a_process_of_its_own() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let root = Path::new(&root);
    let home = root.join("home");
    let git = Git::new(PathBuf::from(GIT), [(OsStr::new("HOME"), home.as_os_str())], Duration::from_secs(60));
    let diff = fs::read(root.join("diff")).unwrap();
    let request = ApplyRequest { work_tree: &root.join("tree"), diff: &diff, base_commit: None, store: None };
    apply(prepare_diff(&git, request, &root.join("temp")).unwrap(), REFERENCE).unwrap();
}

fn name(number: usize) -> String {
    format!("dir{}/file{number}", number % 7)
}

fn moved(number: usize) -> String {
    format!("moved/file{number}")
}

/// Starts the process and kills it when `is_reached` is true, or after it ended.
fn kill_when(world: &World, is_reached: impl Fn() -> bool) {
    let root = world.root.path().canonicalize().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "apply_diff_crash::apply_in_a_process_of_its_own"])
        .env(ROOT, root)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !is_reached() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
}

/// A restore locks the ref of its undo point, but the recovery knows only the ref of the restore point.
#[test]
fn locks_that_a_killed_git_left_on_refs_of_the_point_are_removed() {
    let world = World::new();
    let (started, refs) = (".git/mcp-delegator-apply/started", ".git/refs/mcp-delegator");
    let locks =
        [format!("{REFERENCE}.lock"), format!("{REFERENCE}.undo-1.lock")].map(|name| format!(".git/{name}"));
    let (earlier, of_another) = (format!(".git/{REFERENCE}.undo-2.lock"), format!("{refs}/T-other.lock"));
    world.write(&earlier, "");
    fs::File::open(world.tree.join(&earlier)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    world.write(started, "");
    locks.iter().chain([&of_another]).for_each(|lock| world.write(lock, ""));
    assert_eq!(recover_interrupted(&world.runner(), &world.tree, REFERENCE).unwrap(), None);
    let exists = |lock: &String| world.tree.join(lock).exists();
    assert_eq!(
        (locks.each_ref().map(exists), exists(&earlier), exists(&of_another)),
        ([false; 2], true, true)
    );
}

#[test]
fn a_killed_process_leaves_old_or_new_files_and_the_diff_can_be_completed_or_restored() {
    let world = World::new();
    (0..FILES).for_each(|number| world.write(&name(number), format!("old\n{number}\n")));
    world.git(&["add", "--all"]);
    world.commit("files");
    // Every third file is moved, the others are changed.
    let diff = world.diff_of(|| {
        fs::create_dir(world.tree.join("moved")).unwrap();
        for number in 0..FILES {
            match number % 3 {
                0 => fs::rename(world.tree.join(name(number)), world.tree.join(moved(number))).unwrap(),
                _ => world.write(&name(number), format!("new\n{number}\n")),
            }
        }
    });
    let old_files = world.files();
    assert!(world.prepare_diff(&diff, None).unwrap().report.conflicts.is_empty());
    let has_staged_files = || world.tree.join(".git/mcp-delegator-apply/staging/new").exists();
    for (round, changed) in [None, Some(name(1)), Some(moved(75))].into_iter().enumerate() {
        kill_when(&world, || match &changed {
            None => has_staged_files(),
            Some(path) => {
                world.read(path).is_some_and(|text| text.starts_with("new") || path.starts_with("moved"))
            }
        });
        for number in 0..FILES {
            let (path, content) = (name(number), |word: &str| Some(format!("{word}\n{number}\n")));
            match number % 3 {
                0 => {
                    let found = [world.read(&path), world.read(&moved(number))];
                    assert!(found.contains(&content("old")), "{path} is at one of its names");
                    assert!(found.into_iter().flatten().all(|text| Some(text) == content("old")), "{path}");
                }
                _ => assert!([content("old"), content("new")].contains(&world.read(&path)), "{path}"),
            }
        }
        assert_eq!(
            world.git(&["diff", "--cached", "--name-only"]),
            "",
            "the index is as before, and not locked"
        );
        // The next run takes the first one back, or completes it. Its restore point then has the state before
        // both.
        let recovered = recover_interrupted(&world.runner(), &world.tree, REFERENCE).unwrap();
        assert_eq!(recovered.as_ref().map_or(&[][..], |recovery| &recovery.edited), [] as [String; 0]);
        if recovered.is_some_and(|recovery| !recovery.is_completed) {
            assert_eq!((world.files(), world.stored_points()), (old_files.clone(), vec![]));
        }
        apply(world.prepare_diff(&diff, None).unwrap(), REFERENCE).unwrap();
        assert!(is_already_applied(&world.prepare_diff(&diff, None).unwrap().report));
        let points = world.stored_points();
        let first = points.iter().find(|point| point.reference == REFERENCE).unwrap();
        match round {
            0 => drop(world.restore(first, false).unwrap()),
            _ => drop(world.restore_task_changes(first).unwrap().1.unwrap()),
        }
        assert_eq!(world.files(), old_files);
        for point in world.stored_points() {
            delegator_git::drop_point(&world.runner(), &point).unwrap();
        }
    }
}

#[test]
fn the_journal_of_another_version_and_the_files_beside_it_stay() {
    let world = World::new();
    let diff = world.diff_of(|| world.write("a", "x\n"));
    world.write(".git/mcp-delegator-apply/journal", r#"{"version": 2}"#);
    world.write(".git/mcp-delegator-apply/staging/old/0", "the only copy\n");
    let refused = apply(world.prepare_diff(&diff, None).unwrap(), REFERENCE);
    assert_eq!(world.read("a").as_deref(), Some("a1\n"));
    assert!(matches!(&refused, Err(ApplyError::Write(WriteError::ForeignJournal { .. }))), "{refused:?}");
    assert_eq!(world.read(".git/mcp-delegator-apply/staging/old/0").as_deref(), Some("the only copy\n"));
}
