//! Stores with many restore points: their packs are merged, and listing them takes one git process.

use std::fs;
use std::path::{Path, PathBuf};

use delegator_git::{
    AgentChanges, Limits, RestorePoint, create_restore_point, delete_dropped_objects, drop_point,
    merge_packs, stored_points,
};

use crate::git_processes::CountingGit;
use crate::world::World;

fn name(number: usize) -> String {
    format!("refs/mcp-delegator/T-local-{number:05}")
}

fn pack_dir(world: &World) -> PathBuf {
    world.tree.join(".git/mcp-delegator/objects/pack")
}

/// The names of the packs in the store.
fn packs(world: &World) -> Vec<String> {
    let names = fs::read_dir(pack_dir(world)).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".pack")).collect()
}

/// A restore point with an untracked file of its own content, and a state after the task.
fn create(world: &World, number: usize) -> RestorePoint {
    world.write("untracked", format!("before {number}\n"));
    let (git, limits) = (world.runner(), Limits::default());
    let created = create_restore_point(&git, &world.tree, &world.temp_dir(), &name(number), limits);
    let created = created.unwrap().unwrap();
    world.write("untracked", format!("after {number}\n"));
    let baseline = created.baseline.unwrap();
    let compared = baseline.compare(limits, 0).unwrap();
    let agent = AgentChanges { ran_commands: true, ..AgentChanges::default() };
    assert!(baseline.store_end_state(&compared, &agent, limits.time).unwrap());
    created.point
}

/// A point whose packs can be copied, also after they are merged.
struct Original {
    point: RestorePoint,
    saved: PathBuf,
}

impl Original {
    fn create(world: &World, number: usize) -> Original {
        let point = create(world, number);
        let saved = world.root.path().join(format!("saved-{number}"));
        fs::create_dir(&saved).unwrap();
        let original = Original { point, saved };
        for file in files(&pack_dir(world)).filter(|path| file_name(path).starts_with(original.name())) {
            fs::hard_link(&file, original.saved.join(file_name(&file))).unwrap();
        }
        original
    }

    fn name(&self) -> &str {
        self.point.reference.rsplit('/').next().unwrap()
    }

    /// Links its packs into the store again, for a point of another name.
    fn add_packs(&self, world: &World, name: &str) {
        for file in files(&self.saved) {
            let new = file_name(&file).replacen(self.name(), name, 1);
            fs::hard_link(&file, pack_dir(world).join(new)).unwrap();
        }
    }

