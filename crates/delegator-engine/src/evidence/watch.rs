//! Looking before and after.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use delegator_domain::task::TaskId;
use delegator_git::{Baseline, ChangeKind, Comparison, FileChange, LeftOut, Limits};
use delegator_registry::TaskDir;
use delegator_supervisor::agent::Variables;
use delegator_transcript::Report;

use super::artifacts::{Budget, artifacts};
use super::paths::{Viewpoint, shown};
use super::reconcile::{Claim, Claims, Finding, FindingKind, Lies, Sight, reconcile};
use super::scan::{Bounds, Scan, is_passed_over};
use super::{Evidence, Files, History, Lines, MOST_LEFT_OUT, MOST_LISTED, Renamed, Sighting, Source};
use crate::clock::now_ms;
use crate::restore_point;

/// How long an agent's start, and a task's end, may be kept waiting.
const MAY_TAKE: Duration = Duration::from_secs(10);
/// Before a task that may only read nothing has to be kept; it is not worth as much waiting.
const BEFORE_READING: Limits =
    Limits { file_bytes: 10 << 20, total_bytes: 50 << 20, time: Duration::from_secs(2) };

/// How the files were before the agent came.
#[derive(Debug)]
pub(crate) struct Watch {
    workdir: OwnedFd,
    view: Viewpoint,
    before: Before,
    problem: Option<String>,
    /// Whether there was a repository, readable or not.
    has_git: bool,
    writes: bool,
    since_ms: i64,
    took: Duration,
}

#[derive(Debug)]
enum Before {
    Git(Box<Baseline>),
    Scan(Scan),
    Unknown,
}

/// Whose files are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) dir: &'a TaskDir,
    pub(crate) workdir: &'a OwnedFd,
    pub(crate) environment: &'a Variables,
    pub(crate) writes: bool,
}

/// Looks before the agent comes. Where the task may write, a restore point is kept from the same look.
pub(crate) fn look(around: Circumstances<'_>) -> Option<Watch> {
    let began = Instant::now();
    let since_ms = now_ms();
    let fd = around.workdir.try_clone().ok()?;
    let workdir = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let has_git = workdir.ancestors().any(is_top_level);
    let in_git = match has_git {
        true if around.writes => {
            let kept = restore_point::keep(around.task, around.dir, &[&workdir], around.environment);
            kept.into_iter().next().unwrap_or(Ok(None))
        }
        true => baseline(around, &workdir),
        false => Ok(None),
    };
    let (found, problem) = match in_git {
        Ok(found) => (found, None),
        Err(problem) => (None, Some(problem)),
    };
    let (before, top) = match found {
        Some(baseline) => {
            let top = baseline.repository().top_level.clone();
            (Before::Git(Box::new(baseline)), top)
        }
        None => match Scan::take(&workdir, around.dir.path(), Bounds::default()) {
            Ok(scan) => (Before::Scan(scan), workdir.clone()),
            Err(_) => (Before::Unknown, workdir.clone()),
        },
    };
    let view = Viewpoint { workdir, top };
    let writes = around.writes;
    Some(Watch { workdir: fd, view, before, problem, has_git, writes, since_ms, took: began.elapsed() })
}

fn baseline(around: Circumstances<'_>, workdir: &Path) -> Result<Option<Baseline>, String> {
    let git = restore_point::git(around.environment, workdir, MAY_TAKE).map_err(|error| error.to_string())?;
    Baseline::take(&git, workdir, around.dir.path(), BEFORE_READING)
        .map_err(|error| restore_point::first_line(&error.to_string()))
}

/// What was seen, before it is put into words.
struct Seen {
    source: Source,
    partial: Option<String>,
    files: Vec<FileChange>,
    lines: Option<Lines>,
    compared: Option<Comparison>,
}

