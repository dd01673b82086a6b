//! Accepts task ids in any case, as people copy them from screens and messages.

use delegator_domain::task::TaskLocation;
use serde_json::Value;

/// Writes the prefix of each task id in the input as ours. The case of the rest does not count.
pub(super) fn normalize(input: &mut Value) {
    for name in ["task_id", "task_ids"] {
        match input.get_mut(name) {
            Some(Value::Array(ids)) => ids.iter_mut().for_each(normalize_one),
            Some(id) => normalize_one(id),
            None => {}
        }
    }
}

fn normalize_one(id: &mut Value) {
    let Value::String(text) = id else { return };
    for prefix in TaskLocation::ALL.map(|location| format!("T-{}-", location.name())) {
        if text.get(..prefix.len()).is_some_and(|given| given.eq_ignore_ascii_case(&prefix)) {
            text.replace_range(..prefix.len(), &prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prefix_is_accepted_in_any_case() {
        let mut input = json!({
            "task_id": "T-LOCAL-N9G5DVGFFT", "task_ids": ["t-cloud-n9g5", "N9G5", "é-local-n9g5"], "task": "T-LOCAL-1"
        });
        normalize(&mut input);
        let expected = json!({
            "task_id": "T-local-N9G5DVGFFT", "task_ids": ["T-cloud-n9g5", "N9G5", "é-local-n9g5"],
            "task": "T-LOCAL-1"
        });
        assert_eq!(input, expected);
    }
}
