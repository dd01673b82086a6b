//! Tests of the framer: splits, limits and line ends.

use proptest::prelude::*;

use super::*;

/// A line with all its fields, owned.
type OwnedLine = (u64, u64, bool, Vec<u8>, Option<(Vec<u8>, ScannedLine)>);

fn to_owned_line(line: &Line<'_>) -> OwnedLine {
    let (head, rest) = match line.body {
        LineBody::Whole(bytes) => (bytes.to_vec(), None),
        LineBody::Truncated { head, tail, facts } => (head.to_vec(), Some((tail.to_vec(), facts.clone()))),
    };
    (line.number, line.length, line.terminated, head, rest)
}

fn frame(limits: LineLimits, pieces: &[&[u8]]) -> Vec<OwnedLine> {
    let mut framer = Framer::new(limits);
    let mut lines = Vec::new();
    for piece in pieces {
        framer.push(piece, |line| lines.push(to_owned_line(&line)));
    }
    framer.finish(|line| lines.push(to_owned_line(&line)));
    assert_eq!(framer.lines(), lines.len() as u64);
    lines
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let lines = frame(LineLimits::STANDARD, &[bytes]);
    lines.into_iter().map(|line| String::from_utf8_lossy(&line.3).into_owned()).collect()
}

const SMALL: LineLimits = LineLimits { whole: 16, head: 6, tail: 4 };

#[test]
fn only_newlines_end_lines() {
    assert_eq!(texts("a\u{2028}b\u{85}c\rd\ne".as_bytes()), ["a\u{2028}b\u{85}c\rd", "e"]);
}

#[test]
fn crlf_bom_nul_and_bad_utf8_are_tolerated() {
    assert_eq!(
        texts(b"\xEF\xBB\xBFa\r\n\xEF\xBB\xBFb\r\n\0\xFF\nend\r"),
        ["a", "\u{feff}b", "\0\u{fffd}", "end\r"]
    );
}

#[test]
fn an_empty_stream_has_no_line_and_a_missing_newline_is_reported() {
    assert!(frame(SMALL, &[]).is_empty());
    assert_eq!(frame(SMALL, &[b"\n"]).len(), 1);
    let lines = frame(SMALL, &[b"one\ntwo"]);
    assert_eq!((lines[0].2, lines[1].2), (true, false));
}

#[test]
fn a_long_line_keeps_head_tail_and_length_and_the_next_line_is_unharmed() {
    let lines = frame(SMALL, &[b"0123456789abcdefXYZ\r\nnext\n0123456789abcdef\n"]);
    let (number, length, terminated, head, rest) = &lines[0];
    assert_eq!((*number, *length, *terminated), (1, 19, true));
    assert_eq!(head, b"012345");
    assert_eq!(rest.as_ref().map(|(tail, _)| tail.as_slice()), Some(b"XYZ".as_slice()));
    assert_eq!(lines[1].3, b"next");
    assert_eq!((lines[2].3.as_slice(), lines[2].4.is_none()), (b"0123456789abcdef".as_slice(), true));
}

#[test]
fn memory_for_a_huge_line_is_bounded() {
    let mut framer = Framer::new(LineLimits { whole: 4096, head: 1024, tail: 256 });
    let piece = [b'x'; 1000];
    for _ in 0..100_000 {
        framer.push(&piece, |_| panic!("no line yet"));
    }
    let retained = framer.pending.capacity() + framer.long.as_ref().map_or(0, |long| long.tail.capacity());
    assert!(retained < 16 << 10, "{retained}");
    framer.push(b"\n", |line| assert_eq!(line.length, 100_000_000));
}

#[test]
fn a_big_buffer_is_released() {
    let mut framer = Framer::default();
    framer.push(&vec![b'x'; 4 << 20], |_| {});
    framer.push(b"\n", |line| assert_eq!(line.length, 4 << 20));
    assert!(framer.pending.capacity() <= MAX_RETAINED_CAPACITY);
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'"'), Just(b'{'), Just(0xEF), Just(0xBB), Just(0xBF), any::<u8>()],
            0..200,
        ),
        cuts in proptest::collection::vec(0usize..200, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = frame(SMALL, &[&bytes]);
        prop_assert_eq!(&whole, &frame(SMALL, &pieces));
        prop_assert_eq!(&whole, &frame(SMALL, &single));
    }
}
