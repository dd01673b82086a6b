//! Notifications of groups and chains: one per channel, written with the end of the last task, however that one ended.

use delegator_domain::notification::{Channel, NotifyPlan, Subject};
use delegator_domain::task::{
    ChainOutcome, EndKind, FailureKind, Follows, GroupId, GroupMember, TaskEnd, TaskId,
};
use delegator_registry::{Claim, GiveBackOutcome, NewTask, Registry, TaskFile, TaskNotify};

use crate::support::{World, begin, finish, new_task, slots};

const ENDS: [EndKind; 4] = [EndKind::Completed, EndKind::Failed, EndKind::Cancelled, EndKind::Timeout];

fn notifying(on: &[EndKind], each_task: bool) -> NewTask {
    let plan = NotifyPlan {
        on: on.iter().map(|end| (*end).into()).collect(),
        channels: vec![Channel::Webhook, Channel::Command],
        each_task,
    };
    NewTask { notify: Some(TaskNotify { plan, settings: b"{}".to_vec() }), ..new_task() }
}

fn task() -> NewTask {
    notifying(&ENDS, false)
}

fn following(predecessor: &NewTask, on: ChainOutcome) -> NewTask {
    NewTask { follows: Some(Follows { task: predecessor.id.clone(), on }), ..task() }
}

fn group() -> GroupId {
    GroupId::from_random([7; 16])
}

fn attempt(attempt: u8, task: NewTask) -> NewTask {
    NewTask { group: Some(GroupMember { group: group(), attempt }), ..task }
}

fn submit(registry: &mut Registry, tasks: &[NewTask]) -> Vec<TaskId> {
    let submitted: Vec<_> = tasks.iter().map(|task| (task.clone(), b"launch".to_vec())).collect();
    registry.submit_chain(&submitted, 1_000).unwrap();
    tasks.iter().map(|task| task.id.clone()).collect()
}

fn claim(registry: &mut Registry) -> Claim {
    registry.claim_next(&slots(9), 1_001).unwrap().unwrap()
}

/// Runs the next task to this end.
fn run(registry: &mut Registry, end: TaskEnd) {
    let claim = claim(registry);
    begin(registry, &claim);
    finish(registry, &claim, end, 2_000);
}

/// What a rescue records.
fn lost() -> TaskEnd {
    TaskEnd::Failed { kind: FailureKind::SupervisorLost, message: "lost".to_owned(), retry_at_ms: None }
}

/// The subjects of the pending notifications; each must have one per channel, and settings to send it with.
fn subjects(registry: &Registry) -> Vec<Subject> {
    let (pending, failed) = registry.undelivered_notifications(100).unwrap();
    assert_eq!(failed, []);
    for found in &pending {
        assert!(registry.dir().task(&found.task).file(TaskFile::Notify).exists(), "{found:?}");
    }
    let through = |channel| {
        let of_channel = pending.iter().filter(|found| found.channel == channel);
        let mut subjects: Vec<Subject> = of_channel.map(|found| found.subject.clone()).collect();
        subjects.sort();
        subjects
    };
    assert_eq!(through(Channel::Webhook), through(Channel::Command));
    through(Channel::Webhook)
}

#[test]
fn a_group_notifies_once_when_its_last_attempt_has_ended() {
    let last_ends: [fn(&mut Registry, &TaskId); 4] = [
        |registry, _| run(registry, TaskEnd::Completed),
        |registry, _| run(registry, lost()),
        |registry, id| drop(registry.request_cancel(id, None, 1_500).unwrap()),
        |registry, id| {
            let claim = claim(registry);
            registry.request_cancel(id, None, 1_500).unwrap();
            let given_back = registry.give_back(id, &claim.nonce, 1_600).unwrap();
            assert_eq!(given_back, GiveBackOutcome::Cancelled);
        },
    ];
    for end_last in last_ends {
        let world = World::new();
        let mut registry = world.registry();
        let ids = submit(&mut registry, &[attempt(1, task()), attempt(2, task()), attempt(3, task())]);
        run(&mut registry, TaskEnd::Completed);
        run(&mut registry, lost());
        assert_eq!(subjects(&registry), []);
        end_last(&mut registry, &ids[2]);
        assert_eq!(subjects(&registry), [Subject::Group(group())]);
    }
}

