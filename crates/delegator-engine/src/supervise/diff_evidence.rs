//! The record of a task of which only the diff is known.

use delegator_codex_cloud::{FileDiff, FileDiffKind, NotADiff, parse_diff};

use super::evidence::{ChangeCounts, Evidence, Files, MAX_LISTED, Renamed, Source, UnattributedChanges};
use super::task_report::Record;

/// Everything in the diff is the agent's: it worked in a checkout of its own.
pub(crate) fn record_of_diff(diff: Option<&str>) -> Result<Record, NotADiff> {
    let changed = diff.map(parse_diff).transpose()?.unwrap_or_default();
    Ok(Record { evidence: Some(evidence(&changed)), ..Record::default() })
}

fn evidence(changed: &[FileDiff]) -> Evidence {
    let counts = count(changed);
    Evidence {
        source: Source::Diff,
        partial: None,
        files: list_files(&changed[..changed.len().min(MAX_LISTED)], changed.len()),
        lines: counts.lines,
        lines_not_counted: changed.iter().filter(|file| file.is_binary).count() as u64,
        attributed: counts,
        unattributed: UnattributedChanges::default(),
        history: None,
        left_out: Vec::new(),
        left_out_count: 0,
        artifacts: Vec::new(),
        artifacts_not_listed: 0,
        took_ms: [0, 0],
    }
}

fn count(changed: &[FileDiff]) -> ChangeCounts {
    let mut counts = ChangeCounts::default();
    for file in changed {
        match file.kind {
            FileDiffKind::Modified => counts.modified += 1,
            FileDiffKind::Added => counts.added += 1,
            FileDiffKind::Deleted => counts.deleted += 1,
            FileDiffKind::Renamed { .. } => counts.renamed += 1,
        }
        counts.lines.added += file.lines_added;
        counts.lines.deleted += file.lines_removed;
    }
    counts
}

fn list_files(listed: &[FileDiff], total: usize) -> Files {
    let mut files = Files { not_listed: (total - listed.len()) as u64, ..Files::default() };
    for FileDiff { path, kind, .. } in listed.iter().cloned() {
        match kind {
            FileDiffKind::Modified => files.modified.push(path),
            FileDiffKind::Added => files.added.push(path),
            FileDiffKind::Deleted => files.deleted.push(path),
            FileDiffKind::Renamed { from } => {
                files.added.push(path.clone());
                files.deleted.push(from.clone());
                files.renamed.push(Renamed { from, to: path });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::evidence::Lines;

    #[test]
    fn files_and_lines_come_from_the_diff() {
        let diff = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-old\n+new\n+more\n\
                    diff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n";
        let evidence = record_of_diff(Some(diff)).unwrap().evidence.unwrap();
        assert_eq!(evidence.files.modified, ["f"]);
        assert_eq!(evidence.files.renamed, [Renamed { from: "from".to_owned(), to: "to".to_owned() }]);
        assert_eq!((evidence.files.count(), evidence.attributed.files()), (2, 2));
        assert_eq!(evidence.lines, Lines { added: 2, deleted: 1 });
    }

    #[test]
    fn no_diff_means_that_nothing_changed() {
        assert_eq!(record_of_diff(None).unwrap().evidence.unwrap().files.count(), 0);
        assert!(record_of_diff(Some("<html>")).is_err());
    }
}
