//! Which parts of an answer give way, and how far, where not all of it fits its reader: a plan, and nothing but.
//!
//! Output shrinks first, down to nothing. Then events: long ones are told in short, then only the newest are kept, one
//! at least. Then whatever else is long, and only then what the caller asked for: the agent's final message and what is
//! known of the task. Each step goes no further than needed, and what a later step sets free the output gets back.
//!
//! How long a text becomes only its renderer knows, so the plan asks how large an answer cut so would be.

/// A part that is left as it is.
pub const UNLIMITED: usize = usize::MAX;

/// Lists and texts of the rest are not cut below this while anything else can be.
const MIN_OTHER_BYTES: usize = 1 << 10;
/// Sizes in bytes are found to within this.
const TOLERANCE_BYTES: usize = 32;

/// How often a size is guessed before it is looked for by halves.
const MAX_INTERPOLATIONS: usize = 3;

/// How far an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncationPlan {
    /// Bytes of output, both streams together.
    pub output_bytes: usize,
    /// Long events are told in short.
    pub shorten_events: bool,
    /// How many of the newest events are kept.
    pub max_events: usize,
    /// Bytes of any other list or text.
    pub other_bytes: usize,
    /// Bytes of any list or text in what goes last.
    pub priority_bytes: usize,
    /// Bytes of a list of tasks.
    pub task_list_bytes: usize,
    /// Not even that was enough.
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
}

/// What there is to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Bytes of the largest output.
    pub output_bytes: usize,
    /// The largest number of events.
    pub event_count: usize,
    /// Bytes of all of it.
    pub total_bytes: usize,
}

/// How large an answer cut so would be, and how large it may be.
struct SizeProbe<'a> {
    size: &'a dyn Fn(TruncationPlan) -> usize,
    limit: usize,
}

impl SizeProbe<'_> {
    fn fits(&self, cut: TruncationPlan) -> bool {
        (self.size)(cut) <= self.limit
    }

    /// The gentlest of such cuts that fits, to within `near`, of which the lowest does. Sizes grow nearly evenly, so it
    /// is looked for where it should be first; where they do not, by halves.
    fn largest_fitting(
        &self,
        cuts: &dyn Fn(usize) -> TruncationPlan,
        lowest: usize,
        highest: usize,
        near: usize,
    ) -> TruncationPlan {
        let (mut low, mut high) = (lowest, highest);
        let (mut low_size, mut high_size) = ((self.size)(cuts(low)), (self.size)(cuts(high)));
        if high_size <= self.limit {
            return cuts(high);
        }
        for round in 1usize.. {
            let gap = high.saturating_sub(low);
            if gap <= near {
                break;
            }
            let (room, growth) = (self.limit - low_size, high_size - low_size);
            let likely = low + gap.saturating_mul(room) / growth;
            let guess = match round > MAX_INTERPOLATIONS || gap < 2 * near {
                true => low + gap / 2,
                false => likely.clamp(low + near, high - near),
            };
            match (self.size)(cuts(guess)) {
                size if size <= self.limit => (low, low_size) = (guess, size),
                size => (high, high_size) = (guess, size),
            }
        }
        cuts(low)
    }
}

/// The gentlest cut after which an answer has no more than there is room for.
pub fn plan(sizes: Sizes, limit: usize, size: &dyn Fn(TruncationPlan) -> usize) -> TruncationPlan {
    let measure = &SizeProbe { size, limit };
    if measure.fits(TruncationPlan::NONE) {
        return TruncationPlan::NONE;
    }
    let without_output = TruncationPlan { output_bytes: 0, ..TruncationPlan::NONE };
    let in_short = TruncationPlan { shorten_events: true, ..without_output };
    if let Some(stage) = [without_output, in_short].into_iter().find(|stage| measure.fits(*stage)) {
        return with_output(stage, sizes, measure);
    }
    // The newest stays, or whoever asks for those before it would never get further.
    let least = sizes.event_count.min(1);
    let fewest_events = TruncationPlan { max_events: least, ..in_short };
    if measure.fits(fewest_events) {
        let newest = |events: usize| TruncationPlan { max_events: events, ..fewest_events };
        return with_output(measure.largest_fitting(&newest, least, sizes.event_count, 1), sizes, measure);
    }
    plan_remaining(fewest_events, sizes, measure)
}

/// The same cut with as much output as there is room for.
fn with_output(stage: TruncationPlan, sizes: Sizes, measure: &SizeProbe<'_>) -> TruncationPlan {
    measure.largest_fitting(
        &|output| TruncationPlan { output_bytes: output, ..stage },
        0,
        sizes.output_bytes,
        TOLERANCE_BYTES,
    )
}

