//! What the agent says it did, beside what was seen. Pure.
//!
//! Who claims a change that nobody can see is told so, and so is who changed files without a word. A command that
//! changes files is nothing unusual; that is one line, apart from the rest.

use std::collections::BTreeSet;

use delegator_domain::task::TaskId;
use serde::{Deserialize, Serialize};

use super::Renamed;

const MOST_NAMED: usize = 10;
const LONGEST_NAME: usize = 200;

/// Something a caller should hear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A change was claimed, and the file is as it was.
    ClaimNotSeen,
    /// A change was claimed where nobody looks.
    ClaimNotChecked,
    /// Changed without a word, and no command was run.
    NotClaimed,
    /// Changed without a word, probably by a command.
    ByCommands,
    /// A task that was to change nothing changed something.
    ReadOnlyChanged,
    /// Other tasks wrote in the same tree meanwhile.
    NotToldApart,
    /// Branch, history or repository are not as they were.
    Repository,
    /// Not everything could be looked at.
    Partial,
    /// Nothing could be looked at.
    NoEvidence,
}

/// A file the agent says it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// As the evidence would tell it.
    pub(super) path: String,
    pub(super) lies: Lies,
}

/// Where a claimed file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lies {
    InSight,
    Ignored,
    Outside,
    /// In a folder that is not looked into.
    PassedOver,
}

/// Everything the agent says of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) files: Vec<Claim>,
    /// Whether that is all of it.
    pub(super) is_whole: bool,
    pub(super) ran_commands: bool,
}

/// What was seen, and what must be known to judge it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) changed: BTreeSet<String>,
    pub(super) renamed: Vec<Renamed>,
    /// Changes that are not in `changed` because there were too many.
    pub(super) not_listed: u64,
    pub(super) was_read_only: bool,
    pub(super) beside: Vec<TaskId>,
    /// Whether a claim that was not seen is wrong.
    pub(super) is_whole: bool,
}

/// What there is to say about claims and sight.
pub(super) fn reconcile(claims: &Claims, sight: &Sight) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut note = |kind, message: String| findings.push(Finding { kind, message });
    let unseen = claims.files.iter().filter(|claim| !sight.changed.contains(&claim.path));
    let (in_sight, elsewhere): (Vec<_>, Vec<_>) = unseen.partition(|claim| claim.lies == Lies::InSight);
    if !in_sight.is_empty() && sight.is_whole && sight.not_listed == 0 {
        let names = listed(in_sight.iter().map(|claim| claim.path.as_str()));
        let is = if in_sight.len() == 1 { "it is as it was" } else { "they are as they were" };
        note(FindingKind::ClaimNotSeen, format!("the agent says it changed {names}; {is} before"));
    }
    for (lies, words) in [
        (Lies::Ignored, "git ignores it"),
        (Lies::Outside, "it is outside of the work tree"),
        (Lies::PassedOver, "it is where nobody looks"),
    ] {
        let here: Vec<&str> =
            elsewhere.iter().filter(|claim| claim.lies == lies).map(|claim| claim.path.as_str()).collect();
        if !here.is_empty() {
            let names = listed(here.into_iter());
            note(FindingKind::ClaimNotChecked, format!("the agent says it changed {names}; {words}"));
        }
    }
    let claimed = claimed(claims, &sight.renamed);
    let quiet: Vec<&str> =
        sight.changed.iter().map(String::as_str).filter(|path| !claimed.contains(path)).collect();
    let names = listed(quiet.iter().copied());
    if sight.was_read_only && !sight.changed.is_empty() {
        let names = listed(sight.changed.iter().map(String::as_str));
        note(
            FindingKind::ReadOnlyChanged,
            format!("the task was to change nothing, but these files changed: {names}"),
        );
    } else if !quiet.is_empty() && claims.is_whole {
        let files = if quiet.len() == 1 { "1 file".to_owned() } else { format!("{} files", quiet.len()) };
        match claims.ran_commands {
            true => note(
                FindingKind::ByCommands,
                format!("{files} changed that the agent did not name, probably by its commands: {names}"),
            ),
            false => {
                note(FindingKind::NotClaimed, format!("{files} changed that the agent did not name: {names}"))
            }
        }
    }
    if !sight.beside.is_empty() && !sight.changed.is_empty() {
        let tasks = listed(sight.beside.iter().map(TaskId::as_str));
        let words = format!(
            "other tasks wrote in the same tree meanwhile, and their changes cannot be told from this one's: {tasks}"
        );
        note(FindingKind::NotToldApart, words);
    }
    findings
}

/// Codex names a file it renames by its old name only: who claims that has claimed the new one, too.
fn claimed<'a>(claims: &'a Claims, renamed: &'a [Renamed]) -> BTreeSet<&'a str> {
    let mut names: BTreeSet<&str> = claims.files.iter().map(|claim| claim.path.as_str()).collect();
    let new = renamed.iter().filter(|pair| names.contains(pair.from.as_str())).map(|pair| pair.to.as_str());
    let new: Vec<&str> = new.collect();
    names.extend(new);
    names
}

