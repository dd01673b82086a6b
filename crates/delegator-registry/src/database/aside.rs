//! Setting a damaged registry aside: only when asked, and with everything kept.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;

use super::open;
use crate::error::RegistryError;
use crate::state_dir::{Check, OpenOptions, StateDir};

/// Where the damaged files are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Empty if the registry was missing altogether.
    pub kept: Vec<PathBuf>,
}

/// Renames a damaged registry (`registry.db.damaged-<ms>`) and creates an empty one in its place. The directories of the
/// tasks stay where they are: supervisors may be at work in them. A registry that is in order is left alone.
pub fn set_aside_damaged(dir: &StateDir, now_ms: i64) -> Result<SetAside, RegistryError> {
    let _alone = open::setup_lock(dir)?;
    let file = dir.database();
    if open::is_there(&file)? {
        match opened_with_every_page_checked(dir) {
            Err(RegistryError::Damaged { .. }) => {}
            Err(other) => return Err(other),
            Ok(_) => return Err(RegistryError::NotDamaged { file }),
        }
    }
    let mut name = format!(".damaged-{now_ms}");
    while open::is_there(&dir.beside_database(&name))? {
        name.push('x');
    }
    let mut kept = Vec::new();
    // The log goes first: left beside a new file of that name it would be played back into it.
    for ending in ["-wal", "-shm", ""] {
        let from = dir.beside_database(ending);
        let to = dir.beside_database(&format!("{name}{ending}"));
        if open::is_there(&from)? {
            fs::rename(&from, &to).map_err(RegistryError::file(&from, "rename"))?;
            kept.push(to);
        }
    }
    open::create_alone(dir)?;
    Ok(SetAside { kept })
}

fn opened_with_every_page_checked(dir: &StateDir) -> Result<Connection, RegistryError> {
    let options = OpenOptions { check: Check::Full, ..dir.options().clone() };
    match StateDir::find(dir.path(), &options)? {
        Some(dir) => open::open_existing(&dir),
        None => Err(RegistryError::Damaged { file: dir.database(), detail: "it is missing".to_owned() }),
    }
}
