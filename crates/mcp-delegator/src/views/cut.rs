//! Which parts of an answer give way, and how far, where not all of it fits its reader: a plan, and nothing but.
//!
//! Output shrinks first, down to nothing. Then events: long ones are told in short, then only the newest are kept, one
//! at least. Then whatever else is long, and only then what the caller asked for: the agent's final message and what is
//! known of the task. Each step goes no further than needed, and what a later step sets free the output gets back.
//!
//! How long a text becomes only its renderer knows, so the plan asks how large an answer cut so would be.

/// A part that is left as it is.
pub const WHOLE: usize = usize::MAX;

/// Lists and texts of the rest are not cut below this while anything else can be.
const LEAST: usize = 1 << 10;
/// Sizes in bytes are found to within this.
const NEAR: usize = 32;

/// How often a size is guessed before it is looked for by halves.
const GUESSES: usize = 3;

/// How far an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of output, both streams together.
    pub output: usize,
    /// Long events are told in short.
    pub short_events: bool,
    /// How many of the newest events are kept.
    pub events: usize,
    /// Bytes of any other list or text.
    pub others: usize,
    /// Bytes of any list or text in what goes last.
    pub last: usize,
    /// Bytes of a list of tasks.
    pub tasks: usize,
    /// Not even that was enough.
    pub nothing: bool,
}

impl Cut {
    pub const NONE: Cut = Cut {
        output: WHOLE,
        short_events: false,
        events: WHOLE,
        others: WHOLE,
        last: WHOLE,
        tasks: WHOLE,
        nothing: false,
    };
}

/// What there is to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Bytes of the largest output.
    pub output: usize,
    /// The largest number of events.
    pub events: usize,
    /// Bytes of all of it.
    pub all: usize,
}

/// How large an answer cut so would be, and how large it may be.
struct Measure<'a> {
    size: &'a dyn Fn(Cut) -> usize,
    room: usize,
}

impl Measure<'_> {
    fn fits(&self, cut: Cut) -> bool {
        (self.size)(cut) <= self.room
    }

    /// The gentlest of such cuts that fits, to within `near`, of which the lowest does. Sizes grow nearly evenly, so it
    /// is looked for where it should be first; where they do not, by halves.
    fn gentlest(&self, cuts: &dyn Fn(usize) -> Cut, lowest: usize, highest: usize, near: usize) -> Cut {
        let (mut low, mut high) = (lowest, highest);
        let (mut low_size, mut high_size) = ((self.size)(cuts(low)), (self.size)(cuts(high)));
        if high_size <= self.room {
            return cuts(high);
        }
        for round in 1usize.. {
            let gap = high.saturating_sub(low);
            if gap <= near {
                break;
            }
            let (room, growth) = (self.room - low_size, high_size - low_size);
            let likely = low + gap.saturating_mul(room) / growth;
            let guess = match round > GUESSES || gap < 2 * near {
                true => low + gap / 2,
                false => likely.clamp(low + near, high - near),
            };
            match (self.size)(cuts(guess)) {
                size if size <= self.room => (low, low_size) = (guess, size),
                size => (high, high_size) = (guess, size),
            }
        }
        cuts(low)
    }
}

/// The gentlest cut after which an answer has no more than there is room for.
pub fn plan(sizes: Sizes, room: usize, size: &dyn Fn(Cut) -> usize) -> Cut {
    let measure = &Measure { size, room };
    if measure.fits(Cut::NONE) {
        return Cut::NONE;
    }
    let without_output = Cut { output: 0, ..Cut::NONE };
    let in_short = Cut { short_events: true, ..without_output };
    if let Some(stage) = [without_output, in_short].into_iter().find(|stage| measure.fits(*stage)) {
        return with_output(stage, sizes, measure);
    }
    // The newest stays, or whoever asks for those before it would never get further.
    let least = sizes.events.min(1);
    let fewest_events = Cut { events: least, ..in_short };
    if measure.fits(fewest_events) {
        let newest = |events: usize| Cut { events, ..fewest_events };
        return with_output(measure.gentlest(&newest, least, sizes.events, 1), sizes, measure);
    }
    rest(fewest_events, sizes, measure)
}

/// The same cut with as much output as there is room for.
fn with_output(stage: Cut, sizes: Sizes, measure: &Measure<'_>) -> Cut {
    measure.gentlest(&|output| Cut { output, ..stage }, 0, sizes.output, NEAR)
}

