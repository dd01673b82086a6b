//! Finds the work tree of a directory, so that two writing tasks never share one. Reads names and `.git`
//! files only and runs no git: an untrusted repository must not influence the result.

use std::path::{Path, PathBuf};

use delegator_domain::task::WorkTree;
use delegator_supervisor::agent::UntrustedTrees;

/// The git top level that contains the canonical directory, else the directory itself.
pub(crate) fn work_tree_of(real: &Path) -> WorkTree {
    find_work_tree(real).unwrap_or_else(|| WorkTree::directory(real.to_owned()))
}

pub(crate) fn find_work_tree(real: &Path) -> Option<WorkTree> {
    real.ancestors().find_map(top_level)
}

/// Where programs may have been planted: repositories, and directories of none.
pub fn untrusted_trees<'a>(directories: impl IntoIterator<Item = &'a Path>) -> UntrustedTrees {
    let mut untrusted = UntrustedTrees::default();
    for directory in directories {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        match find_work_tree(&real) {
            Some(tree) => untrusted.repositories.push(tree.root().to_owned()),
            None => untrusted.directories.push(real),
        }
    }
    untrusted
}

/// An empty `.git` does not count: sandboxes leave such directories behind.
fn top_level(dir: &Path) -> Option<WorkTree> {
    let git = dir.join(".git");
    if git.join("HEAD").exists() {
        return Some(WorkTree::directory(dir.to_owned()));
    }
    // In a linked worktree or a submodule `.git` is a file that names the git directory; only a worktree has
    // `commondir`.
    let text = std::fs::read_to_string(&git).ok()?;
    let git_directory = git_dir(dir, &text)?;
    git_directory.join("HEAD").exists().then(|| {
        if git_directory.join("commondir").exists() {
            WorkTree::linked(dir.to_owned())
        } else {
            WorkTree::directory(dir.to_owned())
        }
    })
}

fn git_dir(dir: &Path, text: &str) -> Option<PathBuf> {
    let named = text.strip_prefix("gitdir:")?.trim();
    (!named.is_empty()).then(|| dir.join(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_files(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_tree_is_the_nearest_top_level_or_the_directory_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write_files(
            &root,
            &[
                ("repo/.git/HEAD", "ref: refs/heads/main"),
                ("repo/.git/worktrees/w/HEAD", "ref: refs/heads/w"),
                ("repo/.git/worktrees/w/commondir", "../.."),
                ("repo/.git/modules/m/HEAD", "ref: refs/heads/main"),
                ("repo/src/deep/a.rs", ""),
                ("repo/trees/w/.git", &format!("gitdir: {}\n", root.join("repo/.git/worktrees/w").display())),
                ("repo/m/.git", "gitdir: ../.git/modules/m\n"),
                ("plain/.git/info", "an empty leftover is not a repository"),
                ("odd/.git", "not what git writes"),
            ],
        );
        for (dir, expected) in [
            ("repo", WorkTree::directory(root.join("repo"))),
            ("repo/src/deep", WorkTree::directory(root.join("repo"))),
            ("repo/trees/w", WorkTree::linked(root.join("repo/trees/w"))),
            ("repo/m", WorkTree::directory(root.join("repo/m"))),
            ("plain", WorkTree::directory(root.join("plain"))),
            ("odd", WorkTree::directory(root.join("odd"))),
        ] {
            assert_eq!(work_tree_of(&root.join(dir)), expected, "{dir}");
        }
    }
}
