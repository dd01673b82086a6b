//! How much of what an agent printed an answer carries.
//!
//! One budget for both streams: each is owed half, and what one does not use the other may. Within a stream the first
//! half and the last half are kept, cut between characters, with a mark that counts.

use serde_json::{Value, json};

const MARK: &str = " [truncated] ";

/// Output that was left out, with the reason.
pub fn left_out(reason: &str) -> Value {
    json!({"included": false, "reason": reason, "truncated": false, "max_bytes": 0})
}

/// Both streams within the budget. `sizes` are those of what the agent really wrote.
pub fn included(stdout: &str, stderr: &str, budget: usize, sizes: (u64, u64)) -> Value {
    let half = budget / 2;
    let stderr_share = stderr.len().min(half.max(budget.saturating_sub(stdout.len())));
    let stdout_share = budget - stderr_share;
    let (out, err) = (excerpt(stdout, stdout_share), excerpt(stderr, stderr_share));
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

fn excerpt(text: &str, share: usize) -> String {
    if text.len() <= share {
        return text.to_owned();
    }
    let kept = share.saturating_sub(MARK.len());
    let head = text.floor_char_boundary(kept / 2);
    let tail = text.ceil_char_boundary(text.len() - (kept - kept / 2));
    format!("{}{MARK}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_one_stream_does_not_use_the_other_may() {
        let told = included(&"x".repeat(60_000), "", 65_536, (60_000, 0));
        assert_eq!((&told["truncated"], told["stdout"].as_str().unwrap().len()), (&json!(false), 60_000));
        let told = included(&"x".repeat(100_000), &"y".repeat(100_000), 65_536, (100_000, 100_000));
        assert_eq!(told["stdout"].as_str().unwrap().len(), 32_768);
        assert_eq!(told["stderr"].as_str().unwrap().len(), 32_768);
        assert_eq!(told["original_size"], 200_000);
    }

    proptest! {
        #[test]
        fn the_budget_holds_for_any_text(out in ".{0,300}", err in ".{0,300}", budget in 64usize..600) {
            let told = included(&out, &err, budget, (out.len() as u64, err.len() as u64));
            let length = |key: &str| told[key].as_str().unwrap().len();
            prop_assert!(length("stdout") + length("stderr") <= budget);
            prop_assert_eq!(told["truncated"] == true, out.len() + err.len() > budget);
        }
    }
}
