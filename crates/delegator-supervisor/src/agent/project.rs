//! Which projects Codex is told to trust, so that it obeys no `.codex` folder of theirs.
//!
//! Such a folder gives orders to the model, starts servers, widens the sandbox, and by its rules lets commands run
//! outside of it, also where the agent may only read; hooks wait for a consent of their own. Measured with 0.166:
//! Codex goes from the working directory up to the top of the repository and obeys the folder of every directory that
//! is trusted. Trust is looked up by the name of that directory, then of the repository's top, then (in a linked work
//! tree, which also gets the hooks of the main one) of the main work tree's top. So a user who trusts a repository
//! trusts every folder in it, whatever is said about the working directory alone. What the command line says of a
//! directory by its own name goes before all of that, in every mode, for new threads and old ones, and is recorded
//! nowhere; told nothing, Codex records that a directory it may write to is trusted.
//!
//! So everything above is called untrusted. The working directory itself decides about AGENTS.md too, its own and
//! those above it up to the repository's top. Without a `.codex` there is nothing in it to be obeyed, and it is
//! trusted for this run. With one it is not, and then no AGENTS.md of the project is read: no flag tells them apart.
//! The user's own AGENTS.md, in Codex's home, is read either way.
//!
//! Two things are out of our hands: what `.codex/skills` says is shown to the model whatever the trust, as
//! `.agents/skills` is, as text; and what an administrator configures for Codex goes before the command line.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, statat};

use super::toml_text;

/// What Codex is told about its working directory, for one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectTrust {
    /// Neither its own configuration is read nor (since 0.150 or so) any AGENTS.md of the project.
    #[default]
    Untrusted,
    /// Only said where there is no configuration.
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

/// What Codex may be told about the directory it will start in. A folder that cannot be looked for counts as one.
pub fn project_trust(workdir: impl AsFd) -> ProjectTrust {
    match statat(workdir, ".codex", AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => ProjectTrust::Trusted,
        _ => ProjectTrust::Untrusted,
    }
}

/// The setting `projects`: the working directory, which is canonical, as it is trusted, and nothing above it.
pub(super) fn projects_setting(workdir: &Path, trust: ProjectTrust) -> String {
    let levels = std::iter::once(trust).chain(std::iter::repeat(ProjectTrust::Untrusted));
    // One whose name is not UTF-8 cannot be named, and Codex does not come up there.
    let entries = workdir.ancestors().zip(levels).filter_map(|(directory, trust)| {
        let name = toml_text::string(directory.to_str()?);
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
