//! A call whose transaction was committed but whose answer was lost, and one that never arrived: repeating it has the
//! effect of one call.

use delegator_domain::task::TaskEnd;
use delegator_fleet::{BlobName, FleetError, FleetState};
use delegator_testkit::fleet_history::Unfinished;
use delegator_testkit::postgres::{Loss, Proxy};

use crate::actors::{Client, Worker, end_of, new_session};
use crate::fleet::{Fleet, LONG, new_task};

const LOSSES: [Loss; 2] = [Loss::Request, Loss::Reply];

struct Faulty {
    fleet: Fleet,
    proxy: Proxy,
}

impl Faulty {
    fn new() -> Faulty {
        let fleet = Fleet::new();
        let proxy = Proxy::start(fleet.server.port());
        Faulty { fleet, proxy }
    }

    fn client(&self) -> Client {
        self.fleet.client_at(&self.fleet.server.url_through(self.proxy.port()))
    }

    fn worker(&self, name: &str) -> Worker {
        self.client().worker(name, LONG)
    }

    /// Makes a call whose commit, or the answer to it, is lost.
    #[track_caller]
    fn lose<T: std::fmt::Debug>(&self, loss: Loss, call: impl FnOnce() -> Result<T, FleetError>) {
        let before = self.proxy.lost();
        self.proxy.lose(loss, "commit");
        let error = call().unwrap_err();
        assert!(matches!(error, FleetError::Unreachable { .. }), "{error}");
        assert_eq!(self.proxy.lost(), before + 1);
    }
}

#[test]
fn a_repeated_submission_is_one_task() {
    let faulty = Faulty::new();
    let client = faulty.client();
    for loss in LOSSES {
        let task = new_task();
        faulty.lose(loss, || client.submit(&task));
        let submitted = client.submit(&task).unwrap();
        assert_eq!((submitted.id, submitted.replayed), (task.id, loss == Loss::Reply));
    }
    assert_eq!(faulty.fleet.check(Unfinished::Allowed).changes.len(), 2);
}

#[test]
fn a_claim_without_an_answer_is_returned_by_the_next_heartbeat() {
    let faulty = Faulty::new();
    for loss in LOSSES {
        faulty.fleet.submit();
        let worker = faulty.worker(&format!("{loss:?}"));
        faulty.lose(loss, || worker.claim(1));
        let owned = worker.database().heartbeat(&worker.session).unwrap().tasks;
        assert_eq!(owned.len(), usize::from(loss == Loss::Reply));
        assert!(owned.iter().all(|task| !task.is_running && task.claim.attempt == 1));
        assert_eq!(worker.work(1).unwrap(), 1);
    }
    faulty.fleet.check(Unfinished::Forbidden);
}

#[test]
fn start_events_files_and_end_can_be_repeated() {
    let faulty = Faulty::new();
    for loss in LOSSES {
        let id = faulty.fleet.submit();
        let worker = faulty.worker(&format!("{loss:?}"));
        let claim = worker.claim_one();
        faulty.lose(loss, || worker.start(&claim));
        worker.start(&claim).unwrap();
        faulty.lose(loss, || worker.append(&claim, 0, b"first\n"));
        assert_eq!(worker.append(&claim, 0, b"first\nsecond\n").unwrap(), 13);
        assert_eq!(worker.append(&claim, 20, b"gap").unwrap_err(), FleetError::Gap { stored: 13 });
        let diff = vec![b'+'; 1_300_000];
        faulty.lose(loss, || worker.database().put_blob(&claim, BlobName::Diff, &diff));
        assert_eq!(worker.database().blob(&id, BlobName::Diff).unwrap(), None);
        let unsealed = delegator_fleet::FinishedTask {
            blobs: vec![BlobName::Diff],
            ..crate::actors::finished(&claim, TaskEnd::Completed)
        };
        let refused = worker.database().finish(&claim, &unsealed).unwrap_err();
        assert_eq!(refused, FleetError::NotSealed { name: "diff" });
        worker.database().put_blob(&claim, BlobName::Diff, &diff).unwrap();
        faulty.lose(loss, || worker.finish(&claim, TaskEnd::Completed));
        worker.finish(&claim, TaskEnd::Completed).unwrap();
        worker.finish(&claim, TaskEnd::Completed).unwrap();
        // The repetition of another end is not accepted.
        assert!(worker.finish(&claim, TaskEnd::Cancelled { reason: None }).is_err());
        assert_eq!(end_of(faulty.fleet.task(&id)), TaskEnd::Completed);
        assert_eq!(worker.database().blob(&id, BlobName::Diff).unwrap(), Some(diff));
        let page = worker.database().events(&id, delegator_fleet::EventPosition::default(), 1 << 20).unwrap();
        assert_eq!(page.bytes, b"first\nsecond\n");
    }
}

#[test]
fn a_cancel_can_be_repeated() {
    let faulty = Faulty::new();
    let client = faulty.client();
    for loss in LOSSES {
        let id = faulty.fleet.submit();
        faulty.lose(loss, || client.database.cancel(&id, Some("enough")));
        client.database.cancel(&id, Some("enough")).unwrap();
        assert_eq!(end_of(faulty.fleet.task(&id)), TaskEnd::Cancelled { reason: Some("enough".to_owned()) });
    }
    faulty.fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_session_that_was_opened_without_an_answer_is_replaced() {
    let faulty = Faulty::new();
    for loss in LOSSES {
        let client = faulty.client();
        let name = format!("{loss:?}");
        faulty.lose(loss, || client.database.open_session(&new_session(&name, LONG)));
        let worker = client.worker(&name, LONG);
        faulty.fleet.submit();
        assert_eq!(worker.work(1).unwrap(), 1);
        faulty.lose(loss, || worker.database().heartbeat(&worker.session));
        worker.database().heartbeat(&worker.session).unwrap();
    }
    assert_eq!(faulty.fleet.client().database.status().unwrap().workers.len(), 2);
    faulty.fleet.check(Unfinished::Forbidden);
}

#[test]
fn a_cut_connection_is_replaced_when_the_network_is_back() {
    let faulty = Faulty::new();
    let id = faulty.fleet.submit();
    let worker = faulty.worker("worker");
    let claim = worker.run_one();
    faulty.proxy.cut();
    let error = worker.database().heartbeat(&worker.session).unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(faulty.fleet.task(&id).state, FleetState::Running);
    faulty.proxy.forward();
    worker.finish(&claim, TaskEnd::Completed).unwrap();
    faulty.fleet.check(Unfinished::Forbidden);
}
