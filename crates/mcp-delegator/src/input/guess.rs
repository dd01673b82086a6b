//! Guesses what an unknown word at the position of a command means: a command of this program under another
//! name or on another level, a misspelled command, the text of a task, or a task id.
//!
//! A guess is only suggested, never run. A wrong one costs more than none, so words must be very similar.

use std::ffi::OsString;

use delegator_domain::similar_names;
use delegator_domain::task::TaskIdPrefix;

use crate::input::path::locate;
use crate::spec::catalog::Catalog;

/// An unknown word at the position of a command.
#[derive(Debug, Clone, Copy)]
pub struct UnknownWord<'a> {
    pub args: &'a [OsString],
    /// The known path before it, and its indexes.
    pub path: &'a [String],
    pub path_indexes: &'a [usize],
    pub index: usize,
}

impl UnknownWord<'_> {
    pub fn word(&self) -> String {
        self.args.get(self.index).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guess {
    /// The paths of one or several commands or groups.
    Commands(Vec<Vec<String>>),
    /// The text of a task, without a command.
    TaskText(String),
    TaskId(String),
    Nothing,
}

/// What other programs call our commands, and the commands, most likely first.
const SYNONYMS: [(&[&str], &[&[&str]]); 16] = [
    (&["list", "ls", "ps", "tasks", "jobs", "top", "info"], &[&["status"]]),
    (&["kill", "stop", "abort", "terminate", "end"], &[&["cancel"]]),
    (&["get", "result", "output", "view", "cat", "report"], &[&["results"]]),
    (&["revert", "rollback", "reset"], &[&["undo"]]),
    (&["log", "tail", "trace"], &[&["logs"]]),
    (&["submit", "enqueue", "add", "new", "create", "spawn"], &[&["cloud", "submit"], &["exec"]]),
    (&["delegate", "do", "start", "ask", "task", "prompt", "execute"], &[&["run"], &["exec"]]),
    (&["continue", "reply"], &[&["resume"]]),
    (&["rerun", "again", "repeat", "restart"], &[&["retry"]]),
    (&["server", "mcp", "mcp-server", "daemon"], &[&["serve"]]),
    (&["install", "register", "connect"], &[&["setup"], &["init"]]),
    (&["check", "health", "diagnose", "verify"], &[&["doctor"]]),
    (&["clean", "cleanup", "prune", "gc", "purge"], &[&["cleanup-registry"]]),
    (&["find", "search", "past", "sessions"], &[&["history"]]),
    (&["cost", "costs", "tokens", "spent", "stats"], &[&["usage"]]),
    (&["settings", "configure", "cfg", "conf"], &[&["config", "show"], &["config", "set"]]),
];

pub fn guess(catalog: Catalog, unknown_word: UnknownWord<'_>) -> Guess {
    let word = unknown_word.word();
    if word.starts_with("T-") && word.parse::<TaskIdPrefix>().is_ok() {
        return Guess::TaskId(word);
    }
    if let Some(text) = plain_text(catalog, unknown_word) {
        return Guess::TaskText(text);
    }
    let commands = by_synonym(catalog, unknown_word.path, &word)
        .or_else(|| similar_in_group(catalog, unknown_word.path, &word));
    if let Some(commands) = commands {
        return Guess::Commands(commands);
    }
    if let Some(text) = quoted_text(catalog, unknown_word) {
        return Guess::TaskText(text);
    }
    // In a group, a common word such as `list` is no name of another command.
    let is_common = !unknown_word.path.is_empty() && synonyms_of(&word).is_some();
    let anywhere = (!is_common).then(|| similar_anywhere(catalog, &word)).flatten();
    anywhere.map_or(Guess::Nothing, Guess::Commands)
}

/// The words from the unknown one to the next flag; empty in a group or after another command (`help`).
fn words(catalog: Catalog, unknown_word: UnknownWord<'_>) -> Vec<String> {
    let is_first = unknown_word.path.is_empty()
        && locate(catalog, unknown_word.args).unknown_word == Some(unknown_word.index);
    let from = if is_first { unknown_word.index } else { unknown_word.args.len() };
    let words = unknown_word.args.iter().skip(from).map(|word| word.to_string_lossy().into_owned());
    words.take_while(|word| !word.starts_with('-')).collect()
}

/// A text in quotes as the first word, or without quotes: several words of letters only.
fn plain_text(catalog: Catalog, unknown_word: UnknownWord<'_>) -> Option<String> {
    const MIN_WORDS: usize = 3;
    let words = words(catalog, unknown_word);
    let is_plain =
        |word: &String| word.chars().all(|letter| letter.is_alphabetic() || ",.!?'".contains(letter));
    match words.first() {
        Some(first) if first.trim().contains(char::is_whitespace) => Some(first.clone()),
        _ if words.len() >= MIN_WORDS && words.iter().all(is_plain) => Some(words.join(" ")),
        _ => None,
    }
}

fn quoted_text(catalog: Catalog, unknown_word: UnknownWord<'_>) -> Option<String> {
    words(catalog, unknown_word).into_iter().skip(1).find(|word| word.trim().contains(char::is_whitespace))
}

/// The commands that other programs call by this word.
fn synonyms_of(word: &str) -> Option<&'static [&'static [&'static str]]> {
    let word = word.to_lowercase();
    SYNONYMS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, paths)| *paths)
}

