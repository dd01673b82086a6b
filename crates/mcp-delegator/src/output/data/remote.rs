//! What results show of a task that a provider runs: where it runs, and the part of its diff that fits.
//!
//! The files of a long diff share the space equally, and what a small file does not need, the others get: one
//! large file does not hide the changes of the rest. Each gap has a line that says how much is missing, so a
//! shortened diff cannot be applied by mistake.

use delegator_engine::ProviderRecord;
use delegator_registry::RemoteTask;

use crate::output::data::diff::OmissionsData;
use crate::output::documents::document::plural;
use crate::output::prelude::*;

/// Bytes of the diff that a result shows unless the caller requests the output.
const SHOWN_BYTES: usize = 8_000;

/// Where a task runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemoteData {
    /// Environment id.
    pub environment: String,
    pub provider: &'static str,
    /// The provider's own id of the task; absent until the provider has accepted it.
    pub remote_id: Option<String>,
    pub url: Option<String>,
    /// The worker that ran the task.
    pub worker: Option<String>,
    /// The commit that the task started from.
    pub base_commit: Option<String>,
    /// The branch of that commit.
    pub branch: Option<String>,
    /// The branch to which the worker pushed the changes.
    pub pushed_branch: Option<String>,
    #[serde(flatten)]
    pub omissions: OmissionsData,
}

impl RemoteData {
    /// `facts` are known of an ended task.
    pub fn of(task: &Task, facts: Option<&ProviderRecord>) -> Option<RemoteData> {
        let RemoteTask { environment, accepted, .. } = task.remote.clone()?;
        let (remote_id, url) = accepted.map_or((None, None), |accepted| (Some(accepted.id), accepted.url));
        let facts = facts.cloned().unwrap_or_default();
        Some(RemoteData {
            environment: environment.id,
            provider: environment.provider.name(),
            remote_id,
            url,
            worker: facts.worker,
            base_commit: facts.base_commit,
            branch: facts.branch,
            pushed_branch: facts.pushed_branch,
            omissions: OmissionsData::of(&facts.omissions),
        })
    }
}

/// The changes of a task that a provider ran, as a unified diff.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffData {
    /// The length of the whole diff.
    pub bytes: u64,
    pub text: String,
    /// Parts are left out of the text, each replaced by a line in brackets; the command `diff` prints all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
}

impl DiffData {
    /// The diff, shortened to the budget; `None` if there is none.
    pub fn of(stored: &[u8], budget: Option<usize>) -> Option<DiffData> {
        let text = String::from_utf8_lossy(stored);
        let shortened = shorten(&text, budget.unwrap_or(SHOWN_BYTES));
        (!stored.is_empty()).then(|| DiffData {
            bytes: stored.len() as u64,
            is_truncated: shortened.is_some(),
            text: shortened.unwrap_or_else(|| text.into_owned()),
        })
    }
}

/// Less of a file says nothing; if there is not so much for each file, the last files are left out.
const MIN_FILE_BYTES: usize = 500;
/// Space for the line about a gap.
const NOTE_BYTES: usize = 80;

/// The diff in about this many bytes; `None` if all of it fits.
pub fn shorten(diff: &str, budget: usize) -> Option<String> {
    if diff.len() <= budget {
        return None;
    }
    let files = split_files(diff);
    let (listed, others) = files.split_at(listed_count(&files, budget));
    let share = fair_share(listed.iter().map(|file| without_binary(file).len()).collect(), budget);
    let mut text = String::new();
    for file in listed {
        let visible = whole_lines(without_binary(file), share);
        text.push_str(visible);
        let missing = file.len() - visible.len();
        if missing > 0 {
            text.push_str(&note(&format!("{missing} bytes of this file")));
        }
    }
    if !others.is_empty() {
        let missing: usize = others.iter().map(|file| file.len()).sum();
        text.push_str(&note(&format!("{} with {missing} bytes", plural(others.len(), "more file"))));
    }
    Some(text)
}

