//! Which queued tasks may start, and which are overtaken.

use delegator_domain::task::{Mode, Obstacle, SandboxKind, TaskEnd, TaskId, WorkTree};
use delegator_registry::{
    Attempt, BlockedBy, Cas, Claim, Finish, Idempotency, NewTask, QueueEntry, Registry,
};

use crate::support::{World, begin, new_task, slots};

fn writer(tree: &str) -> NewTask {
    NewTask { work_trees: vec![WorkTree::from_text(tree)], allow_parallel_writes: false, ..new_task() }
}

fn writer_of_all(trees: &[&str]) -> NewTask {
    NewTask { work_trees: trees.iter().map(|tree| WorkTree::from_text(tree)).collect(), ..writer("/") }
}

fn resume(thread: &str) -> NewTask {
    NewTask { resumed_thread: Some(thread.to_owned()), mode: Mode::ReadOnly, ..new_task() }
}

fn submit_all(registry: &mut Registry, tasks: &[NewTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| registry.submit(task, b"", 1).unwrap().task.id).collect()
}

fn ids(claims: &[Claim]) -> Vec<TaskId> {
    claims.iter().map(|claim| claim.task.id.clone()).collect()
}

fn end(registry: &mut Registry, claim: &Claim) -> Vec<TaskId> {
    begin(registry, claim);
    let attempt = Attempt::working(claim.nonce.clone());
    let finish = Finish::bare(TaskEnd::Completed);
    match registry.finish(&claim.task.id, &attempt, &finish, &slots(9), 2).unwrap() {
        Cas::Applied(next) => ids(&next),
        Cas::Lost(lost) => panic!("{lost:?}"),
    }
}

#[test]
fn writers_that_share_an_additional_directory_wait_for_each_other() {
    let world = World::new();
    let mut registry = world.registry();
    let new = [writer_of_all(&["/a", "/shared"]), writer_of_all(&["/b", "/shared"]), writer("/shared/c")];
    let tasks = submit_all(&mut registry, &new);
    let claims = registry.claim_all(&slots(9), 1).unwrap();
    assert_eq!(ids(&claims), [tasks[0].clone()]);
    assert_eq!(claims[0].task.work_trees, new[0].work_trees);
    assert_eq!(end(&mut registry, &claims[0]), [tasks[1].clone()]);
}

#[test]
fn a_submission_claims_whatever_may_start_then() {
    let world = World::new();
    let mut registry = world.registry();
    let mut submit = |task: &NewTask, max_concurrent| {
        let (submitted, claims) =
            registry.submit_and_claim(&[(task.clone(), Vec::new())], &slots(max_concurrent), 1).unwrap();
        (submitted.replayed, ids(&claims))
    };
    let (first, second, third) = (new_task(), new_task(), new_task());
    assert_eq!(submit(&first, 0), (false, Vec::new()), "there is no slot");
    assert_eq!(submit(&second, 1), (false, vec![first.id.clone()]), "the older task comes first");
    let key = Some(Idempotency::new("key".to_owned(), "hash".to_owned()));
    let third = NewTask { idempotency: key, ..third };
    assert_eq!(submit(&third, 3), (false, vec![second.id.clone(), third.id.clone()]));
    let again = NewTask { id: new_task().id, ..third };
    assert_eq!(submit(&again, 9), (true, Vec::new()), "a repeated submission starts nothing");
}

#[test]
fn a_blocked_task_is_overtaken() {
    let world = World::new();
    let mut registry = world.registry();
    let tasks = submit_all(&mut registry, &[writer("/a"), writer("/a/below"), writer("/b")]);
    let claims = registry.claim_all(&slots(9), 1).unwrap();
    assert_eq!(ids(&claims), [tasks[0].clone(), tasks[2].clone()]);
    assert_eq!(registry.claim_all(&slots(9), 1).unwrap(), []);
    assert_eq!(end(&mut registry, &claims[1]), [], "the other tree does not matter");
    assert_eq!(end(&mut registry, &claims[0]), [tasks[1].clone()], "the end also claims the next task");
}

