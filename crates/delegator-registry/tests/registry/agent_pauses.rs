//! A paused agent starts no task; other agents do.

use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_registry::{Attempt, Cas, Claim, Finish, NewTask, Registry};

use crate::support::{World, begin, new_task, slots};

const MINUTE_MS: i64 = 60_000;

fn submit(registry: &mut Registry, agent: &str) -> TaskId {
    registry.submit(&NewTask { agent: agent.to_owned(), ..new_task() }, b"", 1).unwrap().task.id
}

fn ids(claims: &[Claim]) -> Vec<TaskId> {
    claims.iter().map(|claim| claim.task.id.clone()).collect()
}

fn usage_limit(retry_at_ms: Option<i64>) -> TaskEnd {
    TaskEnd::Failed { kind: FailureKind::UsageLimit, message: "out of usage".into(), retry_at_ms }
}

/// Runs the next task to this end; returns what the end claims.
fn run_next(registry: &mut Registry, end: TaskEnd, now_ms: i64) -> Vec<Claim> {
    let claim = registry.claim_next(&slots(1), now_ms).unwrap().unwrap();
    begin(registry, &claim);
    let attempt = Attempt::working(claim.nonce.clone());
    match registry.finish(&claim.task.id, &attempt, &Finish::bare(end), &slots(9), now_ms).unwrap() {
        Cas::Applied(claims) => claims,
        Cas::Lost(lost) => panic!("{lost:?}"),
    }
}

#[test]
fn a_usage_limit_pauses_the_agent_until_its_reset_time() {
    let world = World::new();
    let mut registry = world.registry();
    let first = submit(&mut registry, "codex");
    let waiting = submit(&mut registry, "codex");
    let other = submit(&mut registry, "claude");
    let claims = run_next(&mut registry, usage_limit(Some(5_000)), 1_000);
    assert_eq!(ids(&claims), [other], "claude is not paused");
    let pauses = registry.agent_pauses(1_000).unwrap();
    assert_eq!(pauses.len(), 1);
    let pause = &pauses[0];
    assert_eq!(
        (pause.agent.as_str(), pause.until_ms, pause.task.as_ref()),
        ("codex", Some(5_000), Some(&first))
    );
    assert_eq!(pause.reason, "out of usage");
    assert!(!registry.can_claim(&slots(9), 4_999).unwrap());
    assert_eq!(registry.claim_all(&slots(9), 4_999).unwrap(), []);
    let queue = registry.queue_with_blockers(4_999).unwrap();
    assert_eq!((queue[0].pause.as_ref(), &queue[0].blocked_by), (Some(pause), &None));
    assert!(registry.can_claim(&slots(9), 5_000).unwrap());
    assert_eq!(registry.queue_with_blockers(5_000).unwrap()[0].pause, None);
    assert_eq!(ids(&registry.claim_all(&slots(9), 5_000).unwrap()), [waiting]);
    assert_eq!(registry.agent_pauses(5_000).unwrap(), []);
}

#[test]
fn without_a_reset_time_the_pause_lasts_15_minutes() {
    let world = World::new();
    let mut registry = world.registry();
    submit(&mut registry, "codex");
    run_next(&mut registry, usage_limit(None), 1_000);
    assert_eq!(registry.agent_pauses(1_000).unwrap()[0].until_ms, Some(1_000 + 15 * MINUTE_MS));
}

#[test]
fn a_pause_becomes_longer_but_not_shorter_and_a_past_reset_time_pauses_nothing() {
    let world = World::new();
    let mut registry = world.registry();
    for _ in 0..4 {
        submit(&mut registry, "codex");
    }
    let claims = run_next(&mut registry, usage_limit(Some(900)), 1_000);
    assert_eq!(registry.agent_pauses(1_000).unwrap(), []);
    for (claim, reset, expected) in
        [(&claims[0], 5_000, 5_000), (&claims[1], 9_000, 9_000), (&claims[2], 7_000, 9_000)]
    {
        begin(&mut registry, claim);
        let attempt = Attempt::working(claim.nonce.clone());
        let finish = Finish::bare(usage_limit(Some(reset)));
        registry.finish(&claim.task.id, &attempt, &finish, &slots(9), 2_000).unwrap();
        assert_eq!(registry.agent_pauses(2_000).unwrap()[0].until_ms, Some(expected));
    }
}

#[test]
fn a_user_pauses_and_resumes_an_agent() {
    let world = World::new();
    let mut registry = world.registry();
    let task = submit(&mut registry, "codex");
    assert!(!registry.resume_agent("codex", 1).unwrap());
    assert!(registry.pause_agent("codex", "by hand", 1).unwrap());
    assert!(!registry.pause_agent("codex", "by hand", 2).unwrap(), "it is paused already");
    assert_eq!(registry.claim_all(&slots(9), i64::MAX).unwrap(), []);
    assert_eq!(registry.agent_pauses(i64::MAX).unwrap()[0].until_ms, None);
    assert!(registry.resume_agent("codex", 3).unwrap());
    assert_eq!(ids(&registry.claim_all(&slots(9), 3).unwrap()), [task]);
}

#[test]
fn a_task_of_a_paused_agent_does_not_block_others_in_its_work_tree() {
    let world = World::new();
    let mut registry = world.registry();
    let writer =
        |agent: &str| NewTask { agent: agent.to_owned(), allow_parallel_writes: false, ..new_task() };
    registry.submit(&writer("codex"), b"", 1).unwrap();
    let other = registry.submit(&writer("claude"), b"", 1).unwrap().task.id;
    registry.pause_agent("codex", "by hand", 1).unwrap();
    assert_eq!(ids(&registry.claim_all(&slots(9), 2).unwrap()), [other]);
}
