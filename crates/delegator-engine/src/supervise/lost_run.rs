//! The record of a run whose supervisor was lost: the fold of the stored events, and the changes until the
//! loss was noticed, some of which others may have made. An error here never prevents that the end of the
//! task is recorded.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use delegator_domain::redact::Redactor;
use delegator_domain::task::{FailureKind, TaskEnd, TaskId};
use delegator_registry::{Finish, Registry, Task, TaskDir, TaskFile};
use delegator_supervisor::run::StreamSummary;
use delegator_transcript::{AssumedThread, Dialect, FoldOptions, LineLimits, Report, Summarizer};

use super::diff_evidence::record_of_diff;
use super::evidence::{Evidence, EvidenceAndFindings, Finding, FindingKind, Source, relative_name};
use super::summary::ChangeSummary;
use super::task_diff::{DiffSource, TaskDiff, recorded_diff};
use super::task_report::{Record, changed_lines, tokens};
use crate::error::Result;
use crate::shared::work_tree::work_tree_of;
use crate::upkeep::background_process::USUAL_PATH;

const LATE: &str =
    "the supervisor was lost, so the files were compared later: changes of others may be among them";
const NOT_COMPARED: &str = "the supervisor was lost, and the files could not be compared later";

/// How a task ended whose supervisor was lost. Writes its report, unless the supervisor has done so.
pub(crate) fn finish_lost_run(registry: &Registry, id: &TaskId, survivors: Vec<i32>) -> Finish {
    let dir = registry.dir().task(id);
    let record = match (Record::read(&dir), registry.get(id)) {
        (Ok(Some(record)), _) => record,
        (_, Ok(Some(task))) => rebuild_record(registry, &dir, &task),
        _ => Record::default(),
    };
    let changes = ChangeSummary::of(&record);
    let mut summary = "Failed: the supervisor was lost".to_owned();
    if changes != ChangeSummary::default() {
        summary = format!("{summary}; {}", changes.phrase());
    }
    let message = "the supervisor was lost; what the agent did until then is kept";
    Finish {
        survivors,
        lines: changed_lines(&record),
        summary: Some(summary),
        tokens: tokens(&record.report),
        turns: Some(record.report.turns).filter(|turns| *turns > 0),
        cost_microdollars: record.report.cost.map(|cost| cost.own),
        ..Finish::bare(TaskEnd::failed(FailureKind::SupervisorLost, message))
    }
}

fn rebuild_record(registry: &Registry, dir: &TaskDir, task: &Task) -> Record {
    let (report, stored) = fold_events(dir, task);
    let mut record = Record {
        report,
        stdout: StreamSummary { received: stored, stored, ..StreamSummary::default() },
        ..Record::default()
    };
    let is_observed = task.worktree.is_some() || dir.file(TaskFile::RestorePoint).exists();
    if task.may_write() && is_observed {
        let observed = match compare_late(registry, dir, task) {
            Ok(diff) => late_evidence(&diff, task, &record.report),
            Err(error) => {
                (None, vec![Finding::new(FindingKind::NoEvidence, NOT_COMPARED).because(&error.to_string())])
            }
        };
        // The secrets of the task are not known any more, only what looks like one is redacted.
        record.add_evidence(observed, &Redactor::builder().build());
    }
    if let Ok(bytes) = serde_json::to_vec(&record) {
        let _ = dir.write_report(&bytes);
    }
    record
}

/// What changed since the restore points. It is stored: afterwards nothing tells it from later changes.
fn compare_late(registry: &Registry, dir: &TaskDir, task: &Task) -> Result<TaskDiff> {
    let environment = vec![("PATH".into(), USUAL_PATH.into())];
    let diff = recorded_diff(registry, task, &environment)?;
    if diff.source == DiffSource::InProgress && diff.omissions.size_limit.is_none() {
        dir.write_durably(TaskFile::Diff, &diff.text)?;
    }
    Ok(diff)
}

fn fold_events(dir: &TaskDir, task: &Task) -> (Report, u64) {
    let fold = |dialect| {
        let thread = task.thread_id.clone().or(task.resumed_thread.clone());
        let options = FoldOptions {
            workdir: Some(task.working_dir.clone()),
            dialect,
            thread: thread.map_or_else(AssumedThread::default, AssumedThread::Known),
            ..FoldOptions::default()
        };
        let mut summarizer = Summarizer::new(options, LineLimits::STANDARD);
        let (mut chunk, mut size) = (vec![0; 64 << 10], 0);
        if let Ok(mut file) = File::open(dir.file(TaskFile::Events)) {
            while let Ok(count @ 1..) = file.read(&mut chunk) {
                summarizer.push(&chunk[..count]);
                size += count as u64;
            }
        }
        (summarizer.finish(), size)
    };
    let (report, size) = fold(None);
    // The lines of an agent that prints text do not show their dialect.
    if report.dialect.is_none() && size > 0 { fold(Some(Dialect::Plain)) } else { (report, size) }
}

/// The changes in a worktree, and those that the agent's events name, are its own; the others may be.
fn late_evidence(diff: &TaskDiff, task: &Task, report: &Report) -> EvidenceAndFindings {
    let text = String::from_utf8_lossy(&diff.text);
    let compared = record_of_diff(Some(&*text).filter(|text| !text.is_empty()));
    let Some(evidence) =
        compared.ok().and_then(|record| record.evidence).filter(|_| diff.omissions.size_limit.is_none())
    else {
        return (None, vec![Finding::new(FindingKind::NoEvidence, NOT_COMPARED)]);
    };
    // Only the agent works in its worktree.
    let is_shared = diff.source != DiffSource::Worktree;
    let workdir = Path::new(&task.working_dir);
    let workdir = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
    let tree = work_tree_of(&workdir);
    let rename = |name: &mut String| *name = relative_name(&workdir, tree.root(), name);
    let Evidence { mut files, mut unattributed, .. } = evidence.clone();
    let lists = [&mut files.modified, &mut files.added, &mut files.deleted];
    lists.into_iter().flatten().for_each(rename);
    files.renamed.iter_mut().flat_map(|renamed| [&mut renamed.from, &mut renamed.to]).for_each(rename);
    let claimed = [&report.files.modified, &report.files.added, &report.files.deleted].into_iter().flatten();
    let named: BTreeSet<String> = claimed.map(|name| relative_name(&workdir, &workdir, name)).collect();
    let changed = [&files.modified, &files.added, &files.deleted].into_iter().flatten();
    unattributed.possibly_agent =
        changed.filter(|name| is_shared && !named.contains(*name)).cloned().collect();
    let evidence = Evidence {
        source: Source::Late,
        partial: is_shared.then(|| LATE.to_owned()),
        files,
        unattributed,
        left_out: diff.omissions.left_out.clone(),
        left_out_count: diff.omissions.left_out_count,
        ..evidence
    };
    let finding = is_shared.then(|| Finding::new(FindingKind::Partial, LATE));
    (Some(evidence), finding.into_iter().collect())
}
