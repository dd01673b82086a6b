//! Writes the git directories of a worktree: branch, configuration and refs of its own, objects of the user's
//! repository.
//!
//! Only settings that name no command are taken over. So hooks of the repository do not run when the agent
//! commits.

use std::fs;
use std::io;
use std::path::Path;

use super::task_worktree::TaskWorktree;
use crate::error::{GitError, Result};
use crate::records::records;
use crate::repository::git_config;
use crate::run::Git;

/// Settings of the repository that a commit, a comparison and a fetch need.
const SETTINGS: &str = "^(core\\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|excludesfile|\
                        sparsecheckout|sparsecheckoutcone)|user\\.(name|email)|remote\\..*\\.(url|fetch))$";

impl TaskWorktree {
    /// Creates the git directory and a top directory without files. No filter and no hook is run.
    pub(super) fn add(&self, git: &Git) -> Result<()> {
        let source = &self.source.repository;
        let command = format!("update {}\0{}\0\0", self.reference(), self.source.commit);
        source.update_refs(git, command.as_bytes(), "mcp-delegator: worktree created")?;
        let args = ["config", "-z", "--get-regexp", SETTINGS];
        let settings = source.run_optional(git, args)?.unwrap_or_default();
        let format = "--format=%(objectname) %(refname)";
        let args = ["for-each-ref", format, "refs/heads", "refs/remotes", "refs/tags"];
        let refs = source.run(git, args)?;
        let config = git_config(false, &source.object_format) + &config_text(&settings);
        self.write_git_dir(&config, &refs).map_err(GitError::io("create", self.git_dir()))
    }

    fn write_git_dir(&self, config: &str, refs: &[u8]) -> io::Result<()> {
        let (dir, common, source) = (self.git_dir(), self.common_dir(), &self.source.repository);
        let others =
            [common.join("info"), common.join("objects/info"), common.join("objects/pack"), dir.join("info")];
        for folder in self.commit_dirs().iter().chain(&others).chain([&self.path]) {
            fs::create_dir_all(folder)?;
        }
        let line = |prefix: &str, path: &Path| {
            [prefix.as_bytes(), path.as_os_str().as_encoded_bytes(), b"\n"].concat()
        };
        let folder = format!(" refs/heads/{}/", self.branch.split('/').next().unwrap_or_default());
        let is_other = |line: &&[u8]| !line.windows(folder.len()).any(|part| part == folder.as_bytes());
        let refs: Vec<u8> =
            refs.split_inclusive(|byte| *byte == b'\n').filter(is_other).flatten().copied().collect();
        let head = format!("ref: refs/heads/{}\n", self.branch);
        let files = [
            // Detached, because git refuses to check out a branch in two places.
            (common.join("HEAD"), format!("{}\n", self.source.commit).into_bytes()),
            (common.join("config"), config.into()),
            (common.join("objects/info/alternates"), line("", &source.common_dir.join("objects"))),
            (common.join("refs/heads").join(&self.branch), format!("{}\n", self.source.commit).into_bytes()),
            (common.join("packed-refs"), refs.clone()),
            (self.own_dir().join("refs"), refs),
            (dir.join("HEAD"), head.into_bytes()),
            (dir.join("commondir"), b"../..\n".to_vec()),
            (dir.join("gitdir"), line("", &self.path.join(".git"))),
            (self.path.join(".git"), line("gitdir: ", &dir)),
        ];
        for (path, bytes) in files {
            fs::write(path, bytes)?;
        }
        for (from, to) in [
            (source.common_dir.join("shallow"), common.join("shallow")),
            (source.common_dir.join("info/exclude"), common.join("info/exclude")),
            (source.git_dir.join("info/sparse-checkout"), dir.join("info/sparse-checkout")),
        ] {
            if from.is_file() {
                fs::copy(from, to)?;
            }
        }
        Ok(())
    }
}

/// The entries that `git config -z` printed, as a configuration file.
fn config_text(settings: &[u8]) -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let entry = |record: &[u8]| {
        let record = String::from_utf8_lossy(record);
        // A key without a value is true.
        let (key, value) = record.split_once('\n').unwrap_or((&record, "true"));
        let (section, name) = key.rsplit_once('.')?;
        let section = match section.split_once('.') {
            Some((section, part)) => format!("{section} \"{}\"", quote(part)),
            None => section.to_owned(),
        };
        Some(format!("[{section}]\n\t{name} = \"{}\"\n", quote(value)))
    };
    records(settings).filter_map(entry).collect()
}
