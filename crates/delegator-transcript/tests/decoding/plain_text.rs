//! Streams of an agent that prints text instead of events.

use delegator_transcript::{
    AssumedThread, Dialect, FoldOptions, Framer, LineLimits, LineSummarizer, NormalizeOptions, Normalizer,
    Report, StreamOutcome, Summarizer,
};

fn options() -> FoldOptions {
    FoldOptions { dialect: Some(Dialect::Plain), ..FoldOptions::default() }
}

fn report(bytes: &[u8]) -> Report {
    let mut summarizer = Summarizer::new(options(), LineLimits::STANDARD);
    summarizer.push(bytes);
    summarizer.finish()
}

fn message(report: &Report) -> &str {
    report.final_message.as_ref().map_or("", |message| &message.text)
}

#[test]
fn all_lines_are_the_final_message() {
    let report = report(b"first \xff\n\n  {\"type\":\"turn.failed\"}\nlast");
    assert_eq!(message(&report), "first \u{fffd}\n\n  {\"type\":\"turn.failed\"}\nlast");
    assert_eq!(report.outcome, StreamOutcome::NotAnnounced, "the exit code decides");
    assert_eq!((report.turns, report.counts.lines, report.counts.events), (1, 4, 4));
    assert_eq!((report.thread_id, report.usage, report.dialect), (None, None, Some(Dialect::Plain)));
}

#[test]
fn silence_is_no_message() {
    let report = report(b"");
    assert_eq!((report.final_message.as_ref(), &report.outcome), (None, &StreamOutcome::NotAnnounced));
}

#[test]
fn the_message_is_bounded() {
    let line = "é".repeat(1 << 10) + "\n";
    let report = report((line.repeat(1 << 10) + "the end").as_bytes());
    let message = report.final_message.unwrap();
    assert!(message.truncated && message.text.len() <= 1 << 20, "{}", message.text.len());
    assert!(message.text.ends_with("é\nthe end"), "the end of what was printed matters");
    assert_eq!(message.bytes, (line.len() << 10) as u64 + 7);
    let long = self::report(&vec![b'x'; 9 << 20]).final_message.unwrap();
    assert_eq!((long.truncated, long.bytes), (true, 9 << 20));
}

#[test]
fn the_last_line_is_the_activity() {
    let mut summarizer = LineSummarizer::new(options());
    assert_eq!(summarizer.report().current_activity, None);
    Framer::default().push(b"reading\n  \x1b[1mcompiling\x1b[0m x\n\n", |line| {
        assert!(summarizer.push_line(&line).is_activity);
    });
    assert_eq!(summarizer.report().current_activity.as_deref(), Some("compiling x"));
}

#[test]
fn lines_are_normalised_to_messages() {
    let options = NormalizeOptions { dialect: Some(Dialect::Plain), ..NormalizeOptions::default() };
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD)
        .with_thread(AssumedThread::Known("thread-1".to_owned()));
    let mut out = Vec::new();
    normalizer.push(b"one \"two\"\n", &mut out);
    assert_eq!(normalizer.finish(&mut out).lost_lines(), 0);
    let expected = "{\"type\":\"thread.started\",\"thread_id\":\"thread-1\"}\n\
        {\"type\":\"turn.started\"}\n\
        {\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"one \\\"two\\\"\"}}\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
