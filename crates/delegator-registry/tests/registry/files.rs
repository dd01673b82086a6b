//! The directory of a task: locks, streams, reports, removal.

#![expect(
    clippy::disallowed_methods,
    reason = "inherited descriptors can only be tested with a child process"
)]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use delegator_registry::{LockAttempt, LockGuard, ReadPosition, Registry, TaskDir, TaskFile};

use crate::support::{World, fresh_id, submit};

fn task_dir(world: &World) -> (Registry, TaskDir) {
    let mut registry = world.registry();
    let id = submit(&mut registry).id;
    let dir = registry.dir().task(&id);
    (registry, dir)
}

fn locked(dir: &TaskDir) -> LockGuard {
    match dir.try_lock().unwrap() {
        LockAttempt::Locked(guard) => guard,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lock_has_one_holder_until_it_is_dropped() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    let guard = locked(&dir);
    assert!(matches!(dir.try_lock().unwrap(), LockAttempt::Held));
    drop(guard);
    locked(&dir);
    let missing = world.dir().task(&fresh_id());
    assert!(matches!(missing.try_lock().unwrap(), LockAttempt::Gone));
    assert!(!missing.path().exists());
}

#[test]
fn a_removed_directory_cannot_be_locked_through_an_old_file() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    let guard = locked(&dir);
    fs::create_dir(dir.path().join("nested")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    dir.remove(guard).unwrap();
    assert!(!dir.path().exists());
    assert!(fs::metadata("/etc/passwd").is_ok());
    assert!(matches!(dir.try_lock().unwrap(), LockAttempt::Gone));
}

#[test]
fn a_child_inherits_no_file_of_the_state_directory() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    let _guard = locked(&dir);
    let _events = dir.open_append(TaskFile::Events).unwrap();
    let mut agent = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let open: Vec<_> = fs::read_dir(format!("/proc/{}/fd", agent.id()))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    drop(agent.stdin.take());
    agent.wait().unwrap();
    assert!(open.len() >= 3, "{open:?}");
    assert!(!open.iter().any(|path| path.starts_with(world.path())), "{open:?}");
}

#[test]
fn a_launch_is_read_until_it_is_removed() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    assert_eq!(dir.read(TaskFile::Launch).unwrap().as_deref(), Some(&b"launch"[..]));
    assert!(dir.remove_launch().unwrap());
    assert!(!dir.remove_launch().unwrap());
    assert_eq!(dir.read(TaskFile::Launch).unwrap(), None);
}

#[test]
fn snapshots_and_reports_are_replaced_whole() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    assert_eq!((dir.read(TaskFile::Snapshot).unwrap(), dir.read(TaskFile::Report).unwrap()), (None, None));
    for bytes in [&b"one"[..], b"two"] {
        dir.write(TaskFile::Snapshot, bytes).unwrap();
        dir.write_report(bytes).unwrap();
        assert_eq!(dir.read(TaskFile::Snapshot).unwrap().as_deref(), Some(bytes));
        assert_eq!(dir.read(TaskFile::Report).unwrap().as_deref(), Some(bytes));
    }
}

#[test]
fn only_a_torn_last_line_is_truncated() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    let guard = locked(&dir);
    assert_eq!(dir.truncate_torn_tail(TaskFile::Events, &guard).unwrap(), 0, "no file");
    let long = "x".repeat(200_000);
    for (written, whole) in [("", ""), ("{}\n", "{}\n"), ("{}\n{\"a", "{}\n"), ("torn", "")] {
        fs::write(dir.file(TaskFile::Events), written).unwrap();
        let removed = dir.truncate_torn_tail(TaskFile::Events, &guard).unwrap();
        assert_eq!(removed as usize, written.len() - whole.len());
        assert_eq!(fs::read_to_string(dir.file(TaskFile::Events)).unwrap(), whole);
    }
    let mut events = dir.open_append(TaskFile::Events).unwrap();
    write!(events, "{{}}\n{long}").unwrap();
    assert_eq!(dir.truncate_torn_tail(TaskFile::Events, &guard).unwrap(), 200_000);
    assert_eq!(fs::read_to_string(dir.file(TaskFile::Events)).unwrap(), "{}\n");
}