/// Some names, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let short = |name: &str| match name.char_indices().nth(LONGEST_NAME) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    };
    let (mut told, mut more) = (Vec::new(), 0);
    for name in names {
        if told.len() < MOST_NAMED {
            told.push(short(name));
        } else {
            more += 1;
        }
    }
    let told = told.join(", ");
    if more == 0 { told } else { format!("{told} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(files: &[(&str, Lies)], ran_commands: bool) -> Claims {
        let claim = |(path, lies): &(&str, Lies)| Claim { path: (*path).to_owned(), lies: *lies };
        Claims { files: files.iter().map(claim).collect(), is_whole: true, ran_commands }
    }

    fn sight(changed: &[&str]) -> Sight {
        let changed = changed.iter().map(|path| (*path).to_owned()).collect();
        Sight { changed, is_whole: true, ..Sight::default() }
    }

    fn kinds(claims: &Claims, sight: &Sight) -> Vec<FindingKind> {
        reconcile(claims, sight).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn what_was_claimed_and_seen_is_not_worth_a_word() {
        assert_eq!(kinds(&claims(&[("a", Lies::InSight)], false), &sight(&["a"])), []);
        assert_eq!(kinds(&claims(&[], true), &sight(&[])), []);
        // Claimed where nobody looks, and seen all the same.
        assert_eq!(kinds(&claims(&[("a", Lies::Ignored)], false), &sight(&["a"])), []);
    }

    #[test]
    fn claims_without_a_change_are_told_by_where_they_lie() {
        let said = claims(
            &[
                ("a", Lies::InSight),
                ("b.log", Lies::Ignored),
                ("/etc/x", Lies::Outside),
                ("target/y", Lies::PassedOver),
            ],
            false,
        );
        let told = reconcile(&said, &sight(&[]));
        assert_eq!(told[0].kind, FindingKind::ClaimNotSeen);
        assert_eq!(told[0].message, "the agent says it changed a; it is as it was before");
        let rest: Vec<&str> = told[1..].iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            rest,
            [
                "the agent says it changed b.log; git ignores it",
                "the agent says it changed /etc/x; it is outside of the work tree",
                "the agent says it changed target/y; it is where nobody looks",
            ]
        );
        assert!(told[1..].iter().all(|finding| finding.kind == FindingKind::ClaimNotChecked));
    }

    #[test]
    fn a_claim_is_not_called_wrong_by_who_did_not_see_everything() {
        let said = claims(&[("a", Lies::InSight)], false);
        assert_eq!(kinds(&said, &Sight { is_whole: false, ..sight(&[]) }), []);
        assert_eq!(kinds(&said, &Sight { not_listed: 1, ..sight(&[]) }), []);
    }

    #[test]
    fn changes_without_a_word_have_a_kind_of_their_own_after_commands() {
        assert_eq!(kinds(&claims(&[], false), &sight(&["a"])), [FindingKind::NotClaimed]);
        assert_eq!(kinds(&claims(&[], true), &sight(&["a", "b"])), [FindingKind::ByCommands]);
        let some = Claims { is_whole: false, ..claims(&[], true) };
        assert_eq!(kinds(&some, &sight(&["a"])), [], "it may have named it");
    }

    #[test]
    fn who_claims_the_old_name_of_a_renamed_file_has_claimed_the_new_one() {
        let pair = Renamed { from: "a".to_owned(), to: "b".to_owned() };
        let seen = Sight { renamed: vec![pair], ..sight(&["a", "b"]) };
        assert_eq!(kinds(&claims(&[("a", Lies::InSight)], false), &seen), []);
        let told = reconcile(&claims(&[("b", Lies::InSight)], false), &seen);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].kind == FindingKind::NotClaimed && told[0].message.ends_with(": a"), "{told:?}");
    }

    #[test]
    fn who_was_to_change_nothing_is_told_whatever_it_claims() {
        let seen = Sight { was_read_only: true, ..sight(&["a"]) };
        assert_eq!(kinds(&claims(&[("a", Lies::InSight)], true), &seen), [FindingKind::ReadOnlyChanged]);
        assert_eq!(kinds(&claims(&[], true), &Sight { was_read_only: true, ..sight(&[]) }), []);
    }

    #[test]
    fn other_writers_matter_only_where_something_changed() {
        let other = TaskId::from_random(delegator_domain::task::Place::Local, [7; 16]);
        let beside = |changed| Sight { beside: vec![other.clone()], ..sight(changed) };
        assert_eq!(kinds(&claims(&[], true), &beside(&[])), []);
        let told = reconcile(&claims(&[], true), &beside(&["a"]));
        assert!(
            told.iter()
                .any(|one| one.kind == FindingKind::NotToldApart && one.message.contains(other.as_str()))
        );
    }

    #[test]
    fn long_lists_and_names_are_cut() {
        let names: Vec<String> = (0..12).map(|n| format!("f{n}")).collect();
        let told = listed(names.iter().map(String::as_str));
        assert!(told.ends_with("f9 and 2 more"), "{told}");
        assert_eq!(listed(["ä".repeat(300).as_str()].into_iter()).chars().count(), LONGEST_NAME + 1);
    }
}
