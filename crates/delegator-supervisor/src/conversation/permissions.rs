//! Decides about permission requests of agents that have no sandbox of their own.
//!
//! Pure. The mode of the task decides, unless the user wants to be asked. A command is allowed in read-only
//! mode only if we enclose the agent, because then it cannot write. Paths are compared as text: where nothing
//! encloses the agent, this is a check of what it requests and not a sandbox.

use std::path::{Component, Path, PathBuf};

use delegator_domain::task::Mode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionPolicy {
    pub mode: Mode,
    /// The user is asked for every permission.
    pub ask: bool,
    /// We enclose the agent, so that the mode holds whatever it runs.
    pub is_enforced: bool,
    /// The working directory first, to which relative paths belong.
    pub writable_roots: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedAction<'a> {
    /// To run a command, or a tool whose effects are unknown.
    Command,
    Edit(&'a Path),
    /// To do something that changes no files.
    Harmless,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    /// With the reason, for the agent.
    Reject(&'static str),
    AskUser,
}

const READ_ONLY: &str = "This task is read-only: do not change files.";
const READ_ONLY_COMMANDS: &str =
    "This task is read-only, and no sandbox is in place: commands are not allowed.";
const OUTSIDE: &str =
    "This task may only change files in its working directory and its additional directories.";

impl PermissionPolicy {
    pub(crate) fn decide(&self, action: RequestedAction<'_>) -> Decision {
        if self.ask {
            return Decision::AskUser;
        }
        match (self.mode, action) {
            (Mode::DangerFullAccess, _) | (_, RequestedAction::Harmless) => Decision::Allow,
            (Mode::ReadOnly, RequestedAction::Edit(_)) => Decision::Reject(READ_ONLY),
            (Mode::ReadOnly, RequestedAction::Command) if !self.is_enforced => {
                Decision::Reject(READ_ONLY_COMMANDS)
            }
            (Mode::WorkspaceWrite, RequestedAction::Edit(path)) if !self.is_writable(path) => {
                Decision::Reject(OUTSIDE)
            }
            (_, RequestedAction::Command | RequestedAction::Edit(_)) => Decision::Allow,
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        let workdir = self.writable_roots.first().map(PathBuf::as_path).unwrap_or(Path::new("/"));
        let path = without_dots(&workdir.join(path));
        self.writable_roots.iter().any(|root| path.starts_with(root))
    }
}

/// The path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(mode: Mode, is_enforced: bool, action: RequestedAction<'_>) -> bool {
        let roots = vec!["/work".into(), "/more".into()];
        let policy = PermissionPolicy { mode, ask: false, is_enforced, writable_roots: roots };
        match policy.decide(action) {
            Decision::Allow => true,
            Decision::Reject(_) => false,
            Decision::AskUser => panic!("the policy decides this itself"),
        }
    }

    #[test]
    fn the_mode_decides() {
        use Mode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
        let edit = RequestedAction::Edit(Path::new("/work/a"));
        for (mode, is_enforced, command, edits) in [
            (ReadOnly, true, true, false),
            (ReadOnly, false, false, false),
            (WorkspaceWrite, true, true, true),
            (WorkspaceWrite, false, true, true),
            (DangerFullAccess, false, true, true),
        ] {
            assert_eq!(
                decide(mode, is_enforced, RequestedAction::Command),
                command,
                "{mode:?} {is_enforced}"
            );
            assert_eq!(decide(mode, is_enforced, edit), edits, "{mode:?} {is_enforced}");
            assert!(decide(mode, is_enforced, RequestedAction::Harmless));
        }
    }

    #[test]
    fn edits_stay_in_the_writable_directories() {
        for (path, expected) in [
            ("/work/a/b", true),
            ("/more/x", true),
            ("a/b", true),
            ("./a/../b", true),
            ("../work/b", true),
            ("/work/../etc/passwd", false),
            ("../etc/passwd", false),
            ("/workshop/a", false),
            ("/", false),
        ] {
            let edit = RequestedAction::Edit(Path::new(path));
            assert_eq!(decide(Mode::WorkspaceWrite, true, edit), expected, "{path}");
            assert!(decide(Mode::DangerFullAccess, false, edit));
        }
    }

    #[test]
    fn a_user_who_wants_to_be_asked_is_asked_in_every_mode() {
        for mode in [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess] {
            let policy =
                PermissionPolicy { mode, ask: true, is_enforced: true, writable_roots: vec!["/work".into()] };
            for action in [RequestedAction::Command, RequestedAction::Edit(Path::new("/work/a"))] {
                assert_eq!(policy.decide(action), Decision::AskUser);
            }
        }
    }
}
