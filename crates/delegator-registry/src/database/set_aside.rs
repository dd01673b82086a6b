//! Setting a damaged registry aside: only when asked, and with everything kept.

use std::fs;
use std::path::PathBuf;

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::Connection;

use super::open;
use crate::error::RegistryError;
use crate::state_dir::{IntegrityCheck, OpenOptions, StateDir};

/// Where the damaged files are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Empty if the registry was missing altogether.
    pub files: Vec<PathBuf>,
}

/// Renames a damaged registry (`registry.db.damaged-<ms>`) and creates an empty one in its place. The directories of the
/// tasks stay where they are: supervisors may be at work in them. A registry that is in order is left alone.
pub fn set_aside_damaged(dir: &StateDir, now_ms: i64) -> Result<SetAside, RegistryError> {
    let _lock = open::setup_lock(dir)?;
    let file = dir.database();
    if open::exists(&file)? {
        match open_with_full_check(dir) {
            Err(RegistryError::Damaged { .. }) => {}
            Err(other) => return Err(other),
            Ok(_) => return Err(RegistryError::NotDamaged { file }),
        }
    }
    let mut name = format!(".damaged-{now_ms}");
    while open::exists(&dir.beside_database(&name))? {
        name.push('x');
    }
    let mut files = Vec::new();
    // The registry goes first. Without its log it may be in order again and only have forgotten the latest, and after a
    // crash in between nobody would know. A log without its registry is known for damage; it is gone before there is a
    // new file of that name for it to be played back into.
    for ending in ["", "-wal", "-shm"] {
        let from = dir.beside_database(ending);
        let to = dir.beside_database(&format!("{name}{ending}"));
        if open::exists(&from)? {
            fs::rename(&from, &to).map_err(RegistryError::file(&from, "rename"))?;
            files.push(to);
            crash_point(CrashPoint::DatabaseAside);
        }
    }
    open::create_locked(dir)?;
    crash_point(CrashPoint::DatabaseReplaced);
    Ok(SetAside { files })
}

fn open_with_full_check(dir: &StateDir) -> Result<Connection, RegistryError> {
    let options = OpenOptions { check: IntegrityCheck::Full, ..dir.options().clone() };
    match StateDir::find(dir.path(), &options)? {
        Some(dir) => open::open_existing(&dir).map(|(db, _)| db),
        None => Err(RegistryError::Damaged { file: dir.database(), detail: "it is missing".to_owned() }),
    }
}
