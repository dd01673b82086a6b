//! The state of a work tree after a task or a restore, stored beside the restore point of the state before.
//!
//! With both states a restore can tell the task's changes from later ones, and a diff can show them. Only
//! differences are stored: the versions of changed files, their contents within limits, directories and
//! permissions, and the index if it changed. One file in the store holds all of it, after a header line; the
//! contents are in packs of their own. Both are deleted with the restore point. Errors must not affect the
//! task: without this state a restore can only restore the whole tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::{Deserialize, Serialize};

use super::point::RestorePoint;
use crate::capture::Survey;
use crate::diff::NewVersion;
use crate::error::{EndStateProblem, GitError, RestoreError, Result};
use crate::files::Stamp;
use crate::index::IndexFile;
use crate::records::{FileVersion, RepoPath, join_records, on_disk, path_records, records, split_record};
use crate::repository::{Head, end_name};
use crate::scratch::{MAX_MERGED_BYTES, Scratch};

const FORMAT: u32 = 1;
/// The contents of added files, which only a diff needs, are stored up to this many bytes in all.
const MAX_ADDED_BYTES: u64 = 64 << 20;

/// Which of the changes made during a task are the agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChanges {
    /// Changed files, relative to the top of the work tree, that are not attributed to the agent.
    pub unattributed: BTreeSet<Vec<u8>>,
    /// Changed files that are attributed to the agent, but may hold changes of others as well.
    pub doubtful: BTreeMap<Vec<u8>, Doubt>,
    /// Whether changes that no event names, of directories, permissions and the index, may be the agent's.
    pub ran_commands: bool,
    /// Whether a move of HEAD or its branch, with every new commit, may be the agent's.
    pub moved_head: bool,
}

/// Why a change that is attributed to the agent may be, or contain, another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// No event names the file; it changed while a command of the agent ran.
    #[error("changed while a command of the agent ran, and no event of the agent names it")]
    DuringCommand,
    /// The agent could have made the change, but its events do not show whether it did.
    #[error("the agent may have changed it, but its events do not show that")]
    PossiblyAgent,
    /// The agent's events name the file, but it last changed while none of its actions ran.
    #[error("the agent changed it, and it changed again while no action of the agent ran")]
    OutsideActions,
    /// Another task wrote in the work tree at the same time.
    #[error("another task wrote in the work tree at the same time")]
    OtherTask,
}

impl Doubt {
    const ALL: [Doubt; 4] =
        [Doubt::DuringCommand, Doubt::PossiblyAgent, Doubt::OutsideActions, Doubt::OtherTask];

    /// Stored; never changed.
    fn name(self) -> &'static str {
        match self {
            Doubt::DuringCommand => "during_command",
            Doubt::PossiblyAgent => "possibly_agent",
            Doubt::OutsideActions => "outside_actions",
            Doubt::OtherTask => "other_task",
        }
    }
}

#[derive(Debug)]
pub(crate) struct EndState {
    /// The new version of every changed file; `None` if it was deleted.
    pub(crate) changed: BTreeMap<RepoPath, Option<FileVersion>>,
    /// Changed files that were not read; `None` if the file did not exist.
    pub(crate) unread: BTreeMap<RepoPath, Option<Stamp>>,
    pub(crate) survey: Survey,
    /// `None` if it was as before the task.
    pub(crate) index: Option<IndexFile>,
    pub(crate) head: Option<Head>,
    pub(crate) agent: AgentChanges,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    /// The commit of the restore point.
    point: String,
    head: Option<Head>,
    ran_commands: bool,
    moved_head: bool,
    /// Not all directories or permissions were recorded.
    is_partial: bool,
    index: EndIndex,
    /// The lengths of the sections, in the order in which they are stored.
    lengths: [usize; 7],
}

/// Read first: the other fields may differ in another version.
#[derive(Debug, Deserialize)]
struct Version {
    version: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndIndex {
    AsBefore,
    File,
    Missing,
}

pub(crate) struct EndRecord<'a> {
    pub(crate) versions: &'a [NewVersion],
    pub(crate) unread: &'a [(RepoPath, Option<Stamp>)],
    pub(crate) survey: &'a Survey,
    /// `None` if it is as before.
    pub(crate) index: Option<&'a IndexFile>,
    pub(crate) head: Option<Head>,
    pub(crate) agent: &'a AgentChanges,
}

impl EndRecord<'_> {
    /// Stores it beside the restore point of the state before.
    pub(crate) fn store(self, scratch: &Scratch, point: &RestorePoint) -> Result<()> {
        let (index, index_bytes) = match self.index.map(|index| &index.bytes) {
            None => (EndIndex::AsBefore, Vec::new()),
            Some(None) => (EndIndex::Missing, Vec::new()),
            Some(Some(bytes)) => (EndIndex::File, bytes.clone()),
        };
        // Text, TAB, path. A deleted file has no mode and id, a missing one no stamp.
        let version = |(mode, id): &FileVersion| format!("{mode} {id}");
        let versions =
            self.versions.iter().map(|changed| (changed.version.as_ref().map(version), &changed.path));
        let stamps = self.unread.iter().map(|(path, stamp)| (stamp.map(Stamp::to_text), path));
        let doubts = self.agent.doubtful.iter().map(|(path, doubt)| (doubt.name().to_owned() + "\t", path));
        let or_empty = |(text, path): (Option<String>, _)| (text.unwrap_or_default() + "\t", path);
        let sections: [Vec<u8>; 7] = [
            path_records(versions.map(or_empty)),
            path_records(stamps.map(or_empty)),
            join_records(&self.agent.unattributed),
            path_records(doubts),
            self.survey.directories_to_bytes(),
            self.survey.modes_to_bytes(),
            index_bytes,
        ];
        let header = Header {
            version: FORMAT,
            point: point.commit.clone(),
            head: self.head,
            ran_commands: self.agent.ran_commands,
            moved_head: self.agent.moved_head,
            is_partial: self.survey.is_partial,
            index,
            lengths: sections.each_ref().map(Vec::len),
        };
        let encoded = serde_json::to_vec(&header);
        let mut stored = encoded.map_err(|_| GitError::unexpected("state after the task"))?;
        stored.push(b'\n');
        stored.extend(sections.concat());
        pack_contents(scratch, &point.reference, self.versions)?;
        scratch.store.write_end(&point.reference, &stored)
    }
}

