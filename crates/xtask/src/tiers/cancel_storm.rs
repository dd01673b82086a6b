//! L5: everything is cancelled at once. The willing must be gone soon, the deaf in their time, and nothing may be left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use delegator_domain::task::{State, TaskId};
use delegator_registry::Registry;
use serde_json::json;

use super::Trial;
use super::crowd::{all_have_ended, all_have_spoken, at_wall_ms, side_by_side, submit_all};
use crate::error::LoadError;
use crate::figures::{Figure, percentile};
use crate::processes::zombies_of;
use crate::stage::Stage;

const TASKS: usize = 500;
/// SIGINT, then SIGTERM, then SIGKILL: what lies between, as the stage is set up.
const GRACES_MS: f64 = 10_000.0;
/// An escaped child that nobody found ends by itself.
const ESCAPED_SECONDS: u32 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Willing,
    Escaping,
    Deaf,
}

/// Half of them deaf, a tenth with a child that went its own way.
fn kind_of(index: usize) -> Kind {
    match index % 10 {
        0 => Kind::Escaping,
        1..5 => Kind::Willing,
        _ => Kind::Deaf,
    }
}

pub(super) fn run(trial: &Trial) -> Result<Vec<Figure>, LoadError> {
    let tasks = trial.with_room(trial.scaled(TASKS, 10), 4);
    let stage = trial.stage(tasks)?;
    let agents = Agents::of(&stage)?;
    let agents: Vec<&Path> = (0..tasks).map(|index| agents.of_kind(kind_of(index))).collect();
    let server = stage.server()?;
    let ids = submit_all(&server, &agents)?;
    all_have_spoken(trial, &stage, &ids)?;
    let before = stage.processes().len();
    let asked = side_by_side(&ids, 16, |id| at_wall_ms(|| server.cancel(id, Duration::ZERO)))?;
    let asking = asked.iter().max().zip(asked.iter().min()).map_or(0, |(last, first)| last - first);
    let took = all_have_ended(trial, &stage.door(), Duration::from_secs(120), || {})?;
    trial.patience.rest("letting things settle", Duration::from_secs(2))?;
    // The server itself is one.
    let alive = stage.processes().iter().filter(|one| one.pid != server.pid()).count();
    // A server buries its dead when it is asked something, if not before.
    server.status()?;
    let zombies = zombies_of(&[server.pid()]);
    let registry = stage.door().registry()?;
    let (ends, otherwise) = ends(&registry, &ids, &asked)?;
    let of = |wanted: &[Kind]| -> Vec<f64> {
        ends.iter().filter(|(index, _)| wanted.contains(&kind_of(*index))).map(|(_, took)| *took).collect()
    };
    let (mut gentle, mut escaped, mut deaf) =
        (of(&[Kind::Willing]), of(&[Kind::Escaping]), of(&[Kind::Deaf]));
    Ok(vec![
        Figure::count("tasks running", tasks),
        Figure::count("processes running", before),
        Figure::told("first cancel asked → last one asked", asking as f64, "ms"),
        Figure::told("willing: cancel asked → ended, p50", percentile(&mut gentle, 50.0), "ms"),
        Figure::at_most(1500.0, "willing: cancel asked → ended, p99", percentile(&mut gentle, 99.0), "ms"),
        Figure::at_most(1500.0, "with an escaped child, p99", percentile(&mut escaped, 99.0), "ms"),
        Figure::at_most(
            GRACES_MS + 1000.0,
            "deaf: cancel asked → ended, longest",
            percentile(&mut deaf, 100.0),
            "ms",
        ),
        Figure::told("all ended after", took.as_secs_f64(), "s"),
        Figure::none_of("tasks that ended otherwise, or left something alive", otherwise),
        Figure::none_of("processes alive 2 s after the last end", alive),
        Figure::none_of("zombies of the server", zombies),
    ])
}

/// One program for each kind.
struct Agents {
    willing: PathBuf,
    escaping: PathBuf,
    deaf: PathBuf,
}

impl Agents {
    fn of(stage: &Stage) -> Result<Agents, LoadError> {
        let willing = stage.agent(
            "willing",
            &json!([{"read_stdin": "all"}, {"thread_started": {}}, "turn_started", "silent"]),
        )?;
        let escaping = stage.agent(
        "escaping",
        &json!([
            {"read_stdin": "all"},
            {"child": {"session": "own", "orphan": true, "seconds": ESCAPED_SECONDS, "pid_file": "escaped-{pid}"}},
            {"thread_started": {}}, "turn_started", "silent"
        ]),
    )?;
        let deaf = stage.agent(
        "deaf",
        &json!([
            {"trap": {"signals": ["INT", "TERM"]}}, {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", "silent"
        ]),
    )?;
        Ok(Agents { willing, escaping, deaf })
    }

    fn of_kind(&self, kind: Kind) -> &Path {
        match kind {
            Kind::Willing => &self.willing,
            Kind::Escaping => &self.escaping,
            Kind::Deaf => &self.deaf,
        }
    }
}

/// How long each task took to end, and how many ended in another way.
fn ends(
    registry: &Registry,
    ids: &[String],
    asked_ms: &[i64],
) -> Result<(Vec<(usize, f64)>, usize), LoadError> {
    let (mut took, mut otherwise) = (Vec::new(), 0);
    for (index, (id, asked_ms)) in ids.iter().zip(asked_ms).enumerate() {
        let id = id.parse::<TaskId>().ok();
        let task = id.map(|id| registry.get(&id)).transpose()?.flatten();
        let ended =
            task.as_ref().filter(|task| task.state == State::Cancelled).and_then(|task| task.ended.as_ref());
        match ended.filter(|ended| ended.kill_incomplete.is_none()) {
            Some(ended) => took.push((index, (ended.at_ms - asked_ms) as f64)),
            None => otherwise += 1,
        }
    }
    Ok((took, otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_deaf_and_a_tenth_escape() {
        let count = |wanted| (0..500).filter(|index| kind_of(*index) == wanted).count();
        assert_eq!((count(Kind::Deaf), count(Kind::Escaping), count(Kind::Willing)), (250, 50, 200));
    }
}
