//! Creates the work tree of a deleted submodule again, empty, so that its restore point can be restored.
//!
//! A submodule's git directory, with the restore point, is in the repository above and outlives the work
//! tree. Only the directory and the link in it are missing.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::point::RestorePoint;

/// An empty work tree that is removed on drop, unless it is retained.
#[derive(Debug)]
pub struct EmptyWorkTree {
    /// What was created, outermost first; the link is the last.
    created: Vec<PathBuf>,
}

impl EmptyWorkTree {
    /// Creates the work tree of a restore point; `None` if it exists or is not that of a submodule.
    pub fn create(point: &RestorePoint) -> io::Result<Option<EmptyWorkTree>> {
        let (top, repository) = (&point.top_level, &point.repository);
        let link = top.join(".git");
        let is_modules = |dir: &Path| dir.ends_with("modules") && dir.with_file_name("HEAD").exists();
        if fs::symlink_metadata(&link).is_ok() || !repository.ancestors().any(is_modules) {
            return Ok(None);
        }
        let missing = top.ancestors().take_while(|dir| fs::symlink_metadata(dir).is_err());
        let mut tree = EmptyWorkTree { created: Vec::new() };
        for dir in missing.collect::<Vec<_>>().into_iter().rev() {
            fs::create_dir(dir)?;
            tree.created.push(dir.to_owned());
        }
        let shared = top.components().zip(repository.components()).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n(Component::ParentDir, top.components().count() - shared);
        let relative: PathBuf = up.chain(repository.components().skip(shared)).collect();
        fs::write(&link, format!("gitdir: {}\n", relative.display()))?;
        tree.created.push(link);
        Ok(Some(tree))
    }

    pub fn retain(mut self) {
        self.created.clear();
    }
}

impl Drop for EmptyWorkTree {
    fn drop(&mut self) {
        for path in self.created.iter().rev() {
            // Fails for a directory that is no longer empty.
            let _ = if path.ends_with(".git") { fs::remove_file(path) } else { fs::remove_dir(path) };
        }
    }
}
