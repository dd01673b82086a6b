//! Finds the session file of a thread in Codex's home directory, or lists those of all threads.
//!
//! Measured with 0.166: `codex exec resume ID` looks for `rollout-<time>-<id>.jsonl` (or `.jsonl.zst`)
//! anywhere below `sessions/`, also through links, and refuses a thread whose file is below
//! `archived_sessions/`. An unknown UUID fails; any other unknown text silently begins a new thread. Only
//! file names are read: a store may hold gigabytes.

use std::io;
use std::path::{Path, PathBuf};

use super::home::codex_home;
use crate::agent::health::ThreadLookup;
use crate::variables::Variables;

const SESSIONS: &str = "sessions";
const ARCHIVED: &str = "archived_sessions";
/// `sessions/YYYY/MM/DD`, and some more.
const MAX_DEPTH: usize = 8;
/// Bounds the search in a directory that is not a session store, or contains a loop of links.
const MAX_ENTRIES: usize = 200_000;
/// Length of `2026-11-16T05-56-29-`, which precedes the id in a file name.
const TIME_PREFIX: usize = 20;

/// A session that Codex stored, by the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    pub thread_id: String,
    pub file: PathBuf,
}

/// The stored sessions, except for compressed and archived ones; the newest first.
pub fn stored_sessions(environment: &Variables) -> io::Result<Vec<StoredSession>> {
    let Some(home) = codex_home(environment) else { return Ok(Vec::new()) };
    let mut search = ThreadSearch::of(None);
    search.visit(&home.join(SESSIONS), 0)?;
    let mut sessions = search.others;
    sessions.retain(|session| session.file.extension().is_some_and(|extension| extension == "jsonl"));
    // The names begin with the time. A loop of links leads to the same file again.
    sessions.sort_by(|one, other| other.file.file_name().cmp(&one.file.file_name()));
    sessions.dedup_by(|one, other| one.file.file_name() == other.file.file_name());
    Ok(sessions)
}

pub(in crate::agent) fn find_thread(environment: &Variables, thread_id: &str) -> ThreadLookup {
    match codex_home(environment) {
        Some(home) => find_in(&home, thread_id),
        None => ThreadLookup::NotSearchable,
    }
}

fn find_in(codex_home: &Path, thread_id: &str) -> ThreadLookup {
    let mut search = ThreadSearch::of(Some(thread_id));
    if search.visit(&codex_home.join(SESSIONS), 0).is_err() {
        return ThreadLookup::NotSearchable;
    }
    if search.found {
        return ThreadLookup::Stored;
    }
    let ids: Vec<String> = search.others.drain(..).map(|session| session.thread_id).collect();
    let mut archive = search;
    match archive.visit(&codex_home.join(ARCHIVED), 0) {
        Err(_) => ThreadLookup::NotSearchable,
        Ok(()) if archive.found => {
            ThreadLookup::Archived { unarchive: format!("codex unarchive {thread_id}") }
        }
        Ok(()) => ThreadLookup::unknown(thread_id, &ids),
    }
}

struct ThreadSearch<'a> {
    /// Without an id all sessions are visited.
    thread_id: Option<&'a str>,
    found: bool,
    entries_left: usize,
    others: Vec<StoredSession>,
}

