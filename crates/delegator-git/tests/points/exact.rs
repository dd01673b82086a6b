//! A restore is exact: for any state of the user and any changes by an agent, the state is restored, and
//! undoing the restore brings the agent's state back. The test compares every file with content and
//! permissions, every link and directory, and every index entry with stage and flags.
//!
//! `PROPTEST_CASES` sets the number of cases, `PROPTEST_RNG_SEED` the seed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::World;

/// Paths the actions work on; some are also directories, some are committed, one is ignored.
const FILES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"d",
    b"d/x",
    b"d/e/z",
    b"d/e",
    b"run.sh",
    b"sp ace",
    b"new\nline",
    b"\xff\xfe",
    b"Case",
    b"case",
    b"note.o",
    b"q/file",
];
const DIRECTORIES: [&[u8]; 6] = [b"empty", b"empty/deep", b"d/e", b"q", b"a", b"d/new"];
const FILE_MODES: [u32; 7] = [0o644, 0o600, 0o664, 0o755, 0o700, 0o640, 0o744];
const DIRECTORY_MODES: [u32; 4] = [0o755, 0o700, 0o775, 0o711];

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Write(&'static [u8], u8),
    /// Writes a file and adds it with `--intent-to-add`.
    IntendToAdd(&'static [u8], u8),
    Link(&'static [u8], &'static [u8]),
    Remove(&'static [u8]),
    Mode(&'static [u8], u32),
    MakeDirectory(&'static [u8]),
    RemoveDirectory(&'static [u8]),
    DirectoryMode(&'static [u8], u32),
    /// git with a path as its last argument.
    GitPath(&'static [&'static str], &'static [u8]),
    Git(&'static [&'static str]),
}

const ON_PATHS: [&[&str]; 12] = [
    &["add", "--force", "--"],
    &["add", "--intent-to-add", "--force", "--"],
    &["rm", "--cached", "-r", "--quiet", "--"],
    &["rm", "-r", "--force", "--quiet", "--"],
    &["update-index", "--skip-worktree", "--"],
    &["update-index", "--no-skip-worktree", "--"],
    &["update-index", "--assume-unchanged", "--"],
    &["update-index", "--no-assume-unchanged", "--"],
    &["update-index", "--chmod=+x", "--"],
    &["checkout", "--quiet", "HEAD", "--"],
    &["mv", "--force", "b"],
    &["mv", "--force", "d/x"],
];
const ON_ALL: [&[&str]; 17] = [
    &["add", "-A"],
    &["add", "-u"],
    &["commit", "--quiet", "--allow-empty", "-m", "step"],
    &["commit", "--quiet", "-am", "step"],
    &["commit", "--quiet", "--amend", "--allow-empty", "-m", "amended"],
    &["merge", "--quiet", "side"],
    &["merge", "--quiet", "--no-commit", "--no-ff", "side"],
    &["merge", "--abort"],
    &["checkout", "--quiet", "side"],
    &["checkout", "--quiet", "--force", "main"],
    &["checkout", "--quiet", "--detach"],
    &["stash", "--quiet"],
    &["stash", "pop", "--quiet"],
    &["reset", "--quiet"],
    &["reset", "--quiet", "--hard"],
    &["clean", "-fdq"],
    &["update-index", "-q", "--refresh"],
];

pub(crate) fn action() -> impl Strategy<Value = Action> {
    let (file, directory) = (select(&FILES[..]), select(&DIRECTORIES[..]));
    prop_oneof![
        4 => (file.clone(), 0..4_u8).prop_map(|(path, text)| Action::Write(path, text)),
        1 => (file.clone(), 0..4_u8).prop_map(|(path, text)| Action::IntendToAdd(path, text)),
        1 => (file.clone(), file.clone()).prop_map(|(path, target)| Action::Link(path, target)),
        2 => file.clone().prop_map(Action::Remove),
        2 => (file.clone(), select(&FILE_MODES[..])).prop_map(|(path, mode)| Action::Mode(path, mode)),
        2 => directory.clone().prop_map(Action::MakeDirectory),
        1 => directory.clone().prop_map(Action::RemoveDirectory),
        1 => (directory, select(&DIRECTORY_MODES[..])).prop_map(|(path, mode)| Action::DirectoryMode(path, mode)),
        4 => (select(&ON_PATHS[..]), file).prop_map(|(args, path)| Action::GitPath(args, path)),
        4 => select(&ON_ALL[..]).prop_map(Action::Git),
    ]
}

/// A repository with two conflicting branches, created once and copied for each case.
fn template() -> &'static World {
    static TEMPLATE: OnceLock<World> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let world = World::unborn();
        for (path, text) in
            [("a", "a1\n"), ("b", "b1\n"), ("d/x", "x1\n"), ("d/e/z", "z1\n"), ("run.sh", "r\n")]
        {
            world.write(path, text);
        }
        world.write(".gitignore", "*.o\n");
        fs::set_permissions(world.tree.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        world.git(&["add", "."]);
        world.commit("first");
        world.git(&["checkout", "--quiet", "-b", "side"]);
        world.write("a", "a side\n");
        world.write("q/file", "side\n");
        world.remove("b");
        world.git(&["add", "-A"]);
        world.commit("side");
        world.git(&["checkout", "--quiet", "main"]);
        world.write("a", "a main\n");
        world.write("b", "b main\n");
        world.git(&["commit", "--quiet", "-am", "main"]);
        world
    })
}

pub(crate) fn copy_template() -> World {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    for folder in ["home", "temp", "tree"] {
        fs::create_dir(path.join(folder)).unwrap();
    }
    copy_dir(&template().tree, &path.join("tree"));
    World { root, tree: path.join("tree") }
}

fn copy_dir(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Removes what blocks the path. An action that is impossible does nothing.
pub(crate) fn apply(world: &World, action: &Action) {
    let at = |path: &[u8]| world.tree.join(OsStr::from_bytes(path));
    match action {
        Action::Write(path, text) => {
            clear_path(world, path);
            let _ = fs::write(at(path), format!("text {text}\n"));
        }
        Action::IntendToAdd(path, text) => {
            apply(world, &Action::Write(path, *text));
            apply(world, &Action::GitPath(&["add", "--intent-to-add", "--force", "--"], path));
        }
        Action::Link(path, target) => {
            clear_path(world, path);
            let _ = symlink(OsStr::from_bytes(target), at(path));
        }
        Action::Remove(path) => remove(&at(path)),
        Action::Mode(path, mode) if fs::symlink_metadata(at(path)).is_ok_and(|found| found.is_file()) => {
            fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
        Action::DirectoryMode(path, mode)
            if fs::symlink_metadata(at(path)).is_ok_and(|found| found.is_dir()) =>
        {
            fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
        Action::Mode(..) | Action::DirectoryMode(..) => {}
        Action::MakeDirectory(path) => {
            clear_path(world, path);
            let _ = fs::create_dir_all(at(path));
        }
        Action::RemoveDirectory(path) => {
            let _ = fs::remove_dir(at(path));
        }
        Action::GitPath(args, path) => {
            let args = args.iter().map(OsStr::new).chain([OsStr::from_bytes(path)]);
            world.try_git(args);
        }
        Action::Git(args) => drop(world.run_git_in(args, &world.tree)),
    }
}

fn clear_path(world: &World, path: &[u8]) {
    let target = world.tree.join(OsStr::from_bytes(path));
    for above in target.ancestors().skip(1).take_while(|above| *above != world.tree) {
        if fs::symlink_metadata(above).is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(above).unwrap();
        }
    }
    remove(&target);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
}

pub(crate) fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Kind, permissions and content of everything in the work tree.
    pub(crate) tree: BTreeMap<PathBuf, (char, u32, Vec<u8>)>,
    pub(crate) index: Vec<String>,
}

pub(crate) fn snapshot(world: &World) -> Snapshot {
    let mut tree = BTreeMap::new();
    walk(&world.tree, Path::new(""), &mut tree);
    Snapshot { tree, index: index(world) }
}

fn walk(top: &Path, below: &Path, tree: &mut BTreeMap<PathBuf, (char, u32, Vec<u8>)>) {
    for entry in fs::read_dir(top.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        if path == Path::new(".git") {
            continue;
        }
        let found = fs::symlink_metadata(top.join(&path)).unwrap();
        let mode = found.permissions().mode() & 0o7777;
        if found.is_dir() {
            tree.insert(path.clone(), ('d', mode, Vec::new()));
            walk(top, &path, tree);
        } else if found.is_symlink() {
            let target = fs::read_link(top.join(&path)).unwrap();
            tree.insert(path, ('l', 0, target.as_os_str().as_bytes().to_vec()));
        } else {
            tree.insert(path.clone(), ('f', mode, fs::read(top.join(&path)).unwrap()));
        }
    }
}

/// Every entry with mode, object, stage and flags, as printed by git itself.
fn index(world: &World) -> Vec<String> {
    let output = world.git(&["ls-files", "--stage", "--debug", "--sparse"]);
    let persistent_flags = 0x8000 | 0x3000 | 1 << 29 | 1 << 30;
    let mut entries: Vec<String> = Vec::new();
    for line in output.lines() {
        match (line.strip_prefix("  "), line.rsplit_once("flags: ")) {
            (None, _) => entries.push(line.to_owned()),
            (Some(_), Some((_, flags))) => {
                let flags = u32::from_str_radix(flags, 16).unwrap() & persistent_flags;
                entries.last_mut().unwrap().push_str(&format!(" {flags:x}"));
            }
            _ => {}
        }
    }
    entries
}

pub(crate) fn heads(world: &World) -> (String, String) {
    let output = |args: &[&str]| world.run_git_in(args, &world.tree).1;
    (output(&["rev-parse", "--verify", "--quiet", "HEAD"]), output(&["symbolic-ref", "--quiet", "HEAD"]))
}

/// Few cases by default, because each one runs git many times.
#[expect(clippy::disallowed_methods, reason = "proptest is configured by environment variables")]
pub(crate) fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_restore_and_its_undo_are_exact(
        user_actions in proptest::collection::vec(action(), 0..14),
        agent_actions in proptest::collection::vec(action(), 1..12),
        and_head: bool,
    ) {
        let world = copy_template();
        user_actions.iter().for_each(|action| apply(&world, action));
        let (before, head_before) = (snapshot(&world), heads(&world));
        let point = world.try_create_point(&world.tree, "refs/mcp-delegator/T-local-1").unwrap().unwrap();
        prop_assert_eq!(&snapshot(&world), &before, "creating a restore point changes nothing");
        agent_actions.iter().for_each(|action| apply(&world, action));
        // Only ignored files of the restore point are examined; a new one stays, so remove it before
        // comparing.
        if !before.tree.contains_key(Path::new("note.o")) {
            remove(&world.tree.join("note.o"));
        }
        let (after, head_after) = (snapshot(&world), heads(&world));
        let (plan, undo) = world.restore(&point, and_head).unwrap();
        prop_assert_eq!(&plan.keep, &Vec::new());
        prop_assert_eq!(&snapshot(&world), &before, "restored");
        if and_head {
            prop_assert_eq!(&heads(&world), &head_before);
        }
        let (plan, _) = world.restore(&undo, and_head).unwrap();
        prop_assert_eq!(&plan.keep, &Vec::new());
        prop_assert_eq!(&snapshot(&world), &after, "undone");
        prop_assert_eq!(&heads(&world), &head_after);
    }
}
