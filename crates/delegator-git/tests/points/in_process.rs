//! Small work trees are examined without git where that is exact: fewer processes, and the same answers as git's.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use delegator_git::{AgentChanges, Baseline, Comparison, CreatedPoint, Git, Limits, create_restore_point};
use proptest::prelude::*;
use proptest::sample::select;

use crate::comparing::{compare, describe, set};
use crate::world::{GIT, REFERENCE, World};

/// A script in place of git that logs the command of each call.
pub(crate) struct CountingGit {
    program: PathBuf,
    log: PathBuf,
    home: PathBuf,
}

impl CountingGit {
    pub(crate) fn new(world: &World) -> CountingGit {
        let root = world.root.path();
        let (program, log) = (root.join("git"), root.join("calls"));
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec {GIT} \"$@\"\n", log.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        CountingGit { program, log, home: world.home() }
    }

    pub(crate) fn runner(&self) -> Git {
        runner(&self.program, &self.home)
    }

    /// The commands since the last call.
    pub(crate) fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let _ = fs::remove_file(&self.log);
        log.lines().map(command_name).collect()
    }
}

/// The first word that is neither an option nor the value of one.
fn command_name(call: &str) -> String {
    let mut words = call.split(' ');
    while let Some(word) = words.next() {
        match word {
            "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            name => return name.to_owned(),
        }
    }
    call.to_owned()
}

fn runner(program: &Path, home: &Path) -> Git {
    Git::new(program.to_owned(), [(OsStr::new("HOME"), home.as_os_str())], Duration::from_secs(120))
}

