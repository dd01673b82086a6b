//! Sets a damaged registry aside on request.
//!
//! The damaged files are renamed, never deleted, and an empty registry is created. Task directories stay
//! where they are. A registry that is intact is refused.

use std::fs;
use std::path::PathBuf;

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::Connection;

use super::open;
use crate::error::{RegistryError, Result};
use crate::state_dir::{IntegrityCheck, OpenOptions, StateDir};

/// Returns the renamed files: none if the registry was missing.
pub fn set_aside_damaged(dir: &StateDir, now_ms: i64) -> Result<Vec<PathBuf>> {
    let _lock = dir.setup_lock()?;
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
    // The database is renamed before its log. Without its log it might look intact and only miss the latest
    // changes, and a crash in between would go unnoticed. A log without its database counts as damage; it is
    // renamed before a new database of that name exists.
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
    Ok(files)
}

fn open_with_full_check(dir: &StateDir) -> Result<Connection> {
    let options = OpenOptions { check: IntegrityCheck::Full, ..dir.options().clone() };
    match StateDir::find(dir.path(), &options)? {
        Some(dir) => open::open_existing(&dir).map(|(db, _)| db),
        None => Err(RegistryError::Damaged { file: dir.database(), detail: "it is missing".to_owned() }),
    }
}
