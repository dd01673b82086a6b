//! The record of a task of which only the diff is known.

use delegator_git::{ChangeKind, FileDiff, NotADiff, display_path, parse_complete_diff};

use super::evidence::{
    ChangeCounts, Evidence, Files, Lines, MAX_LISTED, Renamed, Source, UnattributedChanges,
};
use super::task_report::Record;

/// Everything in the diff is the agent's: it worked in a checkout of its own.
pub(crate) fn record_of_diff(diff: Option<&str>) -> Result<Record, NotADiff> {
    let changed = diff.map(|diff| parse_complete_diff(diff.as_bytes())).transpose()?.unwrap_or_default();
    Ok(Record { evidence: Some(evidence(&changed)), ..Record::default() })
}

fn evidence(changed: &[FileDiff<'_>]) -> Evidence {
    let mut counts = ChangeCounts::default();
    for file in changed {
        let (added, deleted) = file.line_counts();
        counts.add(&file.kind, Lines { added, deleted });
    }
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

fn list_files(listed: &[FileDiff<'_>], total: usize) -> Files {
    let mut files = Files { not_listed: (total - listed.len()) as u64, ..Files::default() };
    for file in listed {
        let path = display_path(&file.path);
        match &file.kind {
            ChangeKind::Modified => files.modified.push(path),
            ChangeKind::Added => files.added.push(path),
            ChangeKind::Deleted => files.deleted.push(path),
            ChangeKind::Renamed { from } => {
                let from = display_path(from);
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
