//! `cargo xtask race`: measures this program beside its peers, in one run with the same agent.
//!
//! ```text
//! arena (temporary directory, agent in C, two projects)
//!   ├─ install: the peers, pinned, with npm and pip
//!   ├─ rounds: server_metrics ─▶ task_metrics ─▶ many_tasks ─▶ ending, participants interleaved, load beside each
//!   └─▶ results (stored as JSON) ─▶ page (docs/reports/performance.md)
//! ```
//!
//! Nothing is assumed about a participant: every result is checked for the agent's reply, processes and processor time
//! are read from `/proc`. A participant that fails is reported with its reason, never left out.

mod arena;
mod ending;
mod install;
mod many_tasks;
mod metrics;
mod page;
mod participant;
mod peers;
mod reaper;
mod results;
mod rounds;
mod server_metrics;
mod session;
mod task_metrics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::arena::Arena;
use self::metrics::Group;
use self::participant::Participant;
use self::peers::{PEERS, Peer};
use self::results::{Load, Machine, RaceResults};
use self::rounds::{Race, progress};
use crate::deadline::Deadline;
use crate::error::LoadError;
use crate::machine::{self, CpuTicks};

pub(crate) use self::page::render;
pub(crate) use self::reaper::{REAP, reap};
pub(crate) use self::results::RaceResults as Results;

/// What the caller of the race can choose.
#[derive(Debug, Clone)]
pub(crate) struct RaceOptions {
    /// Our programs, each with its label.
    pub(crate) programs: Vec<(String, PathBuf)>,
    pub(crate) rounds: usize,
    /// Measure only the participants with these names; empty for all.
    pub(crate) only: Vec<String>,
    /// Install no peers.
    pub(crate) offline: bool,
    pub(crate) keep: bool,
    /// Install the peers here and use them again.
    pub(crate) cache: Option<PathBuf>,
    /// Directory of the arena; on a real disk.
    pub(crate) parent: PathBuf,
}

/// The label of our program if none is given.
pub(crate) const OUR_NAME: &str = "mcp-delegator";

impl RaceOptions {
    fn is_selected(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    fn check_names(&self) -> Result<(), LoadError> {
        let known = || {
            self.programs.iter().map(|(label, _)| label.as_str()).chain(PEERS.iter().map(|peer| peer.name))
        };
        match self.only.iter().find(|name| !known().any(|known| known == name.as_str())) {
            Some(name) => Err(LoadError::UnknownParticipant {
                given: name.clone(),
                known: known().map(str::to_owned).collect(),
            }),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(options: &RaceOptions, deadline: &Deadline) -> Result<RaceResults, LoadError> {
    options.check_names()?;
    let arena = Arena::create(&options.parent, options.keep)?;
    let packages = options.cache.clone().unwrap_or_else(|| arena.packages());
    let peers: Vec<&Peer> = PEERS.iter().filter(|peer| options.is_selected(peer.name)).collect();
    // What existed before is the user's.
    let written: Vec<PathBuf> = peers.iter().flat_map(|peer| peer.writes_to).map(PathBuf::from).collect();
    let written: Vec<PathBuf> = written.into_iter().filter(|path| !path.exists()).collect();
    let mut participants = participants(&arena, options, &peers, &packages, deadline)?;
    let installable = (!options.offline).then_some(packages.as_path());
    let measured = measure(&arena, options, installable, deadline, &mut participants);
    for participant in &mut participants {
        participant.close(&arena);
    }
    written.iter().for_each(|path| remove(path));
    let (agent_alone, twenty_agents_alone, loads) = measured?;
    Ok(RaceResults {
        date: today()?,
        machine: Machine {
            processor: machine::processor(),
            cores: machine::cores(),
            kernel: machine::kernel(),
        },
        rounds: options.rounds,
        agent_alone,
        twenty_agents_alone,
        loads,
        entries: participants.into_iter().map(|participant| participant.entry).collect(),
    })
}

fn participants(
    arena: &Arena,
    options: &RaceOptions,
    peers: &[&Peer],
    packages: &Path,
    deadline: &Deadline,
) -> Result<Vec<Participant>, LoadError> {
    let mut participants = Vec::new();
    for (label, program) in options.programs.iter().filter(|(label, _)| options.is_selected(label)) {
        participants.push(Participant::ours(arena, label, program)?);
    }
    let mut installed = 0;
    for peer in peers {
        deadline.check("installing the peers")?;
        let command = if options.offline {
            Err(LoadError::Offline)
        } else {
            progress(&format!("install {} {}", peer.name, peer.version));
            install::install(peer, packages)
        };
        installed += usize::from(command.is_ok());
        participants.push(Participant::peer(arena, peer, command)?);
    }
    if installed == 0 && !peers.is_empty() && !options.offline {
        let problem = participants.iter().find_map(|participant| participant.entry.problem.clone());
        return Err(LoadError::NoPeer { problem: problem.unwrap_or_default() });
    }
    Ok(participants)
}

type Measured = (f64, f64, BTreeMap<Group, Load>);

fn measure(
    arena: &Arena,
    options: &RaceOptions,
    packages: Option<&Path>,
    deadline: &Deadline,
    participants: &mut Vec<Participant>,
) -> Result<Measured, LoadError> {
    let mut race = Race { arena, deadline, participants, rounds: options.rounds };
    let (mut agent_alone, mut twenty_agents_alone) = (f64::NAN, f64::NAN);
    let mut loads = BTreeMap::new();
    for group in Group::ALL {
        let (load1_before, ticks) = (machine::load1(), CpuTicks::now());
        match group {
            Group::Server => server_metrics::measure(&mut race, packages)?,
            Group::OneTask => agent_alone = task_metrics::measure(&mut race)?,
            Group::ManyTasks => twenty_agents_alone = many_tasks::measure(&mut race)?,
            Group::Ending => ending::measure(&mut race)?,
        }
        let (load1_after, steal) = (machine::load1(), CpuTicks::now().steal_since(ticks));
        loads.insert(group, Load { load1_before, load1_after, steal });
    }
    Ok((agent_alone, twenty_agents_alone, loads))
}

/// Removes a file or a directory that a peer created.
fn remove(path: &Path) {
    // It exists only if the peer was installed.
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

#[expect(clippy::disallowed_methods, reason = "the calendar date comes from the system's own command")]
fn today() -> Result<String, LoadError> {
    let date = arena::run_to_end(std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]), "date")?;
    Ok(date.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[&str]) -> RaceOptions {
        RaceOptions {
            programs: vec![("before".to_owned(), PathBuf::from("/bin/true"))],
            rounds: 1,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            offline: true,
            keep: false,
            cache: None,
            parent: std::env::temp_dir(),
        }
    }

    #[test]
    fn unknown_participants_are_refused_with_the_known_ones() {
        assert!(options(&[]).check_names().is_ok());
        assert!(options(&["before", "codex-as-mcp"]).check_names().is_ok());
        let error = options(&["codex-as"]).check_names().unwrap_err().to_string();
        assert!(error.contains("codex-as-mcp") && error.contains("before"), "{error}");
    }

    #[test]
    fn a_selection_leaves_out_all_others() {
        assert!(options(&[]).is_selected("codex-as-mcp"));
        assert!(options(&["before"]).is_selected("before"));
        assert!(!options(&["before"]).is_selected("codex-as-mcp"));
    }
}
