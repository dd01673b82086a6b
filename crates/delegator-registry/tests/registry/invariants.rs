//! Any sequence of operations, including late ones, preserves the domain's transition table.

use delegator_domain::task::{FailureKind, LimitKind, State, TaskEnd, TaskId, transition};
use delegator_registry::{Attempt, BeginOutcome, Cas, Finish, Nonce, Registry, Task};
use proptest::prelude::*;

use crate::support::{World, fresh_nonce, identity, slots, submit};

const SLOTS: usize = 2;

/// One operation. Numbers choose among existing tasks and among all attempts ever made.
#[derive(Debug, Clone)]
enum Step {
    Submit,
    Claim,
    Begin { attempt: usize },
    GiveBack { attempt: usize },
    Cancel { task: usize },
    Finish { attempt: usize, from: bool, end: usize },
    Thread { attempt: usize },
    Forget { task: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..1_000_usize;
    prop_oneof![
        2 => Just(Step::Submit),
        3 => Just(Step::Claim),
        3 => n.clone().prop_map(|attempt| Step::Begin { attempt }),
        2 => n.clone().prop_map(|attempt| Step::GiveBack { attempt }),
        1 => n.clone().prop_map(|task| Step::Cancel { task }),
        3 => (n.clone(), any::<bool>(), 0..4_usize)
            .prop_map(|(attempt, from, end)| Step::Finish { attempt, from, end }),
        1 => n.clone().prop_map(|attempt| Step::Thread { attempt }),
        1 => n.prop_map(|task| Step::Forget { task }),
    ]
}

fn end(which: usize) -> TaskEnd {
    let failed =
        TaskEnd::Failed { kind: FailureKind::SupervisorLost, message: String::new(), retry_at: None };
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

    fn take(&mut self, registry: &mut Registry, step: &Step) {
        match *step {
            Step::Submit => self.tasks.push(submit(registry).id),
            Step::Claim => {
                let claimed = registry.claim_next(&slots(SLOTS), 2).unwrap();
                self.attempts.extend(claimed.map(|claimed| (claimed.task.id, claimed.nonce)));
            }
            Step::Begin { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                if registry.begin_work(&id, &nonce, &identity(1), None, 3).unwrap() == BeginOutcome::Working {
                    assert!(!self.began.contains(&nonce), "one attempt began twice");
                    self.began.push(nonce);
                }
            }
            Step::GiveBack { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                registry.give_back(&id, &nonce, 4).unwrap();
            }
            Step::Cancel { task } => drop(registry.request_cancel(&self.task(task), None, 5).unwrap()),
            Step::Finish { attempt, from, end: which } => {
                let (id, nonce) = self.attempt(attempt);
                let attempt = if from { Attempt::starting(nonce) } else { Attempt::working(nonce) };
                let done = registry.finish(&id, &attempt, &Finish::bare(end(which)), &slots(SLOTS), 6);
                if let Ok(Cas::Applied(next)) = done {
                    self.attempts.extend(next.into_iter().map(|claimed| (claimed.task.id, claimed.nonce)));
                }
            }
            Step::Thread { attempt } => {
                let (id, nonce) = self.attempt(attempt);
                registry.set_thread(&id, &nonce, "thread", 7).unwrap();
            }
            Step::Forget { task } => drop(registry.prune(&[self.task(task)]).unwrap()),
        }
    }
}

fn check_invariants(registry: &Registry, tasks: &[TaskId], before: &[Option<Task>]) -> Vec<Option<Task>> {
    let now: Vec<_> = tasks.iter().map(|id| registry.get(id).unwrap()).collect();
    for (id, task) in tasks.iter().zip(&now) {
        let Some(task) = task else {
            assert!(!registry.dir().task(id).exists(), "forgotten, but its files are there");
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
        let launch = registry.dir().task(id).read_launch().unwrap();
        assert_eq!(launch.is_none(), task.state.is_terminal());
    }
    for (before, now) in before.iter().zip(&now) {
        let had_ended = before.as_ref().is_some_and(|task| task.state.is_terminal());
        assert!(!had_ended || now.is_none() || before == now, "an end was changed: {before:?} {now:?}");
        assert!(before.is_none() || had_ended || now.is_some(), "a living task was forgotten");
    }
    assert!(registry.active().unwrap().len() <= SLOTS);
    now
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_task_keeps_to_the_law(steps in prop::collection::vec(step(), 1..40)) {
        let world = World::new();
        let mut registry = world.registry();
        let mut play = Model::default();
        let mut seen = Vec::new();
        for step in &steps {
            play.take(&mut registry, step);
            seen = check_invariants(&registry, &play.tasks, &seen);
        }
        registry.check().unwrap();
    }
}
