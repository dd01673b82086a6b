//! Any bytes in any splits give the same lines; none is lost, and nothing is stored beyond the limits.
#![no_main]

use delegator_transcript::{Framer, Line, LineBody, LineLimits, ScannedLine};
use libfuzzer_sys::fuzz_target;

const LIMITS: LineLimits = LineLimits { whole: 64, head: 24, tail: 16 };

/// A line with all its fields, owned.
type OwnedLine = (u64, u64, bool, Vec<u8>, Option<(Vec<u8>, ScannedLine)>);

fn frame<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<OwnedLine>, u64) {
    let mut framer = Framer::new(LIMITS);
    let mut lines = Vec::new();
    let mut store = |line: Line<'_>| {
        let (head, rest) = match line.body {
            LineBody::Whole(bytes) => (bytes.to_vec(), None),
            LineBody::Truncated { head, tail, facts } => {
                assert!(head.len() <= LIMITS.head && tail.len() <= LIMITS.tail);
                assert!(line.length + 4 > LIMITS.whole as u64);
                (head.to_vec(), Some((tail.to_vec(), facts.clone())))
            }
        };
        lines.push((line.number, line.length, line.terminated, head, rest));
    };
    for piece in pieces {
        framer.push(piece, &mut store);
    }
    framer.finish(&mut store);
    (lines, framer.bytes())
}

fuzz_target!(|input: &[u8]| {
    // The first byte is the size of the reads.
    let Some((step, bytes)) = input.split_first() else { return };
    let (whole, taken) = frame(std::iter::once(bytes));
    assert_eq!(taken, bytes.len() as u64);
    assert_eq!(whole, frame(bytes.chunks(usize::from(*step).max(1))).0);
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    let open = usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
    assert_eq!(whole.len(), ends + open);
});
