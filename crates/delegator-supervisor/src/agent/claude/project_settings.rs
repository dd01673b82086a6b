//! Whether Claude Code may read the settings of the project.
//!
//! The folder `.claude` of the working directory can define hooks and programs that print credentials;
//! `.mcp.json` there or in a parent directory defines servers. Measured with 2.1.325: with `-p` all of them
//! run without a question, also where the user has not trusted the directory. Without the settings of the
//! project (`--setting-sources=user`) they do not run, but no CLAUDE.md of the project is read either.
//! Therefore the settings are left out only where there are such files.

use std::path::Path;

/// Whether the project defines something that would run.
pub(super) fn defines_programs(workdir: &Path) -> bool {
    // What cannot be examined counts as present.
    let exists = |path: &Path| !matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound);
    exists(&workdir.join(".claude"))
        || workdir.ancestors().any(|directory| exists(&directory.join(".mcp.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_settings_and_servers_of_parents_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let workdir = folder.path().join("a/b");
        std::fs::create_dir_all(&workdir).unwrap();
        std::fs::create_dir(folder.path().join(".claude")).unwrap();
        assert!(!defines_programs(&workdir), "only the folder of the working directory counts");
        std::os::unix::fs::symlink("nowhere", workdir.join(".claude")).unwrap();
        assert!(defines_programs(&workdir));
        std::fs::remove_file(workdir.join(".claude")).unwrap();
        std::fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
        assert!(defines_programs(&workdir));
    }
}
