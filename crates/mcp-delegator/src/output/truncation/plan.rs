//! Plans which parts of an output to truncate, and how far, so that it fits a size limit. Pure: nothing is
//! truncated here.
//!
//! Agent output is truncated first, down to nothing. Then events: long ones are shortened, then the oldest
//! are dropped, at least one stays. Then all other long lists and texts, and last the agent's final message
//! and the task's metadata. Each step goes only as far as needed, and space that a step frees goes back to
//! the agent output.
//!
//! Only the renderer knows the final size, so the plan measures it through a callback: it takes the first of
//! these steps that fits at all, and the largest budget of that step that fits.

use std::ops::RangeInclusive;

/// The limit of a part that is not truncated.
pub const UNLIMITED: usize = usize::MAX;

/// Other lists and texts are not truncated below this while anything else can be.
const MIN_OTHER_BYTES: usize = 1 << 10;
/// A budget is at most this fraction of the largest one smaller than the largest that would fit.
const PRECISION: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncationPlan {
    /// Bytes of agent output, both streams together.
    pub output_bytes: usize,
    pub shorten_events: bool,
    /// The newest events that are retained.
    pub max_events: usize,
    /// Bytes of any other list or text.
    pub other_bytes: usize,
    /// Bytes of any list or text in the parts that are truncated last.
    pub priority_bytes: usize,
    pub task_list_bytes: usize,
    /// Even the smallest truncation does not fit.
    pub drop_all_data: bool,
}

impl TruncationPlan {
    pub const NONE: TruncationPlan = TruncationPlan {
        output_bytes: UNLIMITED,
        shorten_events: false,
        max_events: UNLIMITED,
        other_bytes: UNLIMITED,
        priority_bytes: UNLIMITED,
        task_list_bytes: UNLIMITED,
        drop_all_data: false,
    };

    const NO_DATA: TruncationPlan = TruncationPlan {
        output_bytes: 0,
        shorten_events: true,
        max_events: 0,
        other_bytes: 0,
        priority_bytes: 0,
        task_list_bytes: 0,
        drop_all_data: true,
    };
}

/// The sizes of the parts that can be truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Bytes of the largest agent output.
    pub output_bytes: usize,
    /// The largest number of events.
    pub event_count: usize,
    /// Bytes of everything.
    pub total_bytes: usize,
}

impl Sizes {
    #[must_use]
    pub fn max(self, other: Sizes) -> Sizes {
        Sizes {
            output_bytes: self.output_bytes.max(other.output_bytes),
            event_count: self.event_count.max(other.event_count),
            total_bytes: self.total_bytes.max(other.total_bytes),
        }
    }
}