impl<'a> ThreadSearch<'a> {
    fn of(thread_id: Option<&'a str>) -> ThreadSearch<'a> {
        ThreadSearch { thread_id, found: false, entries_left: MAX_ENTRIES, others: Vec::new() }
    }

    /// Visits a directory, newest entries first, until the thread is found. A missing directory is empty.
    fn visit(&mut self, directory: &Path, depth: usize) -> io::Result<()> {
        let entries = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let mut directories = Vec::new();
        for entry in entries {
            let entry = entry?;
            self.entries_left = self.entries_left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
            let name = entry.file_name();
            match name.to_str().and_then(thread_of) {
                Some(id) if Some(id) == self.thread_id => {
                    self.found = true;
                    return Ok(());
                }
                Some(id) => {
                    self.others.push(StoredSession { thread_id: id.to_owned(), file: entry.path() });
                }
                None if entry.path().is_dir() => directories.push(entry.path()),
                None => {}
            }
        }
        if depth < MAX_DEPTH {
            directories.sort();
            for directory in directories.into_iter().rev() {
                self.visit(&directory, depth + 1)?;
                if self.found {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The thread whose session file has this name.
fn thread_of(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    stem.strip_prefix("rollout-")?.get(TIME_PREFIX..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "01a1e2ed-acee-7d60-a137-f5deb5a505cb";

    fn home_with(files: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for file in files {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        home
    }

    fn lookup(files: &[&str]) -> ThreadLookup {
        find_in(home_with(files).path(), THREAD)
    }

    const UNKNOWN: ThreadLookup = ThreadLookup::Unknown { nearest: None };

    #[test]
    fn a_session_file_is_found_by_its_name_at_any_depth() {
        for path in [
            "sessions/2026/11/16/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl",
            "sessions/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl",
            "sessions/a/b/c/d/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl.zst",
        ] {
            assert_eq!(lookup(&["sessions/2025/01/01/notes.txt", path]), ThreadLookup::Stored, "{path}");
        }
    }

    #[test]
    fn other_files_are_not_sessions_of_the_thread() {
        assert_eq!(lookup(&[]), UNKNOWN, "there is no store");
        for path in [
            "sessions/2026/11/16/01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl",
            "sessions/2026/11/16/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.json",
            "sessions/2026/11/16/rollout-2026-11-16T05-56-29-11111111-acee-7d60-a137-f5deb5a505cb.jsonl",
            "rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl",
            "sessions/rollout-é.jsonl",
        ] {
            assert_eq!(lookup(&[path]), UNKNOWN, "{path}");
        }
    }

    #[test]
    fn the_end_of_an_id_is_not_the_id() {
        let home =
            home_with(&["sessions/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl"]);
        assert_eq!(find_in(home.path(), "f5deb5a505cb"), UNKNOWN);
    }

    #[test]
    fn a_mistyped_id_finds_the_nearest_thread() {
        let home =
            home_with(&["sessions/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl"]);
        for typed in
            ["01a1e2ed-acee-7d60-a137-f5deb5a505cc", "01a1e2ed", "01A1E2ED-ACEE-7D60-A137-F5DEB5A505CB"]
        {
            let nearest = Some(THREAD.to_owned());
            assert_eq!(find_in(home.path(), typed), ThreadLookup::Unknown { nearest }, "{typed}");
        }
    }

    #[test]
    fn an_archived_thread_names_the_command_that_restores_it() {
        let archived =
            "archived_sessions/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl";
        let unarchive = format!("codex unarchive {THREAD}");
        assert_eq!(lookup(&[archived]), ThreadLookup::Archived { unarchive });
    }

    #[test]
    fn links_are_followed_and_a_loop_of_links_ends() {
        let home =
            home_with(&["else/rollout-2026-11-16T05-56-29-01a1e2ed-acee-7d60-a137-f5deb5a505cb.jsonl"]);
        std::os::unix::fs::symlink("else", home.path().join("sessions")).unwrap();
        std::os::unix::fs::symlink(".", home.path().join("else/loop")).unwrap();
        assert_eq!(find_in(home.path(), THREAD), ThreadLookup::Stored);
        assert_eq!(find_in(home.path(), "absent"), UNKNOWN);
    }

    #[test]
    fn stored_sessions_are_listed_once_and_the_newest_first() {
        let name = |day: &str| format!("rollout-2026-11-{day}T05-56-29-{THREAD}");
        let home = home_with(&[
            &format!("sessions/2026/11/14/{}.jsonl", name("14")),
            &format!("sessions/2026/11/16/{}.jsonl", name("16")),
            &format!("sessions/{}.jsonl.zst", name("15")),
            &format!("archived_sessions/{}.jsonl", name("13")),
        ]);
        std::os::unix::fs::symlink(".", home.path().join("sessions/2026/loop")).unwrap();
        let environment = Variables::from([("CODEX_HOME".into(), home.path().into())]);
        let listed = stored_sessions(&environment).unwrap();
        let names: Vec<&str> =
            listed.iter().filter_map(|session| session.file.file_stem()?.to_str()).collect();
        assert_eq!(names, [name("16"), name("14")]);
        assert!(listed.iter().all(|session| session.thread_id == THREAD));
        assert_eq!(stored_sessions(&Variables::new()).unwrap(), []);
    }

    #[test]
    fn a_store_that_is_no_directory_is_not_searchable() {
        assert_eq!(lookup(&["sessions"]), ThreadLookup::NotSearchable);
    }
}
