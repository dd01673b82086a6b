//! The agent's stdout and stderr in our JSON, within one budget.
//!
//! Each stream gets half of the budget; one stream may use what the other does not need. The first and the
//! last half of a stream's share are retained, with a mark between them that counts. Output that exceeds the
//! size limit is truncated a second time; `max_bytes` is the budget that was applied last.

use schemars::JsonSchema;
use serde::Serialize;

pub const MARK: &str = " [truncated] ";

/// A second truncation removes at least this much more, so that it also removes the first mark.
const MIN_SECOND_REDUCTION: usize = 4 * MARK.len();

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AgentOutput {
    pub included: bool,
    /// Why it is not included.
    pub reason: Option<String>,
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    pub truncated: bool,
    /// The budget of both streams together.
    pub max_bytes: usize,
    /// The size that the agent wrote, if it was truncated.
    pub original_size: Option<u64>,
}

/// Output that is not included, with the reason.
pub fn excluded(reason: &str) -> AgentOutput {
    AgentOutput { reason: Some(reason.to_owned()), ..AgentOutput::default() }
}

/// Both streams within the budget. `sizes` are the sizes that the agent wrote.
pub fn included(stdout: &str, stderr: &str, budget: usize, sizes: (u64, u64)) -> AgentOutput {
    let (out, err) = excerpts(stdout, stderr, budget);
    let original = sizes.0.max(stdout.len() as u64) + sizes.1.max(stderr.len() as u64);
    let truncated =
        original > (out.len() + err.len()) as u64 || out.len() != stdout.len() || err.len() != stderr.len();
    AgentOutput {
        included: true,
        reason: None,
        stdout: Some(out),
        stderr: Some(err),
        truncated,
        max_bytes: budget,
        original_size: truncated.then_some(original),
    }
}

impl AgentOutput {
    pub fn size(&self) -> usize {
        self.streams().map(str::len).sum()
    }

    pub fn streams(&self) -> impl Iterator<Item = &str> {
        [&self.stdout, &self.stderr].into_iter().filter_map(|stream| stream.as_deref())
    }

    /// Truncates included output to a smaller budget, and updates its facts.
    pub fn shrink(&mut self, budget: usize) {
        let size = self.size();
        let (Some(stdout), Some(stderr), true) = (&mut self.stdout, &mut self.stderr, size > budget) else {
            return;
        };
        let budget = budget.min(size.saturating_sub(MIN_SECOND_REDUCTION));
        (*stdout, *stderr) = excerpts(stdout, stderr, budget);
        self.truncated = true;
        self.max_bytes = budget;
        self.original_size.get_or_insert(size as u64);
    }
}

pub fn tail(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mark = MARK.trim_start();
    match max_bytes.checked_sub(mark.len()) {
        Some(retained) => format!("{mark}{}", &text[text.ceil_char_boundary(text.len() - retained)..]),
        None => String::new(),
    }
}

const MAX_LAST_OUTPUT: usize = 65_536;
/// Separates the streams in `last_output`, on a line of its own.
const STDERR_HEADING: &str = "--- stderr ---\n";

/// The ends of both streams in one text, as the tool envelope defines it: stdout, then stderr under a
/// heading. The order in which an agent wrote to the two is not known.
pub fn last_output(stdout: &str, stderr: &str) -> String {
    join_tails(stdout, stderr, MAX_LAST_OUTPUT)
}

/// Truncates the text of [`last_output`]; each stream retains its end.
pub fn shrink_last_output(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let (stdout, stderr) = match text.strip_prefix(STDERR_HEADING) {
        Some(stderr) => ("", stderr),
        None => text.split_once(&format!("\n{STDERR_HEADING}")).unwrap_or((text, "")),
    };
    join_tails(stdout, stderr, max_bytes)
}

fn join_tails(stdout: &str, stderr: &str, max_bytes: usize) -> String {
    if stderr.is_empty() {
        return tail(stdout, max_bytes);
    }
    // One byte more for a newline at the end of stdout.
    let Some(budget) = max_bytes.checked_sub(STDERR_HEADING.len() + 1) else { return String::new() };
    let (out_share, err_share) = shares(stdout.len(), stderr.len(), budget);
    let mut text = tail(stdout, out_share);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + STDERR_HEADING + &tail(stderr, err_share)
}

fn excerpts(stdout: &str, stderr: &str, budget: usize) -> (String, String) {
    let (out_share, err_share) = shares(stdout.len(), stderr.len(), budget);
    (excerpt(stdout, out_share), excerpt(stderr, err_share))
}