    /// Adds equal restore points with packs of their own.
    fn add_copies(&self, world: &World, numbers: std::ops::Range<usize>) {
        for reference in numbers.map(name) {
            self.add_packs(world, reference.rsplit('/').next().unwrap());
            let file = world.tree.join(".git/mcp-delegator").join(reference);
            fs::write(file, format!("{}\n", self.point.commit)).unwrap();
        }
    }
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[track_caller]
fn assert_restorable(world: &World, point: &RestorePoint, number: usize) {
    world.write("untracked", format!("after {number}\n"));
    let (plan, undo) = world.restore_task_changes(point).unwrap();
    drop_point(&world.runner(), &undo.unwrap()).unwrap();
    assert_eq!(plan.write, ["untracked"]);
    assert_eq!(world.read("untracked").unwrap(), format!("before {number}\n"));
}

#[test]
fn many_packs_become_few_and_a_listing_takes_the_same_processes() {
    let world = World::new();
    let original = Original::create(&world, 0);
    let counting = CountingGit::new(&world);
    let list = || {
        let stored = stored_points(&counting.runner(), &world.tree).unwrap().unwrap();
        (stored, counting.calls())
    };
    let (_, calls_for_one) = list();
    assert!(!merge_packs(&world.runner(), &original.point).unwrap(), "there are few");
    original.add_copies(&world, 1..2_000);
    assert_eq!(packs(&world).len(), 4_000);
    let (stored, calls) = list();
    assert_eq!((stored.len(), &calls), (2_000, &calls_for_one));
    assert!(merge_packs(&world.runner(), &original.point).unwrap());
    assert_eq!(packs(&world).len(), 1);
    let (merged, calls) = list();
    assert_eq!((merged.len(), &calls), (2_000, &calls_for_one));
    for (before, after) in stored.iter().zip(&merged) {
        assert_eq!((&before.point, before.bytes), (&after.point, after.bytes));
    }
    // A task starts no more processes than in an empty store.
    let create_in = |world: &World, counting: &CountingGit| {
        world.write("untracked", "other\n");
        let (git, reference) = (counting.runner(), name(5_000));
        create_restore_point(&git, &world.tree, &world.temp_dir(), &reference, Limits::default()).unwrap();
        counting.calls()
    };
    let empty = World::new();
    let sorted = |mut calls: Vec<String>| {
        calls.sort();
        calls
    };
    // Some run at the same time.
    let calls = create_in(&world, &counting);
    assert_eq!(sorted(calls), sorted(create_in(&empty, &CountingGit::new(&empty))));
}

#[test]
fn merged_restore_points_are_restored_and_dropped() {
    let world = World::new();
    let original = Original::create(&world, 0);
    let points: Vec<RestorePoint> = (1..3).map(|number| create(&world, number)).collect();
    original.add_copies(&world, 10..70);
    assert!(merge_packs(&world.runner(), &points[0]).unwrap());
    assert_restorable(&world, &original.point, 0);
    for (point, number) in points.iter().zip(1..) {
        assert_restorable(&world, point, number);
    }
    let blob = world.git_in_store(&["rev-parse", &format!("{}:tree/untracked", points[0].commit)]);
    drop_point(&world.runner(), &points[0]).unwrap();
    assert!(delete_dropped_objects(&world.runner(), &points[0]).unwrap());
    let store = format!("--git-dir={}", world.tree.join(".git/mcp-delegator").display());
    let exists = world.run_git_in(&[&store, "cat-file", "-e", blob.trim()], &world.tree).0;
    assert!(!exists, "its content is deleted");
    assert!(!delete_dropped_objects(&world.runner(), &points[1]).unwrap(), "nothing is left to delete");
    assert_restorable(&world, &points[1], 2);
}

#[test]
fn an_interrupted_merge_loses_nothing() {
    let world = World::new();
    let original = Original::create(&world, 0);
    original.add_copies(&world, 1..60);
    assert!(merge_packs(&world.runner(), &original.point).unwrap());
    // As if it had ended before it wrote the list, and before it deleted the old packs.
    fs::remove_dir_all(world.tree.join(".git/mcp-delegator/merged")).unwrap();
    original.add_packs(&world, original.name());
    original.add_copies(&world, 1..60);
    assert_restorable(&world, &original.point, 0);
    assert!(merge_packs(&world.runner(), &original.point).unwrap());
    assert_restorable(&world, &original.point, 0);
    // Many merged packs are merged again, with what their lists name.
    for round in 1..19 {
        let other = Original::create(&world, round * 1_000);
        other.add_copies(&world, round * 1_000 + 1..round * 1_000 + 60);
        assert!(merge_packs(&world.runner(), &other.point).unwrap());
    }
    assert!(packs(&world).len() < 18, "{:?}", packs(&world));
    assert_restorable(&world, &original.point, 0);
}

#[test]
fn restore_points_are_created_while_others_are_merged() {
    let world = World::new();
    let original = Original::create(&world, 0);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            for round in 1..6 {
                original.add_copies(&world, round * 1_000..round * 1_000 + 60);
                // A process that another thread has just started holds a copy of the lock of the merge before until
                // it runs its program.
                while !merge_packs(&world.runner(), &original.point).unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        let created: Vec<RestorePoint> = (1..8).map(|number| create(&world, number)).collect();
        merging.join().unwrap();
        for (number, point) in created.iter().enumerate() {
            assert_restorable(&world, point, number + 1);
        }
    });
}
