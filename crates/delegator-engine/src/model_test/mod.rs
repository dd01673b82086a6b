//! Model test: many actors run in random order, are killed at random crash points, and all invariants are
//! checked after every step.
//!
//! Engine and registry are real and work on real files; only the machine is simulated (see
//! [`crate::simulation`]). A plan is determined by its seed: which callers come, which actor runs next, which
//! is killed, when the machine reboots. After the last caller nothing is killed any more, upkeep passes run,
//! and every task must end.
//!
//! `MODEL_PLANS=2000` runs more plans; `MODEL_SEED=7` runs one plan and prints its trace.

#![expect(clippy::disallowed_methods, reason = "environment variables select the plans")]
#![expect(clippy::unwrap_used, reason = "a test may stop on an unexpected error")]

mod actions;
mod chains;
mod invariants;
mod live;
mod messages;
mod notifications;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use delegator_registry::{OpenOptions, Registry, StateDir};

use self::actions::Action;
use self::invariants::Invariants;
use self::live::LiveCheck;
use crate::simulation::{SimulatedMachine, Simulator};
use crate::{ConnectionPool, Engine};

/// More than any plan needs.
const MAX_STEPS: usize = 6_000;
const MAX_PASSES: usize = 60;

struct PlanResult {
    verdict: Result<(), String>,
    trace: Vec<String>,
    steps: usize,
    tasks: usize,
}

struct Plan {
    simulator: Arc<Simulator>,
    engine: Engine,
    observer: Registry,
    invariants: Invariants,
    /// In some plans, because it reads every task at every step.
    live: Option<LiveCheck>,
    trees: Vec<PathBuf>,
    actions_left: usize,
    steps: usize,
}