impl Watch {
    /// Looks again, when everything the task started is gone. `beside` are the tasks that wrote here meanwhile; it is
    /// asked only where something changed.
    pub(crate) fn finish(mut self, report: &Report, beside: impl FnOnce() -> Vec<TaskId>) -> Sighting {
        let began = Instant::now();
        let before = std::mem::replace(&mut self.before, Before::Unknown);
        let (seen, baseline) = self.look_again(before);
        let mut findings = Vec::new();
        if let Some(problem) = &self.problem {
            let message = format!("git could not be asked what the task did: {problem}");
            findings.push(Finding { kind: FindingKind::Partial, message });
        }
        match seen {
            Ok(seen) => {
                let files = self.told(&seen.files);
                findings.extend(self.judged(&seen, &files, report, (baseline.as_deref(), beside)));
                findings.extend(self.remarks(&seen));
                (Some(self.evidence(seen, files, began)), findings)
            }
            Err(problem) => {
                let message = format!("what the task did to the files could not be looked at: {problem}");
                findings.push(Finding { kind: FindingKind::NoEvidence, message });
                (None, findings)
            }
        }
    }

    fn judged(
        &self,
        seen: &Seen,
        files: &Files,
        report: &Report,
        (baseline, beside): (Option<&Baseline>, impl FnOnce() -> Vec<TaskId>),
    ) -> Vec<Finding> {
        let changed = files.modified.iter().chain(&files.added).chain(&files.deleted);
        let changed: BTreeSet<String> = changed.cloned().collect();
        let sight = Sight {
            renamed: files.renamed.clone(),
            not_listed: files.not_listed,
            was_read_only: !self.writes,
            beside: if changed.is_empty() { Vec::new() } else { beside() },
            // git names every file, also where it reads none.
            is_whole: seen.source == Source::Git || seen.partial.is_none(),
            changed,
        };
        reconcile(&self.claims(report, &sight.changed, baseline), &sight)
    }

    fn evidence(&self, seen: Seen, files: Files, began: Instant) -> Evidence {
        let there = seen.files.iter().filter(|file| file.kind != ChangeKind::Deleted);
        let there: Vec<PathBuf> = there.map(|file| self.view.of_tree(&file.path)).collect();
        let (artifacts, artifacts_not_listed) =
            artifacts(&self.workdir, there.iter().map(PathBuf::as_path), shown, Budget::default());
        let left_out = seen.compared.as_ref().map_or(&[][..], |compared| &compared.left_out);
        let told =
            |one: &LeftOut| LeftOut { path: shown(&self.view.of_tree(one.path.as_bytes())), ..one.clone() };
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Evidence {
            source: seen.source,
            partial: seen.partial,
            files,
            lines: seen.lines,
            left_out: left_out.iter().take(MOST_LEFT_OUT).map(told).collect(),
            left_out_count: left_out.len(),
            history: seen.compared.map(history),
            artifacts,
            artifacts_not_listed,
            took_ms: [milliseconds(self.took), milliseconds(began.elapsed())],
        }
    }

    fn look_again(&self, before: Before) -> (Result<Seen, String>, Option<Box<Baseline>>) {
        match before {
            Before::Git(mut baseline) => {
                baseline.allow(MAY_TAKE);
                let compared = baseline.compare(Limits::default(), self.since_ms.div_euclid(1000));
                let compared = compared.map_err(|error| restore_point::first_line(&error.to_string()));
                (compared.map(Seen::by_git), Some(baseline))
            }
            Before::Scan(scan) => {
                let scanned = scan.compare(Bounds::default(), self.since_ms);
                let seen = scanned.map_err(|error| error.to_string()).map(|scanned| Seen {
                    source: Source::Scan,
                    partial: (!scanned.is_whole)
                        .then(|| "there are more files than are looked at".to_owned()),
                    files: scanned.files,
                    lines: None,
                    compared: None,
                });
                (seen, None)
            }
            Before::Unknown => (Err("they could not be looked at before it, either".to_owned()), None),
        }
    }

    fn told(&self, changes: &[FileChange]) -> Files {
        let mut files = Files::default();
        let told = |path: &[u8]| shown(&self.view.of_tree(path));
        for change in changes {
            let path = told(&change.path);
            let list = match &change.kind {
                ChangeKind::Modified => &mut files.modified,
                ChangeKind::Added | ChangeKind::Renamed { .. } => &mut files.added,
                ChangeKind::Deleted => &mut files.deleted,
            };
            if list.len() >= MOST_LISTED {
                files.not_listed += 1;
                continue;
            }
            list.push(path.clone());
            if let ChangeKind::Renamed { from } = &change.kind {
                let from = told(from);
                files.deleted.push(from.clone());
                files.renamed.push(Renamed { from, to: path });
            }
        }
        files.deleted.sort();
        files
    }

