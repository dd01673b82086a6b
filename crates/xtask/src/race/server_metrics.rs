//! The server itself: its start, its memory, its list of tools and its status.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::arena::Place;
use super::install::count_tokens;
use super::metrics::Metric;
use super::peers::Inserted;
use super::results::Outcome;
use super::rounds::{Race, median};
use crate::clock::milliseconds;
use crate::error::LoadError;
use crate::processes::{descendants, rss_kib};

/// Memory hardly differs between starts.
pub(crate) const MEMORY_ROUNDS: usize = 3;

pub(crate) fn measure(race: &mut Race<'_>, packages: Option<&Path>) -> Result<(), LoadError> {
    let rounds = race.few_rounds();
    race.measure(
        Metric::Start,
        rounds,
        |_| Ok(()),
        |participant, arena| {
            let (session, elapsed) = participant.open(arena, Place::Plain)?;
            session.close();
            Ok(Some(elapsed))
        },
    )?;
    race.measure(
        Metric::Memory,
        rounds.min(MEMORY_ROUNDS),
        |_| Ok(()),
        |participant, arena| {
            let (mut session, _) = participant.open(arena, Place::Plain)?;
            let tools = session.list_tools()?;
            let pids = descendants(session.pid());
            let kib: u64 = pids.into_iter().chain([session.pid()]).filter_map(rss_kib).sum();
            session.close();
            let list = serde_json::to_vec(&tools).unwrap_or_default();
            let bytes = median(vec![list.len() as f64]);
            std::fs::write(participant.dir.join("tools.json"), list)
                .map_err(LoadError::io("store the tool list"))?;
            participant.entry.tools = Some(tools.len());
            participant.entry.outcomes.insert(Metric::ToolBytes, bytes);
            Ok(Some(kib as f64 / 1024.0))
        },
    )?;
    count_tool_tokens(race, packages);
    race.measure(
        Metric::Status,
        race.rounds,
        |_| Ok(()),
        |participant, arena| {
            let Some(status) = participant.tools.status else { return Ok(None) };
            let session = participant.session(arena, Place::Plain)?;
            let started = Instant::now();
            session.call(status, Inserted::default())?.text()?;
            Ok(Some(milliseconds(started.elapsed())))
        },
    )
}

/// Without packages there is no tokenizer; the bytes still stand in the table.
fn count_tool_tokens(race: &mut Race<'_>, packages: Option<&Path>) {
    let listed: Vec<usize> = (0..race.participants.len())
        .filter(|index| {
            race.participants.get(*index).is_some_and(|participant| participant.entry.tools.is_some())
        })
        .collect();
    let files: Vec<PathBuf> = listed
        .iter()
        .filter_map(|index| race.participants.get(*index))
        .map(|participant| participant.dir.join("tools.json"))
        .collect();
    let counts = packages.ok_or(LoadError::Offline).and_then(|packages| count_tokens(packages, &files));
    for (at, index) in listed.iter().enumerate() {
        let outcome = match &counts {
            Ok(counts) => counts.get(at).map_or(Outcome::NotOffered, |count| median(vec![*count])),
            Err(error) => Outcome::Failed { reason: error.to_string() },
        };
        if let Some(participant) = race.participants.get_mut(*index) {
            participant.entry.outcomes.insert(Metric::ToolTokens, outcome);
        }
    }
}
