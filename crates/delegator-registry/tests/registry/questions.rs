//! The questions of an agent: the first answer wins.

use delegator_domain::question::{
    AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber, QuestionState,
};
use delegator_domain::task::{TaskEnd, TaskId};
use delegator_registry::{AnswerOutcome, Cas, Claim, Registry, StoredAnswer};

use crate::support::{World, finish, fresh_nonce, working};

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn question(number: u32) -> Question {
    let option = |id: &str, kind| AnswerOption { id: id.into(), label: format!("{id}!"), kind };
    Question {
        number: QuestionNumber(number),
        kind: QuestionKind::Permission,
        title: format!("May I use {SECRET}?"),
        detail: Some(format!("curl -H {SECRET}")),
        options: vec![option("yes", OptionKind::AllowOnce), option(SECRET, OptionKind::RejectOnce)],
        free_text: true,
    }
}

fn ask(registry: &mut Registry, claim: &Claim, number: u32) {
    let asked = registry.ask(&claim.task.id, &claim.nonce, &question(number), 900, 100).unwrap();
    assert_eq!(asked, Cas::Applied(()));
}

fn text(text: &str) -> StoredAnswer {
    StoredAnswer { option: None, text: Some(text.into()) }
}

fn answer(registry: &mut Registry, id: &TaskId, number: u32, answer: &StoredAnswer) -> AnswerOutcome {
    registry.answer(id, QuestionNumber(number), answer, &fresh_nonce(), 200).unwrap()
}

fn state(registry: &Registry, id: &TaskId, number: u32) -> QuestionState {
    registry.question(id, QuestionNumber(number)).unwrap().unwrap().state
}

#[test]
fn an_open_question_is_stored_redacted() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    ask(&mut registry, &claim, 1);
    ask(&mut registry, &claim, 2);
    let open = registry.open_questions(&claim.task.id).unwrap();
    let numbers: Vec<u32> = open.iter().map(|found| found.question.number.0).collect();
    assert_eq!(numbers, [1, 2]);
    assert!(!format!("{open:?}").contains(SECRET), "{open:?}");
    assert_eq!((open[0].asked_at_ms, open[0].expires_at_ms), (100, 900));
    assert_eq!(open[0].question.options[0], question(1).options[0]);
    let all = registry.all_open_questions().unwrap();
    assert_eq!(all, open.into_iter().map(|found| (claim.task.id.clone(), found)).collect::<Vec<_>>());
}

#[test]
fn the_first_answer_wins_and_later_ones_get_it() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    ask(&mut registry, &claim, 1);
    let mut registries: Vec<Registry> = (0..8).map(|_| world.registry()).collect();
    let outcomes: Vec<AnswerOutcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = registries
            .iter_mut()
            .enumerate()
            .map(|(number, registry)| {
                scope.spawn(move || answer(registry, id, 1, &text(&format!("{number}"))))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won: Vec<_> =
        outcomes.iter().filter(|outcome| matches!(outcome, AnswerOutcome::Recorded(_))).collect();
    assert_eq!(won.len(), 1);
    let stored = registry.question(id, QuestionNumber(1)).unwrap().unwrap();
    let files = std::fs::read_dir(registry.dir().task(id).path().join("messages")).unwrap().count();
    assert_eq!(files, 1, "only the answer that won has a file");
    for outcome in outcomes {
        let (AnswerOutcome::Recorded(found) | AnswerOutcome::Closed(found)) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(found.answer, stored.answer);
    }
    assert_eq!(answer(&mut registry, id, 7, &text("x")), AnswerOutcome::Unknown);
}

#[test]
fn the_supervisor_gets_the_unredacted_answer_and_the_position_of_the_option() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    for number in 1..=3 {
        ask(&mut registry, &claim, number);
    }
    let asked = [QuestionNumber(1), QuestionNumber(2), QuestionNumber(3)];
    assert_eq!(registry.take_answers(id, &asked).unwrap(), []);
    let second = StoredAnswer { option: Some(1), text: None };
    answer(&mut registry, id, 1, &text(SECRET));
    answer(&mut registry, id, 3, &second);
    let stored = registry.question(id, QuestionNumber(1)).unwrap().unwrap().answer.unwrap();
    assert!(!stored.text.unwrap().contains(SECRET));
    let taken = registry.take_answers(id, &asked).unwrap();
    assert_eq!(taken, [(QuestionNumber(1), text(SECRET)), (QuestionNumber(3), second)]);
    let files = std::fs::read_dir(registry.dir().task(id).path().join("messages")).unwrap().count();
    assert_eq!(files, 0, "the text is removed once it was read");
}

