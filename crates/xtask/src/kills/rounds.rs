//! The rounds of the kill loop: submit tasks, kill processes, collect the responses.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::calls::Call;
use crate::clock::{sleep, wall_ms};
use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::processes::ProcessHandle;
use crate::server::handle::Server;
use crate::testbed::Testbed;

const SERVERS: usize = 2;
const SUBMISSIONS: usize = 3;
/// Maximum delay before a kill: during a submission, during a start, during the work.
const KILL_DELAYS_US: [u64; 3] = [8_000, 30_000, 150_000];
const MAX_KILLS: usize = 3;
/// With more open tasks than this, the next round waits.
const MAX_OPEN_TASKS: u64 = 24;

/// How a task is submitted. A submission without a response is retried the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubmitPath {
    Server,
    Call,
}

/// What was killed, submitted and acknowledged.
#[derive(Debug, Default)]
pub(super) struct KillLog {
    pub(super) submissions: usize,
    pub(super) resubmitted: usize,
    pub(super) acknowledged: Vec<String>,
    pub(super) servers_killed: usize,
    pub(super) calls_killed: usize,
    /// The tasks whose supervisor was killed, and when.
    pub(super) supervisors_killed: BTreeMap<String, i64>,
}

pub(super) struct KillLoop<'a> {
    testbed: &'a Testbed,
    agent: &'a Path,
    random: fastrand::Rng,
    deadline: &'a Deadline,
    servers: Vec<Server>,
    /// Submitted without a response.
    unanswered: Vec<(String, SubmitPath)>,
    log: KillLog,
}

