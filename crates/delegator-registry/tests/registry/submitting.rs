//! Submitting tasks, and what a crash in between leaves.

use std::fs;
use std::time::{Duration, SystemTime};

use delegator_domain::redact::Redactor;
use delegator_domain::task::{FailureKind, State, TaskEnd, TaskId};
use delegator_registry::{
    Attempt, Finish, Idempotency, Leftover, LeftoverKind, LockAttempt, NewTask, OpenOptions, PointToRecord,
    Registry, RegistryError, StateDir, TaskFile,
};

use crate::support::{World, begin, ended, fresh_id, new_task, slots, submit, working};

fn with_key(key: &str, hash: &str) -> NewTask {
    let idempotency = Some(Idempotency::new(key, hash));
    NewTask { idempotency, ..new_task() }
}

#[test]
fn a_submitted_task_is_stored_unchanged() {
    let world = World::new();
    let mut registry = world.registry();
    let request = NewTask {
        model: Some("gpt-5".to_owned()),
        labels: [("team".to_owned(), "core \"x\" ü".to_owned())].into(),
        input: serde_json::json!({"b": 1, "a": [null, "é"]}),
        resumed_thread: Some("thread-0".to_owned()),
        ..with_key("k", "h")
    };
    let submitted = registry.submit(&request, b"prompt\0bytes\xff", 1_234).unwrap();
    assert!(!submitted.replayed);
    let task = world.registry().get(&request.id).unwrap().unwrap();
    assert_eq!(task, submitted.task);
    assert_eq!((task.state, task.created_at_ms, task.starts), (State::Queued, 1_234, 0));
    assert_eq!((&task.labels, &task.input, &task.model), (&request.labels, &request.input, &request.model));
    assert_eq!(task.resumed_thread, request.resumed_thread);
    let known = task.idempotency.as_ref().unwrap();
    assert!(known.key.starts_with("sha256:") && known.request_hash == "h", "{known:?}");
    assert_eq!((task.mode, &task.title, &task.agent), (request.mode, &request.title, &request.agent));
    let launch = registry.dir().task(&request.id).read(TaskFile::Launch).unwrap();
    assert_eq!(launch.as_deref(), Some(&b"prompt\0bytes\xff"[..]));
}

#[test]
fn the_same_key_returns_the_first_task_while_it_exists() {
    let world = World::new();
    let mut registry = world.registry();
    let first = registry.submit(&with_key("k", "h"), b"", 1).unwrap().task;
    let again = registry.submit(&with_key("k", "h"), b"", 2).unwrap();
    assert_eq!((again.replayed, &again.task), (true, &first));
    let other = registry.submit(&with_key("k", "other"), b"", 3);
    assert!(
        matches!(&other, Err(RegistryError::IdempotencyConflict { first: id, .. }) if *id == first.id),
        "{other:?}"
    );
    assert_eq!(fs::read_dir(world.path().join("tasks")).unwrap().count(), 1, "a replay left a directory");
    registry.request_cancel(&first.id, None, 4).unwrap();
    assert!(registry.submit(&with_key("k", "h"), b"", 5).unwrap().replayed, "an ended task still exists");
    registry.prune(std::slice::from_ref(&first.id)).unwrap();
    assert!(!registry.submit(&with_key("k", "other"), b"", 6).unwrap().replayed);
}

#[test]
fn a_key_that_looks_like_the_digest_of_another_key_is_a_key_of_its_own() {
    let world = World::new();
    let mut registry = world.registry();
    let first = registry.submit(&with_key("k", "h"), b"", 1).unwrap().task;
    let digest = first.idempotency.as_ref().unwrap().key.clone();
    assert!(!registry.submit(&with_key(&digest, "h"), b"", 3).unwrap().replayed);
}

