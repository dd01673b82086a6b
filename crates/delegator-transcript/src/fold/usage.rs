//! Computes the token usage and the cost of a run and of its thread.
//!
//! Codex reports the running total of the whole *thread*, so a resumed thread starts with its earlier usage.
//! The share of this run is the difference to a baseline, which the caller knows from the thread's earlier
//! runs. Other agents report the total of the run, to which the baseline is added.

use serde::{Deserialize, Serialize};

use crate::event::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// The running total of the thread, as reported.
    pub thread_total: Usage,
    pub own: Usage,
    /// Cached input tokens divided by all input tokens of this run, 0 to 1; absent without input.
    pub cache_hit_rate: Option<f64>,
}

/// The cost of a thread and of this run, in millionths of a US dollar: exact when stored and added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReport {
    pub thread_total: u64,
    pub own: u64,
}

impl UsageReport {
    pub(super) fn of_thread(total: Usage, before: Option<Usage>) -> Self {
        let own = before.map_or(total, |before| total.minus(before));
        Self { thread_total: total, own, cache_hit_rate: cache_hit_rate(own) }
    }

    pub(super) fn of_run(own: Usage, before: Option<Usage>) -> Self {
        let thread_total = before.map_or(own, |before| before.plus(own));
        Self { thread_total, own, cache_hit_rate: cache_hit_rate(own) }
    }

    pub(super) fn plus(self, later: Self) -> Self {
        let own = self.own.plus(later.own);
        Self { thread_total: later.thread_total, own, cache_hit_rate: cache_hit_rate(own) }
    }
}

impl CostReport {
    pub(super) fn plus(self, later: Self) -> Self {
        Self { thread_total: later.thread_total, own: self.own.saturating_add(later.own) }
    }

    /// From the total of the thread in US dollars.
    pub(super) fn of_thread(total: f64, before: Option<u64>) -> Self {
        let total = millionths(total);
        Self { thread_total: total, own: total.saturating_sub(before.unwrap_or_default()) }
    }

    /// From the cost of the run in US dollars.
    pub(super) fn of_run(own: f64, before: Option<u64>) -> Self {
        let own = millionths(own);
        Self { thread_total: before.unwrap_or_default().saturating_add(own), own }
    }
}

fn millionths(dollars: f64) -> u64 {
    // `as` saturates, which is what is wanted of absurd costs.
    (dollars * 1e6).round() as u64
}

fn cache_hit_rate(usage: Usage) -> Option<f64> {
    let rate = usage.cached_input_tokens as f64 / usage.input_tokens as f64;
    // Rounded, so that a stored rate is read back unchanged.
    let rounded = (rate * 1e6).round() / 1e6;
    (usage.input_tokens > 0).then_some(rounded.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: i64, cached: i64, output: i64) -> Usage {
        Usage {
            input_tokens: input,
            cached_input_tokens: cached,
            output_tokens: output,
            reasoning_output_tokens: Some(1),
            ..Usage::default()
        }
    }

    #[test]
    fn the_own_share_is_what_the_thread_had_not_used_before() {
        let report = UsageReport::of_thread(usage(300, 120, 60), Some(usage(100, 40, 20)));
        assert_eq!((report.own.input_tokens, report.own.output_tokens), (200, 40));
        assert_eq!(report.thread_total.input_tokens, 300);
        assert_eq!(report.cache_hit_rate, Some(0.4));
    }

    #[test]
    fn usage_of_a_run_is_added_to_that_of_its_thread() {
        let report = UsageReport::of_run(usage(200, 80, 40), Some(usage(100, 40, 20)));
        assert_eq!((report.own.input_tokens, report.thread_total.input_tokens), (200, 300));
        assert_eq!(UsageReport::of_run(usage(200, 80, 40), None).thread_total.input_tokens, 200);
    }

    #[test]
    fn costs_are_those_of_the_thread_or_of_the_run() {
        let cost = |thread_total, own| CostReport { thread_total, own };
        assert_eq!(CostReport::of_run(0.003, Some(1000)), cost(4000, 3000));
        assert_eq!(CostReport::of_thread(0.003, Some(1000)), cost(3000, 2000));
        assert_eq!(CostReport::of_thread(0.003, None), cost(3000, 3000));
        assert_eq!(CostReport::of_thread(f64::NAN, Some(1)), cost(0, 0));
    }

    #[test]
    fn a_review_reporting_zeros_has_no_rate_and_no_negative_share() {
        let report = UsageReport::of_thread(Usage::default(), Some(usage(100, 40, 20)));
        assert_eq!((report.own, report.cache_hit_rate), (Usage::default(), None));
    }

    #[test]
    fn numbers_at_the_end_of_the_range_do_not_overflow() {
        let report = UsageReport::of_thread(usage(i64::MAX, i64::MAX, 1), Some(usage(i64::MIN, -1, 0)));
        assert_eq!(report.own.input_tokens, i64::MAX);
        assert_eq!(report.cache_hit_rate, Some(1.0));
    }
}
