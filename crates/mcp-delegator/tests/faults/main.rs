//! Guarantees when something goes wrong. A test begins with the id of its row in `docs/reliability.md`.
//!
//! Everything is real (the program, its supervisors, the agent's processes) except the agent, which runs a script.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod agent_exit;
mod cancellation;
mod inputs;
mod output;
mod processes;
mod resource_limits;
mod streams;
mod timeouts;
mod working_dirs;

use delegator_registry::{OpenOptions, Registry, StateDir};
use delegator_testkit::stage::Stage;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

fn scripted_stage(steps: Value) -> Stage {
    Stage::with_script(PROGRAM, steps)
}

fn registry(stage: &Stage) -> Registry {
    let dir = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
    Registry::open(&dir).unwrap()
}

/// The terminal states recorded for a task; at most one is allowed.
fn terminal_states(stage: &Stage, id: &str) -> Vec<String> {
    let history = registry(stage).history_of(&id.parse().unwrap()).unwrap();
    let ends = history.iter().filter(|entry| entry.to.is_terminal());
    ends.map(|entry| entry.to.name().to_owned()).collect()
}

/// A small deterministic random number generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % max
    }
}
