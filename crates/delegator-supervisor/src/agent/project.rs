//! Whether a project brings a configuration of its own for Codex.
//!
//! Codex 0.166 knows one trust for two things: the AGENTS.md of a project, which is text for the model, and its
//! `.codex` folder, which names servers, hooks and commands to run. Measured: untrusted, neither is read; trusted, both
//! are, the folder only from the very directory that is called trusted and not from those above it. No flag tells them
//! apart. So a directory without such a folder may be trusted for one run: there is nothing in it to be obeyed. One
//! that has it is not, and then its AGENTS.md is not read either.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, statat};

use super::codex::ProjectTrust;

/// What Codex may be told about the directory it will start in. A folder that cannot be looked for counts as one.
pub fn project_trust(workdir: impl AsFd) -> ProjectTrust {
    match statat(workdir, ".codex", AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => ProjectTrust::Trusted,
        _ => ProjectTrust::Untrusted,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn whatever_is_called_so_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let trust = || project_trust(File::open(folder.path()).unwrap());
        assert_eq!(trust(), ProjectTrust::Trusted);
        let place = folder.path().join(".codex");
        std::os::unix::fs::symlink("nowhere", &place).unwrap();
        assert_eq!(trust(), ProjectTrust::Untrusted);
        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        assert_eq!(trust(), ProjectTrust::Untrusted);
    }
}
