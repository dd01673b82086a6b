//! Decides which directories Codex trusts, so that it never applies a project's own `.codex` folder.
//!
//! Such a folder can instruct the model, start servers, widen the sandbox, and by its rules run commands
//! outside of it, even in read-only mode. Measured with 0.166: Codex walks from the working directory up to
//! the repository root and applies the folder of every trusted directory. Trust is looked up by the
//! directory's path, then by the repository root, then, in a linked work tree, by the root of the main work
//! tree (whose hooks it also gets). So a user who trusts a repository trusts every folder in it. An entry for
//! the directory itself on the command line overrides all of that, in every mode, for new and resumed
//! threads, and is not recorded. Without an entry, Codex records every writable working directory as trusted.
//!
//! Therefore every parent directory is passed as untrusted. The working directory's own entry also controls
//! AGENTS.md, its own and those up to the repository root. Without a `.codex` folder there is nothing to
//! apply, and the directory is trusted for this run. With one it is untrusted, and no AGENTS.md of the
//! project is read: no flag separates the two. The user's own AGENTS.md in Codex's home is always read.
//!
//! Not controllable: the text of `.codex/skills` and `.agents/skills` is shown to the model regardless of
//! trust, and an administrator's Codex configuration overrides the command line.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, statat};

use crate::agent::arg_list::toml_string;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::agent) enum ProjectTrust {
    /// Codex reads neither the project's configuration nor (since about 0.150) any AGENTS.md of the project.
    #[default]
    Untrusted,
    /// Only used where there is no configuration.
    Trusted,
}

impl ProjectTrust {
    fn level(self) -> &'static str {
        match self {
            ProjectTrust::Untrusted => "untrusted",
            ProjectTrust::Trusted => "trusted",
        }
    }
}

/// Trust level of the directory the agent will start in. If `.codex` cannot be checked, it counts as present.
pub(in crate::agent) fn project_trust(workdir: impl AsFd) -> ProjectTrust {
    match statat(workdir, ".codex", AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => ProjectTrust::Trusted,
        _ => ProjectTrust::Untrusted,
    }
}

/// Value of the setting `projects`: `trust` for the canonical working directory, untrusted for all its
/// parents.
pub(super) fn projects_setting(workdir: &Path, trust: ProjectTrust) -> String {
    let levels = std::iter::once(trust).chain(std::iter::repeat(ProjectTrust::Untrusted));
    // A path that is not UTF-8 cannot be passed, and Codex does not start there.
    let entries = workdir.ancestors().zip(levels).filter_map(|(directory, trust)| {
        let name = toml_string(directory.to_str()?);
        Some(format!("{name}={{trust_level=\"{}\"}}", trust.level()))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn any_entry_named_codex_makes_the_directory_untrusted() {
        let folder = tempfile::tempdir().unwrap();
        let trust = || project_trust(File::open(folder.path()).unwrap());
        assert_eq!(trust(), ProjectTrust::Trusted);
        let path = folder.path().join(".codex");
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(trust(), ProjectTrust::Untrusted);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(trust(), ProjectTrust::Untrusted);
    }

    #[test]
    fn parent_directories_are_always_untrusted() {
        let above = r#""/a \"b\""={trust_level="untrusted"},"/"={trust_level="untrusted"}"#;
        for (trust, level) in [(ProjectTrust::Trusted, "trusted"), (ProjectTrust::Untrusted, "untrusted")] {
            let expected = format!(r#"{{"/a \"b\"/c"={{trust_level="{level}"}},{above}}}"#);
            assert_eq!(projects_setting(Path::new(r#"/a "b"/c"#), trust), expected);
        }
        assert_eq!(
            projects_setting(Path::new("/"), ProjectTrust::Trusted),
            r#"{"/"={trust_level="trusted"}}"#
        );
    }
}