/// The plan that truncates least and fits the limit.
pub fn plan(sizes: Sizes, limit: usize, size: &dyn Fn(TruncationPlan) -> usize) -> TruncationPlan {
    let fits = |plan: TruncationPlan| size(plan) <= limit;
    if fits(TruncationPlan::NONE) {
        return TruncationPlan::NONE;
    }
    // A character may have four bytes, so a limit in characters allows parts of this size.
    let max_part = sizes.total_bytes.max(sizes.output_bytes).min(limit.saturating_mul(4));
    // At least one event stays, or a caller that pages through the events would never get further.
    let min_events = sizes.event_count.min(1);
    let no_output = TruncationPlan { output_bytes: 0, ..TruncationPlan::NONE };
    let short_events = TruncationPlan { shorten_events: true, ..no_output };
    let fewest_events = TruncationPlan { max_events: min_events, ..short_events };
    let shortest_others = TruncationPlan { other_bytes: MIN_OTHER_BYTES, ..fewest_events };
    let shortest = TruncationPlan { priority_bytes: MIN_OTHER_BYTES, ..shortest_others };
    let with_task_list = |task_list_bytes: usize| {
        let max_bytes = task_list_bytes.min(MIN_OTHER_BYTES);
        TruncationPlan { other_bytes: max_bytes, priority_bytes: max_bytes, task_list_bytes, ..fewest_events }
    };
    let with_output = |stage: TruncationPlan| {
        let output = 0..=sizes.output_bytes.min(max_part);
        largest_fitting(output, fits, |output_bytes| TruncationPlan { output_bytes, ..stage })
    };
    let other_parts = MIN_OTHER_BYTES..=max_part.max(MIN_OTHER_BYTES);
    if let Some(stage) = [no_output, short_events].into_iter().find(|stage| fits(*stage)) {
        with_output(stage)
    } else if fits(fewest_events) {
        let with_events = |max_events| TruncationPlan { max_events, ..short_events };
        with_output(largest_fitting(min_events..=sizes.event_count, fits, with_events))
    } else if fits(shortest_others) {
        largest_fitting(other_parts, fits, |other_bytes| TruncationPlan { other_bytes, ..fewest_events })
    } else if fits(shortest) {
        largest_fitting(other_parts, fits, |priority_bytes| TruncationPlan {
            priority_bytes,
            ..shortest_others
        })
    } else if fits(with_task_list(0)) {
        largest_fitting(0..=max_part, fits, with_task_list)
    } else {
        TruncationPlan::NO_DATA
    }
}