/// Where neither output nor events are left to cut.
fn rest(bare: Cut, sizes: Sizes, measure: &Measure<'_>) -> Cut {
    let steps: [(&dyn Fn(usize) -> Cut, usize); 3] = [
        (&|most| Cut { others: most, ..bare }, LEAST),
        (&|most| Cut { others: LEAST, last: most, ..bare }, LEAST),
        (&|most| Cut { others: most.min(LEAST), last: most.min(LEAST), tasks: most, ..bare }, 0),
    ];
    for (step, least) in steps {
        if measure.fits(step(least)) {
            return measure.gentlest(step, least, sizes.all.max(least), NEAR);
        }
    }
    Cut { others: 0, last: 0, tasks: 0, nothing: true, ..bare }
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
        fn size(&self, cut: Cut) -> usize {
            let events = self.events.iter().rev().take(cut.events);
            let events = events.map(|size| if cut.short_events { (*size).min(80) } else { *size });
            match cut.nothing {
                true => 0,
                false => {
                    let rest = self.others.min(cut.others) + self.last.min(cut.last);
                    self.output.min(cut.output) + events.sum::<usize>() + rest.min(cut.tasks)
                }
            }
        }

        fn planned(&self, room: usize) -> Cut {
            let all = self.size(Cut::NONE);
            let sizes = Sizes { output: self.output, events: self.events.len(), all };
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
    fn output_gives_way_before_events_do() {
        let cut = answer(60_000, &[1_500; 20], 500, 2_000).planned(48_000);
        assert_eq!(Cut { output: WHOLE, ..cut }, Cut::NONE);
        let room = 48_000 - 20 * 1_500 - 2_500;
        assert!(cut.output <= room && cut.output + NEAR >= room, "{cut:?}");
    }

    #[test]
    fn long_events_are_told_in_short_before_any_is_dropped_and_the_output_gets_the_room() {
        let cut = answer(20_000, &[3_000; 30], 500, 2_000).planned(48_000);
        let all = Cut { short_events: true, output: 20_000, ..Cut::NONE };
        assert_eq!(cut, all, "there is room for all of the output again");
        let cut = answer(60_000, &[3_000; 30], 500, 2_000).planned(48_000);
        assert!(cut.short_events && cut.events == WHOLE && cut.output > 43_000, "{cut:?}");
    }

    #[test]
    fn then_the_newest_events_are_kept() {
        let cut = answer(60_000, &[79; 1_000], 500, 2_000).planned(48_000);
        assert_eq!(cut.events, (48_000 - 2_500) / 79);
        assert_eq!(Cut { output: WHOLE, short_events: false, events: WHOLE, ..cut }, Cut::NONE);
        assert!(cut.output <= 79, "at most what no event fits into: {cut:?}");
    }

    #[test]
    fn what_was_asked_for_gives_way_last() {
        let cut = answer(60_000, &[79; 10], 90_000, 8_000).planned(48_000);
        assert_eq!((cut.output, cut.events, cut.last), (0, 1, WHOLE));
        assert!((39_800..=40_000).contains(&cut.others), "{cut:?}");
        let cut = answer(60_000, &[79; 10], 90_000, 80_000).planned(48_000);
        assert_eq!((cut.output, cut.events, cut.others), (0, 1, LEAST));
        assert!((46_800..=47_000).contains(&cut.last), "{cut:?}");
        let cut = answer(60_000, &[79; 10], 90_000, 80_000).planned(900);
        assert!((800..=900).contains(&cut.tasks) && cut.others == cut.tasks, "{cut:?}");
    }

    proptest! {
        #[test]
        fn whatever_there_is_fits_and_no_more_is_cut_than_must_be(
            output in 0usize..100_000,
            events in prop::collection::vec(1usize..4_000, 0..60),
            (others, last) in (0usize..60_000, 0usize..60_000),
            room in 0usize..150_000,
        ) {
            let answer = Answer { output, events, others, last };
            let cut = answer.planned(room);
            prop_assert!(answer.size(cut) <= room);
            prop_assert_eq!(cut == Cut::NONE, answer.size(Cut::NONE) <= room);
            // A part gives way only when those before it have nothing left to give.
            if cut.events < answer.events.len() && (cut.others, cut.last) == (WHOLE, WHOLE) && !cut.nothing {
                let newest = answer.size(Cut { events: cut.events + 1, output: 0, ..cut });
                prop_assert!(newest > room, "one more event would have fitted: {:?}", cut);
            }
            if cut.others < others || cut.last < last {
                prop_assert_eq!((cut.output, cut.events), (0, answer.events.len().min(1)));
            }
            if cut.last < last {
                prop_assert!(cut.others <= LEAST);
            }
            if cut.output < output && (cut.others, cut.last) == (WHOLE, WHOLE) && !cut.nothing {
                let more = answer.size(Cut { output: cut.output + NEAR, ..cut });
                prop_assert!(more > room, "more output would have fitted: {:?}", cut);
            }
        }
    }
}