/// Packs the contents of changed files. A restore needs those of modified files as the base of a merge, a
/// diff needs all.
fn pack_contents(scratch: &Scratch, reference: &str, versions: &[NewVersion]) -> Result<()> {
    let top = scratch.top();
    let size = |path: &RepoPath| {
        let found = fs::symlink_metadata(on_disk(top, path)).ok()?;
        Some(found.len()).filter(|bytes| *bytes <= MAX_MERGED_BYTES)
    };
    let sized = |changed: &NewVersion| {
        let (_, id) = changed.version.as_ref()?;
        Some((size(&changed.path)?, id.clone()))
    };
    let (modified, added): (Vec<_>, Vec<_>) = versions.iter().partition(|changed| changed.existed);
    let mut added: Vec<(u64, String)> = added.into_iter().filter_map(sized).collect();
    // The smallest first, so that as many as possible are in a diff.
    added.sort();
    let mut total = 0;
    let added = added.into_iter().take_while(|(bytes, _)| {
        total += bytes;
        total <= MAX_ADDED_BYTES
    });
    let objects: BTreeSet<String> =
        modified.into_iter().filter_map(sized).chain(added).map(|(_, id)| id).collect();
    scratch.pack_into(&scratch.store.objects(), &end_name(reference), &objects).map(drop)
}

impl EndState {
    /// Reads the state after the task of a restore point; `None` if it was not stored.
    pub(crate) fn read(scratch: &Scratch, point: &RestorePoint) -> Result<Option<EndState>, RestoreError> {
        let Some((file, bytes)) = scratch.store.read_end(&point.reference)? else { return Ok(None) };
        let state = parse(&bytes, scratch.id_bytes());
        let (commit, state) = state.map_err(|problem| RestoreError::UnreadableEndState { file, problem })?;
        Ok((commit == point.commit).then_some(state))
    }
}

/// The commit of its restore point, and the state.
fn parse(bytes: &[u8], id_bytes: usize) -> Result<(String, EndState), EndStateProblem> {
    let damaged = || EndStateProblem::Damaged;
    let (header, mut rest) = split_record(bytes, b'\n').ok_or_else(damaged)?;
    let Version { version } = serde_json::from_str(header).map_err(|_| damaged())?;
    if version != FORMAT {
        return Err(EndStateProblem::OtherVersion { found: version, known: FORMAT });
    }
    let header: Header = serde_json::from_str(header).map_err(|_| damaged())?;
    let mut sections = [&[][..]; 7];
    for (section, length) in sections.iter_mut().zip(header.lengths) {
        (*section, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    }
    if !rest.is_empty() {
        return Err(damaged());
    }
    let [changed, unread, unattributed, doubtful, directories, modes, index] = sections;
    let version = |text: &str| text.split_once(' ').map(|(mode, id)| (mode.to_owned(), id.to_owned()));
    let doubt = |name: &str| Doubt::ALL.into_iter().find(|doubt| doubt.name() == name);
    let survey = Survey::parse(directories, modes, header.is_partial);
    let index = match header.index {
        EndIndex::AsBefore => None,
        EndIndex::File => Some(IndexFile::parse(index.to_vec(), id_bytes).map_err(|_| damaged())?),
        EndIndex::Missing => Some(IndexFile::default()),
    };
    let state = EndState {
        changed: parse_section(changed, |text| or_missing(text, version(text)))?,
        unread: parse_section(unread, |text| or_missing(text, Stamp::parse(text)))?,
        survey: survey.ok_or_else(damaged)?,
        index,
        head: header.head,
        agent: AgentChanges {
            unattributed: records(unattributed).map(<[u8]>::to_vec).collect(),
            doubtful: parse_section(doubtful, doubt)?,
            ran_commands: header.ran_commands,
            moved_head: header.moved_head,
        },
    };
    Ok((header.point, state))
}

/// The records of a section by their paths; `parse` reads the text before a path.
fn parse_section<T>(
    section: &[u8],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<BTreeMap<RepoPath, T>, EndStateProblem> {
    let entry = |record| {
        let (text, path) = split_record(record, b'\t')?;
        Some((path.to_vec(), parse(text)?))
    };
    records(section).map(entry).collect::<Option<_>>().ok_or(EndStateProblem::Damaged)
}

/// An empty text stands for a missing file; any other must have a value.
fn or_missing<T>(text: &str, value: Option<T>) -> Option<Option<T>> {
    (value.is_some() || text.is_empty()).then_some(value)
}