#[test]
fn every_text_goes_through_the_sink() {
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const OWN: &str = "a value only this process knows";
    let world = World::new();
    let mut registry = world.registry();
    registry.also_redact(Redactor::builder().build());
    registry.also_redact(Redactor::builder().secret(OWN).build());
    for secret in [TOKEN, OWN] {
        let text = || format!("of {secret}");
        let request = NewTask {
            agent: text(),
            model: Some(text()),
            title: text(),
            text: text(),
            labels: [(text(), text())].into(),
            input: serde_json::json!({"a": [text()], text(): {"b": text()}}),
            resumed_thread: Some(text()),
            ..with_key(secret, "h")
        };
        let task = registry.submit(&request, b"", 1).unwrap().task;
        let claim = registry.claim_next(&slots(usize::MAX), 1).unwrap().unwrap();
        begin(&mut registry, &claim);
        let attempt = Attempt::working(claim.nonce);
        registry.set_thread(&task.id, &attempt.nonce, &text(), 2).unwrap();
        registry.request_cancel(&task.id, Some(&text()), 3).unwrap();
        let end = TaskEnd::Failed { kind: FailureKind::Internal, message: text(), retry_at_ms: None };
        let finish = Finish { summary: Some(text()), ..Finish::bare(end) };
        registry.finish(&task.id, &attempt, &finish, &slots(0), 4).unwrap();
        for file in ["registry.db", "registry.db-wal"] {
            let bytes = fs::read(registry.dir().path().join(file)).unwrap();
            let holds = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{secret} is in {file}");
        }
        let text_file = registry.dir().task(&task.id).read(TaskFile::Text).unwrap().unwrap();
        assert!(!String::from_utf8(text_file).unwrap().contains(secret));
    }
}

#[test]
fn an_id_is_never_used_twice() {
    let world = World::new();
    let mut registry = world.registry();
    let refuses = |registry: &mut Registry, task: &NewTask| {
        let refused = registry.submit(task, b"second", 2);
        assert!(matches!(&refused, Err(RegistryError::IdInUse { id }) if *id == task.id), "{refused:?}");
    };
    let task = new_task();
    registry.submit(&task, b"first", 1).unwrap();
    refuses(&mut registry, &task);
    let dir = registry.dir().task(&task.id);
    assert_eq!(dir.read(TaskFile::Launch).unwrap().as_deref(), Some(&b"first"[..]));
    // The row remains in use without its directory, and gets no files of another task.
    fs::remove_dir_all(dir.path()).unwrap();
    refuses(&mut registry, &task);
    assert!(!dir.path().exists());
    // A directory without a row: results stay, the files of a killed submit are removed.
    for (file, stays) in [(TaskFile::Report, true), (TaskFile::Launch, false)] {
        let lost = new_task();
        let dir = registry.dir().task(&lost.id);
        fs::create_dir(dir.path()).unwrap();
        fs::write(dir.file(file), "first").unwrap();
        refuses(&mut registry, &lost);
        assert_eq!(fs::read(dir.file(file)).unwrap(), b"first");
        registry.remove_dead_submits().unwrap();
        assert_eq!(dir.path().exists(), stays);
    }
    assert!(fs::read_dir(world.path().join("submitting")).unwrap().next().is_none());
}

#[test]
fn the_id_of_a_pruned_task_with_a_restore_point_stays_in_use() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 2_000);
    let text = || "x".to_owned();
    let point = PointToRecord { repository: text(), reference: text(), point: text() };
    registry.prune_and_record(std::slice::from_ref(&id), &[(id.clone(), vec![point])].into()).unwrap();
    let again = NewTask { id: id.clone(), ..new_task() };
    assert!(matches!(registry.submit(&again, b"", 3_000), Err(RegistryError::IdInUse { .. })));
    let point = registry.restore_points_of(&id).unwrap().remove(0);
    registry.delete_restore_point_record(&point).unwrap();
    assert!(registry.submit(&again, b"", 4_000).is_ok());
}

