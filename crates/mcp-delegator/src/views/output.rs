//! How much of what an agent printed an answer carries.
//!
//! One budget for both streams: each is owed half, and what one does not use the other may. Within a stream the first
//! half and the last half are kept, cut between characters, with a mark that counts.
//!
//! An answer that is too long for its reader is given less of it later: the budget that is told is the one that was
//! applied last.

use serde_json::{Map, Value, json};

use super::document::{Block, Document};

/// Stands where something was taken out.
pub const MARK: &str = " [truncated] ";

/// A second cut goes at least this much deeper than the first, so that the mark of the first goes with it.
const MIN_SECOND_REDUCTION: usize = 4 * MARK.len();

/// Output that was left out, with the reason.
pub fn excluded(reason: &str) -> Value {
    json!({"included": false, "reason": reason, "truncated": false, "max_bytes": 0})
}

/// Both streams within the budget. `sizes` are those of what the agent really wrote.
pub fn included(stdout: &str, stderr: &str, budget: usize, sizes: (u64, u64)) -> Value {
    let (out, err) = excerpts(stdout, stderr, budget);
    let original = sizes.0.max(stdout.len() as u64) + sizes.1.max(stderr.len() as u64);
    let truncated =
        original > (out.len() + err.len()) as u64 || out.len() != stdout.len() || err.len() != stderr.len();
    let mut output =
        json!({"included": true, "stdout": out, "stderr": err, "truncated": truncated, "max_bytes": budget});
    if truncated {
        output["original_size"] = original.into();
    }
    output
}

/// Bytes of output an answer holds.
pub fn size(output: &Value) -> usize {
    ["stdout", "stderr"].iter().filter_map(|stream| output[*stream].as_str()).map(str::len).sum()
}

/// Cuts output that is in an answer already to a smaller budget, and says so.
pub fn shrink(output: &mut Map<String, Value>, budget: usize) {
    let stream = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
    let (stdout, stderr) = (stream("stdout"), stream("stderr"));
    let size = stdout.len() + stderr.len();
    if size <= budget {
        return;
    }
    let budget = budget.min(size.saturating_sub(MIN_SECOND_REDUCTION));
    let cut = excerpts(stdout, stderr, budget);
    for (name, text) in [("stdout", cut.0), ("stderr", cut.1)] {
        if let Some(whole) = output.get_mut(name) {
            *whole = text.into();
        }
    }
    // Somebody may have picked out a part of it that has no place for this.
    if output.contains_key("included") {
        output.insert("truncated".into(), true.into());
        output.insert("max_bytes".into(), budget.into());
        output.entry("original_size").or_insert(size.into());
    }
}

/// The end of a text that is told by its end, with the mark in front.
pub fn tail(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mark = MARK.trim_start();
    match max_bytes.checked_sub(mark.len()) {
        Some(kept) => format!("{mark}{}", &text[text.ceil_char_boundary(text.len() - kept)..]),
        None => String::new(),
    }
}

/// For a reader: each stream apart and labelled, and what of it is missing.
pub fn append_to(mut document: Document, data: &Value) -> Document {
    let output = &data["output"];
    for stream in ["stdout", "stderr"] {
        if let Some(words) = output[stream].as_str().filter(|words| !words.is_empty()) {
            document = document
                .block(Block::Text(format!("The agent's {stream}:")))
                .block(Block::Verbatim(words.to_owned()));
        }
    }
    match (&output["truncated"], output["max_bytes"].as_u64(), output["original_size"].as_u64()) {
        (Value::Bool(true), Some(budget), Some(original)) => document.block(Block::Text(format!(
            "The output was cut: it had {original} bytes, and the budget for both streams was {budget}."
        ))),
        _ => document,
    }
}

fn excerpts(stdout: &str, stderr: &str, budget: usize) -> (String, String) {
    let half = budget / 2;
    let stderr_share = stderr.len().min(half.max(budget.saturating_sub(stdout.len())));
    (excerpt(stdout, budget - stderr_share), excerpt(stderr, stderr_share))
}

/// Both ends of a text; nothing where there is no room for more than the mark.
pub fn excerpt(text: &str, share: usize) -> String {
    if text.len() <= share {
        return text.to_owned();
    }
    let Some(kept) = share.checked_sub(MARK.len()).filter(|kept| *kept > 0) else { return String::new() };
    let head = text.floor_char_boundary(kept / 2);
    let tail = text.ceil_char_boundary(text.len() - (kept - kept / 2));
    format!("{}{MARK}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unused_budget_goes_to_the_other_stream() {
        let told = included(&"x".repeat(60_000), "", 65_536, (60_000, 0));
        assert_eq!((&told["truncated"], told["stdout"].as_str().unwrap().len()), (&json!(false), 60_000));
        let told = included(&"x".repeat(100_000), &"y".repeat(100_000), 65_536, (100_000, 100_000));
        assert_eq!(told["stdout"].as_str().unwrap().len(), 32_768);
        assert_eq!(told["stderr"].as_str().unwrap().len(), 32_768);
        assert_eq!(told["original_size"], 200_000);
    }

    #[test]
    fn second_truncation_looks_like_the_only_one() {
        let (out, err) = ("é".repeat(50_000), "y".repeat(100_000));
        let mut told = included(&out, &err, 65_536, (500_000, 100_000));
        shrink(told.as_object_mut().unwrap(), 20_000);
        assert_eq!(told, included(&out, &err, 20_000, (500_000, 100_000)));
        let as_it_was = told.clone();
        shrink(told.as_object_mut().unwrap(), 20_000);
        assert_eq!(told, as_it_was, "what fits is left alone");
        shrink(told.as_object_mut().unwrap(), 0);
        let nothing = json!({
            "included": true, "stdout": "", "stderr": "", "truncated": true, "max_bytes": 0, "original_size": 600_000
        });
        assert_eq!(told, nothing);
    }

    proptest! {
        #[test]
        fn budget_holds_for_any_text(out in ".{0,300}", err in ".{0,300}", budget in 0usize..600) {
            let told = included(&out, &err, budget, (out.len() as u64, err.len() as u64));
            prop_assert!(size(&told) <= budget);
            prop_assert_eq!(told["truncated"] == true, out.len() + err.len() > budget);
        }

        #[test]
        fn second_truncation_leaves_one_mark_and_reports_its_budget(
            out in "[aé]{0,300}", err in "[aé]{0,300}", first in 0usize..600, second in 0usize..600,
        ) {
            let mut told = included(&out, &err, first, (out.len() as u64, err.len() as u64));
            let before = size(&told);
            shrink(told.as_object_mut().unwrap(), second);
            prop_assert!(size(&told) <= second.min(before));
            let budget = usize::try_from(told["max_bytes"].as_u64().unwrap()).unwrap();
            prop_assert!(size(&told) <= budget && budget <= first.max(second));
            prop_assert_eq!(told["truncated"] == true, out.len() + err.len() > size(&told));
            prop_assert_eq!(told["truncated"] == true, told["original_size"] == (out.len() + err.len()));
            for stream in ["stdout", "stderr"] {
                let text = told[stream].as_str().unwrap();
                prop_assert!(text.matches('[').count() <= 1, "{}", text);
                prop_assert!(text.matches(']').count() <= 1, "{}", text);
            }
        }

        #[test]
        fn tail_fits_its_limit(text in ".{0,200}", most in 0usize..300) {
            let last = tail(&text, most);
            prop_assert!(last.len() <= most);
            prop_assert_eq!(last == text, text.len() <= most);
        }
    }
}