impl Plan {
    fn new(seed: u64, actions: usize, root: &Path) -> Plan {
        let simulator = Simulator::new(seed);
        let trees: Vec<PathBuf> =
            ["a", "a/below", "b"].iter().map(|name| root.join("trees").join(name)).collect();
        trees.iter().for_each(|tree| std::fs::create_dir_all(tree).unwrap());
        let max_concurrent = 1 + usize::try_from(simulator.state().rng.below(3)).unwrap();
        let retention_ms = simulator.state().rng.one_in(3).then_some(2_000);
        let machine = Arc::new(SimulatedMachine(Arc::clone(&simulator)));
        let engine = Engine::with_system(root.join("state"), "/nowhere".into(), machine)
            .with_max_concurrent(max_concurrent)
            .with_retention(retention_ms, None)
            .with_notifications(Some(notifications::notifications()))
            .with_connections(ConnectionPool::of_service());
        let dir = StateDir::open(&engine.state_dir, &OpenOptions::default()).unwrap();
        let observer = Registry::open(&dir).unwrap();
        actions::trust_clock(&engine).unwrap();
        let live = seed.is_multiple_of(4).then(|| LiveCheck::new(&engine));
        Plan {
            simulator,
            engine,
            observer,
            live,
            invariants: Invariants::default(),
            trees,
            actions_left: actions,
            steps: 0,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.run_actors()?;
        self.drain()?;
        self.tidy_up()
    }

    /// Starts callers, runs actors in random order and kills some of them.
    fn run_actors(&mut self) -> Result<(), String> {
        loop {
            let next = self.simulator.next();
            if self.actions_left == 0 && next.is_none() {
                return Ok(());
            }
            let (starts, dies, reboots) = {
                let rng = &mut self.simulator.state().rng;
                (rng.one_in(8), rng.one_in(60), rng.one_in(400))
            };
            if self.actions_left > 0 && (starts || next.is_none()) {
                self.actions_left -= 1;
                self.start_random_action();
            } else if reboots {
                self.simulator.reboot();
            } else if let Some(actor) = next {
                if dies { self.simulator.kill(actor) } else { self.simulator.step(actor) }
            }
            self.check_step()?;
        }
    }

    fn start_random_action(&self) {
        let tasks = self.invariants.ids();
        let action = {
            let mut state = self.simulator.state();
            let threads = state.announced.clone();
            Action::random(&mut state.rng, &self.trees, &tasks, &threads)
        };
        self.start_action(action);
    }

    fn start_action(&self, action: Action) {
        let (engine, name) = (self.engine.clone(), action.name());
        self.simulator.state().trace.push(format!("{name} starts"));
        self.simulator.spawn(name, move |simulator| action.run(&engine, simulator));
    }

    fn check_step(&mut self) -> Result<(), String> {
        self.steps += 1;
        let state = self.simulator.state();
        if let Some(problem) = state.problems.first() {
            return Err(problem.clone());
        }
        if self.steps > MAX_STEPS {
            return Err("the plan does not end".to_owned());
        }
        self.invariants.observe(&self.observer, &state, self.engine.max_concurrent)?;
        drop(state);
        self.live.as_mut().map_or(Ok(()), |live| live.check(&self.engine, &self.observer, self.steps))
    }

    /// Runs upkeep passes, without killing, until every task has ended.
    fn drain(&mut self) -> Result<(), String> {
        self.start_action(Action::PauseQueue(false));
        for _ in 0..MAX_PASSES {
            while let Some(actor) = self.simulator.next() {
                self.simulator.step(actor);
                self.check_step()?;
            }
            if self.invariants.all_ended() {
                return Ok(());
            }
            self.simulator.pass_time(5_000);
            self.start_action(Action::Rescue);
        }
        Err("some tasks never ended".to_owned())
    }

    /// Deletes all tasks and checks that nothing is left and that the registry is intact.
    fn tidy_up(&mut self) -> Result<(), String> {
        let to_text = |error: delegator_registry::RegistryError| error.to_string();
        if !self.simulator.state().agents.is_empty() {
            return Err("an agent is alive without an unfinished task".to_owned());
        }
        self.observer.check().map_err(to_text)?;
        self.observer.prune(&self.invariants.ids()).map_err(to_text)?;
        self.observer.finish_pruning().map_err(to_text)?;
        // Files of a killed submit can be removed at once, whatever their age.
        self.observer.remove_dead_submits().map_err(to_text)?;
        let left = self.observer.orphans(0).map_err(to_text)?;
        self.observer.remove_orphans(&left).map_err(to_text)?;
        let tasks = self.engine.state_dir.join("tasks");
        let left: Vec<_> = std::fs::read_dir(tasks).unwrap().flatten().map(|entry| entry.path()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left behind: {left:?}")) }
    }
}

fn run_plan(seed: u64, actions: usize) -> PlanResult {
    // In memory if possible: the plans test order, not the disk.
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let root = tempfile::tempdir_in(&parent).or_else(|_| tempfile::tempdir()).unwrap();
    let mut plan = Plan::new(seed, actions, root.path());
    let verdict = plan.run();
    plan.simulator.close();
    let trace = std::mem::take(&mut plan.simulator.state().trace);
    PlanResult { verdict, trace, steps: plan.steps, tasks: plan.invariants.ids().len() }
}

/// The number of callers depends on the seed, so that there are short and long plans.
fn action_count(seed: u64) -> usize {
    4 + usize::try_from(seed % 23).unwrap()
}

/// Runs one seed; reports a failure with the fewest callers that still show it.
fn run_seed(seed: u64) -> PlanResult {
    let result = run_plan(seed, action_count(seed));
    if result.verdict.is_ok() {
        return result;
    }
    let fewer =
        (1..action_count(seed)).map(|actions| run_plan(seed, actions)).find(|result| result.verdict.is_err());
    let PlanResult { verdict, trace, .. } = fewer.unwrap_or(result);
    panic!("MODEL_SEED={seed}: {}\n{}", verdict.unwrap_err(), trace.join("\n"));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn the_invariants_hold_whichever_actor_is_killed() {
    if let Some(seed) = number("MODEL_SEED") {
        let result = run_seed(seed);
        eprintln!("{}\nseed {seed}: {} steps, {} tasks", result.trace.join("\n"), result.steps, result.tasks);
        return;
    }
    let plans = number("MODEL_PLANS").unwrap_or(200);
    // A plan runs one actor at a time; independent plans can run in parallel.
    let run_each = |first: u64| {
        let results = (first..plans).step_by(2).map(run_seed);
        results.fold((0, 0), |(steps, tasks), result| (steps + result.steps, tasks + result.tasks))
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| run_each(1));
        (run_each(0), odd.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)))
    });
    let (steps, tasks) = (even.0 + odd.0, even.1 + odd.1);
    eprintln!("{plans} plans, {steps} steps, {tasks} tasks ended, no invariant violated");
    assert!(steps > 0 && tasks > 0, "the plans were empty");
}

#[test]
fn a_seed_always_gives_the_same_run() {
    for seed in [3, 17, 20] {
        let (first, second) = (run_plan(seed, action_count(seed)), run_plan(seed, action_count(seed)));
        assert!(first.steps > 20, "seed {seed} has too few steps");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}