/// The plan with the largest budget that fits, found by bisection. The smallest budget fits.
fn largest_fitting(
    budgets: RangeInclusive<usize>,
    fits: impl Fn(TruncationPlan) -> bool,
    plan: impl Fn(usize) -> TruncationPlan,
) -> TruncationPlan {
    let (mut fitting, mut too_large) = budgets.into_inner();
    if fits(plan(too_large)) {
        return plan(too_large);
    }
    let precision = (too_large / PRECISION).max(1);
    while too_large - fitting > precision {
        let middle = fitting.midpoint(too_large);
        if fits(plan(middle)) { fitting = middle } else { too_large = middle }
    }
    plan(fitting)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// An output that consists of sizes only.
    #[derive(Debug, Clone)]
    struct FakeOutput {
        output: usize,
        events: Vec<usize>,
        others: usize,
        last: usize,
    }

    impl FakeOutput {
        fn size(&self, plan: TruncationPlan) -> usize {
            let events = self.events.iter().rev().take(plan.max_events);
            let events = events.map(|size| if plan.shorten_events { (*size).min(80) } else { *size });
            if plan.drop_all_data {
                0
            } else {
                let rest = self.others.min(plan.other_bytes) + self.last.min(plan.priority_bytes);
                self.output.min(plan.output_bytes) + events.sum::<usize>() + rest.min(plan.task_list_bytes)
            }
        }

        fn plan_within(&self, limit: usize) -> TruncationPlan {
            let all = self.size(TruncationPlan::NONE);
            let sizes = Sizes { output_bytes: self.output, event_count: self.events.len(), total_bytes: all };
            let measured = Cell::new(0);
            let size = |plan| {
                measured.set(measured.get() + 1);
                self.size(plan)
            };
            let plan = plan(sizes, limit, &size);
            assert!(measured.get() <= 32, "the output was rendered {} times", measured.get());
            plan
        }
    }

    /// The largest difference between two budgets up to this size.
    fn step(size: usize) -> usize {
        size / PRECISION + 1
    }

    fn fake_output(output: usize, events: &[usize], others: usize, last: usize) -> FakeOutput {
        FakeOutput { output, events: events.to_vec(), others, last }
    }

    #[test]
    fn output_is_truncated_before_events() {
        let plan = fake_output(60_000, &[1_500; 20], 500, 2_000).plan_within(48_000);
        assert_eq!(TruncationPlan { output_bytes: UNLIMITED, ..plan }, TruncationPlan::NONE);
        let limit = 48_000 - 20 * 1_500 - 2_500;
        assert!(plan.output_bytes <= limit && plan.output_bytes + step(60_000) >= limit, "{plan:?}");
    }

    #[test]
    fn long_events_are_shortened_before_any_is_dropped() {
        let plan = fake_output(20_000, &[3_000; 30], 500, 2_000).plan_within(48_000);
        let all = TruncationPlan { shorten_events: true, output_bytes: 20_000, ..TruncationPlan::NONE };
        assert_eq!(plan, all, "all of the agent output fits again");
        let plan = fake_output(60_000, &[3_000; 30], 500, 2_000).plan_within(48_000);
        assert!(
            plan.shorten_events && plan.max_events == UNLIMITED && plan.output_bytes > 43_000,
            "{plan:?}"
        );
    }

    #[test]
    fn newest_events_are_retained() {
        let plan = fake_output(60_000, &[79; 1_000], 500, 2_000).plan_within(48_000);
        assert_eq!(plan.max_events, (48_000 - 2_500) / 79);
        assert_eq!(
            TruncationPlan { output_bytes: UNLIMITED, shorten_events: false, max_events: UNLIMITED, ..plan },
            TruncationPlan::NONE
        );
        assert!(plan.output_bytes <= 79, "less than one more event: {plan:?}");
    }

    #[test]
    fn final_message_and_metadata_are_truncated_last() {
        let plan = fake_output(60_000, &[79; 10], 90_000, 8_000).plan_within(48_000);
        assert_eq!((plan.output_bytes, plan.max_events, plan.priority_bytes), (0, 1, UNLIMITED));
        assert!((39_800..=40_000).contains(&plan.other_bytes), "{plan:?}");
        let plan = fake_output(60_000, &[79; 10], 90_000, 80_000).plan_within(48_000);
        assert_eq!((plan.output_bytes, plan.max_events, plan.other_bytes), (0, 1, MIN_OTHER_BYTES));
        assert!((46_800..=47_000).contains(&plan.priority_bytes), "{plan:?}");
        let plan = fake_output(60_000, &[79; 10], 90_000, 80_000).plan_within(900);
        assert!(
            (800..=900).contains(&plan.task_list_bytes) && plan.other_bytes == plan.task_list_bytes,
            "{plan:?}"
        );
    }

    proptest! {
        #[test]
        fn every_plan_fits_and_truncates_no_more_than_needed(
            output in 0usize..100_000,
            events in prop::collection::vec(1usize..4_000, 0..60),
            (others, last) in (0usize..60_000, 0usize..60_000),
            limit in 0usize..150_000,
        ) {
            let fake = FakeOutput { output, events, others, last };
            let plan = fake.plan_within(limit);
            prop_assert!(fake.size(plan) <= limit);
            prop_assert_eq!(plan == TruncationPlan::NONE, fake.size(TruncationPlan::NONE) <= limit);
            // A part is truncated only if the parts before it are truncated completely.
            if plan.max_events < fake.events.len() && (plan.other_bytes, plan.priority_bytes) == (UNLIMITED, UNLIMITED) && !plan.drop_all_data {
                let newest = fake.size(TruncationPlan { max_events: plan.max_events + 1, output_bytes: 0, ..plan });
                prop_assert!(newest > limit, "one more event would have fitted: {:?}", plan);
            }
            if !plan.drop_all_data && (plan.other_bytes < others || plan.priority_bytes < last) {
                prop_assert_eq!((plan.output_bytes, plan.max_events), (0, fake.events.len().min(1)));
            }
            if plan.priority_bytes < last {
                prop_assert!(plan.other_bytes <= MIN_OTHER_BYTES);
            }
            if plan.output_bytes < output && (plan.other_bytes, plan.priority_bytes) == (UNLIMITED, UNLIMITED) && !plan.drop_all_data {
                let more = fake.size(TruncationPlan { output_bytes: plan.output_bytes + step(output), ..plan });
                prop_assert!(more > limit, "more output would have fitted: {:?}", plan);
            }
        }
    }
}
