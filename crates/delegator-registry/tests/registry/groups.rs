//! Groups: the attempts at one task are submitted together and found by their group.

use delegator_domain::task::{GroupId, GroupMember};
use delegator_registry::{Filter, Idempotency, NewTask, RegistryError};

use crate::support::{World, new_task};

fn attempts(group: &GroupId, count: u8) -> Vec<(NewTask, Vec<u8>)> {
    let attempt = |attempt| {
        let member = GroupMember { group: group.clone(), attempt };
        (NewTask { group: Some(member), ..new_task() }, b"launch".to_vec())
    };
    (1..=count).map(attempt).collect()
}

#[test]
fn the_attempts_of_a_group_are_found_in_order() {
    let world = World::new();
    let mut registry = world.registry();
    let group = GroupId::from_random([7; 16]);
    let submitted = attempts(&group, 3);
    registry.submit_chain(&submitted, 1_000).unwrap();
    registry.submit_chain(&attempts(&GroupId::from_random([8; 16]), 2), 1_000).unwrap();
    let found = registry.group(&group).unwrap();
    let expected: Vec<_> = submitted.iter().map(|(task, _)| (task.id.clone(), task.group.clone())).collect();
    assert_eq!(found.into_iter().map(|task| (task.id, task.group)).collect::<Vec<_>>(), expected);
    assert_eq!(registry.groups_beginning_with("G-local-7777").unwrap(), [group]);
    assert_eq!(registry.groups_beginning_with("G-local-").unwrap().len(), 2);
    assert_eq!(registry.groups_beginning_with("G-local-zzzz").unwrap(), []);
}

#[test]
fn a_group_is_stored_completely_or_not_at_all() {
    let world = World::new();
    let mut registry = world.registry();
    let group = GroupId::from_random([7; 16]);
    let first = attempts(&group, 2);
    registry.submit_chain(&first, 1_000).unwrap();
    let same_group = registry.submit_chain(&attempts(&group, 2), 1_001);
    assert!(matches!(same_group, Err(RegistryError::IdInUse { .. })), "{same_group:?}");
    let mut same_task = attempts(&GroupId::from_random([8; 16]), 2);
    same_task[1].0.id = first[1].0.id.clone();
    let refused = registry.submit_chain(&same_task, 1_001);
    assert!(matches!(refused, Err(RegistryError::IdInUse { .. })), "{refused:?}");
    assert_eq!(registry.list(&Filter::default(), 9, None).unwrap().tasks.len(), 2);
}

#[test]
fn an_idempotency_key_covers_the_group() {
    let world = World::new();
    let mut registry = world.registry();
    let with_key = |bits: u8| {
        let mut group = attempts(&GroupId::from_random([bits; 16]), 2);
        group[0].0.idempotency = Some(Idempotency::new("key", "hash"));
        group
    };
    let first = registry.submit_chain(&with_key(7), 1_000).unwrap();
    let second = registry.submit_chain(&with_key(8), 1_001).unwrap();
    assert!(second.replayed);
    assert_eq!(second.task.group, first.task.group);
    assert_eq!(registry.list(&Filter::default(), 9, None).unwrap().tasks.len(), 2);
}