#[test]
fn a_published_socket_path_is_readable_and_the_socket_is_removed_with_the_task() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    assert_eq!(dir.published_socket().unwrap(), None);
    dir.publish_socket("/run/x.sock".as_ref()).unwrap();
    assert_eq!(dir.published_socket().unwrap(), Some("/run/x.sock".into()));
    let elsewhere = world.folder.path().join("x.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&elsewhere).unwrap();
    dir.publish_socket(&elsewhere).unwrap();
    let guard = locked(&dir);
    dir.remove(guard).unwrap();
    assert!(!elsewhere.exists(), "the socket outlived its task");
}

#[test]
fn a_socket_in_the_directory_of_its_task_needs_no_published_path() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    dir.publish_socket("/run/of-an-earlier-attempt.sock".as_ref()).unwrap();
    let socket = dir.path().join("control.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    dir.publish_socket(&socket).unwrap();
    assert_eq!(dir.published_socket().unwrap(), Some(socket));
    assert!(!dir.file(TaskFile::SocketPath).exists());
}

#[test]
fn reading_starts_again_when_the_file_was_truncated_or_replaced() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    let mut position = ReadPosition::default();
    let mut read = || {
        let new = dir.read_new(TaskFile::Verify, &mut position, u64::MAX).unwrap();
        (String::from_utf8(new.bytes).unwrap(), new.is_restarted)
    };
    assert_eq!(read(), (String::new(), false), "the file is missing");
    std::fs::write(dir.file(TaskFile::Verify), "one\n").unwrap();
    assert_eq!(read(), ("one\n".to_owned(), false));
    std::fs::write(dir.file(TaskFile::Verify), "one\ntwo\n").unwrap();
    assert_eq!(read(), ("two\n".to_owned(), false));
    assert_eq!(read(), (String::new(), false));
    std::fs::write(dir.file(TaskFile::Verify), "new\n").unwrap();
    assert_eq!(read(), ("new\n".to_owned(), true), "it was truncated");
    dir.write(TaskFile::Verify, b"other file\n").unwrap();
    assert_eq!(read(), ("other file\n".to_owned(), true), "it was replaced");
}

#[test]
fn only_the_ends_of_a_long_file_are_read() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    assert_eq!(dir.read_ends(TaskFile::Events, 3).unwrap(), None);
    for (text, expected) in
        [("", ""), ("abcdef", "abcdef"), ("abcdefg", "abcefg"), ("abc--------efg", "abcefg")]
    {
        dir.write(TaskFile::Events, text.as_bytes()).unwrap();
        let (ends, size) = dir.read_ends(TaskFile::Events, 3).unwrap().unwrap();
        assert_eq!((ends.as_slice(), size), (expected.as_bytes(), text.len() as u64), "{text}");
    }
}

#[test]
fn the_last_lines_before_a_number_are_read() {
    let world = World::new();
    let (_registry, dir) = task_dir(&world);
    dir.write(TaskFile::Events, b"a\n\nb\nc\n\n\nd").unwrap();
    for (before, max, expected, first) in [
        (u64::MAX, 9, "abcd", 0),
        (u64::MAX, 2, "cd", 2),
        (3, 2, "bc", 1),
        (1, 2, "a", 0),
        (0, 2, "", 0),
        (2, 0, "", 2),
    ] {
        let found = dir.read_last_lines(TaskFile::Events, before, max).unwrap();
        assert_eq!(found.lines.iter().flatten().copied().collect::<Vec<u8>>(), expected.as_bytes());
        assert_eq!((found.first, found.total), (first, 4), "{before}, {max}");
    }
}
