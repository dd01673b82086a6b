//! The list of all commands.

use super::CommandSpec;

/// Every command, in the order of the manifest. `app` builds it and passes it on, because this module must
/// not know the commands.
#[derive(Debug, Clone, Copy)]
pub struct Catalog(pub &'static [&'static CommandSpec]);

impl Catalog {
    pub fn iter(self) -> impl Iterator<Item = &'static CommandSpec> {
        self.0.iter().copied()
    }

    /// The command at this path, which may be its short path.
    pub fn find(self, path: &[impl AsRef<str>]) -> Option<&'static CommandSpec> {
        let path: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        self.iter().find(|spec| spec.path == path || spec.short_path() == Some(&path))
    }

    /// Every path that a person can type, with its command. The short paths come first.
    pub fn typed_paths(self) -> impl Iterator<Item = (&'static [&'static str], &'static CommandSpec)> {
        let short = self.iter().filter_map(|spec| Some((spec.short_path()?, spec)));
        short.chain(self.iter().map(|spec| (spec.path, spec)))
    }

    /// Names of the commands and groups directly below a path, without duplicates.
    pub fn names_below(self, path: &[String]) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for (known, _) in self.typed_paths() {
            let is_below = known.iter().zip(path).all(|(a, b)| a == b);
            if let Some(name) = known.get(path.len()).filter(|name| is_below && !names.contains(name)) {
                names.push(name);
            }
        }
        names
    }
}

/// Commands of the group `local` that are also commands of the program: the ones that people need most.
const ALSO_AT_TOP_LEVEL: [&str; 6] = ["run", "exec", "resume", "status", "wait", "results"];

/// The path without `local`, if the command has one.
pub fn short_path<'a>(path: &'a [&'static str]) -> Option<&'a [&'static str]> {
    match path {
        ["local", name] if ALSO_AT_TOP_LEVEL.contains(name) => Some(&path[1..]),
        _ => None,
    }
}

pub fn group_about(path: &[&str]) -> &'static str {
    match path {
        ["local"] => "Tasks on this machine; most of these commands work without 'local', too",
        ["cloud"] => "Tasks in a cloud environment: the fleet or hosted Codex",
        ["queue"] => "Pause or resume the queue",
        ["events"] => "Read an agent's transcript",
        ["fleet"] => "The workers and tasks of the fleet",
        ["env"] => "The environments for cloud tasks",
        ["agents"] => "The agents that tasks can name",
        ["config"] => "The configuration in force, and your own file",
        _ => "",
    }
}
