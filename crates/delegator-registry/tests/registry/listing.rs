//! Finding and listing tasks.

use delegator_domain::task::{State, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{Cas, Filter, NewTask, Registry, RegistryError};

use crate::support::{World, begin, ended, finish, new_task, slots, submit, working};

fn with_bits(registry: &mut Registry, location: TaskLocation, bits: [u8; 16]) -> TaskId {
    let id = TaskId::from_random(location, bits);
    registry.submit(&NewTask { id: id.clone(), ..new_task() }, b"", 1).unwrap();
    id
}

#[test]
fn an_id_is_found_by_its_prefix() {
    let world = World::new();
    let mut registry = world.registry();
    let first = with_bits(&mut registry, TaskLocation::Local, [10; 16]);
    let mut near = [11; 16];
    let second = with_bits(&mut registry, TaskLocation::Local, near);
    near[9] = 31;
    let third = with_bits(&mut registry, TaskLocation::Local, near);
    let find = |given: &str| registry.find_by_prefix(&given.parse().unwrap()).unwrap();
    assert_eq!(find("aaaa"), std::slice::from_ref(&first));
    assert_eq!(find("T-local-AAAA"), std::slice::from_ref(&first));
    assert_eq!(find("T-cloud-aaaa"), []);
    assert_eq!(find(first.as_str()), [first]);
    assert_eq!(find("bbbb"), [second.clone(), third.clone()]);
    assert_eq!(find(second.as_str()), [second]);
    assert_eq!(find("bbbbbbbbbz"), [third]);
    assert_eq!(find("cccc"), []);
}

#[test]
fn an_ambiguous_prefix_returns_at_most_ten_ids() {
    let world = World::new();
    let mut registry = world.registry();
    for last in 0..12 {
        let mut bits = [14; 16];
        bits[9] = last;
        with_bits(&mut registry, TaskLocation::Cloud, bits);
    }
    assert_eq!(registry.find_by_prefix(&"eeee".parse().unwrap()).unwrap().len(), 10);
}

#[test]
fn filters_are_combined_with_and() {
    let world = World::new();
    let mut registry = world.registry();
    let mut add = |dir: &str, label: &str, at_ms| {
        let labels = [("team".to_owned(), label.to_owned()), ("all".to_owned(), "yes".to_owned())].into();
        let task = NewTask { working_dir: dir.to_owned(), labels, ..new_task() };
        registry.submit(&task, b"", at_ms).unwrap().task.id
    };
    let a = add("/p", "x", 100);
    let b = add("/p/sub", "y", 200);
    let c = add("/p-q", "x", 300);
    let d = add("/pa", "y", 400);
    registry.request_cancel(&b, None, 500).unwrap();
    let listed = |filter: Filter| -> Vec<TaskId> {
        registry.list(&filter, 10, None).unwrap().tasks.into_iter().map(|task| task.id).collect()
    };
    let label = |value: &str| [("team".to_owned(), value.to_owned())].into();
    let in_dir = |dir: &str| Some(dir.to_owned());
    let any = Filter::default;
    assert_eq!(listed(any()), [d.clone(), c.clone(), b.clone(), a.clone()]);
    assert_eq!(listed(Filter { working_dir: in_dir("/p"), ..any() }), [b.clone(), a.clone()]);
    assert_eq!(listed(Filter { working_dir: in_dir("/p/"), ..any() }), [b.clone(), a.clone()]);
    assert_eq!(listed(Filter { working_dir: in_dir("/"), ..any() }).len(), 4);
    assert_eq!(listed(Filter { working_dir: in_dir("/p/su"), ..any() }), []);
    assert_eq!(listed(Filter { states: vec![State::Cancelled, State::Failed], ..any() }), [b]);
    assert_eq!(listed(Filter { labels: label("x"), ..any() }), [c.clone(), a.clone()]);
    assert_eq!(listed(Filter { since_ms: Some(300), ..any() }), [d, c]);
    let both =
        Filter { labels: [label("x"), [("all".to_owned(), "no".to_owned())].into()].concat(), ..any() };
    assert_eq!(listed(both), []);
    let all_at_once = Filter {
        states: vec![State::Queued],
        working_dir: in_dir("/p"),
        labels: label("x"),
        since_ms: Some(50),
        ..any()
    };
    assert_eq!(listed(all_at_once), [a]);
}

trait Concat {
    fn concat(self) -> std::collections::BTreeMap<String, String>;
}

impl Concat for [std::collections::BTreeMap<String, String>; 2] {
    fn concat(self) -> std::collections::BTreeMap<String, String> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn pages_join_without_a_gap_while_tasks_arrive() {
    let world = World::new();
    let mut registry = world.registry();
    let mut expected: Vec<_> = (0..7).map(|_| submit(&mut registry).id).collect();
    expected.reverse();
    for filter in [Filter::default(), Filter { states: vec![State::Queued], ..Filter::default() }] {
        let mut listed = Vec::new();
        let mut from = None;
        loop {
            let page = registry.list(&filter, 3, from).unwrap();
            listed.extend(page.tasks.into_iter().map(|task| task.id));
            submit(&mut registry);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert!(listed.ends_with(&expected), "{listed:?}");
        listed.sort();
        listed.dedup();
        assert!(listed.len() == 7 || listed.len() == 10, "{}", listed.len());
    }
    let exactly = registry.list(&Filter::default(), 14, None).unwrap();
    assert_eq!((exactly.tasks.len(), exactly.next), (14, None), "a full last page has no next page");
}

#[test]
fn ended_tasks_are_ordered_by_end_regardless_of_the_clock() {
    let world = World::new();
    let mut registry = world.registry();
    let first = ended(&mut registry, TaskEnd::Completed, 9_000);
    // The clock was set back.
    let second = ended(&mut registry, TaskEnd::Cancelled { reason: None }, 2_000);
    let old = ended(&mut registry, TaskEnd::Completed, 10);
    let page = |filter: &Filter, limit, before| {
        let page = registry.list_ended(filter, 1_000, limit, before).unwrap();
        (page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>(), page.total, page.next)
    };
    let any = Filter::default();
    assert_eq!(page(&any, 9, None), (vec![second.clone(), first.clone()], 2, None));
    let (shown, total, next) = page(&any, 1, None);
    assert_eq!((shown, total), (vec![second.clone()], 2));
    assert_eq!(page(&any, 1, next), (vec![first], 2, None), "the total counts all pages");
    let cancelled = Filter { states: vec![State::Cancelled], ..any.clone() };
    assert_eq!(page(&cancelled, 9, None), (vec![second], 1, None));
    let elsewhere = Filter { working_dir: Some("/elsewhere".to_owned()), ..any };
    assert_eq!(page(&elsewhere, 9, None), (Vec::new(), 0, None));
    assert_eq!(registry.counts().unwrap().of(State::Completed), 2);
    assert_eq!(registry.ended_before(1_000, 9).unwrap(), [old]);
}

#[test]
fn ended_tasks_with_a_label_are_paged() {
    let world = World::new();
    let mut registry = world.registry();
    let labelled: Vec<_> = ["a", "b", "a", "a"]
        .into_iter()
        .map(|team| {
            let labels = [("team".to_owned(), team.to_owned())].into();
            registry.submit(&NewTask { labels, ..new_task() }, b"", 1).unwrap().task.id
        })
        .collect();
    for id in &labelled {
        registry.request_cancel(id, None, 9_500).unwrap();
    }
    let page = |filter: &Filter, limit, before| {
        let page = registry.list_ended(filter, 1_000, limit, before).unwrap();
        (page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>(), page.total, page.next)
    };
    let team = Filter { labels: [("team".to_owned(), "a".to_owned())].into(), ..Filter::default() };
    let (shown, total, next) = page(&team, 2, None);
    assert_eq!((shown, total), (vec![labelled[3].clone(), labelled[2].clone()], 3));
    assert_eq!(page(&team, 2, next), (vec![labelled[0].clone()], 3, None));
}

#[test]
fn tasks_are_found_by_thread() {
    let world = World::new();
    let mut registry = world.registry();
    let first = working(&mut registry);
    let outcome = registry.set_thread(&first.task.id, &first.nonce, "thread-1", 5).unwrap();
    assert_eq!(outcome, Cas::Applied(()));
    finish(&mut registry, &first, TaskEnd::Completed, 6);
    let resume = NewTask { resumed_thread: Some("thread-1".to_owned()), ..new_task() };
    registry.submit(&resume, b"", 7).unwrap();
    let found: Vec<_> = registry.by_thread("thread-1", 9).unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(found, [resume.id, first.task.id]);
    assert_eq!(registry.by_thread("thread-2", 9).unwrap(), []);
    assert_eq!(registry.threads(9).unwrap(), ["thread-1"]);
}

#[test]
fn a_thread_is_known_once_announced_or_while_a_task_will_resume_it() {
    let world = World::new();
    let mut registry = world.registry();
    let resume = NewTask { resumed_thread: Some("thread-1".to_owned()), ..new_task() };
    registry.submit(&resume, b"", 1).unwrap();
    assert!(registry.knows_thread("thread-1").unwrap(), "a queued task will resume it");
    let claimed = registry.claim_next(&slots(9), 1_001).unwrap().unwrap();
    begin(&mut registry, &claimed);
    finish(&mut registry, &claimed, TaskEnd::Completed, 6);
    assert!(!registry.knows_thread("thread-1").unwrap(), "no agent announced it");
    let second = working(&mut registry);
    registry.set_thread(&second.task.id, &second.nonce, "thread-1", 7).unwrap();
    finish(&mut registry, &second, TaskEnd::Completed, 8);
    assert!(registry.knows_thread("thread-1").unwrap());
}

#[test]
fn active_tasks_are_listed_with_their_supervisor() {
    let world = World::new();
    let mut registry = world.registry();
    ended(&mut registry, TaskEnd::Completed, 5);
    submit(&mut registry);
    submit(&mut registry);
    let starting = registry.claim_next(&slots(9), 1_001).unwrap().unwrap();
    let at_work = registry.claim_next(&slots(9), 1_001).unwrap().unwrap();
    begin(&mut registry, &at_work);
    submit(&mut registry);
    let active = registry.active().unwrap();
    assert_eq!(active.len(), 2);
    assert_eq!(
        (active[0].state, &active[0].nonce, &active[0].supervisor),
        (State::Starting, &starting.nonce, &None)
    );
    assert_eq!((active[1].state, active[1].started_at_ms), (State::Working, Some(1_002)));
    assert_eq!(active[1].supervisor, Some(crate::support::identity(7)));
    assert_eq!(registry.queue(9).unwrap().len(), 1);
}

#[test]
fn reads_in_one_transaction_see_no_change_by_others() {
    let world = World::new();
    let (reader, mut writer) = (world.registry(), world.registry());
    let id = submit(&mut writer).id;
    let states = reader.in_read_transaction(|| {
        let before = reader.get(&id)?.unwrap().state;
        writer.claim_all(&slots(1), 5)?;
        Ok::<_, RegistryError>((before, reader.get(&id)?.unwrap().state))
    });
    assert_eq!(states.unwrap(), (State::Queued, State::Queued));
    assert_eq!(reader.get(&id).unwrap().unwrap().state, State::Starting);
    let failed = reader.in_read_transaction(|| Err::<(), _>(RegistryError::IdInUse { id: id.clone() }));
    assert!(matches!(failed, Err(RegistryError::IdInUse { .. })), "{failed:?}");
    assert_eq!(reader.queue_position(&id).unwrap(), None, "it can read after an error");
}
