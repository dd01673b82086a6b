//! A temporary git directory of our own beside the user's repository.
//!
//! It shares only the object store and the work tree. Its configuration is ours, it has no hooks, its index
//! is a copy, and its attributes, which override all others, turn every conversion off. So git runs no
//! command that the repository names, and files are stored and written byte for byte.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{GitError, Result};
use crate::files::{Stamp, copy_file, if_exists};
use crate::records::{RepoPath, join_records, on_disk, output_text, records};
use crate::repository::{GitConfig, Repository, Store, git_config};
use crate::run::{Call, Git};

/// Our copy of the index, in which the tree of the work tree is built.
pub(crate) const WORK_INDEX: &str = "index";
/// An encoding cannot be disabled, only unset.
pub(crate) const ATTRIBUTES: &str = "* -text -ident -filter !eol !crlf !working-tree-encoding\n";
const MAX_EXCLUDE_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) git: Git,
    pub(crate) repository: Repository,
    pub(crate) config: GitConfig,
    dir: TempDir,
    /// The repository's store of restore points, which may not exist yet.
    pub(crate) store: Store,
    /// Whether git may store a file with other content than on disk.
    pub(crate) converts: bool,
    /// Whether the executable bit of files on disk is meaningful.
    pub(crate) uses_executable_bits: bool,
}

impl Scratch {
    pub(crate) fn create(git: &Git, repository: &Repository, temp_dir: &Path) -> Result<Scratch> {
        let config = GitConfig::read(git, &repository.top_level, &repository.git_dir)?;
        Scratch::with_config(git, repository, config, temp_dir)
    }

    /// Like [`Scratch::create`], with a configuration that was read before.
    pub(crate) fn with_config(
        git: &Git,
        repository: &Repository,
        config: GitConfig,
        temp_dir: &Path,
    ) -> Result<Scratch> {
        let dir = tempfile::Builder::new().prefix("git-").tempdir_in(temp_dir);
        let dir = dir.map_err(GitError::io("create a directory in", temp_dir))?;
        populate(dir.path(), repository).map_err(GitError::io("populate", dir.path()))?;
        let converts = config.get("core.autocrlf").is_some_and(|value| value != "false")
            || config.get("core.attributesfile").is_some()
            || repository.common_dir.join("info/attributes").exists();
        let uses_executable_bits = !config.get("core.filemode").is_some_and(is_false);
        let store = Store::of(&repository.common_dir);
        let (git, repository) = (git.clone(), repository.clone());
        Ok(Scratch { git, repository, config, dir, store, converts, uses_executable_bits })
    }

    pub(crate) fn top(&self) -> &Path {
        &self.repository.top_level
    }

    pub(crate) fn on_disk(&self, path: &[u8]) -> PathBuf {
        on_disk(self.top(), path)
    }

    /// The present stamp of a file in the work tree.
    pub(crate) fn stamp(&self, path: &[u8]) -> Option<Stamp> {
        Stamp::at(&self.on_disk(path))
    }

    /// Also reads the objects of another store, if it exists.
    pub(crate) fn read_from(&self, store: &Store) -> Result<()> {
        let objects = store.objects();
        if !objects.is_dir() {
            return Ok(());
        }
        let info = self.path("objects/info");
        let written = fs::create_dir_all(&info).and_then(|()| {
            fs::write(info.join("alternates"), [objects.as_os_str().as_encoded_bytes(), b"\n"].concat())
        });
        written.map_err(GitError::io("write", info))
    }

    pub(crate) fn id_bytes(&self) -> usize {
        if self.repository.object_format == "sha256" { 32 } else { 20 }
    }

