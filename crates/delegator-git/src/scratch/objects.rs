//! Reads, writes and packs objects, trees and indexes through a git directory of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::git_dir::Scratch;
use crate::error::{GitError, Result};
use crate::files::remove_file;
use crate::records::{
    FileVersion, RepoPath, TreeFiles, join_records, lines, output_text, parse_batch, path_records, records,
    split_record,
};

/// Larger files are not merged, so their content is not stored.
pub(crate) const MAX_MERGED_BYTES: u64 = 4 << 20;

impl Scratch {
    /// What git says about these objects, one line each.
    pub(crate) fn check_objects(&self, names: &str) -> Result<String> {
        let output = self.run("none", ["cat-file", "--buffer", "--batch-check"], names.as_bytes())?;
        Ok(output_text(&output))
    }

    /// Those of the objects that exist and can be read.
    pub(crate) fn existing_objects(&self, ids: BTreeSet<String>) -> Result<BTreeSet<String>> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let found = self.check_objects(&lines(ids))?;
        let existing = found.lines().filter(|entry| !entry.ends_with(" missing"));
        Ok(existing.filter_map(|entry| entry.split(' ').next()).map(str::to_owned).collect())
    }

    /// What `git rev-list --objects` lists, as far as it exists.
    pub(crate) fn list_objects<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeSet<String>> {
        let options = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any"];
        let listed = self.read("none", options.into_iter().chain(args))?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Writes a pack with these objects to the object directory `target` and returns its hash; `None` if
    /// there are none.
    pub(crate) fn pack_into(
        &self,
        target: &Path,
        name: &str,
        objects: &BTreeSet<String>,
    ) -> Result<Option<String>> {
        if objects.is_empty() {
            return Ok(None);
        }
        self.write_pack(target, name, &[], &lines(objects)).map(Some)
    }

    /// Writes a pack to the object directory `target` and returns its hash. The agent's start waits for this,
    /// so time matters more than size: no deltas, low compression.
    pub(crate) fn write_pack(
        &self,
        target: &Path,
        name: &str,
        options: &[&str],
        input: &str,
    ) -> Result<String> {
        let packs = target.join("pack");
        fs::create_dir_all(&packs).map_err(GitError::io("create", &packs))?;
        // git writes no object that it can read elsewhere, such as in the store of restore points.
        let mut others = vec![self.path("objects"), self.repository_objects(), self.store.objects()];
        others.retain(|other| other != target);
        let base = packs.join(name);
        let args = ["pack-objects", "--quiet", "--window=0", "--no-reuse-delta", "--compression=1"];
        let args = args.iter().chain(options).map(OsStr::new).chain([base.as_os_str()]);
        Ok(output_text(&self.run_in_objects(target, &others, args, input.as_bytes())?))
    }

    /// Writes contents as objects and returns their ids.
    pub(crate) fn write_blobs<'a>(&self, contents: impl Iterator<Item = &'a [u8]>) -> Result<Vec<String>> {
        let (mut script, mut marks) = (Vec::new(), String::new());
        for (mark, content) in (1..).zip(contents) {
            script.extend(format!("blob\nmark :{mark}\ndata {}\n", content.len()).into_bytes());
            script.extend_from_slice(content);
            script.push(b'\n');
            marks += &format!("get-mark :{mark}\n");
        }
        if script.is_empty() {
            return Ok(Vec::new());
        }
        script.extend((marks + "done\n").into_bytes());
        self.import(&script)
    }

    /// Reads blobs that are small enough to be merged; others are missing in the result.
    pub(crate) fn read_small_blobs(&self, ids: &BTreeSet<&String>) -> Result<BTreeMap<String, Vec<u8>>> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sizes = self.check_objects(&lines(ids))?;
        let is_small = |size: &str| size.parse::<u64>().is_ok_and(|size| size <= MAX_MERGED_BYTES);
        let blobs = sizes.lines().filter_map(|line| line.split_once(" blob "));
        let small = lines(blobs.filter(|(_, size)| is_small(size)).map(|(id, _)| id));
        let output = self.run("none", ["cat-file", "--buffer", "--batch"], small.as_bytes())?;
        let contents = parse_batch(&output)?;
        Ok(contents.into_iter().map(|(id, content)| (id.to_owned(), content.to_vec())).collect())
    }

    /// Every file of a tree, submodules included.
    pub(crate) fn tree_files(&self, tree: &str) -> Result<TreeFiles> {
        let listed = self.run("none", ["ls-tree", "-r", "-z", tree], b"")?;
        let entry = |record| {
            // `mode SP type SP id TAB path`
            let (header, path) = split_record(record, b'\t')?;
            let (mode, rest) = header.split_once(' ')?;
            let (_, id) = rest.split_once(' ')?;
            Some((path.to_vec(), (mode.to_owned(), id.to_owned())))
        };
        let files: Option<TreeFiles> = records(&listed).map(entry).collect();
        files.ok_or(GitError::unexpected("ls-tree"))
    }

    pub(crate) fn tree_of(&self, commit: &str) -> Result<String> {
        self.read("none", ["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])
    }

    /// Writes an index with exactly these files.
    pub(crate) fn fill_index<'a>(
        &self,
        index: &str,
        files: impl IntoIterator<Item = (&'a RepoPath, &'a FileVersion)>,
    ) -> Result<()> {
        // git takes a missing index for an empty one.
        remove_file(&self.path(index))?;
        let files = files.into_iter().map(|(path, (mode, id))| (format!("{mode} {id}\t"), path));
        self.run(index, ["update-index", "-z", "--index-info"], &path_records(files)).map(drop)
    }

    /// Replaces entries of an index; `None` removes the entry. Removals come first, so that a file can take
    /// the place of a directory.
    pub(crate) fn edit_index<'a>(
        &self,
        index: &str,
        files: impl Iterator<Item = (&'a RepoPath, Option<&'a FileVersion>)>,
    ) -> Result<()> {
        let (changed, removed): (Vec<_>, Vec<_>) = files.partition(|(_, version)| version.is_some());
        let entry = |(path, version): (&'a RepoPath, Option<&FileVersion>)| match version {
            Some((mode, id)) => (format!("{mode} {id}\t"), path),
            None => (self.removed_entry(), path),
        };
        let entries = path_records(removed.into_iter().chain(changed).map(entry));
        self.run(index, ["update-index", "--replace", "-z", "--index-info"], &entries).map(drop)
    }

    /// What `update-index --index-info` reads before the path of an entry to remove.
    pub(crate) fn removed_entry(&self) -> String {
        format!("0 {}\t", "0".repeat(2 * self.id_bytes()))
    }

    /// Updates the entries of these paths, if there are any.
    pub(crate) fn update_index<'a>(
        &self,
        index: &str,
        options: &[&str],
        paths: impl IntoIterator<Item = &'a RepoPath>,
    ) -> Result<()> {
        let paths = join_records(paths);
        if paths.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "-z"].iter().chain(options).chain(&["--stdin"]);
        self.run(index, args, &paths).map(drop)
    }

    /// Writes the files of an index as a tree, whose contents may be missing in a partial clone.
    pub(crate) fn write_tree(&self, index: &str) -> Result<String> {
        self.read(index, ["write-tree", "--missing-ok"])
    }

    /// Writes an index as a tree; `None` if it has conflicts.
    pub(crate) fn write_tree_unless_conflicts(&self, index: &str) -> Result<Option<String>> {
        let tree = self.write_tree(index);
        if tree.is_err() && !self.run(index, ["ls-files", "-z", "--unmerged"], b"")?.is_empty() {
            return Ok(None);
        }
        tree.map(Some)
    }
}