impl<'a> KillLoop<'a> {
    pub(super) fn new(
        testbed: &'a Testbed,
        agent: &'a Path,
        seed: u64,
        deadline: &'a Deadline,
    ) -> KillLoop<'a> {
        let random = fastrand::Rng::with_seed(seed);
        let (servers, unanswered, log) = (Vec::new(), Vec::new(), KillLog::default());
        KillLoop { testbed, agent, random, deadline, servers, unanswered, log }
    }

    pub(super) fn run_round(&mut self) -> Result<(), LoadError> {
        self.deadline.check("killing")?;
        self.drain_queue()?;
        while self.servers.len() < SERVERS {
            self.servers.push(self.testbed.server()?);
        }
        let mut submissions = std::mem::take(&mut self.unanswered);
        self.log.resubmitted += submissions.len();
        for _ in 0..SUBMISSIONS {
            let path = if self.random.bool() { SubmitPath::Server } else { SubmitPath::Call };
            submissions.push((format!("task {}", self.log.submissions), path));
            self.log.submissions += 1;
        }
        let mut calls = self.other_calls()?;
        let mut through_servers = Vec::new();
        for (key, path) in submissions {
            match path {
                SubmitPath::Call => calls.push(Call::submit(self.testbed, self.agent, &key)?),
                SubmitPath::Server => through_servers.push(key),
            }
        }
        let responses = self.submit_and_kill(&through_servers, &mut calls)?;
        for (key, task_id) in through_servers.into_iter().zip(responses) {
            self.record_response(key, SubmitPath::Server, task_id);
        }
        for call in calls {
            let key = call.key.clone();
            let task_id = call.finish()?;
            if let Some(key) = key {
                self.record_response(key, SubmitPath::Call, task_id);
            }
        }
        Ok(())
    }

    fn record_response(&mut self, key: String, path: SubmitPath, task_id: Option<String>) {
        match task_id {
            Some(id) => self.log.acknowledged.push(id),
            None => self.unanswered.push((key, path)),
        }
    }

    /// Some calls about tasks that were acknowledged earlier.
    fn other_calls(&mut self) -> Result<Vec<Call>, LoadError> {
        let known = &self.log.acknowledged;
        let mut calls = Vec::new();
        if known.is_empty() {
            return Ok(calls);
        }
        // One of the latest: it may still be running.
        let recent = known[known.len() - 1 - self.random.usize(..known.len().min(8))].clone();
        let choices: [&[&str]; 3] = [
            &["local", "status"],
            &["local", "cancel", &recent],
            &["local", "wait", &recent, "--timeout-sec", "1"],
        ];
        for args in choices {
            if self.random.u8(..3) == 0 {
                calls.push(Call::start(self.testbed, self.agent, args, None)?);
            }
        }
        Ok(calls)
    }

    /// Submits through the servers and kills meanwhile. Returns the responses in the order of the keys.
    fn submit_and_kill(
        &mut self,
        keys: &[String],
        calls: &mut [Call],
    ) -> Result<Vec<Option<String>>, LoadError> {
        let (agent, servers) = (self.agent, &self.servers);
        let mut killed = vec![false; servers.len()];
        let (random, log, testbed) = (&mut self.random, &mut self.log, self.testbed);
        let responses = std::thread::scope(|scope| {
            let submits: Vec<_> = keys
                .iter()
                .map(|key| {
                    let server = &servers[random.usize(..servers.len())];
                    scope.spawn(move || server.submit(agent, key, Some(key)))
                })
                .collect();
            for _ in 0..random.usize(1..=MAX_KILLS) {
                let max_delay = KILL_DELAYS_US[random.usize(..KILL_DELAYS_US.len())];
                sleep(Duration::from_micros(random.u64(..max_delay)));
                match random.u8(..3) {
                    0 => {
                        let victim = random.usize(..servers.len());
                        servers[victim].kill();
                        killed[victim] = true;
                    }
                    1 => kill_random_supervisor(testbed, random, log),
                    _ if !calls.is_empty() => {
                        log.calls_killed += usize::from(calls[random.usize(..calls.len())].kill());
                    }
                    _ => {}
                }
            }
            let task_id = |response: std::thread::Result<Result<String, LoadError>>| match response {
                Ok(Ok(id)) => Ok(Some(id)),
                Ok(Err(LoadError::ServerGone)) => Ok(None),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(LoadError::ServerGone),
            };
            submits.into_iter().map(|submit| task_id(submit.join())).collect::<Result<Vec<_>, _>>()
        })?;
        self.log.servers_killed += killed.iter().filter(|killed| **killed).count();
        let mut killed = killed.into_iter();
        self.servers.retain(|_| killed.next() != Some(true));
        Ok(responses)
    }

    /// Keeps the queue from growing without bound.
    fn drain_queue(&self) -> Result<(), LoadError> {
        let engine = self.testbed.engine();
        if engine.open_tasks()? <= MAX_OPEN_TASKS {
            return Ok(());
        }
        self.deadline.wait_until("draining the queue", Duration::from_secs(60), || {
            engine.status()?;
            Ok(engine.open_tasks()? <= MAX_OPEN_TASKS / 2)
        })
    }

    /// Stops the servers and returns the log.
    pub(super) fn finish(mut self) -> Result<KillLog, LoadError> {
        self.servers.clear();
        self.deadline.check("ending the last round")?;
        Ok(self.log)
    }
}

fn kill_random_supervisor(testbed: &Testbed, random: &mut fastrand::Rng, log: &mut KillLog) {
    let task_of = |process: ProcessHandle| {
        let args = process.args();
        let task = args.get(2).filter(|_| args.get(1).is_some_and(|arg| arg == "supervise")).cloned();
        task.map(|task| (task, process))
    };
    let mut supervisors: Vec<(String, ProcessHandle)> = testbed
        .processes()
        .into_iter()
        .filter(|process| !process.is_before_exec())
        .filter_map(task_of)
        .collect();
    if supervisors.is_empty() {
        return;
    }
    let (task, victim) = supervisors.swap_remove(random.usize(..supervisors.len()));
    victim.kill();
    log.supervisors_killed.insert(task, wall_ms());
}