/// In a group only its own commands count: elsewhere the word means something else.
fn by_synonym(catalog: Catalog, group: &[String], word: &str) -> Option<Vec<Vec<String>>> {
    let paths = synonyms_of(word)?;
    let in_group = |path: &[&str]| match path.last() {
        Some(name) if !group.is_empty() => [group, &[(*name).to_owned()]].concat(),
        _ => owned(path),
    };
    let paths: Vec<Vec<String>> =
        paths.iter().map(|path| in_group(path)).filter(|path| catalog.find(path).is_some()).collect();
    (!paths.is_empty()).then_some(paths)
}

/// The similar names below the group, if there is one that is most similar, or several.
fn similar_in_group(catalog: Catalog, group: &[String], word: &str) -> Option<Vec<Vec<String>>> {
    let names = catalog.names_below(group);
    let paths = similar(word, &names).into_iter().map(|name| [group, &[name.to_owned()]].concat());
    Some(paths.collect::<Vec<_>>()).filter(|paths| !paths.is_empty())
}

/// Similar names of commands in any group. If commands have the same name, the first counts.
fn similar_anywhere(catalog: Catalog, word: &str) -> Option<Vec<Vec<String>>> {
    let paths: Vec<&[&'static str]> = catalog.typed_paths().map(|(path, _)| path).collect();
    let names: Vec<&'static str> = paths.iter().filter_map(|path| path.last().copied()).collect();
    let found = similar(word, &names)
        .into_iter()
        .filter_map(|name| paths.iter().find(|path| path.last() == Some(&name)).map(|path| owned(path)));
    Some(found.collect::<Vec<_>>()).filter(|paths| !paths.is_empty())
}

/// The nearest name, or all near ones if none is nearest.
fn similar<'a>(word: &str, names: &[&'a str]) -> Vec<&'a str> {
    match similar_names::nearest(word, names.iter().copied()) {
        Some(nearest) => vec![nearest],
        None => similar_names::near(word, names.iter().copied()),
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::app::command_list::catalog;

    fn guess_for(args: &[&str]) -> String {
        let args: Vec<OsString> = ["mcp-delegator"].iter().chain(args).map(OsString::from).collect();
        let located = locate(catalog(), &args);
        let index = located.unknown_word.unwrap();
        let (path, path_indexes) = (&located.path, &located.path_indexes);
        match guess(catalog(), UnknownWord { args: &args, path, path_indexes, index }) {
            Guess::Commands(paths) => paths.iter().map(|path| path.join(" ")).collect::<Vec<_>>().join(" | "),
            Guess::TaskText(text) => format!("text {text}"),
            Guess::TaskId(id) => format!("id {id}"),
            Guess::Nothing => "-".to_owned(),
        }
    }

    #[test]
    fn plausible_words_lead_to_the_command_that_was_meant() {
        for (words, expected) in [
            ("list", "status"),
            ("ls", "status"),
            ("ps", "status"),
            ("stat", "status"),
            ("staus", "status"),
            ("kill", "cancel"),
            ("stop", "cancel"),
            ("cancle", "cancel"),
            ("view", "results"),
            ("search", "history"),
            ("cost", "usage"),
            ("worktree", "worktrees"),
            ("result", "results"),
            ("revert", "undo"),
            ("log", "logs"),
            ("submit", "cloud submit | exec"),
            ("start", "run | exec"),
            ("delegate", "run | exec"),
            ("rn", "run"),
            ("rum", "run"),
            ("exce", "exec"),
            ("wiat", "wait"),
            ("resum", "resume"),
            ("mcp", "serve"),
            ("doc", "doctor"),
            ("verison", "version"),
            ("follow", "events follow"),
            ("sumarize", "events summarize"),
            ("pause", "queue pause"),
            ("local list", "local status"),
            ("local logs", "logs"),
            ("agent", "agents"),
            ("conf", "config show | config set"),
            ("events list", "-"),
            ("queue stop", "-"),
            ("env list", "-"),
            ("queue pase", "queue pause"),
            ("local rnu", "local run"),
            ("fix", "-"),
            ("test", "-"),
            ("build", "-"),
            ("foo", "-"),
            ("x", "-"),
            ("env-vars", "-"),
            ("teapot", "-"),
        ] {
            assert_eq!(guess_for(&words.split(' ').collect::<Vec<_>>()), expected, "{words}");
        }
    }

    #[test]
    fn a_text_leads_to_run() {
        for (args, expected) in [
            (vec!["fix the test"], "text fix the test"),
            (vec!["fix", "the", "test"], "text fix the test"),
            (vec!["add", "a", "test"], "text add a test"),
            (vec!["codex", "fix the test"], "text fix the test"),
            (vec!["fix the test", "--mode", "read-only"], "text fix the test"),
            (vec!["--quiet", "fix the test"], "text fix the test"),
            (vec!["--format", "json", "fix the test"], "text fix the test"),
            (vec!["--mode", "workspace-write", "fix", "the", "test"], "text fix the test"),
            (vec!["delegate", "fix the test"], "run | exec"),
            (vec!["kill", "T-local-7q3kd0x9fw", "T-local-8q3kd0x9fw"], "cancel"),
            (vec!["T-local-7q3k"], "id T-local-7q3k"),
            (vec!["local", "fix the test"], "-"),
        ] {
            assert_eq!(guess_for(&args), expected, "{args:?}");
        }
    }
}