#[test]
fn a_blocked_task_is_not_starved_by_later_tasks() {
    let world = World::new();
    let mut registry = world.registry();
    // The second needs the whole tree; the third could start beside the first, but would delay the second.
    let tasks = submit_all(&mut registry, &[writer("/a/one"), writer("/a"), writer("/a/two")]);
    let claims = registry.claim_all(&slots(9), 1).unwrap();
    assert_eq!(ids(&claims), [tasks[0].clone()]);
    assert_eq!(end(&mut registry, &claims[0]), [tasks[1].clone()]);
}

#[test]
fn tasks_of_one_thread_run_in_order_one_at_a_time() {
    let world = World::new();
    let mut registry = world.registry();
    let tasks = submit_all(&mut registry, &[resume("t"), resume("t"), resume("u"), resume("t")]);
    let claims = registry.claim_all(&slots(9), 1).unwrap();
    assert_eq!(ids(&claims), [tasks[0].clone(), tasks[2].clone()]);
    assert_eq!(end(&mut registry, &claims[0]), [tasks[1].clone()]);
}

#[test]
fn the_queue_reports_what_blocks_each_task() {
    let world = World::new();
    let mut registry = world.registry();
    let parallel_writer = NewTask { allow_parallel_writes: true, ..writer("/a") };
    let reader = NewTask { mode: Mode::ReadOnly, ..writer("/a") };
    let tasks =
        submit_all(&mut registry, &[writer("/a"), writer("/a"), parallel_writer, reader, writer("/a")]);
    let claim = registry.claim_next(&slots(1), 1).unwrap().unwrap();
    assert_eq!(claim.task.id, tasks[0]);
    let first = Some(BlockedBy { task: tasks[0].clone(), obstacle: Obstacle::WorkTree });
    let expected = [first.clone(), None, None, first.clone()];
    let entry = |(id, blocked_by)| QueueEntry { id, pause: None, blocked_by };
    let expected: Vec<_> = tasks[1..].iter().cloned().zip(expected).map(entry).collect();
    assert_eq!(registry.queue_with_blockers(1).unwrap(), expected);
    let last = registry.get(&tasks[4]).unwrap().unwrap();
    assert_eq!(registry.blocked_by_running(&last).unwrap(), first);
    let claims = registry.claim_all(&slots(9), 1).unwrap();
    assert_eq!(ids(&claims), [tasks[2].clone(), tasks[3].clone()]);
}

#[test]
fn a_task_whose_mode_is_not_enforced_counts_as_a_writer() {
    let world = World::new();
    let mut registry = world.registry();
    let unenforced = NewTask { mode: Mode::ReadOnly, sandbox: Some(SandboxKind::None), ..writer("/a") };
    let tasks = submit_all(&mut registry, &[unenforced, writer("/a")]);
    assert_eq!(ids(&registry.claim_all(&slots(9), 1).unwrap()), [tasks[0].clone()]);
    let waiting = registry.get(&tasks[1]).unwrap().unwrap();
    let blocked_by = BlockedBy { task: tasks[0].clone(), obstacle: Obstacle::WorkTree };
    assert_eq!(registry.blocked_by_running(&waiting).unwrap(), Some(blocked_by));
}

#[test]
fn a_periodic_job_is_claimed_once_per_interval() {
    let world = World::new();
    let (mut first, mut second) = (world.registry(), world.registry());
    assert!(first.claim_periodic_job("sweeping", 100, 1_000).unwrap());
    assert!(!second.claim_periodic_job("sweeping", 100, 1_099).unwrap());
    assert!(second.claim_periodic_job("dusting", 100, 1_099).unwrap());
    assert!(second.claim_periodic_job("sweeping", 100, 1_100).unwrap());
    assert!(first.claim_periodic_job("sweeping", 100, 500).unwrap(), "the clock was set back");
}