    pub(crate) fn repository_objects(&self) -> PathBuf {
        self.repository.common_dir.join("objects")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs git on our index of that name. Its output may be as large as the repository.
    pub(crate) fn run(
        &self,
        index: &str,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
        input: &[u8],
    ) -> Result<Vec<u8>> {
        self.run_call(Call { input, extra_output: 1 << 30, ..self.call(index, args) })
    }

    /// Runs git on our index of that name and returns what it prints.
    pub(crate) fn read(&self, index: &str, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<String> {
        Ok(output_text(&self.run(index, args, b"")?))
    }

    pub(crate) fn run_call(&self, call: Call<'_>) -> Result<Vec<u8>> {
        self.git.run(self.top(), call)
    }

    /// Creates the objects of a `git fast-import` stream in our own git directory and returns the ids that it
    /// prints.
    pub(crate) fn import(&self, stream: &[u8]) -> Result<Vec<String>> {
        let args = ["fast-import", "--quiet", "--done", "--date-format=raw", "--depth=0"];
        let output = self.run("none", args, stream)?;
        Ok(String::from_utf8_lossy(&output).split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Returns those of the paths that the ignore files in a work tree match.
    pub(crate) fn ignored_in(
        &self,
        index: &str,
        work_tree: &Path,
        paths: &[&[u8]],
    ) -> Result<BTreeSet<RepoPath>> {
        // `check-ignore` reads pathspecs; the prefix `./` makes them plain paths.
        let patterns: Vec<RepoPath> = paths.iter().map(|path| [b"./", *path].concat()).collect();
        let input = join_records(&patterns);
        let mut call = self.call(index, ["check-ignore", "-z", "--no-index", "--stdin"]);
        call.variables.push(("GIT_WORK_TREE", work_tree.into()));
        let matches = self.git.run_optional(work_tree, Call { input: &input, ..call })?.unwrap_or_default();
        Ok(records(&matches).map(|path| path.strip_prefix(b"./").unwrap_or(path).to_vec()).collect())
    }

    pub(crate) fn call<'a>(&self, index: &str, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Call<'a> {
        let alternates = alternates_value(&[self.repository_objects(), self.store.objects()]);
        let variables: Vec<(&'static str, OsString)> = vec![
            ("GIT_DIR", self.dir.path().into()),
            ("GIT_WORK_TREE", self.top().into()),
            ("GIT_INDEX_FILE", self.path(index).into()),
            // New objects are deleted with this directory, unless they are packed into a store.
            ("GIT_OBJECT_DIRECTORY", self.path("objects").into()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates),
        ];
        let mut options = self.config.options();
        for setting in
            ["core.fsync=none", "core.looseCompression=0", "pack.compression=1", "fastimport.unpackLimit=0"]
        {
            options.extend(["-c", setting].map(OsString::from));
        }
        Call { options, variables, ..Call::new(args) }
    }

    /// Runs git with `objects` as the object directory to write to and only `others` to read from.
    pub(crate) fn run_in_objects(
        &self,
        objects: &Path,
        others: &[PathBuf],
        args: impl IntoIterator<Item: AsRef<OsStr>>,
        input: &[u8],
    ) -> Result<Vec<u8>> {
        let variables = vec![
            ("GIT_DIR", self.dir.path().into()),
            ("GIT_OBJECT_DIRECTORY", objects.into()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates_value(others)),
        ];
        let options = ["-c", "pack.compression=1"].map(OsString::from).to_vec();
        self.run_call(Call { options, variables, input, ..Call::new(args) })
    }

    /// Copies the repository's index to that name.
    pub(crate) fn copy_index(&self, name: &str) -> Result<()> {
        let index = self.repository.index();
        let copied = if_exists(copy_file(&index, &self.path(name))).map_err(GitError::io("copy", index))?;
        // A repository without an index file has an empty index.
        copied.map_or_else(|| self.run(name, ["read-tree", "--empty"], b"").map(drop), Ok)
    }
}

/// Whether git reads the value of a setting as false.
fn is_false(value: &OsStr) -> bool {
    let value = value.to_string_lossy().to_lowercase();
    matches!(value.as_str(), "false" | "no" | "off" | "0" | "")
}

fn populate(dir: &Path, repository: &Repository) -> io::Result<()> {
    for folder in ["objects", "refs", "info"] {
        fs::create_dir(dir.join(folder))?;
    }
    fs::write(dir.join("HEAD"), "ref: refs/heads/nothing\n")?;
    fs::write(dir.join("config"), git_config(false, &repository.object_format))?;
    fs::write(dir.join("info/attributes"), ATTRIBUTES)?;
    let excludes = repository.common_dir.join("info/exclude");
    if fs::metadata(&excludes).is_ok_and(|found| found.is_file() && found.len() <= MAX_EXCLUDE_BYTES) {
        copy_file(&excludes, &dir.join("info/exclude"))?;
    }
    // The shared part of a split index.
    for entry in fs::read_dir(&repository.git_dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("sharedindex.") && entry.file_type()?.is_file() {
            copy_file(&entry.path(), &dir.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The value of `GIT_ALTERNATE_OBJECT_DIRECTORIES`: quoted paths separated by colons. Missing directories are
/// left out.
fn alternates_value(paths: &[PathBuf]) -> OsString {
    let quoted = |path: &PathBuf| {
        let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{text}\"")
    };
    let paths: Vec<String> = paths.iter().filter(|path| path.is_dir()).map(quoted).collect();
    OsString::from(paths.join(":"))
}