/// Runs git with a setting that has its default value, in words that are not recognized: git examines everything.
fn git_only(world: &World) -> Git {
    let home = world.root.path().join("other home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join(".gitconfig"), "[core]\n\ttrustctime = yes\n").unwrap();
    runner(Path::new(GIT), &home)
}

fn take(world: &World, git: &Git) -> Baseline {
    Baseline::take(git, &world.tree, &world.temp_dir(), Limits::default()).unwrap().unwrap()
}

fn create(world: &World, git: &Git, reference: &str) -> CreatedPoint {
    create_restore_point(git, &world.tree, &world.temp_dir(), reference, Limits::default()).unwrap().unwrap()
}

#[test]
fn a_read_only_task_needs_two_git_processes_before_and_none_after() {
    let world = World::new();
    let git = CountingGit::new(&world);
    let clean = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config"], "every file is in the index");
    assert_eq!(describe(&compare(&clean)), set([]));
    assert_eq!(git.calls(), [""; 0]);
    world.write("target/debug/x", "built");
    world.write("x.o", "ignored");
    world.write(".gitignore", "*.o\nbuild/\n/target/\n");
    world.git(&["add", ".gitignore"]);
    world.commit("ignore target");
    let with_ignored = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config", "check-ignore"]);
    assert_eq!(describe(&compare(&with_ignored)), set([]));
    assert_eq!(git.calls(), [""; 0]);
    world.write("a", "dirty\n");
    world.write("untracked", "new\n");
    let dirty = take(&world, &git.runner());
    assert_eq!(git.calls(), ["config", "check-ignore", "update-index"]);
    assert_eq!(describe(&compare(&dirty)), set([]));
    assert_eq!(git.calls(), [""; 0]);
}

#[test]
fn a_writing_task_needs_two_git_processes_before_and_none_after() {
    let world = World::new();
    let git = CountingGit::new(&world);
    let created = create(&world, &git.runner(), REFERENCE);
    assert_eq!(git.calls(), ["config", "rev-parse"]);
    let baseline = created.baseline.unwrap();
    let compared = compare(&baseline);
    assert!(baseline.store_end_state(&compared, &AgentChanges::default(), Duration::from_secs(60)).unwrap());
    assert_eq!(git.calls(), [""; 0]);
    // The pack that was stored as it is has everything that a restore needs.
    world.write("a", "changed\n");
    world.remove("b");
    world.restore(&created.point, false).unwrap();
    assert_eq!((world.read("a").unwrap(), world.read("b").unwrap()), ("a1\n".to_owned(), "b1\n".to_owned()));
    world.git_in_store(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn an_object_that_the_repository_has_by_chance_is_stored_with_the_point() {
    let world = World::new();
    // Unreachable, and a part of every restore point: `git gc` may delete it.
    let empty = world.git(&["hash-object", "-w", "/dev/null"]).trim().to_owned();
    let point = world.create_point();
    world.git(&["prune", "--expire=now"]);
    assert_eq!(world.git_in_store(&["cat-file", "-t", &empty]).trim(), "blob");
    world.write("a", "changed\n");
    world.restore(&point, false).unwrap();
    assert_eq!(world.read("a").unwrap(), "a1\n");
}

/// Changes a file without changing its size or its modification time.
fn edit_in_the_same_moment(path: &Path, text: &str) {
    let before = fs::metadata(path).unwrap();
    assert_eq!(before.len(), text.len() as u64);
    fs::write(path, text).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(before.modified().unwrap()).unwrap();
}

#[test]
fn edits_in_the_moment_of_the_baseline_are_found() {
    let world = World::new();
    world.write("dirty", "1\n");
    let before = take(&world, &world.runner());
    edit_in_the_same_moment(&world.tree.join("a"), "A1\n");
    edit_in_the_same_moment(&world.tree.join("dirty"), "2\n");
    assert_eq!(describe(&compare(&before)), set(["M a +1 -1", "M dirty +1 -1"]));
}

#[test]
fn changes_outside_the_files_of_the_index_are_found() {
    let world = World::new();
    world.write("node_modules/x", "1\n");
    let before = take(&world, &world.runner());
    world.write("node_modules/y", "1\n");
    assert_eq!(describe(&compare(&before)), set(["A node_modules/y +1 -0"]), "the directory is not ignored");
    let excludes = world.home().join("excludes");
    fs::write(&excludes, "node_modules/\n").unwrap();
    fs::write(world.home().join(".gitconfig"), format!("[core]\n\texcludesFile = {}\n", excludes.display()))
        .unwrap();
    let before = take(&world, &world.runner());
    assert_eq!(describe(&compare(&before)), set([]));
    fs::write(&excludes, "NODE_modules/\n").unwrap();
    let after = describe(&compare(&before));
    assert_eq!(
        after,
        set(["A node_modules/x +1 -0", "A node_modules/y +1 -0"]),
        "it is not ignored any more"
    );
    world.write(".gitignore", ".env\n*.o\nnode_modules\n");
    world.write(".env", "1\n");
    let before = take(&world, &world.runner());
    world.write("node_modules/z", "ignored\n");
    world.write("new.o", "ignored\n");
    fs::create_dir_all(world.tree.join("empty/deep")).unwrap();
    assert_eq!(describe(&compare(&before)), set([]));
    world.write(".env", "22\n");
    assert_eq!(describe(&compare(&before)), set(["M .env"]), "an ignored file that existed before");
}

#[test]
fn the_head_of_every_kind_of_repository_is_read() {
    for (label, prepare) in [
        ("packed refs", ["pack-refs", "--all"].as_slice()),
        ("detached", &["switch", "--quiet", "--detach"]),
        ("a branch with folders", &["switch", "--quiet", "-c", "a/b.c"]),
        ("an odd branch", &["switch", "--quiet", "-c", "größe@x"]),
        ("no commit", &["switch", "--quiet", "--orphan", "new"]),
        ("a tag of the same name", &["tag", "main"]),
        ("a worktree configuration", &["config", "extensions.worktreeConfig", "true"]),
    ] {
        let world = World::new();
        world.git(prepare);
        let in_process = compare(&take(&world, &world.runner()));
        let by_git = compare(&take(&world, &git_only(&world)));
        assert_eq!(in_process, by_git, "{label}");
        let branch = world.run_git_in(&["symbolic-ref", "--quiet", "HEAD"], &world.tree);
        let branch = branch.0.then(|| branch.1.trim().to_owned());
        assert_eq!(in_process.head_after.unwrap().branch, branch, "{label}");
        let commit = world.run_git_in(&["rev-parse", "--verify", "--quiet", "HEAD"], &world.tree);
        let commit = commit.0.then(|| commit.1.trim().to_owned());
        assert_eq!(in_process.head_before.commit, commit, "{label}");
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Write(&'static str, u8),
    SameSize(&'static str, u8),
    Touch(&'static str),
    Chmod(&'static str, u32),
    Remove(&'static str),
    Rename(&'static str, &'static str),
    Link(&'static str),
    MakeDirectory(&'static str),
    MakeRepository(&'static str),
    Git(&'static [&'static str]),
}

/// Tracked files, untracked and ignored ones, some of which are directories of others.
const PATHS: [&str; 14] = [
    "a",
    "b",
    "d/x",
    "d/y",
    "d/e/z",
    "d",
    "new",
    "dir/new",
    "x.o",
    "build/y",
    "target/z",
    "d/target/z",
    ".gitignore",
    "d/.gitignore",
];

const COMMANDS: [&[&str]; 9] = [
    &["add", "--all"],
    &["commit", "--quiet", "--allow-empty", "-am", "more"],
    &["switch", "--quiet", "-c", "other"],
    &["switch", "--quiet", "--detach"],
    &["reset", "--quiet", "--hard"],
    &["rm", "--quiet", "--cached", "a"],
    &["update-index", "--assume-unchanged", "b"],
    &["update-index", "--skip-worktree", "d/x"],
    &["add", "--intent-to-add", "new"],
];

fn edit() -> impl Strategy<Value = Edit> {
    let path = || select(&PATHS[..]);
    prop_oneof![
        4 => (path(), 0..4_u8).prop_map(|(path, content)| Edit::Write(path, content)),
        3 => (path(), 0..4_u8).prop_map(|(path, content)| Edit::SameSize(path, content)),
        1 => path().prop_map(Edit::Touch),
        1 => (path(), select(&[0o644, 0o755, 0o600][..])).prop_map(|(path, mode)| Edit::Chmod(path, mode)),
        2 => path().prop_map(Edit::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Rename(from, to)),
        1 => path().prop_map(Edit::Link),
        1 => path().prop_map(Edit::MakeDirectory),
        1 => path().prop_map(Edit::MakeRepository),
        3 => select(&COMMANDS[..]).prop_map(Edit::Git),
    ]
}

/// Makes the edit, if it is possible.
fn make(world: &World, edit: &Edit) {
    let at = |path: &str| world.tree.join(path);
    let create_parent = |path: &str| drop(fs::create_dir_all(at(path).parent().unwrap()));
    // Some contents are ignore rules.
    let content = |number: u8| ["x*\n", "new\n", "1\n2\n", "d/\n"][usize::from(number)];
    let _ = match edit {
        Edit::Write(path, number) => {
            create_parent(path);
            fs::write(at(path), content(*number))
        }
        Edit::SameSize(path, number) => match fs::metadata(at(path)) {
            Ok(found) if found.is_file() => {
                let text = [b'0' + number; 4][..usize::try_from(found.len()).unwrap().min(4)].to_vec();
                fs::write(at(path), text)
            }
            _ => Ok(()),
        },
        Edit::Touch(path) => {
            let later = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            File::options().write(true).open(at(path)).and_then(|file| file.set_modified(later))
        }
        Edit::Chmod(path, mode) if !at(path).is_dir() => {
            fs::set_permissions(at(path), Permissions::from_mode(*mode))
        }
        Edit::Chmod(..) => Ok(()),
        Edit::Remove(path) if at(path).is_dir() => fs::remove_dir_all(at(path)),
        Edit::Remove(path) => fs::remove_file(at(path)),
        Edit::Rename(from, to) => {
            create_parent(to);
            fs::rename(at(from), at(to))
        }
        Edit::Link(path) => {
            create_parent(path);
            symlink("a", at(path))
        }
        Edit::MakeDirectory(path) => fs::create_dir_all(at(path)),
        Edit::MakeRepository(path) => {
            if fs::create_dir_all(at(path)).is_ok() {
                world.run_git_in(&["init", "--quiet"], &at(path));
            }
            Ok(())
        }
        Edit::Git(args) => {
            world.run_git_in(args, &world.tree);
            Ok(())
        }
    };
}

/// What a comparison reports, without the times of files that it did not read.
fn sorted(mut compared: Comparison) -> Comparison {
    compared.files.sort_by(|a, b| a.path.cmp(&b.path));
    compared.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    compared
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_git(
        setup in proptest::collection::vec(edit(), 0..8),
        work in proptest::collection::vec(edit(), 0..4),
    ) {
        let world = World::new();
        for path in ["d/x", "d/y", "d/e/z"] {
            world.write(path, path);
        }
        world.write(".gitignore", "*.o\nbuild/\ntarget/\n");
        world.git(&["add", "."]);
        world.commit("folders");
        setup.iter().for_each(|edit| make(&world, edit));
        let baselines = [world.runner(), git_only(&world)].map(|git| take(&world, &git));
        let points = [(world.runner(), REFERENCE), (git_only(&world), "refs/mcp-delegator/T-local-2")]
            .map(|(git, reference)| create(&world, &git, reference));
        let [in_process, by_git] = points.each_ref().map(|created| {
            let point = created.point.clone();
            (point.tree, point.index_tree, point.staged, point.modified, point.untracked, point.left_out)
        });
        prop_assert_eq!(in_process, by_git);
        work.iter().for_each(|edit| make(&world, edit));
        let [in_process, by_git] = baselines.each_ref().map(|baseline| sorted(compare(baseline)));
        prop_assert_eq!(in_process, by_git);
        let [in_process, by_git] =
            points.map(|created| sorted(compare(&created.baseline.unwrap())));
        prop_assert_eq!(in_process, by_git);
    }
}