    /// What the agent says, and where those files lie of which nothing was seen.
    fn claims(&self, report: &Report, changed: &BTreeSet<String>, baseline: Option<&Baseline>) -> Claims {
        let named = report.files.added.iter().chain(&report.files.modified).chain(&report.files.deleted);
        let mut files: Vec<(Claim, PathBuf)> = Vec::new();
        for name in named {
            let (path, lies) = match self.view.of_claim(name) {
                Some(path) if baseline.is_none() && is_passed_over(&path) => (path, Lies::PassedOver),
                Some(path) if is_gits_own(&path) => (path, Lies::PassedOver),
                Some(path) => (path, Lies::InSight),
                None => (PathBuf::from(name), Lies::Outside),
            };
            files.push((Claim { path: shown(&path), lies }, path));
        }
        let unseen =
            files.iter().filter(|(claim, _)| claim.lies == Lies::InSight && !changed.contains(&claim.path));
        let unseen: Vec<Vec<u8>> = unseen.filter_map(|(_, path)| self.view.in_tree(path)).collect();
        let asked: Vec<&[u8]> = unseen.iter().map(Vec::as_slice).collect();
        let ignored = baseline.and_then(|baseline| baseline.ignored(&asked).ok()).unwrap_or_default();
        for (claim, path) in &mut files {
            if self.view.in_tree(path).is_some_and(|path| ignored.contains(&path)) {
                claim.lies = Lies::Ignored;
            }
        }
        Claims {
            files: files.into_iter().map(|(claim, _)| claim).collect(),
            is_whole: report.files.not_listed == 0,
            ran_commands: report.commands.finished > 0,
        }
    }

    /// What there is to say beside claims.
    fn remarks(&self, seen: &Seen) -> Vec<Finding> {
        let mut remarks = Vec::new();
        let mut note = |kind, message: String| remarks.push(Finding { kind, message });
        if let Some(partial) = &seen.partial {
            note(
                FindingKind::Partial,
                format!("not everything the task did to the files is known: {partial}"),
            );
        }
        let Some(compared) = &seen.compared else {
            if !self.has_git && is_top_level(&self.view.workdir) {
                note(FindingKind::Repository, "the working directory is a git repository now".to_owned());
            }
            return remarks;
        };
        if !compared.left_out.is_empty() {
            let words = format!("{} changed files were not read; see left_out", compared.left_out.len());
            note(FindingKind::Partial, words);
        }
        match &compared.head_after {
            None => {
                note(FindingKind::Repository, "the git repository is gone, or is another one now".to_owned())
            }
            Some(after) if after.branch != compared.head_before.branch => {
                let name = |branch: &Option<String>| {
                    branch.as_deref().map_or_else(
                        || "a detached HEAD".to_owned(),
                        |branch| branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned(),
                    )
                };
                let (from, to) = (name(&compared.head_before.branch), name(&after.branch));
                note(FindingKind::Repository, format!("the work tree was on {from} and is on {to} now"));
            }
            Some(_) => {}
        }
        remarks
    }
}

/// Whether a repository begins here, by names alone. An empty `.git` is none: sandboxes leave such directories about.
fn is_top_level(dir: &Path) -> bool {
    let git = dir.join(".git");
    git.is_file() || git.join("HEAD").exists()
}

/// Below a `.git`: not a file of the work tree.
fn is_gits_own(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

impl Seen {
    fn by_git(mut compared: Comparison) -> Seen {
        let mut files = std::mem::take(&mut compared.files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let sum = |lines: Lines, (added, deleted): (u64, u64)| Lines {
            added: lines.added.saturating_add(added),
            deleted: lines.deleted.saturating_add(deleted),
        };
        let lines = files.iter().filter_map(|file| file.lines).fold(Lines::default(), sum);
        Seen {
            source: Source::Git,
            partial: compared.names_only.clone(),
            lines: compared.names_only.is_none().then_some(lines),
            files,
            compared: Some(compared),
        }
    }
}

fn history(compared: Comparison) -> History {
    let after = compared.head_after;
    History {
        head_before: compared.head_before.commit,
        branch_before: compared.head_before.branch,
        repository_gone: after.is_none(),
        head_after: after.as_ref().and_then(|head| head.commit.clone()),
        branch_after: after.and_then(|head| head.branch),
        index_changed: compared.index_changed,
        commits: compared.commits.count,
        subjects: compared.commits.subjects,
    }
}
