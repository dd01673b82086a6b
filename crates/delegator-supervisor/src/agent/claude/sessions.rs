//! Finds the file of a session: `projects/<directory>/<session id>.jsonl`. Measured with 2.1.325: a session
//! can be resumed from any directory, and an unknown id fails.

use std::io;
use std::path::Path;

use crate::agent::health::ThreadLookup;
use crate::variables::{Variables, named_directory};

const MAX_ENTRIES: usize = 200_000;

pub(in crate::agent) fn find_thread(environment: &Variables, thread_id: &str) -> ThreadLookup {
    match named_directory(environment, "CLAUDE_CONFIG_DIR", ".claude") {
        Some(config_dir) => find_in(&config_dir.join("projects"), thread_id),
        None => ThreadLookup::NotSearchable,
    }
}

fn find_in(projects: &Path, thread_id: &str) -> ThreadLookup {
    match sessions(projects) {
        Err(_) => ThreadLookup::NotSearchable,
        Ok(sessions) if sessions.iter().any(|session| session == thread_id) => ThreadLookup::Stored,
        Ok(sessions) => ThreadLookup::unknown(thread_id, &sessions),
    }
}

/// The ids of all sessions. A missing directory has none.
fn sessions(projects: &Path) -> io::Result<Vec<String>> {
    let mut ids = Vec::new();
    let mut entries_left = MAX_ENTRIES;
    let directories = match std::fs::read_dir(projects) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
        directories => directories?,
    };
    for directory in directories {
        let directory = directory?.path();
        if !directory.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(directory)? {
            entries_left = entries_left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
            let name = file?.file_name();
            ids.extend(name.to_str().and_then(|name| name.strip_suffix(".jsonl")).map(str::to_owned));
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_all_directories_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let projects = folder.path().join("projects");
        let unknown = |nearest: Option<&str>| ThreadLookup::Unknown { nearest: nearest.map(str::to_owned) };
        let id = "6ed19866-e777-4526-a182-a92e84d4c21b";
        assert_eq!(find_in(&projects, id), unknown(None), "there is no store");
        let project = projects.join("-home-dev-project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(projects.join("6ed19866-e777-4526-a182-a92e84d4c21b.jsonl"), "").unwrap();
        assert_eq!(find_in(&projects, id), unknown(None), "the file is not in a project");
        std::fs::write(project.join(format!("{id}.jsonl")), "").unwrap();
        assert_eq!(find_in(&projects, id), ThreadLookup::Stored);
        assert_eq!(find_in(&projects, "6ed19866-e777-4526-a182-a92e84d4c21c"), unknown(Some(id)));
        assert_eq!(find_in(&project.join(format!("{id}.jsonl")), id), ThreadLookup::NotSearchable);
    }
}
