//! One round after the other: work is begun, somebody dies, answers are collected.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::calls::Call;
use crate::clock::{pause, wall_ms};
use crate::error::LoadError;
use crate::patience::Patience;
use crate::processes::Held;
use crate::server::handle::Server;
use crate::stage::Stage;

const SERVERS: usize = 2;
const SUBMISSIONS: usize = 3;
/// How long after the last thing somebody dies: within a submission, within a start, within the work.
const MOMENTS_US: [u64; 3] = [8_000, 30_000, 150_000];
const MOST_KILLS: usize = 3;
/// More open tasks than this are worked off before the next round.
const OPEN_AT_MOST: u64 = 24;

/// By whom a task is submitted. Who is not answered tries again the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Server,
    Call,
}

/// What was done, and what was promised.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    pub(super) submissions: usize,
    pub(super) again: usize,
    pub(super) acknowledged: Vec<String>,
    pub(super) servers_killed: usize,
    pub(super) calls_killed: usize,
    /// The tasks whose supervisor was killed, and when.
    pub(super) supervisors_killed: BTreeMap<String, i64>,
}

pub(super) struct Rounds<'a> {
    stage: &'a Stage,
    agent: &'a Path,
    random: fastrand::Rng,
    patience: &'a Patience,
    servers: Vec<Server>,
    /// Submitted, and nobody has answered.
    unanswered: Vec<(String, By)>,
    deeds: Deeds,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(stage: &'a Stage, agent: &'a Path, seed: u64, patience: &'a Patience) -> Rounds<'a> {
        let random = fastrand::Rng::with_seed(seed);
        let (servers, unanswered, deeds) = (Vec::new(), Vec::new(), Deeds::default());
        Rounds { stage, agent, random, patience, servers, unanswered, deeds }
    }

    pub(super) fn play_one(&mut self) -> Result<(), LoadError> {
        self.patience.check("killing")?;
        self.keep_up()?;
        while self.servers.len() < SERVERS {
            self.servers.push(self.stage.server()?);
        }
        let mut wanted = std::mem::take(&mut self.unanswered);
        self.deeds.again += wanted.len();
        for _ in 0..SUBMISSIONS {
            let by = if self.random.bool() { By::Server } else { By::Call };
            wanted.push((format!("task {}", self.deeds.submissions), by));
            self.deeds.submissions += 1;
        }
        let mut calls = self.other_calls()?;
        let mut through_servers = Vec::new();
        for (key, by) in wanted {
            match by {
                By::Call => calls.push(Call::submit(self.stage, self.agent, &key)?),
                By::Server => through_servers.push(key),
            }
        }
        let answers = self.kill_amid(&through_servers, &mut calls)?;
        for (key, answer) in through_servers.into_iter().zip(answers) {
            self.note(key, By::Server, answer);
        }
        for call in calls {
            let key = call.key.clone();
            let answer = call.finish()?;
            if let Some(key) = key {
                self.note(key, By::Call, answer);
            }
        }
        Ok(())
    }

    fn note(&mut self, key: String, by: By, answer: Option<String>) {
        match answer {
            Some(id) => self.deeds.acknowledged.push(id),
            None => self.unanswered.push((key, by)),
        }
    }

    /// Calls about tasks that were acknowledged earlier, some of them.
    fn other_calls(&mut self) -> Result<Vec<Call>, LoadError> {
        let known = &self.deeds.acknowledged;
        let mut calls = Vec::new();
        if known.is_empty() {
            return Ok(calls);
        }
        // One of the last: it may still be running.
        let recent = known[known.len() - 1 - self.random.usize(..known.len().min(8))].clone();
        let choices: [&[&str]; 3] = [
            &["local", "status"],
            &["local", "cancel", &recent],
            &["local", "wait", &recent, "--timeout-sec", "1"],
        ];
        for words in choices {
            if self.random.u8(..3) == 0 {
                calls.push(Call::start(self.stage, self.agent, words, None)?);
            }
        }
        Ok(calls)
    }

    /// Submits through the servers and, while that goes on, kills. The answers, in the order of the keys.
    fn kill_amid(&mut self, keys: &[String], calls: &mut [Call]) -> Result<Vec<Option<String>>, LoadError> {
        let (agent, servers) = (self.agent, &self.servers);
        let mut gone = vec![false; servers.len()];
        let (random, deeds, stage) = (&mut self.random, &mut self.deeds, self.stage);
        let answers = std::thread::scope(|scope| {
            let asked: Vec<_> = keys
                .iter()
                .map(|key| {
                    let server = &servers[random.usize(..servers.len())];
                    scope.spawn(move || server.submit(agent, key, Some(key)))
                })
                .collect();
            for _ in 0..random.usize(1..=MOST_KILLS) {
                let within = MOMENTS_US[random.usize(..MOMENTS_US.len())];
                pause(Duration::from_micros(random.u64(..within)));
                match random.u8(..3) {
                    0 => {
                        let victim = random.usize(..servers.len());
                        servers[victim].kill();
                        gone[victim] = true;
                    }
                    1 => kill_a_supervisor(stage, random, deeds),
                    _ if !calls.is_empty() => {
                        deeds.calls_killed += usize::from(calls[random.usize(..calls.len())].kill());
                    }
                    _ => {}
                }
            }
            let heard = |answer: std::thread::Result<Result<String, LoadError>>| match answer {
                Ok(Ok(id)) => Ok(Some(id)),
                Ok(Err(LoadError::ServerGone)) => Ok(None),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(LoadError::ServerGone),
            };
            asked.into_iter().map(|asked| heard(asked.join())).collect::<Result<Vec<_>, _>>()
        })?;
        self.deeds.servers_killed += gone.iter().filter(|gone| **gone).count();
        let mut gone = gone.into_iter();
        self.servers.retain(|_| gone.next() != Some(true));
        Ok(answers)
    }

    /// Does not let the queue grow without end.
    fn keep_up(&self) -> Result<(), LoadError> {
        let door = self.stage.door();
        if door.open_tasks()? <= OPEN_AT_MOST {
            return Ok(());
        }
        self.patience.until("working the queue off", Duration::from_secs(60), || {
            door.status()?;
            Ok(door.open_tasks()? <= OPEN_AT_MOST / 2)
        })
    }

    /// Nobody is asked any more.
    pub(super) fn end(mut self) -> Result<Deeds, LoadError> {
        self.servers.clear();
        self.patience.check("ending the last round")?;
        Ok(self.deeds)
    }
}

fn kill_a_supervisor(stage: &Stage, random: &mut fastrand::Rng, deeds: &mut Deeds) {
    let task_of = |process: Held| {
        let words = process.words();
        let task = words.get(2).filter(|_| words.get(1).is_some_and(|word| word == "supervise")).cloned();
        task.map(|task| (task, process))
    };
    let mut supervisors: Vec<(String, Held)> = stage.processes().into_iter().filter_map(task_of).collect();
    if supervisors.is_empty() {
        return;
    }
    let (task, victim) = supervisors.swap_remove(random.usize(..supervisors.len()));
    victim.kill();
    deeds.supervisors_killed.insert(task, wall_ms());
}
