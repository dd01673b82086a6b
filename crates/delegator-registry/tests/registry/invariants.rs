//! Any sequence of operations, including late ones, preserves the domain's transition table.

use delegator_domain::task::{FailureKind, LimitKind, State, TaskEnd, TaskId, transition};
use delegator_registry::{Attempt, BeginOutcome, Cas, Finish, Nonce, Registry, Task, TaskFile};
use proptest::prelude::*;

use crate::support::{World, fresh_nonce, identity, slots, submit};

const SLOTS: usize = 2;

/// One operation. Numbers choose among existing tasks and among all attempts ever made.
#[derive(Debug, Clone)]
enum Operation {
    Submit,
    Claim,
    Begin { attempt: usize },
    GiveBack { attempt: usize },
    Cancel { task: usize },
    Finish { attempt: usize, from: bool, end: usize },
    Thread { attempt: usize },
    Prune { task: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    let n = 0..1_000_usize;
    prop_oneof![
        2 => Just(Operation::Submit),
        3 => Just(Operation::Claim),
        3 => n.clone().prop_map(|attempt| Operation::Begin { attempt }),
        2 => n.clone().prop_map(|attempt| Operation::GiveBack { attempt }),
        1 => n.clone().prop_map(|task| Operation::Cancel { task }),
        3 => (n.clone(), any::<bool>(), 0..4_usize)
            .prop_map(|(attempt, from, end)| Operation::Finish { attempt, from, end }),
        1 => n.clone().prop_map(|attempt| Operation::Thread { attempt }),
        1 => n.prop_map(|task| Operation::Prune { task }),
    ]
}

fn end(which: usize) -> TaskEnd {
    let failed =
        TaskEnd::Failed { kind: FailureKind::SupervisorLost, message: String::new(), retry_at_ms: None };
    [TaskEnd::Completed, failed, TaskEnd::Cancelled { reason: None }, TaskEnd::Timeout(LimitKind::Idle)]
        .into_iter()
        .nth(which)
        .unwrap()
}

#[derive(Default)]
struct Model {
    tasks: Vec<TaskId>,
    attempts: Vec<(TaskId, Nonce)>,
    began: Vec<Nonce>,
}

impl Model {
    fn attempt(&self, which: usize) -> (TaskId, Nonce) {
        // Before the first claim: an attempt that does not exist.
        match self.attempts.len() {
            0 => (crate::support::fresh_id(), fresh_nonce()),
            count => self.attempts[which % count].clone(),
        }
    }

    fn task(&self, which: usize) -> TaskId {
        if self.tasks.is_empty() {
            crate::support::fresh_id()
        } else {
            self.tasks[which % self.tasks.len()].clone()
        }
    }

    fn apply(&mut self, registry: &mut Registry, operation: &Operation) {
        match *operation {
            Operation::Submit => self.tasks.push(submit(registry).id),
            Operation::Claim => {
                let claim = registry.claim_next(&slots(SLOTS), 2).unwrap();
                self.attempts.extend(claim.map(|claim| (claim.task.id, claim.nonce)));
            }
            Operation::Begin { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                if registry.begin_work(&id, &nonce, &identity(1), None, 3).unwrap() == BeginOutcome::Working {
                    assert!(!self.began.contains(&nonce), "one attempt began twice");
                    self.began.push(nonce);
                }
            }
            Operation::GiveBack { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                registry.give_back(&id, &nonce, 4).unwrap();
            }
            Operation::Cancel { task } => drop(registry.request_cancel(&self.task(task), None, 5).unwrap()),
            Operation::Finish { attempt, from, end: which } => {
                let (id, nonce) = self.attempt(attempt);
                let attempt = if from { Attempt::starting(nonce) } else { Attempt::working(nonce) };
                let outcome = registry.finish(&id, &attempt, &Finish::bare(end(which)), &slots(SLOTS), 6);
                if let Ok(Cas::Applied(next)) = outcome {
                    self.attempts.extend(next.into_iter().map(|claim| (claim.task.id, claim.nonce)));
                }
            }
            Operation::Thread { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                registry.set_thread(&id, &nonce, "thread", 7).unwrap();
            }
            Operation::Prune { task } => drop(registry.prune(&[self.task(task)]).unwrap()),
        }
    }
}

fn check_invariants(registry: &Registry, tasks: &[TaskId], before: &[Option<Task>]) -> Vec<Option<Task>> {
    let now: Vec<_> = tasks.iter().map(|id| registry.get(id).unwrap()).collect();
    for (id, task) in tasks.iter().zip(&now) {
        let Some(task) = task else {
            assert!(!registry.dir().task(id).path().exists(), "pruned, but its files are there");
            continue;
        };
        let history = registry.history_of(id).unwrap();
        assert_eq!((history[0].from, history[0].to), (None, State::Queued));
        for pair in history.windows(2) {
            assert_eq!(pair[1].from, Some(pair[0].to));
            assert!(transition(pair[0].to, pair[1].to).is_ok(), "{history:?}");
        }
        assert_eq!(history.last().map(|last| last.to), Some(task.state));
        assert!(task.starts <= 3);
        let launch = registry.dir().task(id).read(TaskFile::Launch).unwrap();
        assert_eq!(launch.is_none(), task.state.is_terminal());
    }
    for (before, now) in before.iter().zip(&now) {
        let had_ended = before.as_ref().is_some_and(|task| task.state.is_terminal());
        assert!(!had_ended || now.is_none() || before == now, "an end was changed: {before:?} {now:?}");
        assert!(before.is_none() || had_ended || now.is_some(), "a live task was pruned");
    }
    assert!(registry.active().unwrap().len() <= SLOTS);
    now
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_task_follows_the_transition_table(operations in prop::collection::vec(operation(), 1..40)) {
        let world = World::new();
        let mut registry = world.registry();
        let mut model = Model::default();
        let mut tasks = Vec::new();
        for operation in &operations {
            model.apply(&mut registry, operation);
            tasks = check_invariants(&registry, &model.tasks, &tasks);
        }
        registry.check().unwrap();
    }
}
