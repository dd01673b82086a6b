//! A database with the tables of a fleet and the recorder, and the clients that connect to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use delegator_domain::task::Mode;
use delegator_fleet::{Database, DatabaseUrl, FleetTask, NewFleetTask, OnLost, TaskSpec, new_id};
use delegator_testkit::fleet_history::{Ack, History, Unfinished, check, install_recorder, read_history};
use delegator_testkit::postgres::PostgresServer;
use delegator_testkit::stage::wait_until;

use crate::actors::{Client, Worker};

/// So long that it never passes in a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// For tests in which it must pass. Longer than a few calls take on a loaded machine.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

pub(crate) type Log = Arc<Mutex<Vec<Ack>>>;

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) server: PostgresServer,
    log: Log,
}

impl Fleet {
    pub(crate) fn new() -> Fleet {
        Fleet::on(PostgresServer::options().fast().start())
    }

    pub(crate) fn on(server: PostgresServer) -> Fleet {
        let fleet = Fleet { server, log: Log::default() };
        fleet.client().database.migrate().unwrap();
        install_recorder(&fleet.server);
        fleet
    }

    /// A client with connections of its own, like another process.
    pub(crate) fn client(&self) -> Client {
        self.client_at(&self.server.url())
    }

    pub(crate) fn client_at(&self, url: &str) -> Client {
        Client { database: database(url), log: Arc::clone(&self.log) }
    }

    pub(crate) fn worker(&self, name: &str, lease: Duration) -> Worker {
        self.client().worker(name, lease)
    }

    /// Submits a task that fails if its worker is lost.
    pub(crate) fn submit(&self) -> String {
        let task = new_task();
        self.client().submit(&task).unwrap();
        task.id
    }

    pub(crate) fn task(&self, id: &str) -> FleetTask {
        self.client().task(id)
    }

    /// Checks the history so far.
    pub(crate) fn check(&self, unfinished: Unfinished) -> History {
        let history = read_history(&self.server, self.log.lock().unwrap().clone());
        if let Err(problem) = check(&history, unfinished) {
            panic!("{problem}\nserver: {}", self.server.log());
        }
        history
    }
}

pub(crate) fn database(url: &str) -> Database {
    Database::new(&DatabaseUrl::parse(url).unwrap())
}

pub(crate) fn new_task() -> NewFleetTask {
    NewFleetTask {
        id: new_id(),
        idempotency: None,
        spec: TaskSpec {
            environment: "env_app".to_owned(),
            repo_url: "https://example.org/app.git".to_owned(),
            branch: None,
            setup: None,
            mode: Mode::WorkspaceWrite,
            push: false,
            text: "Fix the bug".to_owned(),
            title: "Fix the bug".to_owned(),
            labels: BTreeMap::new(),
            submitter_task: None,
        },
        labels: BTreeMap::new(),
        priority: 0,
        on_lost: OnLost::Fail,
        max_claims: 2,
    }
}

pub(crate) fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Waits for a time that the test itself is about, such as an outage.
pub(crate) fn let_pass(time: Duration) {
    let start = Instant::now();
    wait_until("the time has passed", || start.elapsed() > time);
}
