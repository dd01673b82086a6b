//! Files that an agent leaves behind when it is ended by force.

use std::path::PathBuf;

use super::codex::remove_shell_snapshots;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftovers {
    None,
    /// Files of the thread with every exported variable.
    ShellSnapshots {
        codex_home: PathBuf,
    },
}

impl Leftovers {
    /// Removes those of one thread; returns a warning if that fails.
    pub(crate) fn remove(&self, thread_id: Option<&str>) -> Option<String> {
        let Leftovers::ShellSnapshots { codex_home } = self else { return None };
        let error = remove_shell_snapshots(codex_home, thread_id?).err()?;
        Some(format!("could not remove a shell snapshot in {}: {error}", codex_home.display()))
    }
}