#[test]
fn submit_is_refused_without_free_space() {
    let world = World::new();
    world.registry();
    let options = OpenOptions { min_free_bytes: u64::MAX / 2, ..OpenOptions::default() };
    let mut registry = Registry::open(&StateDir::open(&world.path(), &options).unwrap()).unwrap();
    let refused = registry.submit(&new_task(), b"", 1);
    assert!(matches!(refused, Err(RegistryError::DiskFull { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(world.path().join("tasks")).unwrap().count(), 0);
}

fn future_ms() -> i64 {
    i64::MAX
}

#[test]
fn a_crash_between_launch_and_row_is_found_and_cleaned() {
    let world = World::new();
    let mut registry = world.registry();
    let submitted = submit(&mut registry).id;
    // What a submit leaves if it dies before its row is committed.
    let id = fresh_id();
    let dir = registry.dir().task(&id);
    fs::create_dir(dir.path()).unwrap();
    fs::write(dir.file(TaskFile::Launch), "secret").unwrap();
    fs::create_dir(world.path().join("tasks/not-a-task")).unwrap();
    assert_eq!(registry.orphans(0).unwrap(), [], "it may be a running submit");
    let found = registry.orphans(future_ms()).unwrap();
    assert_eq!(found, [Leftover { id, kind: LeftoverKind::NeverSubmitted }]);
    assert_eq!(registry.remove_orphans(&found).unwrap(), found);
    assert!(!dir.path().exists());
    assert!(registry.dir().task(&submitted).path().exists());
    assert_eq!(registry.orphans(future_ms()).unwrap(), []);
}

#[test]
fn an_orphan_is_reported_only_when_old_enough() {
    let world = World::new();
    let registry = world.registry();
    let dir = registry.dir().task(&fresh_id());
    fs::create_dir(dir.path()).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    fs::File::open(dir.path()).unwrap().set_modified(at).unwrap();
    assert_eq!(registry.orphans(1_000_000).unwrap(), []);
    assert_eq!(registry.orphans(1_000_001).unwrap().len(), 1);
}

#[test]
fn results_without_a_row_are_reported_and_retained() {
    let world = World::new();
    let mut registry = world.registry();
    let dir = registry.dir().task(&fresh_id());
    fs::create_dir(dir.path()).unwrap();
    fs::write(dir.file(TaskFile::Events), "{}\n").unwrap();
    let found = registry.orphans(future_ms()).unwrap();
    assert_eq!(found[0].kind, LeftoverKind::WithoutRow);
    assert_eq!(registry.remove_orphans(&found).unwrap(), []);
    assert!(dir.file(TaskFile::Events).exists());
}

#[test]
fn secrets_of_an_ended_task_are_found() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 2_000);
    let launch = registry.dir().task(&id).file(TaskFile::Launch);
    fs::write(&launch, "secret").unwrap();
    let found = registry.orphans(0).unwrap();
    assert_eq!(found, [Leftover { id, kind: LeftoverKind::LaunchOfEnded }]);
    registry.remove_orphans(&found).unwrap();
    assert!(!launch.exists());
}

#[test]
fn only_ended_tasks_are_pruned() {
    let world = World::new();
    let mut registry = world.registry();
    let done = ended(&mut registry, TaskEnd::Completed, 2_000);
    let recent = ended(&mut registry, TaskEnd::Completed, 9_000);
    let alive = working(&mut registry).task.id;
    let waiting = submit(&mut registry).id;
    let unknown = fresh_id();
    assert_eq!(registry.ended_before(9_000, 10).unwrap(), std::slice::from_ref(&done));
    let outcome = registry.prune(&[done.clone(), alive.clone(), waiting.clone(), unknown.clone()]).unwrap();
    assert_eq!(outcome.pruned, std::slice::from_ref(&done));
    assert_eq!((outcome.alive, outcome.unknown), (vec![alive.clone(), waiting.clone()], vec![unknown]));
    assert_eq!(registry.get(&done).unwrap(), None);
    assert_eq!(registry.history_of(&done).unwrap(), []);
    assert!(!registry.dir().task(&done).path().exists());
    for id in [&recent, &alive, &waiting] {
        assert!(registry.get(id).unwrap().is_some() && registry.dir().task(id).path().exists());
    }
}

#[test]
fn pruning_is_finished_later_while_a_supervisor_holds_the_lock() {
    let world = World::new();
    let mut registry = world.registry();
    let id = ended(&mut registry, TaskEnd::Completed, 2_000);
    let dir = registry.dir().task(&id);
    let LockAttempt::Locked(lock) = dir.try_lock().unwrap() else { panic!("the lock is held") };
    assert_eq!(registry.prune(std::slice::from_ref(&id)).unwrap().pruned, [id]);
    assert!(dir.path().exists(), "a supervisor still holds the lock");
    assert_eq!(registry.orphans(0).unwrap()[0].kind, LeftoverKind::Pruned);
    drop(lock);
    assert_eq!(registry.finish_pruning().unwrap(), 1);
    assert!(!dir.path().exists());
    assert_eq!(registry.finish_pruning().unwrap(), 0);
}

/// The files of a submit that was killed before its row was committed.
fn killed_submit(registry: &Registry) -> TaskId {
    let id = fresh_id();
    let dir = registry.dir().task(&id);
    let entries = registry.dir().path().join("submitting");
    fs::create_dir_all(&entries).unwrap();
    fs::write(entries.join(id.as_str()), "").unwrap();
    fs::create_dir(dir.path()).unwrap();
    fs::write(dir.file(TaskFile::Launch), "secret").unwrap();
    id
}

fn entries(registry: &Registry) -> Vec<String> {
    let entries = fs::read_dir(registry.dir().path().join("submitting")).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_completed_submit_leaves_no_entry() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit(&mut registry).id;
    assert_eq!(entries(&registry), Vec::<String>::new());
    assert_eq!(registry.remove_dead_submits().unwrap(), []);
    assert!(registry.dir().task(&id).file(TaskFile::Launch).exists());
}

#[test]
fn leftovers_of_a_killed_submit_are_removed_at_once() {
    let world = World::new();
    let mut registry = world.registry();
    let submitted = submit(&mut registry).id;
    let dead = killed_submit(&registry);
    assert_eq!(registry.remove_dead_submits().unwrap(), std::slice::from_ref(&dead));
    assert!(!registry.dir().task(&dead).path().exists());
    assert_eq!(entries(&registry), Vec::<String>::new());
    assert!(registry.dir().task(&submitted).path().exists());
}

#[test]
fn a_running_submit_is_left_alone_at_any_age() {
    let world = World::new();
    let mut registry = world.registry();
    let id = killed_submit(&registry);
    // A running submit holds this lock, a killed one does not.
    let entry = fs::File::open(registry.dir().path().join("submitting").join(id.as_str())).unwrap();
    rustix::fs::flock(&entry, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(registry.remove_dead_submits().unwrap(), []);
    assert_eq!(registry.orphans(future_ms()).unwrap(), []);
    assert!(registry.dir().task(&id).file(TaskFile::Launch).exists());
    drop(entry);
    assert_eq!(registry.orphans(0).unwrap().len(), 1, "the age does not matter once it is known to be dead");
    assert_eq!(registry.remove_dead_submits().unwrap(), [id]);
}

#[test]
fn a_submit_killed_after_its_row_keeps_its_task() {
    let world = World::new();
    let mut registry = world.registry();
    let id = submit(&mut registry).id;
    fs::write(registry.dir().path().join("submitting").join(id.as_str()), "").unwrap();
    assert_eq!(registry.remove_dead_submits().unwrap(), []);
    assert!(registry.dir().task(&id).file(TaskFile::Launch).exists());
    assert_eq!(entries(&registry), Vec::<String>::new());
}

#[test]
fn results_are_retained_even_if_an_entry_was_left() {
    let world = World::new();
    let mut registry = world.registry();
    let id = killed_submit(&registry);
    let dir = registry.dir().task(&id);
    fs::write(dir.file(TaskFile::Events), "{}\n").unwrap();
    assert_eq!(registry.remove_dead_submits().unwrap(), []);
    assert!(dir.file(TaskFile::Events).exists());
}