/// The bytes that stdout and stderr may use: at least half of the budget each, and what the other does not
/// need.
fn shares(stdout: usize, stderr: usize, budget: usize) -> (usize, usize) {
    let for_stderr = stderr.min((budget / 2).max(budget.saturating_sub(stdout)));
    (budget - for_stderr, for_stderr)
}

/// Both ends of a text; empty if only the mark would fit.
pub fn excerpt(text: &str, share: usize) -> String {
    if text.len() <= share {
        return text.to_owned();
    }
    let Some(retained) = share.checked_sub(MARK.len()).filter(|retained| *retained > 0) else {
        return String::new();
    };
    let head = text.floor_char_boundary(retained / 2);
    let tail = text.ceil_char_boundary(text.len() - (retained - retained / 2));
    format!("{}{MARK}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unused_budget_goes_to_the_other_stream() {
        let output = included(&"x".repeat(60_000), "", 65_536, (60_000, 0));
        assert_eq!((output.truncated, output.stdout.unwrap().len()), (false, 60_000));
        let output = included(&"x".repeat(100_000), &"y".repeat(100_000), 65_536, (100_000, 100_000));
        assert_eq!(output.streams().map(str::len).collect::<Vec<_>>(), [32_768, 32_768]);
        assert_eq!(output.original_size, Some(200_000));
    }

    #[test]
    fn second_truncation_looks_like_the_only_one() {
        let (out, err) = ("é".repeat(50_000), "y".repeat(100_000));
        let mut output = included(&out, &err, 65_536, (500_000, 100_000));
        output.shrink(20_000);
        assert_eq!(output, included(&out, &err, 20_000, (500_000, 100_000)));
        let unchanged = output.clone();
        output.shrink(20_000);
        assert_eq!(output, unchanged, "output that fits is unchanged");
        output.shrink(0);
        assert_eq!(output, included("", "", 0, (500_000, 100_000)));
    }

    proptest! {
        #[test]
        fn budget_holds_for_any_text(out in ".{0,300}", err in ".{0,300}", budget in 0usize..600) {
            let output = included(&out, &err, budget, (out.len() as u64, err.len() as u64));
            prop_assert!(output.size() <= budget);
            prop_assert_eq!(output.truncated, out.len() + err.len() > budget);
        }

        #[test]
        fn second_truncation_leaves_one_mark_and_reports_its_budget(
            out in "[aé]{0,300}", err in "[aé]{0,300}", first in 0usize..600, second in 0usize..600,
        ) {
            let mut output = included(&out, &err, first, (out.len() as u64, err.len() as u64));
            let before = output.size();
            output.shrink(second);
            prop_assert!(output.size() <= second.min(before));
            let budget = output.max_bytes;
            prop_assert!(output.size() <= budget && budget <= first.max(second));
            prop_assert_eq!(output.truncated, out.len() + err.len() > output.size());
            let original = output.truncated.then_some((out.len() + err.len()) as u64);
            prop_assert_eq!(output.original_size, original);
            for text in output.streams() {
                prop_assert!(text.matches('[').count() <= 1, "{}", text);
                prop_assert!(text.matches(']').count() <= 1, "{}", text);
            }
        }

        #[test]
        fn last_output_retains_the_ends_of_both_streams(
            out in "[aé\n]{0,300}", err in "[bé\n]{0,300}", first in 0usize..700, second in 0usize..700,
        ) {
            let joined = join_tails(&out, &err, first);
            prop_assert!(joined.len() <= first);
            if out.len() + err.len() + STDERR_HEADING.len() < first {
                prop_assert!(joined.starts_with(out.as_str()) && joined.ends_with(err.as_str()));
                prop_assert_eq!(joined.contains(STDERR_HEADING), !err.is_empty());
            }
            let shrunk = shrink_last_output(&joined, second);
            prop_assert!(shrunk.len() <= second.min(joined.len()));
            // 60 bytes hold the heading, two marks and the last character of each stream.
            if second >= 60 && joined.contains(STDERR_HEADING) {
                prop_assert!(shrunk.contains(STDERR_HEADING), "{}", shrunk);
                prop_assert_eq!(shrunk.chars().next_back(), joined.chars().next_back());
            }
        }

        #[test]
        fn tail_fits_its_limit(text in ".{0,200}", max_bytes in 0usize..300) {
            let last = tail(&text, max_bytes);
            prop_assert!(last.len() <= max_bytes);
            prop_assert_eq!(last == text, text.len() <= max_bytes);
        }
    }
}
