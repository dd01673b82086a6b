//! The load tiers. One tier, one file: it sets up a test bed, loads it, and returns figures with their bounds.

mod abandoned_waits;
mod bulk;
mod burst;
mod cancel_storm;
mod hostile_clients;
mod live_readers;
mod mcp_clients;
mod registry_size;
mod soak;
mod status_under_load;
mod steady_load;
mod throughput;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::figures::{Figure, Report, median_of_runs};
use crate::machine;
use crate::programs::Programs;
use crate::testbed::{Testbed, TestbedOptions};

/// One load tier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Time limit of one run.
    timeout: Duration,
    run: fn(&Trial) -> Result<Vec<Figure>, LoadError>,
}

const MINUTE: u64 = 60;

pub(crate) const TIERS: [Tier; 10] = [
    Tier {
        name: "L1",
        about: "throughput: 500 agents at once, 2,000 events each",
        timeout: Duration::from_secs(10 * MINUTE),
        run: throughput::run,
    },
    Tier {
        name: "L2",
        about: "status under L1: 100 requests a second over stdio, 20 over HTTP",
        timeout: Duration::from_secs(10 * MINUTE),
        run: status_under_load::run,
    },
    Tier {
        name: "L3",
        about: "steady load: 500 agents, an event every 5 s each, 8 waiters, 2 minutes",
        timeout: Duration::from_secs(10 * MINUTE),
        run: steady_load::run,
    },
    Tier {
        name: "L4",
        about: "submit burst: 2,000 submits in 10 s, 50 at once, slots full",
        timeout: Duration::from_secs(10 * MINUTE),
        run: burst::run,
    },
    Tier {
        name: "L5",
        about: "cancel storm: 500 running tasks, half ignore signals, 50 with a detached child",
        timeout: Duration::from_secs(10 * MINUTE),
        run: cancel_storm::run,
    },
    Tier {
        name: "L9",
        about: "leak soak: 10,000 short tasks, 20 at once, random cancels, 5 servers",
        timeout: Duration::from_secs(60 * MINUTE),
        run: soak::run,
    },
    Tier {
        name: "L10",
        about: "registry size: 100,000 finished tasks",
        timeout: Duration::from_secs(20 * MINUTE),
        run: registry_size::run,
    },
    Tier {
        name: "L13",
        about: "live readers: 500 agents, an event every 5 s each, 500 queued tasks, 50 event streams, one of which stops for 20 s, watch",
        timeout: Duration::from_secs(10 * MINUTE),
        run: live_readers::run,
    },
    Tier {
        name: "F58",
        about: "hostile HTTP clients: 1,000 slow, 10,000 silent, 100 MiB bodies, garbage, 10,000 sessions",
        timeout: Duration::from_secs(10 * MINUTE),
        run: hostile_clients::run,
    },
    Tier {
        name: "F61",
        about: "abandoned waits: 200 waits of one session whose connections are gone",
        timeout: Duration::from_secs(5 * MINUTE),
        run: abandoned_waits::run,
    },
];

/// What the caller of a tier can choose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadOptions {
    pub(crate) runs: usize,
    pub(crate) scale: f64,
    pub(crate) seed: u64,
    pub(crate) keep: bool,
}

/// One run of one tier.
#[derive(Debug)]
pub(crate) struct Trial {
    programs: Programs,
    name: &'static str,
    options: LoadOptions,
    deadline: Deadline,
    notes: Mutex<Vec<String>>,
}

impl Trial {
    /// Scales a number of the full tier, with a minimum.
    fn scaled(&self, full: usize, minimum: usize) -> usize {
        ((full as f64 * self.options.scale).round() as usize).max(minimum.min(full))
    }

    fn testbed(&self, slots: usize) -> Result<Testbed, LoadError> {
        let (name, keep) = (self.name, self.options.keep);
        let options = TestbedOptions { name, slots, interrupt_grace_sec: 5, terminate_grace_sec: 5, keep };
        Testbed::new(&self.programs, options)
    }

    /// As many tasks as requested, or as many as the machine's process limit permits.
    fn fit_to_machine(&self, tasks: usize, processes_each: u64) -> usize {
        // Leave a quarter for other processes.
        let free = machine::free_process_slots() * 3 / 4 / processes_each;
        let max_tasks = usize::try_from(free).unwrap_or(usize::MAX);
        if max_tasks < tasks {
            self.note(format!("The process limit of this machine permits {max_tasks} of {tasks} tasks."));
        }
        max_tasks.min(tasks)
    }

    fn note(&self, note: impl Into<String>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note.into());
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.options.seed)
    }
}

impl Tier {
    pub(crate) fn named(name: &str) -> Option<Tier> {
        TIERS.into_iter().find(|tier| tier.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn report(&self, programs: &Programs, options: LoadOptions) -> Result<Report, LoadError> {
        machine::raise_file_limit();
        let load1_before = machine::load1();
        let (mut runs, mut notes) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            let trial = Trial {
                programs: programs.clone(),
                name: self.name,
                options,
                deadline: Deadline::new(self.timeout)?,
                notes: Mutex::default(),
            };
            runs.push((self.run)(&trial)?);
            for note in trial.notes.into_inner().unwrap_or_else(PoisonError::into_inner) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        Ok(Report {
            title: format!("{} {}", self.name, self.about),
            scale: options.scale,
            runs: options.runs,
            seed: options.seed,
            cores: machine::cores(),
            load1_before,
            load1_after: machine::load1(),
            figures: median_of_runs(runs),
            notes,
        })
    }
}