#[test]
fn a_question_is_closed_once() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    for number in 1..=4 {
        ask(&mut registry, &claim, number);
    }
    let mut close =
        |number, how| registry.close_question(id, &claim.nonce, QuestionNumber(number), how, 300).unwrap();
    assert_eq!(close(1, QuestionState::Expired), Cas::Applied(()));
    assert_eq!(close(2, QuestionState::Withdrawn), Cas::Applied(()));
    assert!(matches!(close(1, QuestionState::Withdrawn), Cas::Lost(_)));
    assert!(matches!(answer(&mut registry, id, 1, &text("late")), AnswerOutcome::Closed(_)));
    answer(&mut registry, id, 3, &text("in time"));
    let late =
        registry.close_question(id, &claim.nonce, QuestionNumber(3), QuestionState::Expired, 300).unwrap();
    assert!(matches!(late, Cas::Lost(_)), "an answer that was recorded is not overruled");
    finish(&mut registry, &claim, TaskEnd::Completed, 400);
    let states: Vec<QuestionState> = (1..=4).map(|number| state(&registry, id, number)).collect();
    use QuestionState::{Answered, Expired, Withdrawn};
    assert_eq!(states, [Expired, Withdrawn, Answered, Withdrawn]);
    assert_eq!(registry.all_open_questions().unwrap(), []);
}

#[test]
fn only_the_current_attempt_asks_and_closes() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    let asked = registry.ask(id, &fresh_nonce(), &question(1), 900, 100).unwrap();
    assert!(matches!(asked, Cas::Lost(_)));
    ask(&mut registry, &claim, 1);
    let closed =
        registry.close_question(id, &fresh_nonce(), QuestionNumber(1), QuestionState::Expired, 300).unwrap();
    assert!(matches!(closed, Cas::Lost(_)));
    assert_eq!(state(&registry, id, 1), QuestionState::Open);
}

#[test]
fn a_question_that_was_prolonged_does_not_expire_at_its_first_time() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let (id, number) = (&claim.task.id, QuestionNumber(1));
    ask(&mut registry, &claim, 1);
    let expire = |registry: &mut Registry, known_ms| {
        registry.expire_question(id, &claim.nonce, number, known_ms, 950).unwrap()
    };
    registry.prolong_question(id, number, 500).unwrap();
    assert_eq!(registry.question(id, number).unwrap().unwrap().expires_at_ms, 900, "never earlier");
    registry.prolong_question(id, number, 5_000).unwrap();
    assert!(matches!(expire(&mut registry, 900), Cas::Lost(_)));
    let prolonged = registry.question(id, number).unwrap().unwrap();
    assert_eq!((prolonged.state, prolonged.expires_at_ms), (QuestionState::Open, 5_000));
    assert_eq!(expire(&mut registry, 5_000), Cas::Applied(()));
    registry.prolong_question(id, number, 9_000).unwrap();
    assert_eq!(registry.question(id, number).unwrap().unwrap().expires_at_ms, 5_000, "it is closed");
    assert!(matches!(answer(&mut registry, id, 1, &text("late")), AnswerOutcome::Closed(_)));
}

#[test]
fn an_answer_and_the_end_of_the_time_do_not_both_count() {
    let world = World::new();
    let mut registry = world.registry();
    let claim = working(&mut registry);
    let id = &claim.task.id;
    ask(&mut registry, &claim, 1);
    registry.prolong_question(id, QuestionNumber(1), 5_000).unwrap();
    assert!(matches!(answer(&mut registry, id, 1, &text("in time")), AnswerOutcome::Recorded(_)));
    let expired = registry.expire_question(id, &claim.nonce, QuestionNumber(1), 5_000, 6_000).unwrap();
    assert!(matches!(expired, Cas::Lost(_)));
    assert_eq!(registry.take_answers(id, &[QuestionNumber(1)]).unwrap().len(), 1);
}