/// How many files can be shown, each with at least [`MIN_FILE_BYTES`] or whole; not less than one.
fn listed_count(files: &[&str], budget: usize) -> usize {
    let minimum = |file: &&str| without_binary(file).len().min(MIN_FILE_BYTES);
    let needed = files.iter().scan(0, |sum, file| {
        *sum += minimum(file);
        Some(*sum)
    });
    needed.take_while(|sum| *sum <= budget).count().max(1)
}

fn note(missing: &str) -> String {
    format!("[{missing} left out; the command 'diff' prints all]\n")
}

/// The changes of each file. The lines of a change never begin with this word: they have a sign or are
/// encoded.
fn split_files(diff: &str) -> Vec<&str> {
    let mut files = Vec::new();
    let mut rest = diff;
    while let Some(at) = rest.find("\ndiff --git ") {
        let (file, next) = rest.split_at(at + 1);
        files.push(file);
        rest = next;
    }
    files.push(rest);
    files
}

fn without_binary(file: &str) -> &str {
    file.find("\nGIT binary patch\n").map_or(file, |at| &file[..=at])
}

/// The largest space per file with which all fit.
fn fair_share(mut lengths: Vec<usize>, budget: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut count) = (budget, lengths.len());
    for length in lengths {
        let share = left / count;
        if length > share {
            return share;
        }
        (left, count) = (left - length, count - 1);
    }
    budget
}

/// The text if it fits, else as many of its lines as fit together with the line about the gap.
fn whole_lines(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit.saturating_sub(NOTE_BYTES));
    &text[..text[..end].rfind('\n').map_or(0, |newline| newline + 1)]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shortened_diff_is_marked() {
        let shortened = DiffData::of(&b"+one\n".repeat(200), Some(500)).unwrap();
        assert_eq!((shortened.bytes, shortened.is_truncated), (1_000, true));
        assert!(
            shortened
                .text
                .ends_with("+one\n[580 bytes of this file left out; the command 'diff' prints all]\n")
        );
        let whole = DiffData::of(b"+one\n", None).unwrap();
        assert_eq!((whole.text.as_str(), whole.is_truncated), ("+one\n", false));
        assert!(DiffData::of(b"", None).is_none());
    }

    fn file(name: &str, lines: usize) -> String {
        let added = "+a line of this file\n".repeat(lines);
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{lines} @@\n{added}")
    }

    #[test]
    fn a_large_file_does_not_hide_the_others() {
        let (small, large) = (file("small", 3), file("large", 1_000));
        let minified = format!("{}+{}\n", file("minified", 0), "x".repeat(50_000));
        let shown = shorten(&format!("{large}{minified}{small}"), 4_000).unwrap();
        assert!(shown.ends_with(&small) && shown.len() <= 4_000, "{shown}");
        assert!(shown.contains("a/minified") && !shown.contains("xxx"), "{shown}");
        assert!(shown.matches("+a line").count() > 80, "it gets what the small file does not need: {shown}");
        assert_eq!(
            shown.matches(" bytes of this file left out; the command 'diff' prints all]\n").count(),
            2
        );
    }

    #[test]
    fn binary_contents_are_left_out_first() {
        let binary = format!(
            "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 9\n{}\n",
            "zcmV".repeat(100)
        );
        let text = file("text", 30);
        let shown = shorten(&format!("{binary}{text}"), 900).unwrap();
        assert!(shown.starts_with("diff --git a/x b/x\nindex 1..2 100644\n[4"), "{shown}");
        assert!(shown.ends_with(&text), "{shown}");
    }

    #[test]
    fn many_files_are_counted() {
        let diff: String = (0..100).map(|number| file(&number.to_string(), 30)).collect();
        let shown = shorten(&diff, 2_000).unwrap();
        assert!(shown.contains("[96 more files with ") && shown.matches("+++ b/").count() == 4, "{shown}");
    }

    proptest! {
        #[test]
        fn a_diff_is_whole_or_fits(sizes in vec(0_usize..400, 1..20), budget in 500_usize..20_000) {
            let diff: String = sizes.iter().map(|size| file("f", *size)).collect();
            match shorten(&diff, budget) {
                None => prop_assert!(diff.len() <= budget),
                Some(shown) => prop_assert!(shown.len() <= budget + NOTE_BYTES, "{} {budget}", shown.len()),
            }
        }
    }
}
