//! Finds the command on a command line.
//!
//! Flags may precede the command they belong to, so the command is located first: the arguments that form its
//! path are collected in order, values of global flags are skipped, and all other arguments are moved behind
//! the path. The other arguments are not interpreted here.

use std::ffi::OsString;

use crate::input::globals;
use crate::spec::CommandSpec;
use crate::spec::catalog::Catalog;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocatedCommand {
    /// Path of the command or group, as far as it is known.
    pub path: Vec<String>,
    /// Indexes of the path in the arguments.
    pub path_indexes: Vec<usize>,
    /// Index of an unknown word at the position of a command.
    pub unknown_word: Option<usize>,
}

impl LocatedCommand {
    pub fn spec(&self, catalog: Catalog) -> Option<&'static CommandSpec> {
        catalog.find(&self.path)
    }

    pub fn args_with_command_first(&self, args: &[OsString]) -> Vec<OsString> {
        let program = args.first().cloned().unwrap_or_default();
        let others = args.iter().enumerate().skip(1).filter(|(index, _)| !self.path_indexes.contains(index));
        [program]
            .into_iter()
            .chain(self.path.iter().map(OsString::from))
            .chain(others.map(|(_, word)| word.clone()))
            .collect()
    }
}

pub fn locate(catalog: Catalog, args: &[OsString]) -> LocatedCommand {
    let mut located = LocatedCommand::default();
    let mut after_unknown_flag = false;
    let mut skip_value = false;
    for (index, word) in args.iter().enumerate().skip(1) {
        let word = word.to_string_lossy();
        if std::mem::take(&mut skip_value) {
            continue;
        }
        let next_words = catalog.names_below(&located.path);
        // A command can have a further command below its name, directly behind it.
        let is_complete = located.spec(catalog).is_some() && !next_words.contains(&word.as_ref());
        if word == "--" || is_complete {
            break;
        }
        if word.len() > 1 && word.starts_with('-') {
            skip_value = globals::takes_value(&word);
            after_unknown_flag = !skip_value && !globals::is_known(&word) && !word.contains('=');
            continue;
        }
        if next_words.contains(&word.as_ref()) {
            located.path.push(word.into_owned());
            located.path_indexes.push(index);
        } else if !after_unknown_flag {
            // A later word may be the name of a command only by chance: `fix run` must not start a task.
            located.unknown_word = Some(index);
            break;
        }
        after_unknown_flag = false;
    }
    located
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate_in(command_line: &str) -> (Vec<String>, Option<usize>) {
        let args: Vec<OsString> = command_line.split(' ').map(OsString::from).collect();
        let located = locate(crate::app::command_list::catalog(), &args);
        (located.path, located.unknown_word)
    }

    #[test]
    fn flags_may_precede_the_command() {
        assert_eq!(locate_in("p --limit 2 manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p config --changed show"), (vec!["config".into(), "show".into()], None));
        assert_eq!(locate_in("p --format json config show x"), (vec!["config".into(), "show".into()], None));
    }

    #[test]
    fn value_of_a_global_flag_is_not_a_command() {
        assert_eq!(locate_in("p --output schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p --output=schema manifest"), (vec!["manifest".into()], None));
        assert_eq!(locate_in("p --output schema manifets"), (vec![], Some(3)));
    }

    #[test]
    fn unknown_command_word_is_reported() {
        assert_eq!(locate_in("p manifets --limit 3"), (vec![], Some(1)));
        assert_eq!(locate_in("p config shw"), (vec!["config".into()], Some(2)));
        assert_eq!(locate_in("p --limit 2 manifets"), (vec![], Some(3)));
        assert_eq!(locate_in("p -- manifest"), (vec![], None));
        assert_eq!(locate_in("p config"), (vec!["config".into()], None));
        assert_eq!(locate_in("p fix run"), (vec![], Some(1)));
    }

    #[test]
    fn a_command_may_have_commands_below_it() {
        let path = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(locate_in("p worktrees"), (path(&["worktrees"]), None));
        assert_eq!(locate_in("p worktrees prune --dry-run"), (path(&["worktrees", "prune"]), None));
        assert_eq!(locate_in("p worktrees prnue"), (path(&["worktrees"]), None));
        assert_eq!(locate_in("p status worktrees prune"), (path(&["status"]), None));
    }
}
