//! Ownership and permissions of the state directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{World, modes_below, submit};
use delegator_registry::{OpenOptions, Registry, StateDir, StateDirError};

fn open(path: &Path) -> Result<StateDir, StateDirError> {
    StateDir::open(path, &OpenOptions::default())
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn missing_parent_directories_are_created() {
    let world = World::new();
    let path = world.folder.path().join("a/b/state");
    open(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
}

#[test]
fn a_symlink_is_refused() {
    let world = World::new();
    fs::create_dir(world.folder.path().join("real")).unwrap();
    symlink(world.folder.path().join("real"), world.path()).unwrap();
    let refused = open(&world.path());
    assert!(matches!(refused, Err(StateDirError::Symlink { .. })), "{refused:?}");
    symlink("nowhere", world.folder.path().join("dangling")).unwrap();
    let dangling = open(&world.folder.path().join("dangling"));
    assert!(matches!(dangling, Err(StateDirError::Symlink { .. })), "{dangling:?}");
    assert_eq!(fs::read_dir(world.folder.path().join("real")).unwrap().count(), 0);
}

#[test]
fn a_file_is_refused() {
    let world = World::new();
    fs::write(world.path(), "").unwrap();
    assert!(matches!(open(&world.path()), Err(StateDirError::NotADirectory { .. })));
}

#[test]
fn a_directory_of_another_user_is_refused_and_unchanged() {
    let world = World::new();
    let path = if rustix::process::geteuid().is_root() {
        fs::create_dir(world.path()).unwrap();
        std::os::unix::fs::chown(world.path(), Some(65_534), None).unwrap();
        world.path()
    } else {
        "/usr".into()
    };
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o777)).ok();
    let before = mode(&path);
    let refused = open(&path);
    assert!(matches!(refused, Err(StateDirError::OtherOwner { .. })), "{refused:?}");
    assert_eq!(mode(&path), before);
}

#[test]
fn permissions_of_the_directory_and_its_files_are_tightened() {
    let world = World::new();
    submit(&mut world.registry());
    for (path, _) in modes_below(&world.path()) {
        let loose = if path.is_dir() { 0o777 } else { 0o666 };
        let top_level = path == world.path() || path.parent() == Some(&world.path());
        if top_level && !path.ends_with("held-back") && !path.ends_with("setup.lock") {
            fs::set_permissions(&path, fs::Permissions::from_mode(loose)).unwrap();
        }
    }
    let _registry = world.registry();
    for (path, mode) in modes_below(&world.path()) {
        assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
    }
}

#[test]
fn a_symlinked_database_is_refused() {
    let world = World::new();
    world.dir();
    fs::write(world.folder.path().join("elsewhere.db"), "").unwrap();
    symlink(world.folder.path().join("elsewhere.db"), world.path().join("registry.db")).unwrap();
    let refused = open(&world.path());
    assert!(matches!(refused, Err(StateDirError::NotOurFile { .. })), "{refused:?}");
}

#[test]
fn find_creates_nothing_on_a_fresh_machine() {
    let world = World::new();
    let path = world.folder.path().join("not/yet");
    assert!(StateDir::find(&path, &OpenOptions::default()).unwrap().is_none());
    assert_eq!(fs::read_dir(world.folder.path()).unwrap().count(), 0);
    fs::create_dir_all(&path).unwrap();
    let dir = StateDir::find(&path, &OpenOptions::default()).unwrap().unwrap();
    assert!(Registry::find(&dir).unwrap().is_none());
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    Registry::open(&open(&path).unwrap()).unwrap();
    assert!(Registry::find(&dir).unwrap().is_some());
}

#[test]
fn a_file_in_place_of_a_parent_directory_is_an_error() {
    let world = World::new();
    fs::write(world.folder.path().join("file"), "").unwrap();
    let found = StateDir::find(&world.folder.path().join("file/state"), &OpenOptions::default());
    assert!(matches!(found, Err(StateDirError::Io { .. })), "{found:?}");
}
