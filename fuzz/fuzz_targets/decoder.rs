//! Any line decodes to an event without a panic; a line is JSON exactly if serde_json accepts it; Codex exec events
//! pass `normalize` unchanged, and its output is JSON.
#![no_main]

use delegator_transcript::{
    Event, FoldOptions, LineLimits, NormalizeOptions, Normalizer, Summarizer, decode_text,
};
use libfuzzer_sys::fuzz_target;

const SMALL: LineLimits = LineLimits { whole: 96, head: 48, tail: 24 };

/// serde_json rejects deeper nesting, although it is valid JSON.
fn is_shallow(text: &str) -> bool {
    text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() < 100
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        match decode_text(text) {
            Event::Blank => assert!(text.trim_ascii().is_empty()),
            Event::NotJson => assert!(!is_json || !is_shallow(text)),
            _ => assert!(is_json || !is_shallow(text)),
        }
    }
    for limits in [LineLimits::STANDARD, SMALL] {
        let mut summarizer = Summarizer::new(FoldOptions::default(), limits);
        summarizer.push(bytes);
        let report = summarizer.finish();
        serde_json::to_string(&report).expect("a report is JSON");
        let counts = report.counts;
        assert_eq!(counts.lines, counts.blank + counts.events + counts.unknown + counts.not_json);
        for strict in [false, true] {
            let mut normalizer = Normalizer::new(NormalizeOptions { strict, keep_unknown: false }, limits);
            let mut out = Vec::new();
            normalizer.push(bytes, &mut out);
            let summary = normalizer.finish(&mut out);
            let text = std::str::from_utf8(&out).expect("UTF-8");
            assert_eq!(text.lines().count() as u64, summary.lines_written);
            for line in text.lines().filter(|line| is_shallow(line)) {
                serde_json::from_str::<serde::de::IgnoredAny>(line).expect(line);
            }
        }
    }
});
