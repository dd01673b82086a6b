//! L5: every task is cancelled at once. Cooperative agents must end quickly, those that ignore signals within the grace
//! periods, and no process may be left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{State, TaskId};
use delegator_registry::Registry;
use serde_json::json;

use super::Trial;
use super::bulk::{requested_at_ms, run_parallel, submit_all, wait_all_ended, wait_all_started};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::zombies_of;
use crate::testbed::Testbed;

const TASKS: usize = 500;
/// From SIGINT to SIGKILL, as the test bed is configured.
const GRACES_MS: f64 = 10_000.0;
/// A detached child that is not found exits by itself.
const DETACHED_SECONDS: u32 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentKind {
    Cooperative,
    Escaping,
    IgnoresSignals,
}

/// Half of them ignore signals, a tenth start a child that detaches.
fn kind_of(index: usize) -> AgentKind {
    match index % 10 {
        0 => AgentKind::Escaping,
        1..5 => AgentKind::Cooperative,
        _ => AgentKind::IgnoresSignals,
    }
}

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let tasks = trial.fit_to_machine(trial.scaled(TASKS, 10), 4);
    let testbed = trial.testbed(tasks)?;
    let agents = Agents::create(&testbed)?;
    let agents: Vec<&Path> = (0..tasks).map(|index| agents.of_kind(kind_of(index))).collect();
    let server = testbed.server()?;
    let ids = submit_all(&server, &agents)?;
    wait_all_started(trial, &testbed, &ids)?;
    let before = testbed.processes().len();
    let cancelled_at_ms = run_parallel(&ids, 16, |id| requested_at_ms(|| server.cancel(id, Duration::ZERO)))?;
    let request_span_ms = cancelled_at_ms
        .iter()
        .max()
        .zip(cancelled_at_ms.iter().min())
        .map_or(0, |(last, first)| last - first);
    let elapsed = wait_all_ended(trial, &testbed.engine(), Duration::from_secs(120), || {})?;
    trial.deadline.sleep("letting things settle", Duration::from_secs(2))?;
    // Without the server itself.
    let alive = testbed.processes().iter().filter(|process| process.pid != server.pid()).count();
    // A server reaps its children on the next request, if not before.
    server.status()?;
    let zombies = zombies_of(&[server.pid()]);
    let registry = testbed.engine().registry()?;
    let (ends, other_ends) = ends(&registry, &ids, &cancelled_at_ms)?;
    let durations_of = |kinds: &[AgentKind]| -> Vec<f64> {
        ends.iter()
            .filter(|(index, _)| kinds.contains(&kind_of(*index)))
            .map(|(_, duration)| *duration)
            .collect()
    };
    let (mut cooperative, mut escaping, mut ignoring) = (
        durations_of(&[AgentKind::Cooperative]),
        durations_of(&[AgentKind::Escaping]),
        durations_of(&[AgentKind::IgnoresSignals]),
    );
    Ok(vec![
        Figure::count("tasks running", tasks),
        Figure::count("processes running", before),
        Figure::unbounded("first cancel requested → last cancel requested", request_span_ms as f64, "ms"),
        Figure::unbounded(
            "cooperative: cancel requested → ended, p50",
            percentile(&mut cooperative, 50.0),
            "ms",
        ),
        Figure::at_most(
            1500.0,
            "cooperative: cancel requested → ended, p99",
            percentile(&mut cooperative, 99.0),
            "ms",
        ),
        Figure::at_most(1500.0, "with a detached child, p99", percentile(&mut escaping, 99.0), "ms"),
        Figure::at_most(
            GRACES_MS + 1000.0,
            "ignoring signals: cancel requested → ended, longest",
            percentile(&mut ignoring, 100.0),
            "ms",
        ),
        Figure::unbounded("all ended after", elapsed.as_secs_f64(), "s"),
        Figure::must_be_zero("tasks that ended otherwise or left a process alive", other_ends),
        Figure::must_be_zero("processes alive 2 s after the last end", alive),
        Figure::must_be_zero("zombies of the server", zombies),
    ])
}

/// One agent program of each kind.
struct Agents {
    cooperative: PathBuf,
    escaping: PathBuf,
    ignoring: PathBuf,
}

impl Agents {
    fn create(testbed: &Testbed) -> Result<Agents, LoadError> {
        let cooperative = testbed.agent(
            "cooperative",
            &json!([{"read_stdin": "all"}, {"thread_started": {}}, "turn_started", "silent"]),
        )?;
        let escaping = testbed.agent(
        "escaping",
        &json!([
            {"read_stdin": "all"},
            {"child": {"session": "own", "orphan": true, "seconds": DETACHED_SECONDS, "pid_file": "escaped-{pid}"}},
            {"thread_started": {}}, "turn_started", "silent"
        ]),
    )?;
        let ignoring = testbed.agent(
        "ignores-signals",
        &json!([
            {"trap": {"signals": ["INT", "TERM"]}}, {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", "silent"
        ]),
    )?;
        Ok(Agents { cooperative, escaping, ignoring })
    }

    fn of_kind(&self, kind: AgentKind) -> &Path {
        match kind {
            AgentKind::Cooperative => &self.cooperative,
            AgentKind::Escaping => &self.escaping,
            AgentKind::IgnoresSignals => &self.ignoring,
        }
    }
}

/// How long each task took to end, and how many ended otherwise.
fn ends(
    registry: &Registry,
    ids: &[String],
    cancelled_at_ms: &[i64],
) -> Result<(Vec<(usize, f64)>, usize), LoadError> {
    let (mut durations, mut other_ends) = (Vec::new(), 0);
    for (index, (id, requested_ms)) in ids.iter().zip(cancelled_at_ms).enumerate() {
        let id = id.parse::<TaskId>().ok();
        let task = id.map(|id| registry.get(&id)).transpose()?.flatten();
        let ended =
            task.as_ref().filter(|task| task.state == State::Cancelled).and_then(|task| task.ended.as_ref());
        match ended.filter(|ended| ended.survivors.is_empty()) {
            Some(ended) => durations.push((index, (ended.at_ms - requested_ms) as f64)),
            None => other_ends += 1,
        }
    }
    Ok((durations, other_ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_ignore_signals_and_a_tenth_have_escaping_children() {
        let count = |wanted| (0..500).filter(|index| kind_of(*index) == wanted).count();
        assert_eq!(
            (count(AgentKind::IgnoresSignals), count(AgentKind::Escaping), count(AgentKind::Cooperative)),
            (250, 50, 200)
        );
    }
}
