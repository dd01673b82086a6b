//! The Codex permission profile for commands that must not read a directory.
//!
//! Codex's sandbox modes let commands read the whole machine. A permission profile that extends the built-in
//! profile of the same mode can deny a directory (measured with 0.166: same writable directories, same
//! network, also after `resume`). `--sandbox` and `sandbox_mode` on the command line override a profile and
//! would allow the directory again, so a command line has one or the other. A profile ignores
//! `[sandbox_workspace_write]` of the user's Codex configuration, so additional writable directories are
//! listed in the profile.

use std::path::{Path, PathBuf};

use delegator_domain::task::Mode;

use super::features;
use crate::agent::arg_list::{ArgList, toml_string};
use crate::program::Version;

const PROFILE: &str = "mcp_delegator";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Confinement {
    Mode(Mode),
    DenyRead { mode: Mode, denied_dir: PathBuf },
}

impl Confinement {
    /// Denies the directory where this version of Codex and the mode support it.
    pub(super) fn of(mode: Mode, denied_dir: Option<&Path>, version: Version) -> Confinement {
        match denied_dir {
            Some(dir)
                if version >= features::DENIED_READS
                    && mode != Mode::DangerFullAccess
                    && dir.to_str().is_some() =>
            {
                Confinement::DenyRead { mode, denied_dir: dir.to_owned() }
            }
            _ => Confinement::Mode(mode),
        }
    }

    /// Adds the profile's settings; none for a mode alone. `writable` are additional directories.
    pub(super) fn push_settings(&self, writable: &[PathBuf], args: &mut ArgList) {
        let Confinement::DenyRead { mode, denied_dir } = self else { return };
        let built_in = if *mode == Mode::ReadOnly { ":read-only" } else { ":workspace" };
        let writable = if *mode == Mode::ReadOnly { &[] } else { writable };
        let rights = writable.iter().map(|path| (path, "write")).chain([(denied_dir, "deny")]);
        let rights =
            rights.filter_map(|(path, right)| Some(format!("{}=\"{right}\"", toml_string(path.to_str()?))));
        let rights: Vec<String> = rights.collect();
        let profile = format!("{{extends=\"{built_in}\",filesystem={{{}}}}}", rights.join(","));
        args.push_setting("default_permissions", &toml_string(PROFILE));
        args.push_setting(&format!("permissions.{PROFILE}"), &profile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Version = features::NEWEST_MEASURED;

    fn settings_for(mode: Mode, hidden: Option<&str>, version: Version) -> Vec<String> {
        let mut args = ArgList::default();
        let confinement = Confinement::of(mode, hidden.map(Path::new), version);
        confinement.push_settings(&["/more \"x\"".into()], &mut args);
        args.0.into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn profile_denies_the_directory_and_keeps_the_mode() {
        assert_eq!(
            settings_for(Mode::ReadOnly, Some("/state"), NEW),
            [
                "-c",
                "default_permissions=\"mcp_delegator\"",
                "-c",
                "permissions.mcp_delegator={extends=\":read-only\",filesystem={\"/state\"=\"deny\"}}"
            ]
        );
        assert_eq!(
            settings_for(Mode::WorkspaceWrite, Some("/state"), NEW)[3],
            "permissions.mcp_delegator={extends=\":workspace\",filesystem={\"/more \\\"x\\\"\"=\"write\",\"/state\"=\"deny\"}}"
        );
    }

    #[test]
    fn without_a_denied_directory_only_the_mode_is_set() {
        for (mode, hidden, version) in [
            (Mode::WorkspaceWrite, None, NEW),
            (Mode::DangerFullAccess, Some("/state"), NEW),
            (Mode::ReadOnly, Some("/state"), (0, 165, 9)),
        ] {
            assert_eq!(Confinement::of(mode, hidden.map(Path::new), version), Confinement::Mode(mode));
            assert!(settings_for(mode, hidden, version).is_empty());
        }
    }
}