#[test]
fn a_group_waits_for_the_tasks_that_follow_its_attempts() {
    let world = World::new();
    let mut registry = world.registry();
    let first = attempt(1, task());
    let review = following(&first, ChainOutcome::Success);
    let second = attempt(2, task());
    submit(&mut registry, &[first, review, second]);
    run(&mut registry, TaskEnd::Completed);
    run(&mut registry, TaskEnd::Completed);
    assert_eq!(subjects(&registry), []);
    run(&mut registry, TaskEnd::Completed);
    assert_eq!(subjects(&registry), [Subject::Group(group())]);
}

/// A task, a task after its success, another after its failure, and one after the success of the second.
fn submit_tree(registry: &mut Registry) -> Vec<TaskId> {
    let first = task();
    let success = following(&first, ChainOutcome::Success);
    let failure = following(&first, ChainOutcome::Failure);
    let last = following(&success, ChainOutcome::Success);
    submit(registry, &[first, success, failure, last])
}

/// Ends one of the tasks.
type Step = fn(&mut Registry, &[TaskId]);

#[test]
fn a_chain_notifies_once_when_none_of_its_tasks_is_left() {
    let complete: Step = |registry, _| run(registry, TaskEnd::Completed);
    let lose: Step = |registry, _| run(registry, lost());
    let cases: [&[Step]; 6] = [
        // All of the branch is run.
        &[complete, complete, complete],
        // The last task is skipped, because its predecessor failed.
        &[complete, lose],
        // The other branch is run.
        &[lose, complete],
        // The last task is cancelled while it is queued.
        &[complete, complete, |registry, ids| drop(registry.request_cancel(&ids[3], None, 1_500).unwrap())],
        // The whole chain is cancelled while its first task is queued.
        &[|registry, ids| drop(registry.request_cancel(&ids[0], None, 1_500).unwrap())],
        // Its first task is cancelled while it runs: its followers end first.
        &[|registry, ids| {
            let claim = claim(registry);
            begin(registry, &claim);
            registry.request_cancel(&ids[0], None, 1_500).unwrap();
            assert_eq!(subjects(registry), []);
            finish(registry, &claim, TaskEnd::Cancelled { reason: None }, 2_000);
        }],
    ];
    for (number, steps) in cases.iter().enumerate() {
        let world = World::new();
        let mut registry = world.registry();
        let ids = submit_tree(&mut registry);
        for step in *steps {
            assert_eq!(subjects(&registry), [], "case {number}");
            step(&mut registry, &ids);
        }
        assert_eq!(subjects(&registry), [Subject::Chain(ids[0].clone())], "case {number}");
    }
}

#[test]
fn a_chain_notifies_for_its_own_end_and_not_for_those_of_its_tasks() {
    let world = World::new();
    let mut registry = world.registry();
    let first = notifying(&[EndKind::Failed], false);
    let repair = NewTask {
        follows: Some(Follows { task: first.id.clone(), on: ChainOutcome::Failure }),
        ..notifying(&[EndKind::Failed], false)
    };
    submit(&mut registry, &[first, repair]);
    run(&mut registry, lost());
    run(&mut registry, TaskEnd::Completed);
    assert_eq!(subjects(&registry), []);
}

#[test]
fn each_task_that_ran_notifies_too_on_request() {
    let world = World::new();
    let mut registry = world.registry();
    let first = attempt(1, notifying(&ENDS, true));
    let skipped = NewTask {
        follows: Some(Follows { task: first.id.clone(), on: ChainOutcome::Failure }),
        ..notifying(&ENDS, true)
    };
    let ids = submit(&mut registry, &[first, skipped, attempt(2, notifying(&ENDS, true))]);
    run(&mut registry, TaskEnd::Completed);
    assert_eq!(subjects(&registry), [Subject::Task(ids[0].clone())]);
    run(&mut registry, TaskEnd::Completed);
    let mut expected = vec![Subject::Task(ids[0].clone()), Subject::Task(ids[2].clone())];
    expected.sort();
    expected.push(Subject::Group(group()));
    assert_eq!(subjects(&registry), expected);
}