/// Where neither output nor events are left to cut.
fn plan_remaining(bare: TruncationPlan, sizes: Sizes, measure: &SizeProbe<'_>) -> TruncationPlan {
    let steps: [(&dyn Fn(usize) -> TruncationPlan, usize); 3] = [
        (&|most| TruncationPlan { other_bytes: most, ..bare }, MIN_OTHER_BYTES),
        (
            &|most| TruncationPlan { other_bytes: MIN_OTHER_BYTES, priority_bytes: most, ..bare },
            MIN_OTHER_BYTES,
        ),
        (
            &|most| TruncationPlan {
                other_bytes: most.min(MIN_OTHER_BYTES),
                priority_bytes: most.min(MIN_OTHER_BYTES),
                task_list_bytes: most,
                ..bare
            },
            0,
        ),
    ];
    for (step, least) in steps {
        if measure.fits(step(least)) {
            return measure.largest_fitting(step, least, sizes.total_bytes.max(least), TOLERANCE_BYTES);
        }
    }
    TruncationPlan { other_bytes: 0, priority_bytes: 0, task_list_bytes: 0, drop_all_data: true, ..bare }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// An answer that is only sizes.
    #[derive(Debug, Clone)]
    struct Answer {
        output: usize,
        events: Vec<usize>,
        others: usize,
        last: usize,
    }

    impl Answer {
        fn size(&self, cut: TruncationPlan) -> usize {
            let events = self.events.iter().rev().take(cut.max_events);
            let events = events.map(|size| if cut.shorten_events { (*size).min(80) } else { *size });
            match cut.drop_all_data {
                true => 0,
                false => {
                    let rest = self.others.min(cut.other_bytes) + self.last.min(cut.priority_bytes);
                    self.output.min(cut.output_bytes) + events.sum::<usize>() + rest.min(cut.task_list_bytes)
                }
            }
        }

        fn planned(&self, room: usize) -> TruncationPlan {
            let all = self.size(TruncationPlan::NONE);
            let sizes = Sizes { output_bytes: self.output, event_count: self.events.len(), total_bytes: all };
            let asked = Cell::new(0);
            let size = |cut| {
                asked.set(asked.get() + 1);
                self.size(cut)
            };
            let cut = plan(sizes, room, &size);
            assert!(asked.get() <= 32, "an answer was rendered {} times", asked.get());
            cut
        }
    }

    fn answer(output: usize, events: &[usize], others: usize, last: usize) -> Answer {
        Answer { output, events: events.to_vec(), others, last }
    }

    #[test]
    fn output_is_truncated_before_events() {
        let cut = answer(60_000, &[1_500; 20], 500, 2_000).planned(48_000);
        assert_eq!(TruncationPlan { output_bytes: UNLIMITED, ..cut }, TruncationPlan::NONE);
        let room = 48_000 - 20 * 1_500 - 2_500;
        assert!(cut.output_bytes <= room && cut.output_bytes + TOLERANCE_BYTES >= room, "{cut:?}");
    }

    #[test]
    fn long_events_are_shortened_before_any_is_dropped() {
        let cut = answer(20_000, &[3_000; 30], 500, 2_000).planned(48_000);
        let all = TruncationPlan { shorten_events: true, output_bytes: 20_000, ..TruncationPlan::NONE };
        assert_eq!(cut, all, "there is room for all of the output again");
        let cut = answer(60_000, &[3_000; 30], 500, 2_000).planned(48_000);
        assert!(cut.shorten_events && cut.max_events == UNLIMITED && cut.output_bytes > 43_000, "{cut:?}");
    }

    #[test]
    fn newest_events_are_retained() {
        let cut = answer(60_000, &[79; 1_000], 500, 2_000).planned(48_000);
        assert_eq!(cut.max_events, (48_000 - 2_500) / 79);
        assert_eq!(
            TruncationPlan { output_bytes: UNLIMITED, shorten_events: false, max_events: UNLIMITED, ..cut },
            TruncationPlan::NONE
        );
        assert!(cut.output_bytes <= 79, "at most what no event fits into: {cut:?}");
    }

    #[test]
    fn final_message_and_metadata_are_truncated_last() {
        let cut = answer(60_000, &[79; 10], 90_000, 8_000).planned(48_000);
        assert_eq!((cut.output_bytes, cut.max_events, cut.priority_bytes), (0, 1, UNLIMITED));
        assert!((39_800..=40_000).contains(&cut.other_bytes), "{cut:?}");
        let cut = answer(60_000, &[79; 10], 90_000, 80_000).planned(48_000);
        assert_eq!((cut.output_bytes, cut.max_events, cut.other_bytes), (0, 1, MIN_OTHER_BYTES));
        assert!((46_800..=47_000).contains(&cut.priority_bytes), "{cut:?}");
        let cut = answer(60_000, &[79; 10], 90_000, 80_000).planned(900);
        assert!(
            (800..=900).contains(&cut.task_list_bytes) && cut.other_bytes == cut.task_list_bytes,
            "{cut:?}"
        );
    }

    proptest! {
        #[test]
        fn every_plan_fits_and_truncates_no_more_than_needed(
            output in 0usize..100_000,
            events in prop::collection::vec(1usize..4_000, 0..60),
            (others, last) in (0usize..60_000, 0usize..60_000),
            room in 0usize..150_000,
        ) {
            let answer = Answer { output, events, others, last };
            let cut = answer.planned(room);
            prop_assert!(answer.size(cut) <= room);
            prop_assert_eq!(cut == TruncationPlan::NONE, answer.size(TruncationPlan::NONE) <= room);
            // A part gives way only when those before it have nothing left to give.
            if cut.max_events < answer.events.len() && (cut.other_bytes, cut.priority_bytes) == (UNLIMITED, UNLIMITED) && !cut.drop_all_data {
                let newest = answer.size(TruncationPlan { max_events: cut.max_events + 1, output_bytes: 0, ..cut });
                prop_assert!(newest > room, "one more event would have fitted: {:?}", cut);
            }
            if cut.other_bytes < others || cut.priority_bytes < last {
                prop_assert_eq!((cut.output_bytes, cut.max_events), (0, answer.events.len().min(1)));
            }
            if cut.priority_bytes < last {
                prop_assert!(cut.other_bytes <= MIN_OTHER_BYTES);
            }
            if cut.output_bytes < output && (cut.other_bytes, cut.priority_bytes) == (UNLIMITED, UNLIMITED) && !cut.drop_all_data {
                let more = answer.size(TruncationPlan { output_bytes: cut.output_bytes + TOLERANCE_BYTES, ..cut });
                prop_assert!(more > room, "more output would have fitted: {:?}", cut);
            }
        }
    }
}
