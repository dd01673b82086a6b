//! The list of all commands.

use super::CommandSpec;

/// Every command, in the order of the manifest. `app` builds it and passes it on, because this module must not know the
/// commands.
#[derive(Debug, Clone, Copy)]
pub struct Catalog(pub &'static [&'static CommandSpec]);

impl Catalog {
    pub fn iter(self) -> impl Iterator<Item = &'static CommandSpec> {
        self.0.iter().copied()
    }

    pub fn find(self, path: &[&str]) -> Option<&'static CommandSpec> {
        self.iter().find(|spec| spec.path == path)
    }
}

/// Help text of a command group.
pub fn group_about(path: &[&str]) -> &'static str {
    match path {
        ["local"] => "Tasks on this machine",
        ["cloud"] => "Tasks in a cloud environment: the fleet or hosted Codex",
        ["queue"] => "Pause or resume the queue",
        ["events"] => "Read an agent's transcript",
        ["fleet"] => "The workers of the fleet",
        ["env"] => "The environments for cloud tasks",
        ["config"] => "The configuration in force",
        _ => "",
    }
}
