//! Finding tasks that wrote to the same work tree at the same time.

use delegator_domain::task::{Mode, SandboxKind, TaskEnd, WorkTree};
use delegator_registry::{Attempt, Claim, Finish, NewTask, Registry};

use crate::support::{World, begin, new_task, slots};

fn task(tree: &str, mode: Mode) -> NewTask {
    NewTask { work_trees: vec![WorkTree::from_text(tree)], mode, ..new_task() }
}

fn start(registry: &mut Registry, new: &NewTask) -> Claim {
    registry.submit(new, b"", 1).unwrap();
    let claim = registry.claim_all(&slots(99), 1).unwrap().remove(0);
    begin(registry, &claim);
    claim
}

fn end(registry: &mut Registry, claim: &Claim) {
    let attempt = Attempt::working(claim.nonce.clone());
    registry.finish(&claim.task.id, &attempt, &Finish::bare(TaskEnd::Completed), &slots(99), 2).unwrap();
}

#[test]
fn only_writers_of_the_same_tree_at_the_same_time_count() {
    let world = World::new();
    let mut registry = world.registry();
    let earlier = start(&mut registry, &task("/a", Mode::WorkspaceWrite));
    end(&mut registry, &earlier);
    let before = start(&mut registry, &task("/a/below", Mode::WorkspaceWrite));
    let own = start(&mut registry, &task("/a", Mode::ReadOnly));
    let reader = start(&mut registry, &task("/a", Mode::ReadOnly));
    let elsewhere = start(&mut registry, &task("/b", Mode::WorkspaceWrite));
    let during = start(&mut registry, &task("/a", Mode::WorkspaceWrite));
    let running = start(&mut registry, &task("/a", Mode::WorkspaceWrite));
    let unenforced = NewTask { sandbox: Some(SandboxKind::None), ..task("/a", Mode::ReadOnly) };
    let [ended_unenforced, running_unenforced] = [(); 2]
        .map(|()| start(&mut registry, &NewTask { id: crate::support::fresh_id(), ..unenforced.clone() }));
    for claim in [&before, &reader, &elsewhere, &during, &ended_unenforced] {
        end(&mut registry, claim);
    }
    let mut writers = registry.concurrent_writers(&own.task.id).unwrap();
    writers.sort();
    let expected = [before, during, running, ended_unenforced, running_unenforced];
    let mut expected = expected.map(|claim| claim.task.id);
    expected.sort();
    assert_eq!(writers, expected);
    assert_eq!(registry.concurrent_writers(&crate::support::fresh_id()).unwrap(), []);
}
