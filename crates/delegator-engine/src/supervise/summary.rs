//! Summarizes in one sentence what a task did, by evidence; only without evidence by the agent's own report.
//! Pure.

use delegator_domain::task::{ExitStatus, FailureKind, LimitKind, TaskEnd};
use delegator_domain::text::first_line;
use delegator_transcript::Report;

use super::evidence::{Attribution, FindingKind, Lines, RepositoryChanges};
use super::task_report::Record;

pub(crate) fn one_sentence_summary(end: &TaskEnd, exit: Option<ExitStatus>, record: &Record) -> String {
    let mut changes = ChangeSummary::of(record).phrase();
    if record.findings.iter().any(|finding| finding.kind == FindingKind::GitSettings) {
        changes = format!("settings of git changed; {changes}");
    }
    match end {
        TaskEnd::Completed => match &record.check {
            Some(check) => format!("{}; {}", capitalized(&changes), check.describe()),
            None => capitalized(&changes),
        },
        TaskEnd::Failed { kind, message, .. } => {
            let observed = match (kind, exit) {
                (FailureKind::AgentExit, Some(ExitStatus::Code(code))) => format!("exited with code {code}"),
                (FailureKind::NoTerminalEvent, _) => "ended without reporting the end of its turn".to_owned(),
                _ => String::new(),
            };
            let parts = ["Failed".to_owned(), observed, first_line(message, 200)];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
        }
        TaskEnd::Cancelled { reason: Some(reason) } => format!("Cancelled ({reason}): {changes}"),
        TaskEnd::Cancelled { reason: None } => format!("Cancelled: {changes}"),
        TaskEnd::Timeout(LimitKind::Idle) => format!("Ended by the idle limit: {changes}"),
        TaskEnd::Timeout(LimitKind::Hard) => format!("Ended by the hard limit: {changes}"),
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChangeSummary {
    pub(crate) modified: u64,
    /// `added` and `deleted` do not count renamed files.
    pub(crate) added: u64,
    pub(crate) deleted: u64,
    pub(crate) renamed: u64,
    /// Changes that the agent reports, of unknown kind, beyond its list.
    pub(crate) more: u64,
    pub(crate) lines: Option<Lines>,
    /// Some files were not examined.
    pub(crate) is_partial: bool,
    /// No file could be examined.
    pub(crate) is_unknown: bool,
    /// Changed files that nothing attributes to the agent; the counts above do not include them.
    pub(crate) unattributed: u64,
    pub(crate) commits: u64,
    /// Commits that nothing attributes to the agent.
    pub(crate) unattributed_commits: u64,
    pub(crate) commands: u64,
    /// Passed and failed tests of the last test runs; `None` if no test was counted.
    pub(crate) tests: Option<(u64, u64)>,
}

impl ChangeSummary {
    pub(crate) fn of(record: &Record) -> ChangeSummary {
        let Report { commands, tests, files, .. } = &record.report;
        let commands = commands.finished;
        let tests = tests.as_ref().map(|tests| (tests.passed, tests.failed));
        let tests = tests.filter(|counts| *counts != (0, 0));
        let Some(evidence) = &record.evidence else {
            return ChangeSummary {
                modified: files.modified.len() as u64,
                added: files.added.len() as u64,
                deleted: files.deleted.len() as u64,
                more: files.not_listed,
                is_unknown: record.findings.iter().any(|finding| finding.kind == FindingKind::NoEvidence),
                commands,
                tests,
                ..ChangeSummary::default()
            };
        };
        let attributed = &evidence.attributed;
        let history = evidence.history.as_ref();
        let (own, other): (Vec<_>, Vec<_>) =
            history.into_iter().partition(|history| history.attribution != Attribution::Unknown);
        let commits =
            |histories: &[&RepositoryChanges]| histories.iter().map(|history| history.commits).sum();
        ChangeSummary {
            modified: attributed.modified,
            added: attributed.added,
            deleted: attributed.deleted,
            renamed: attributed.renamed,
            more: 0,
            // An incomplete sum would mislead.
            lines: (evidence.lines_not_counted == 0).then_some(attributed.lines),
            is_partial: evidence.is_partial(),
            is_unknown: false,
            unattributed: evidence.unattributed_count(),
            commits: commits(&own),
            unattributed_commits: commits(&other),
            commands,
            tests,
        }
    }

    /// The sentence, starting with a lower-case letter.
    pub(crate) fn phrase(&self) -> String {
        let mut parts = vec![self.files()];
        if self.commits > 0 {
            parts.push(format!("made {}", plural(self.commits, "commit")));
        }
        match self.tests {
            Some((passed, 0)) => parts.push(format!("{} passed", plural(passed, "test"))),
            Some((0, failed)) => parts.push(format!("{} failed", plural(failed, "test"))),
            Some((passed, failed)) => {
                parts.push(format!("{} passed and {failed} failed", plural(passed, "test")))
            }
            None => {}
        }
        // The number of commands matters only if they produced no test results.
        if self.commands > 0 && self.tests.is_none() {
            parts.push(format!("ran {}", plural(self.commands, "command")));
        }
        let mut clauses = vec![parts.join(", ")];
        for (count, word, verb) in
            [(self.unattributed, "file", "changed"), (self.unattributed_commits, "commit", "made")]
        {
            if count > 0 {
                let counted = plural(count, word);
                clauses.push(format!("{counted} {verb} during the task, not attributed to the agent"));
            }
        }
        clauses.join("; ")
    }

    /// The files: "modified 2 files and added 1 (+12 −3)".
    fn files(&self) -> String {
        let counts = [
            ("modified", self.modified),
            ("added", self.added),
            ("deleted", self.deleted),
            ("renamed", self.renamed),
        ];
        let counts: Vec<(&str, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let mut counted: Vec<String> = counts.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
        match (counted.first_mut(), self.more) {
            (None, 0) if self.is_unknown => return "its changes could not be examined".to_owned(),
            (None, 0) if self.is_partial => return "changed nothing in the files examined".to_owned(),
            (None, 0) => return "changed nothing".to_owned(),
            (None, more) => return format!("changed {}", plural(more, "file")),
            (Some(first), _) => *first = format!("{} {}", counts[0].0, plural(counts[0].1, "file")),
        }
        if self.more > 0 {
            counted.push(format!("changed {} more", self.more));
        }
        let last = counted.pop().unwrap_or_default();
        let text = if counted.is_empty() { last } else { format!("{} and {last}", counted.join(", ")) };
        match self.lines {
            Some(Lines { added: 0, deleted: 0 }) | None => text,
            Some(Lines { added, deleted }) => format!("{text} (+{added} −{deleted})"),
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

pub(super) fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_summarized_in_one_sentence() {
        let nothing = ChangeSummary::default();
        let lines = |added, deleted| Some(Lines { added, deleted });
        for (summary, expected) in [
            (nothing, "Changed nothing"),
            (ChangeSummary { lines: lines(0, 0), ..nothing }, "Changed nothing"),
            (ChangeSummary { is_unknown: true, ..nothing }, "Its changes could not be examined"),
            (ChangeSummary { is_partial: true, ..nothing }, "Changed nothing in the files examined"),
            (ChangeSummary { commands: 2, ..nothing }, "Changed nothing, ran 2 commands"),
            (ChangeSummary { modified: 9, lines: lines(342, 17), ..nothing }, "Modified 9 files (+342 −17)"),
            (
                ChangeSummary { modified: 2, added: 1, lines: lines(12, 3), ..nothing },
                "Modified 2 files and added 1 (+12 −3)",
            ),
            (
                ChangeSummary {
                    modified: 9,
                    lines: lines(342, 17),
                    commands: 3,
                    tests: Some((47, 0)),
                    ..nothing
                },
                "Modified 9 files (+342 −17), 47 tests passed",
            ),
            (ChangeSummary { tests: Some((1, 2)), ..nothing }, "Changed nothing, 1 test passed and 2 failed"),
            (ChangeSummary { tests: Some((0, 1)), ..nothing }, "Changed nothing, 1 test failed"),
            (ChangeSummary { deleted: 1, ..nothing }, "Deleted 1 file"),
            (ChangeSummary { added: 1, deleted: 3, ..nothing }, "Added 1 file and deleted 3"),
            (
                ChangeSummary { modified: 1, added: 2, deleted: 3, renamed: 4, ..nothing },
                "Modified 1 file, added 2, deleted 3 and renamed 4",
            ),
            (ChangeSummary { renamed: 1, lines: lines(0, 0), ..nothing }, "Renamed 1 file"),
            (
                ChangeSummary { modified: 1, commits: 1, lines: lines(1, 0), ..nothing },
                "Modified 1 file (+1 −0), made 1 commit",
            ),
            (
                ChangeSummary { commits: 2, commands: 1, ..nothing },
                "Changed nothing, made 2 commits, ran 1 command",
            ),
            (ChangeSummary { more: 1, ..nothing }, "Changed 1 file"),
            (
                ChangeSummary { unattributed: 1, commands: 1, ..nothing },
                "Changed nothing, ran 1 command; 1 file changed during the task, not attributed to the agent",
            ),
            (
                ChangeSummary { modified: 1, unattributed: 2, lines: lines(1, 0), ..nothing },
                "Modified 1 file (+1 −0); 2 files changed during the task, not attributed to the agent",
            ),
            (
                ChangeSummary { unattributed_commits: 1, ..nothing },
                "Changed nothing; 1 commit made during the task, not attributed to the agent",
            ),
            (ChangeSummary { added: 2_000, more: 7, ..nothing }, "Added 2000 files and changed 7 more"),
        ] {
            assert_eq!(capitalized(&summary.phrase()), expected);
        }
    }
}
